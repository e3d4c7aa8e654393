"""list-operator steps as ``transform``: a list filtered, ordered and cut by filters of templates."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.dify.steps import Step
from planwave.interop.importing.dify.values import (
    Read,
    ValueKind,
    as_list,
    concatenated,
    selector_of,
)
from planwave.interop.importing.reading import number_of, object_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, output_of

_TEXT_FILTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "start with": 'select("startingwith", {})',
        "end with": 'select("endingwith", {})',
        "is": 'select("eq", {})',
        "is not": 'reject("eq", {})',
        "in": 'select("in", {})',
        "not in": 'reject("in", {})',
        "empty": 'select("eq", "")',
        "not empty": 'reject("eq", "")',
    }
)
_NUMBER_FILTERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "=": 'select("eq", {})',
        "≠": 'reject("eq", {})',
        "<": 'select("lt", {})',
        "≤": 'select("le", {})',
        ">": 'select("gt", {})',
        "≥": 'select("ge", {})',
    }
)
FILTERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {"array[string]": _TEXT_FILTERS, "array[number]": _NUMBER_FILTERS}
)
"""The filter of each operator, by the type of the list; ``{}`` is what items are compared with."""
_SORTS: Final[Mapping[str, str]] = MappingProxyType(
    {"array[string]": "sort(case_sensitive=true, reverse={})", "array[number]": "sort(reverse={})"}
)
_FILES: Final = "array[file]"
_FILES_BY_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    {"image": "images", "document": "files"}
)
"""What a chat here has of the types of files."""


def list_operator(step: Step) -> None:
    """Become a ``transform``."""
    var_type = text_of(step.data, "var_type")
    items = _files(step) if var_type == _FILES else _filtered(step, var_type)
    if _is_on(step, "extract_by"):
        message = "it takes the item at one place, and fails where there is none"
        step.lose(message, object_of(step.data, "extract_by").get("serial"), "/extract_by")
    if _is_on(step, "order_by"):
        items = _sorted(step, var_type, items)
    limit = object_of(step.data, "limit")
    if limit.get("enabled") is True:
        size = number_of(limit, "size")
        if size is None or size < 0:
            step.lose("the length of its list is not known", limit.get("size"), "/limit/size")
        items = f"({items})[:{int(size or 0)}]"
    main = step.becomes("transform", {"expression": inserted(items)})
    result = output_of(main.id)
    kind: ValueKind = "text" if var_type == "array[string]" else "any"
    step.outputs["result"] = Read(result, kind="list")
    for name, end in (("first_record", "first"), ("last_record", "last")):
        step.outputs[name] = Read(f"({result} | {end} if {result} else none)", kind=kind)


def _is_on(step: Step, name: str) -> bool:
    return object_of(step.data, name).get("enabled") is True


def _files(step: Step) -> str:
    """Return an expression of files of a chat, which are images and others here."""
    filtering = object_of(step.data, "filter_by")
    conditions = [condition for _, condition in objects_in(filtering, "conditions")]
    condition = conditions[0] if len(conditions) == 1 else object_of(filtering, "")
    types = as_list(condition.get("value")) or []
    is_by_type = filtering.get("enabled") is True and (
        text_of(condition, "key"),
        text_of(condition, "comparison_operator"),
    ) == ("type", "in")
    name = _FILES_BY_TYPE.get(str(types[0])) if len(types) == 1 else None
    if name is None or not is_by_type or selector_of(step.data.get("variable")) != ("sys", "files"):
        step.lose("it looks into the properties of files", filtering, "/filter_by")
        return "[]"
    if name == "files":
        step.node.change("all files of a message that are no images count as documents")
    read = step.read(["sys", name], "/variable")
    return "[]" if read is None else read.operand


def _filtered(step: Step, var_type: str) -> str:
    """Return an expression of the items that fulfil all conditions."""
    known = FILTERS.get(var_type)
    read = step.read(step.data.get("variable"), "/variable")
    if known is None:
        step.lose("a list of this type has no counterpart", var_type, "/var_type")
    if known is None or read is None:
        return "[]"
    items = f"({read.operand} or [])"
    filtering = object_of(step.data, "filter_by")
    conditions = objects_in(filtering, "conditions") if filtering.get("enabled") is True else []
    for number, condition in conditions:
        pointer = f"/filter_by/conditions/{number}"
        form = known.get(text_of(condition, "comparison_operator"))
        if form is None:
            step.lose("this filter of lists has no counterpart", condition, pointer)
            continue
        items += f" | {form.format(_compared(step, condition, var_type, pointer))}"
    return f"{items} | list"


def _compared(step: Step, condition: Mapping[str, Any], var_type: str, pointer: str) -> str:
    value = text_of(condition, "value")
    text = concatenated(step.parts(value, f"{pointer}/value"))
    if var_type == "array[string]":
        return text
    if "{{#" in value:
        return f"({text} | float)"
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if number - number != 0:
        step.lose("it compares numbers with what is none", value, f"{pointer}/value")
        return "0"
    return repr(number)


def _sorted(step: Step, var_type: str, items: str) -> str:
    form, order = _SORTS.get(var_type), text_of(object_of(step.data, "order_by"), "value")
    if form is None or order not in ("asc", "desc"):
        step.lose("this order of a list has no counterpart", order, "/order_by")
        return items
    return f"({items}) | {form.format('true' if order == 'desc' else 'false')}"
