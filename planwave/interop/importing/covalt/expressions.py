"""Expressions of Covalt, and what they see: results there stand in an object, here they are plain.

An agent gives ``{"response": text}`` there and a text here, a completion ``{"text": text}``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from planwave.interop.importing.covalt.flow import LINKED, PASSING, Flow, Step
from planwave.interop.importing.javascript.tokens import Untranslatable
from planwave.interop.importing.javascript.translation import (
    Embedded,
    Roots,
    Value,
    path,
    split,
    template_of,
)
from planwave.interop.importing.javascript.translation import Step as Field
from planwave.interop.importing.javascript.values import structure, undefined
from planwave.interop.importing.templates import output_of, quoted

_ENVELOPES: Final[Mapping[str, str]] = {"agent": "response", "llm-completion": "text"}
_BARE: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*")
_ROOTS: Final = frozenset({"input", "trigger"})
OBJECT, ERROR, MIXED = "object", "error", "mixed"
"""What arrives, where it is no result in an envelope: an object, an error or a result, different things."""


class Scope:
    """What the expressions of one node see.

    Args:
        flow: The graph.
        step: The node.
        ids: The id here of each node that runs as a step, by its id there.
    """

    def __init__(self, flow: Flow, step: Step, ids: Mapping[str, str]) -> None:
        self._flow, self._step, self._ids = flow, step, ids
        self.shape = shape_into(flow, step)
        self._before = flow.before(step)

    @property
    def roots(self) -> Roots:
        """The variables of expressions."""
        return {
            "$input": self._input,
            "input": self._input,
            "$trigger": path("trigger"),
            "trigger": path("trigger"),
            "$": self._other,
        }

    @property
    def may_be_error(self) -> bool:
        """Whether the error of a node before may arrive in place of its result."""
        return any(wire.source.goes_on for wire in self._flow.into(self._step))

    def text(self, text: str, pointer: str) -> str:
        """Return the template of a text; an expression that cannot be said is lost.

        A name alone in braces is no expression there, and stays.
        """
        parts = [self._as_written(part) for part in split(text)]
        try:
            return template_of(parts, self.roots).template if parts else ""
        except Untranslatable as error:
            self._step.node.lose(f"its expression has no counterpart here: {error}", text, pointer)
            return ""

    def value(self, value: Any, pointer: str) -> Any:
        """Return a value with the templates of the texts in it."""
        if isinstance(value, str) and type(value) is str:
            return self.text(value, pointer)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {k: self.value(v, f"{pointer}/{k}") for k, v in fields.items()}
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self.value(v, f"{pointer}/{i}") for i, v in enumerate(items)]
        return value

    def code(self, code: str) -> str | None:
        """Return the template of a program that returns one expression, or None."""
        match = re.fullmatch(r"\s*return\b(.*?);?\s*", code, re.DOTALL)
        if match is None:
            return None
        try:
            return template_of([Embedded(match[1])], self.roots).template
        except Untranslatable:
            return None

    def looked_up(self, template: str, pointer: str) -> str:
        """Return a text whose names in braces are fields of the input; what is missing is empty."""
        return self._with_names(template, pointer, self._field)

    def field_of_input(self, field: str) -> str:
        """Return the dotted path of a field here: without the envelope; "" for all of the input."""
        envelope = self.shape if self.shape in _ENVELOPES.values() else ""
        if envelope and (field == envelope or field.startswith(f"{envelope}.")):
            return field[len(envelope) + 1 :]
        return field

    def _with_names(self, template: str, pointer: str, name: Callable[[str], str]) -> str:
        written: list[str] = []
        for part in split(template):
            names = (
                re.fullmatch(r"\s*([A-Za-z_]\w*(?:\.\w+)*)\s*", part.text)
                if isinstance(part, Embedded)
                else None
            )
            if names is not None and names[1] not in _ROOTS:
                written.append(name(names[1]))
            else:
                text = self.text(part if isinstance(part, str) else f"{{{{{part.text}}}}}", pointer)
                written.append(text)
        joined = "".join(written)
        return f"{joined}{{{{ '' }}}}" if len(written) == 1 and joined.startswith("{{") else joined

    def _field(self, name: str) -> str:
        try:
            names = name.split(".")
            value, taken = self._input([Field(name=each) for each in names])
            for each in names[taken:]:
                value = value.field(each)
        except Untranslatable as error:
            self._step.node.lose(f"a name of its template has no counterpart: {error}", name)
            return ""
        return f"{{{{ {value.guarded(repr(''))} }}}}"

    @staticmethod
    def _as_written(part: str | Embedded) -> str | Embedded:
        if isinstance(part, Embedded) and (match := _BARE.fullmatch(part.text)):
            return part if match[1] in _ROOTS else f"{{{{{part.text}}}}}"
        return part

    def _input(self, steps: Sequence[Field]) -> tuple[Value, int]:
        """Return what arrived, as it would be there."""
        if not self.shape:
            raise Untranslatable("what arrives, as nothing leads here")
        if self.shape in (OBJECT, ERROR):
            return path("input"), 0
        if self.shape == MIXED:
            raise Untranslatable("what arrives, which has different forms")
        text = "input"
        if self.may_be_error:
            text = "(input if input is string else none)"
        return _unpacked(text, self.shape, steps)

    def _other(self, steps: Sequence[Field]) -> tuple[Value, int]:
        """Return what another node gave: ``$('name').item.json``."""
        called, *rest = steps or (Field(),)
        name = called.arguments[0] if called.arguments else None
        if [each.name for each in rest[:2]] != ["item", "json"]:
            raise Untranslatable("more of another node than its item.json")
        step = self._named(str(name))
        if step is None or step.id not in self._before or step.kind in LINKED:
            raise Untranslatable(f"the node {name!r}, which does not lead here")
        self._flow.named.append((self._step, step))
        text = output_of(self._ids[step.id])
        envelope = _ENVELOPES.get(step.kind)
        if envelope is None and step.kind in PASSING:
            raise Untranslatable(f"the node {name!r}, which only hands on")
        if envelope is None or not step.goes_on:
            value, taken = (
                (path(text), 0) if envelope is None else _unpacked(text, envelope, rest[2:])
            )
            return value, taken + 3
        raise Untranslatable(f"the node {name!r}, which may have failed")

    def _named(self, name: str) -> Step | None:
        """Return the node with a label, the last one of several, or else the one with an id."""
        labelled = [each for each in self._flow.steps if each.label == name]
        if labelled:
            return labelled[-1]
        return next((each for each in self._flow.steps if each.id == name), None)


def shape_into(flow: Flow, step: Step, seen: frozenset[str] = frozenset()) -> str:
    """Return the form of what arrives at the input of a node: an envelope, ``object``, or ""."""
    shapes = {shape_of(flow, wire.source, seen) for wire in flow.into(step, *_INPUTS)}
    return next(iter(shapes)) if len(shapes) == 1 else (MIXED if shapes else "")


_INPUTS: Final = ("input", "body", "data")


def shape_of(flow: Flow, step: Step, seen: frozenset[str] = frozenset()) -> str:
    """Return the form of what a node gives."""
    if step.id in seen:
        return MIXED
    if step.kind in PASSING and flow.into(step, *_INPUTS):
        return shape_into(flow, step, seen | {step.id})
    if step.kind == "merge":
        enveloped = {shape_of(flow, w.source, seen | {step.id}) for w in flow.into(step)}
        return MIXED if enveloped & {*_ENVELOPES.values(), MIXED} else OBJECT
    return _ENVELOPES.get(step.kind, OBJECT)


def message_of(scope: Scope, *, is_chat: bool) -> str:
    """Return the template of the message in what arrives at a node that asks a model."""
    if is_chat:
        return "{{ input.message }}"
    if scope.shape in _ENVELOPES.values() and not scope.may_be_error:
        return "{{ input }}"
    names = ("text", "message", "response", "content")
    text = "''"
    for name in reversed(names):
        text = f"(input.{name} if input.{name} is defined else {text})"
    return f"{{{{ {text} if input is mapping else input }}}}"


def _unpacked(text: str, envelope: str, steps: Sequence[Field]) -> tuple[Value, int]:
    """Return a plain result as the object that it is in there."""
    if not steps or not isinstance(steps[0].name, str):
        return structure(f"{{{quoted(envelope)}: {text}}}", "object"), 0
    if steps[0].name != envelope:
        return undefined(), 1
    return (path(text) if text.startswith(("input", "nodes")) else Value(text)), 1


def duplicate_labels(flow: Flow) -> list[str]:
    """Return labels that several nodes have."""
    counts = Counter(step.label for step in flow.steps)
    return [label for label, count in counts.items() if count > 1]
