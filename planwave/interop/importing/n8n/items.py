"""Steps of n8n that make, join and collect items."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.javascript.values import STRING
from planwave.interop.importing.n8n.answers import ITEMS as ANSWER_ITEMS
from planwave.interop.importing.n8n.answers import gives_items
from planwave.interop.importing.n8n.kinds import Kind, Making, literal_data
from planwave.interop.importing.n8n.placement import split_problem
from planwave.interop.importing.n8n.workflow import SAME, Envelope, Step, Workflow
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
    has_dots = making.options.get("dotNotation") is not False
    parts = tuple(name.split(".")) if has_dots else (name,)
    if name.startswith("=") or not all(parts) or (has_dots and "[" in name):
        making.step.node.lose("the name of a field is calculated, or one in a list", name, pointer)
        return ()
    if len(parts) > 1 and any(part.isdecimal() for part in parts):
        making.step.node.lose("the name of a field is one in a list", name, pointer)
        return ()
    return parts


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
    made = making.fields.whole(written, f"{making.at}/jsonOutput")
    if include or made is None:
        shown = json.dumps(written, default=str)
        making.lose("its JSON is calculated, and joined to other fields", shown, "jsonOutput")
        making.becomes("transform", {"expression": "{{ input }}"})
        return
    if made.kinds != STRING:
        making.becomes("transform", {"expression": made.template})
        return
    text = making.becomes("text", {"text": made.template}, suffix="text")
    parsed = making.becomes("transform", {"expression": "{{ input | fromjson }}"})
    new_edge(making.graph, text.id, parsed.id)


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
    """Join two objects to one; what gives several items is lost."""
    ways = making.workflow.into(making.step.name)
    mode = text_of(making.parameters, "mode") or "append"
    combine = text_of(making.parameters, "combineBy") or text_of(
        making.parameters, "combinationMode"
    )
    names = [making.workflow.steps[name] for name in making.workflow.origins(making.step.name)]
    if _BY_POSITION & {mode, combine} and len(ways) == 2 and ways[0].input != ways[1].input:
        if any(step.envelope != SAME for step in names):
            making.lose("what it joins has several forms", mode, "mode")
        merged = making.becomes("merge", suffix="both")
        both = making.becomes("transform", {"expression": "{{ dict(input[0], **input[1]) }}"})
        new_edge(making.graph, merged.id, both.id)
        making.step.node.change("the two are one object here, as the first items of both there")
        return
    making.becomes("merge")
    making.step.node.lose(
        "it hands on several items, for each of which the next steps run",
        " ".join(filter(None, (mode, combine))),
        f"{making.at}/mode",
        code="import-many-items",
    )


_BY_POSITION: Final = frozenset(("combineByPosition", "mergeByPosition"))


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
        source = text_of(each, "fieldToAggregate")
        is_renamed = each.get("renameField") is True
        target = text_of(each, "outputFieldName") if is_renamed else source.rpartition(".")[2]
        if source.startswith("=") or "." in source or not source or not target:
            making.lose("a field that it aggregates is calculated or nested", source)
            continue
        fields[target] = inserted(f"{items} | map(attribute={quoted(source)}) | list")
    if making.options:
        making.lose("its options change which values it keeps", json.dumps(dict(making.options)))
    making.becomes("transform", {"fields": fields})


def _split_out(making: Making) -> None:
    """Make the list of a splitOut whose items the next step takes."""
    name, problem = text_of(making.parameters, "fieldToSplitOut"), split_problem(making.step)
    if problem:
        making.lose(problem, name, "fieldToSplitOut")
    making.becomes("transform", {"expression": inserted(path("input", name.strip().split(".")))})


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
        "splitOut": Kind(_split_out, envelope=_no_fields),
        "splitInBatches": Kind(_batches, _two_outputs),
    }
)
