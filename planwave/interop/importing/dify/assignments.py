"""Variables of loops, and the assigner steps inside that set them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from planwave.interop.importing.dify.conversation import CONVERSATION
from planwave.interop.importing.dify.steps import Scope, Step
from planwave.interop.importing.dify.values import (
    Missing,
    Read,
    ValueKind,
    concatenated,
    selector_of,
)
from planwave.interop.importing.reading import json_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, json_expression, output_of

_EMPTY: Final = {"string": '""', "number": "0", "object": "{}", "boolean": "false"}


class Assignment(NamedTuple):
    """What one entry of an assigner says."""

    selector: tuple[str, ...]
    operation: str
    value: object
    is_constant: bool
    pointer: str


def assignments_of(step: Step) -> list[Assignment]:
    """Return what an assigner sets, in either form that files have."""
    old = selector_of(step.data.get("assigned_variable_selector"))
    if old:
        mode = text_of(step.data, "write_mode") or "over-write"
        return [Assignment(old, mode, step.data.get("input_variable_selector"), False, "")]
    return [
        Assignment(
            selector_of(item.get("variable_selector")),
            text_of(item, "operation") or "over-write",
            item.get("value"),
            text_of(item, "input_type") == "constant",
            f"/items/{number}",
        )
        for number, item in objects_in(step.data, "items")
    ]


def assigner(step: Step) -> None:
    """Become a ``transform`` inside a loop whose variables it sets; else a placeholder."""
    assigned = assignments_of(step)
    region = step.scope.region
    variables = None if region is None else step.app.loop_variables.get(region)
    if (
        variables is None
        or not assigned
        or any(
            len(each.selector) != 2
            or each.selector[0] != variables.step.id
            or each.selector[1] not in variables.kinds
            for each in assigned
        )
    ):
        if assigned and all(map(partial(_is_unread, step), assigned)):
            _set_unread(step, assigned)
        else:
            _placeholder(step, assigned)
        return
    fields: dict[str, str] = {}
    for each in assigned:
        name = each.selector[1]
        current = fields.get(name) or variables.current(name, step).operand
        fields[name] = _assigned(step, each, current, variables.types[name])
    data = {"fields": {name: inserted(expression) for name, expression in fields.items()}}
    step.becomes("transform", data)
    for name in fields:
        variables.setters.setdefault(name, []).append(step)


def _is_unread(step: Step, each: Assignment) -> bool:
    """Return whether a step overwrites a variable of the conversation that no step reads."""
    is_whole = each.operation in ("over-write", "set", "clear")
    named = each.selector[:1] == (CONVERSATION,) and len(each.selector) == 2
    return named and is_whole and each.selector[1] not in step.app.conversation.read


def _set_unread(step: Step, assigned: Sequence[Assignment]) -> None:
    """Become a ``transform`` with the values; they do not outlive the run, in which nobody reads them."""
    fields = {each.selector[1]: inserted(_assigned(step, each, "none", "any")) for each in assigned}
    step.becomes("transform", {"fields": fields})
    names = ", ".join(fields)
    step.node.change(f"it sets {names}, which no step reads, in this run alone")


def _placeholder(step: Step, assigned: Sequence[Assignment]) -> None:
    names = [".".join(each.selector) for each in assigned]
    step.placeholder(
        f"it sets {', '.join(names) or 'a variable'}, and variables that outlive a step are not known here",
        hint="pass the value on by edges, or keep it in the memory of a chat",
    )
    for each, name in zip(assigned, names, strict=True):
        step.app.conversion.lose(
            f"{step.pointer}{each.pointer}", f"it sets {name}", name, code="import-placeholder"
        )


def _assigned(step: Step, each: Assignment, current: str, var_type: str) -> str:
    """Return the expression of what a variable is set to."""
    simple = {
        "clear": _EMPTY.get(var_type, "[]" if var_type.startswith("array") else "none"),
        "remove-first": f"{current}[1:]",
        "remove-last": f"{current}[:-1]",
    }.get(each.operation)
    if simple is not None:
        return simple
    value = _operand(step, each)
    if value is None:
        return "none"
    made = {
        "over-write": value,
        "set": value,
        "append": f"({current} + [{value}])",
        "extend": f"({current} + {value})",
        "+=": f"({current} + {value})",
        "-=": f"({current} - {value})",
        "*=": f"({current} * {value})",
        "/=": f"({current} / {value})",
    }.get(each.operation)
    if made is None:
        step.lose("this operation is not known", each.operation, each.pointer)
        return "none"
    return made


def _operand(step: Step, each: Assignment) -> str | None:
    if not each.is_constant and each.operation != "set":
        read = step.read(each.value, each.pointer)
        return None if read is None else read.operand
    if isinstance(each.value, str):
        return concatenated(step.parts(each.value, each.pointer))
    made = json_expression(each.value)
    if made is None:
        step.lose("this value cannot be carried over", each.value, each.pointer)
    return made


class LoopVariables:
    """The variables of a loop: what they begin with, and which steps inside set them.

    Attributes:
        step: The loop.
        types: Their types there, by name.
        kinds: What is known of their values.
        setters: The assigner steps that set each, in the order in which they run.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self.types: dict[str, str] = {}
        self.kinds: dict[str, ValueKind] = {}
        self.setters: dict[str, list[Step]] = {}
        self._initial: dict[str, str] = {}
        self._readers: list[tuple[str, Step]] = []
        step.app.loop_variables[step] = self
        for number, each in objects_in(step.data, "loop_variables"):
            self._declare(each, f"/loop_variables/{number}")

    def _declare(self, variable: Mapping[str, Any], pointer: str) -> None:
        name, var_type = text_of(variable, "label"), text_of(variable, "var_type")
        if not name.isidentifier():
            self.step.lose("this name of a variable cannot be carried over", name, pointer)
            return
        self.types[name] = var_type
        is_list, is_text = var_type.startswith("array"), var_type == "string"
        self.kinds[name] = "list" if is_list else "text" if is_text else "any"
        if text_of(variable, "value_type") == "variable":
            read = self.step.read(variable.get("value"), f"{pointer}/value")
            self._initial[name] = "none" if read is None else read.else_("none")
            return
        value = _constant(variable.get("value"), var_type)
        made = json_expression(value)
        if isinstance(value, str):
            made = concatenated(self.step.parts(value, f"{pointer}/value"))
        if made is None:
            self.step.lose("its first value cannot be carried over", value, pointer)
        self._initial[name] = made or "none"

    def initial(self) -> dict[str, str]:
        """Return the expressions of their first values."""
        return self._initial

    def read(self, names: Sequence[str], reader: Step) -> Read | Missing:
        """Return what reads a variable where a step inside stands."""
        if names[0] == "index":
            return Read("index", kind="whole")
        if names[0] not in self.kinds:
            return Missing(f"{names[0]!r} is no variable of the loop")
        self._readers.append((names[0], reader))
        return self.current(names[0], reader).field(names[1:])

    def current(self, name: str, reader: Step | None) -> Read:
        """Return what reads a variable after the steps that set it before another one."""
        setters = [
            each for each in self.setters.get(name, ())
            if reader is None or reader.scope.is_before(each, reader)
        ]  # fmt: skip
        if setters:
            return Read(output_of(setters[-1].main.id, "output", [name]), kind=self.kinds[name])
        return Read("value", kind=self.kinds[name]).field([name])._replace(kind=self.kinds[name])

    def results(self) -> dict[str, str]:
        """Return the expressions of their values after a round."""
        return {name: self.current(name, None).expression for name in self.kinds}

    def check(self, body: Scope) -> None:
        """Lose the loop where the order of its steps does not say what a variable is."""
        for name, setters in self.setters.items():
            readers = [reader for read_name, reader in self._readers if read_name == name]
            for setter in setters:
                if not body.is_always_run(setter):
                    self._lose(name, setter)
                for other in (*setters, *readers):
                    is_same = other is setter or other.scope is not body
                    if not (
                        is_same or body.is_before(setter, other) or body.is_before(other, setter)
                    ):
                        self._lose(name, setter)
        for each in body.steps:
            if each.kind == "loop-end":
                self.step.lose("a step inside ends the loop before its round is over", each.id)

    def _lose(self, name: str, setter: Step) -> None:
        title = setter.node.name or setter.id
        self.step.lose(f"{title!r} sets {name!r} on one of several ways through a round", name)


def _constant(value: object, var_type: str) -> Any:
    """Return a first value; numbers, lists and objects stand there as text, too."""
    if not isinstance(value, str) or var_type == "string":
        return value
    if not value.strip():
        return json_of("[]" if var_type.startswith("array") else _EMPTY.get(var_type, "null"))
    try:
        return json_of(value)
    except ValueError:
        return value
