"""Condition steps as ``conditional``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from planwave.interop.importing.flowise.references import parts_of, text_at
from planwave.interop.importing.flowise.steps import Expression, Step, expression_of
from planwave.interop.importing.reading import json_of, list_of, text_of
from planwave.interop.importing.templates import inserted, quoted

_OF_TEXT: Final[Mapping[str, Callable[[str, str], str]]] = {
    "contains": lambda a, b: f"{b} in {a}",
    "notContains": lambda a, b: f"{b} not in {a}",
    "startsWith": lambda a, b: f"{a}.startswith({b})",
    "endsWith": lambda a, b: f"{a}.endswith({b})",
    "equal": lambda a, b: f"{a} == {b}",
    "notEqual": lambda a, b: f"{a} != {b}",
    "isEmpty": lambda a, _: f'{a} == ""',
    "notEmpty": lambda a, _: f'{a} != ""',
}
_OF_NUMBER: Final[Mapping[str, Callable[[str, str], str]]] = {
    "smaller": lambda a, b: f"{a} < {b}",
    "smallerEqual": lambda a, b: f"{a} <= {b}",
    "larger": lambda a, b: f"{a} > {b}",
    "largerEqual": lambda a, b: f"{a} >= {b}",
    "equal": lambda a, b: f"{a} == {b}",
    "notEqual": lambda a, b: f"{a} != {b}",
    "isEmpty": lambda _, __: "false",
    "notEmpty": lambda _, __: "true",
}


def condition(step: Step) -> None:
    """Become a ``conditional`` whose handles are the numbers of the outputs; the last one is that of else."""
    conditions = _conditions(step)
    chain = "".join(
        f"{quoted(str(number))} if {_test(step, each, number)} else "
        for number, each in enumerate(conditions)
    )
    handles = [str(number) for number in range(len(conditions) + 1)]
    if not conditions:
        step.lose("it has no conditions", "", "/conditions")
    data = {"condition": inserted(chain + quoted(handles[-1])), "outputHandles": handles[:100]}
    main = step.becomes("conditional", data)
    step.exits = {handle: [(main, handle)] for handle in handles}
    if len(handles) > 100:
        step.lose("a choice here has at most 100 ways", str(len(handles)), "/conditions")


def _conditions(step: Step) -> Sequence[Mapping[str, Any]]:
    value = step.inputs.get("conditions")
    if isinstance(value, str):
        try:
            value = json_of(value)
        except ValueError:
            value = None
    items = list_of({"v": value}, "v")
    return [cast("dict[str, Any]", each) if isinstance(each, dict) else {} for each in items]


def _test(step: Step, fields: Mapping[str, Any], number: int) -> str:
    kind, operation = text_of(fields, "type") or "string", text_of(fields, "operation")
    pointer = f"/conditions/{number}"
    if kind == "boolean":
        return _of_booleans(step, fields, operation, pointer)
    known = {"string": _OF_TEXT, "number": _OF_NUMBER}.get(kind, {}).get(operation)
    if known is None:
        step.lose("this comparison has no counterpart", f"{kind} {operation}", pointer)
        return "false"
    operand = _number if kind == "number" else _text
    return f"({known(operand(step, fields, 'value1', pointer), operand(step, fields, 'value2', pointer))})"


def _of_booleans(step: Step, fields: Mapping[str, Any], operation: str, pointer: str) -> str:
    values = [fields.get(name) for name in ("value1", "value2")]
    if operation not in ("equal", "notEqual") or not all(isinstance(v, bool) for v in values):
        step.lose("this comparison has no counterpart", f"boolean {operation}", pointer)
        return "false"
    return "true" if (values[0] == values[1]) == (operation == "equal") else "false"


def _text(step: Step, fields: Mapping[str, Any], name: str, pointer: str) -> str:
    parts = parts_of(step, text_at(step, name, fields), f"{pointer}/{name}")
    if any(isinstance(part, Expression) for part in parts):
        step.change("Markdown in what is compared counts as text here", f"{pointer}/{name}")
    return expression_of(parts)


def _number(step: Step, fields: Mapping[str, Any], name: str, pointer: str) -> str:
    text = text_at(step, name, fields)
    parts = parts_of(step, text, f"{pointer}/{name}")
    if any(isinstance(part, Expression) for part in parts):
        step.change(
            "a text that is no number fails the step here; there it counts as 0",
            f"{pointer}/{name}",
        )
        return f"({expression_of(parts)} | float)"
    try:
        value = float(text or 0)
    except ValueError:
        step.lose("it compares a number with what is none", text, f"{pointer}/{name}")
        return "0"
    return repr(value) if abs(value) < 1e308 else "0"
