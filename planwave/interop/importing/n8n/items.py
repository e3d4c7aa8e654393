"""Steps of n8n that make, join and collect items."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.javascript.values import STRING, bracketed, constant
from planwave.interop.importing.n8n.answers import ITEMS as ANSWER_ITEMS
from planwave.interop.importing.n8n.answers import gives_items
from planwave.interop.importing.n8n.kinds import Kind, Making, literal_data, path_of_field
from planwave.interop.importing.n8n.placement import split_name, split_problem
from planwave.interop.importing.n8n.workflow import Envelope, Step, Way, Workflow
from planwave.interop.importing.reading import json_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, path, quoted


def _set(making: Making) -> None:
    if making.step.version < 3:
        _old_set(making)
    elif text_of(making.parameters, "mode") == "raw":
        _raw_set(making)
    else:
        _new_set(making)


class _Assigned(NamedTuple):
    """A field that a step sets: where it is, its value, its type, and where that stands."""

    path: tuple[str, ...]
    value: Any
    kind: str
    pointer: str


def _new_set(making: Making) -> None:
    holder = "assignments" if "assignments" in making.parameters else "fields"
    inside = "assignments" if holder == "assignments" else "values"
    given = list[_Assigned]()
    for number, each in objects_in(object_of(making.parameters, holder), inside):
        at = f"{making.at}/{holder}/{inside}/{number}"
        kind = text_of(each, "type").removesuffix("Value") or "string"
        value = each.get("value", each.get(f"{kind}Value"))
        if field := _path_of(making, text_of(each, "name"), at):
            given.append(_Assigned(field, value, kind, f"{at}/value"))
    include = making.parameters.get("includeOtherFields") is True
    which = text_of(making.parameters, "include")
    if which == "all" and making.step.version < 3.3:
        include = True
    elif include and which not in ("", "all"):
        making.lose("only some of the other fields are kept", which, "include")
    making.ignore(frozenset(("dotNotation", "ignoreConversionErrors", "includeBinary")))
    _fields_node(making, given, include)


def _path_of(making: Making, name: str, pointer: str) -> tuple[str, ...]:
    """Return where a field is: inside of others where its name has dots; () for one that is lost."""
    if making.options.get("dotNotation") is False and name and not name.startswith("="):
        return (name,)
    field = path_of_field(name)
    if not field:
        message = "the name of a field is calculated, or one in a list"
        making.step.node.lose(message, name, pointer)
    return field


def _assigned(making: Making, given: _Assigned) -> Any:
    """Return the value of a field as the data of a template field."""
    _, value, kind, pointer = given
    if isinstance(value, str) and not value.startswith("="):
        return literal_data(_typed(making, value, kind, pointer))
    if not isinstance(value, str):
        return making.fields.data(value, pointer)
    made = making.fields.whole(value, pointer)
    return "" if made is None else made.template


def _keeps_its_type(making: Making, given: _Assigned) -> bool:
    """Return whether a value that is no text stands in a field that says it is one."""
    value = given.value
    return given.kind == "string" and (
        isinstance(value, int | float | list | dict)
        or (isinstance(value, str) and value.startswith("={{") and value.endswith("}}"))
    )


def _typed(making: Making, text: str, kind: str, pointer: str) -> Any:
    """Return a literal with the type that its field says."""
    if kind in ("array", "object"):
        try:
            return json_of(text)
        except ValueError:
            making.step.node.lose("a value is no JSON", text, pointer)
            return None
    if kind == "number":
        try:
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text == "true" if kind == "boolean" and text in ("true", "false") else text


def _old_set(making: Making) -> None:
    given = list[_Assigned]()
    values = object_of(making.parameters, "values")
    for kind in values:
        for number, each in objects_in(values, kind):
            at = f"{making.at}/values/{kind}/{number}"
            if field := _path_of(making, text_of(each, "name"), at):
                given.append(_Assigned(field, each.get("value"), kind, f"{at}/value"))
    _fields_node(making, given, making.parameters.get("keepOnlySet") is not True)


def _raw_set(making: Making) -> None:
    written = making.parameters.get("jsonOutput")
    include = making.parameters.get("includeOtherFields") is True
    if isinstance(written, str) and not written.startswith("="):
        try:
            written = json_of(written)
        except ValueError:
            making.lose("its JSON is none", str(written), "jsonOutput")
            written = {}
    if isinstance(written, dict) and not include:
        fields = literal_data(cast("dict[str, Any]", written))
        making.becomes("transform", {"fields": fields})
        return
    at = f"{making.at}/jsonOutput"
    if include:
        fields = _operand(making, written, at)
        joined = f"dict({making.fields.item_text()}, **{fields})"
        making.becomes("transform", {"expression": inserted(joined)})
        return
    made = making.fields.whole(written, at)
    if made is None:
        making.lose("its JSON is calculated", json.dumps(written, default=str), "jsonOutput")
        making.becomes("transform", {"expression": "{{ input }}"})
        return
    if made.kinds != STRING:
        making.becomes("transform", {"expression": made.template})
        return
    text = making.becomes("text", {"text": made.template}, suffix="text")
    parsed = making.becomes("transform", {"expression": "{{ input | fromjson }}"})
    new_edge(making.graph, text.id, parsed.id)


def _operand(making: Making, written: Any, pointer: str) -> str:
    """Return JSON that is written there or calculated as an operand."""
    if isinstance(written, dict):
        return _literal_text(cast("dict[str, Any]", written))
    made = making.fields.whole(written, pointer)
    if made is None or not isinstance(written, str):
        making.lose("its JSON is calculated", json.dumps(written, default=str), "jsonOutput")
        return "{}"
    text = making.fields.expression(written, pointer)
    return f"({text} | fromjson)" if made.kinds == STRING else bracketed(text)


def _literal_text(value: Any) -> str:
    """Return JSON as an expression of planwave."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return f"{{{', '.join(f'{quoted(k)}: {_literal_text(v)}' for k, v in fields.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_literal_text(each) for each in cast('list[Any]', value))}]"
    return constant(value).atom


def _fields_node(making: Making, given: Sequence[_Assigned], include: bool) -> None:
    """Make an object of fields, with those of what arrives before them if they are kept."""
    texts = [".".join(each.path) for each in given if _keeps_its_type(making, each)]
    if texts:
        making.step.node.change(
            f"fields of the type string keep the type of their value here ({', '.join(texts)})"
        )
    if not include:
        making.becomes("transform", {"fields": _tree(making, given, _assigned)})
        return
    tree = _tree(making, given, _expression)
    arriving = making.fields.item_text()
    making.becomes("transform", {"expression": inserted(_with_fields(arriving, tree))})


def _expression(making: Making, given: _Assigned) -> str:
    """Return the value of a field as an operand."""
    value = given.value
    if isinstance(value, str) and not value.startswith("="):
        value = _typed(making, value, given.kind, given.pointer)
    return making.fields.expression(value, given.pointer)


class _Inner(dict[str, Any]):
    """The fields inside of a field whose name has dots."""


def _tree(
    making: Making, given: Sequence[_Assigned], value_of: Callable[[Making, _Assigned], Any]
) -> dict[str, Any]:
    """Return the values by their names, with an object for each part of a name before a dot."""
    tree = dict[str, Any]()
    for each in given:
        value, inside = value_of(making, each), tree
        *around, last = each.path
        for name in around:
            inner = inside.setdefault(name, _Inner())
            if not isinstance(inner, _Inner):
                making.lose("a field is set inside of another one that is set", ".".join(each.path))
                inner = _Inner()
            inside = inner
        inside[last] = value
    return tree


def _with_fields(object_text: str, fields: Mapping[str, Any]) -> str:
    """Return an expression for an object with other fields, of which those inside of it stay, too."""
    pairs = list[str]()
    for name, value in fields.items():
        text = value
        if isinstance(value, _Inner):
            own = path(object_text, [name])
            text = _with_fields(f"({own} if {own} is mapping else {{}})", value)
            text = f"({own} if {own} is defined and {own} is sequence else {text})"
        pairs.append(f"{quoted(name)}: {text}")
    return f"dict({object_text}, **{{{', '.join(pairs)}}})" if pairs else object_text


def _merge(making: Making) -> None:
    """Join what arrives to one object, or choose one of them; what gives several items is lost."""
    mode = text_of(making.parameters, "mode") or "append"
    combine = text_of(making.parameters, "combineBy") or text_of(
        making.parameters, "combinationMode"
    )
    ways = making.workflow.into(making.step.name)
    is_alone = not making.graph.path  # in a loop over items, its inputs have one item at a time
    if mode == "append" and making.placement.are_exclusive(ways):
        making.becomes("transform", {"expression": inserted(making.fields.item_text())})
        return
    if len({way.input for way in ways}) == len(ways) > 1:
        if _BY_POSITION & {mode, combine} or (is_alone and combine in _EACH_WITH_EACH):
            _join(making, ways)
            return
        if mode == "chooseBranch":
            _choose(making, ways)
            return
        if is_alone and mode == "append" and gives_items(making.workflow, making.step):
            items = ", ".join(_items_of_ways(making, ways))
            _merged(making, f"[{items}]")
            making.step.envelope = Envelope({})
            return
    making.becomes("merge")
    making.step.node.lose(
        "it hands on several items, for each of which the next steps run",
        " ".join(filter(None, (mode, combine))),
        f"{making.at}/mode",
        code="import-many-items",
    )


_BY_POSITION: Final = frozenset(("combineByPosition", "mergeByPosition", "mergeByIndex"))
_EACH_WITH_EACH: Final = frozenset(("combineAll", "multiplex"))
"""Ways to join of which, for one item on each input, there is one result."""


def _merged(making: Making, expression: str) -> None:
    merged = making.becomes("merge", suffix="both")
    result = making.becomes("transform", {"expression": inserted(expression)})
    new_edge(making.graph, merged.id, result.id)


def _items_of_ways(making: Making, ways: Sequence[Way]) -> list[str]:
    return [making.fields.item_on(way, f"input[{number}]") for number, way in enumerate(ways)]


def _join(making: Making, ways: Sequence[Way]) -> None:
    """Join the fields of all inputs; of one that several have, the last one stays."""
    items = _items_of_ways(making, ways)
    clash = object_of(object_of(making.options, "clashHandling"), "values")
    resolved = text_of(clash, "resolveClash")
    if resolved == "preferInput1":
        items.reverse()
    elif resolved not in ("", "preferLast", f"preferInput{len(items)}"):
        making.lose("how fields are joined that several inputs have", resolved, "options")
    if clash.get("overrideEmpty") is True:
        making.lose("fields that are empty do not replace others", "overrideEmpty", "options")
    joined = items[0]
    for item in items[1:]:
        joined = f"dict({joined}, **{item})"
    _merged(making, joined)
    making.step.node.change(
        "its inputs are one object here, as their first items there; a field that several have is "
        "that of one of them, also if it is an object"
    )


def _choose(making: Making, ways: Sequence[Way]) -> None:
    """Hand on what one input has, when all have arrived."""
    output = text_of(making.parameters, "output") or (
        "input1" if making.step.version < 3 else "specifiedInput"
    )
    chosen = text_of(making.parameters, "useDataOfInput") or "1"
    if output != "specifiedInput":
        chosen = output.removeprefix("input")
    numbers = [number for number, way in enumerate(ways) if str(way.input + 1) == chosen]
    if output == "empty":
        _merged(making, "{}")
    elif numbers:
        _merged(making, making.fields.item_on(ways[numbers[0]], f"input[{numbers[0]}]"))
    else:
        _merged(making, "{}")
        making.lose("which of its inputs it hands on", f"{output} {chosen}", "output")


def _limit(making: Making) -> None:
    """Keep one of several items, or the one that arrives."""
    most = making.parameters.get("maxItems", 1)
    sources = [making.workflow.steps[way.source] for way in making.workflow.into(making.step.name)]
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        making.lose("how many items it keeps is calculated", str(most), "maxItems")
    if any(gives_items(making.workflow, each) for each in sources):
        end = "last" if text_of(making.parameters, "keep") == "lastItems" else "first"
        making.becomes("transform", {"expression": inserted(f"{ANSWER_ITEMS} | {end}")})
        return
    if making.graph.path:
        making.lose("how many items a loop is run for", str(most), "maxItems")
    making.becomes("transform", {"expression": inserted(making.fields.item_text())})


def _stop(making: Making) -> None:
    """Fail: a conditional whose value is none of its outputs does, and its error tells the value."""
    kind = text_of(making.parameters, "errorType") or "errorMessage"
    message = making.fields.template(making.parameters.get(kind, ""), f"{making.at}/{kind}")
    if kind == "errorObject" or not message:
        making.lose("its error is an object, or empty", kind, "errorType")
    data = {"condition": f"Stopped: {message}", "outputHandles": ["none"]}
    making.becomes("conditional", data)
    making.step.node.change("its message is part of the error of a conditional here")


def _no_outputs(step: Step) -> list[str]:
    return []


def _html(making: Making) -> None:
    """Fill in a template; taking values out of a page has no counterpart."""
    operation = text_of(making.parameters, "operation") or "generateHtmlTemplate"
    if operation != "generateHtmlTemplate":
        making.lose(f"the operation {operation}", operation, "operation")
    written = text_of(making.parameters, "html")
    text = making.fields.template(f"={written.removeprefix('=')}", f"{making.at}/html")
    making.becomes("text", {"text": text})


def _html_envelope(workflow: Workflow, step: Step) -> Envelope:
    return Envelope({("html",): ("output", ())})


def _pass(making: Making) -> None:
    making.becomes("transform", {"expression": "{{ input }}"})


def _aggregate(making: Making) -> None:
    sources = [making.workflow.steps[way.source] for way in making.workflow.into(making.step.name)]
    is_list = any(
        each.kind in ("splitOut",)
        or each.name not in making.placement.graphs
        or making.placement.graphs[each.name] is not making.graph
        or each.kind == "splitInBatches"
        for each in sources
    )
    items = "input" if is_list else "[input]"
    if any(gives_items(making.workflow, each) for each in sources):
        items = ANSWER_ITEMS
    if text_of(making.parameters, "aggregate") == "aggregateAllItemData":
        name = text_of(making.parameters, "destinationFieldName") or "data"
        if text_of(making.parameters, "include") not in ("", "allFields"):
            making.lose(
                "only some fields of the items are kept", text_of(making.parameters, "include")
            )
        making.becomes("transform", {"fields": {name: inserted(items)}})
        return
    fields = dict[str, Any]()
    for _, each in objects_in(
        object_of(making.parameters, "fieldsToAggregate"), "fieldToAggregate"
    ):
        source = path_of_field(text_of(each, "fieldToAggregate"))
        is_renamed = each.get("renameField") is True
        target = text_of(each, "outputFieldName") if is_renamed else "".join(source[-1:])
        if not source or not target or target.startswith("="):
            making.lose(
                "a field that it aggregates is calculated", text_of(each, "fieldToAggregate")
            )
            continue
        fields[target] = inserted(_values(making, items, source))
    lost = {k: v for k, v in making.options.items() if k not in _AGGREGATE_OPTIONS and v}
    if lost:
        making.lose("its options change which values it keeps", json.dumps(lost))
    making.becomes("transform", {"fields": fields})


_AGGREGATE_OPTIONS: Final = frozenset(("includeBinaries", "keepMissing"))


def _values(making: Making, items: str, field: Sequence[str]) -> str:
    """Return the values of a field of all items; items without one are left out unless they are kept."""
    *around, last = field
    values = items
    for name in around:
        values += f" | map(attribute={quoted(name)}) | select({quoted('mapping')})"
    values += f" | map(attribute={quoted(last)})"
    if making.options.get("keepMissing") is not True:
        return f'{values} | reject("undefined") | reject("none") | list'
    if around:
        making.lose("it keeps missing values of a field in another one", ".".join(field))
    return f"{values} | list"


def _split_out(making: Making) -> None:
    """Make the list of a splitOut whose items the next step takes."""
    name, problem = text_of(making.parameters, "fieldToSplitOut"), split_problem(making.step)
    if problem:
        making.lose(problem, name, "fieldToSplitOut")
    items = path("input", path_of_field(name))
    following = [making.workflow.steps[w.target] for w in making.workflow.out_of(making.step.name)]
    if any(each.kind == "aggregate" for each in following):
        if renamed := split_name(making.step):
            making.lose("its items have another name", renamed, "options/destinationFieldName")
        # What is no object would be a field of one there.
        items = f'{items} if not {items} | reject("mapping") | list else {items}.objects_only'
    making.becomes("transform", {"expression": inserted(items)})


def _batches(making: Making) -> None:
    making.becomes("placeholder")
    making.step.node.becomes_placeholder("its items are no loop here")


def _two_outputs(step: Step) -> list[str]:
    return ["output", "output-1"]


def _no_fields(workflow: Workflow, step: Step) -> Envelope:
    return Envelope({})


ITEMS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "set": Kind(_set),
        "merge": Kind(_merge),
        "noOp": Kind(_pass, passes=True),
        "aggregate": Kind(_aggregate),
        "limit": Kind(_limit),
        "stopAndError": Kind(_stop, _no_outputs),
        "html": Kind(_html, envelope=_html_envelope),
        "splitOut": Kind(_split_out, envelope=_no_fields),
        "splitInBatches": Kind(_batches, _two_outputs),
    }
)
