"""Texts with ``{{ references }}`` as templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from planwave.interop.importing.flowise.rich_text import plain_text
from planwave.interop.importing.flowise.steps import (
    Expression,
    Missing,
    Part,
    Step,
    content_of,
    of_top,
    template_of,
)
from planwave.interop.importing.reading import text_of
from planwave.interop.importing.secrets import MARK
from planwave.interop.importing.templates import output_of, path, quoted

_REFERENCE: Final = re.compile(r"\{\{([^{}\n]{0,400})\}\}")
_OF_OUTPUT: Final = re.compile(r"(?P<node>.*?)\.output\.(?P<path>.+)")
_FIELD: Final = re.compile(r"[^.\[\]]+")
_UNKNOWN: Final[Mapping[str, str]] = {
    "chat_history": "the earlier turns of the chat as one text have no counterpart",
    "current_date_time": "templates here do not know the time",
    "runtime_messages_length": "the number of messages of the run has no counterpart",
    "loop_count": "the number of rounds of a loop has no counterpart",
    "file_attachment": "the text of attached files is part of the message here",
}
_SPACES: Final[Mapping[str, str]] = {
    "$flow.state.": "the state of a flow has no counterpart: {ref}",
    "$flow.": "this fact of a run has no counterpart: {ref}",
    "$vars.": "variables of Flowise stand outside the file: {ref}",
    "$webhook.": "what a webhook of Flowise brings has no counterpart: {ref}",
}


def text_at(step: Step, name: str, fields: Mapping[str, Any] | None = None) -> str:
    """Return a setting as plain text, with its references as they are written."""
    value = (step.inputs if fields is None else fields).get(name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return plain_text(text_of({"value": value}, "value"))


def parts_of(step: Step, text: str, pointer: str) -> list[Part]:
    """Return literal parts of a text and what reads its references; the step is lost where nothing does."""
    if MARK in text:
        step.lose("a secret stands in it, which was not copied", text, pointer)
    made: list[Part] = []
    position = 0
    for match in _REFERENCE.finditer(text):
        if match.start() > position:
            made.append(text[position : match.start()])
        found = _resolve(step, match[1].strip().replace("\\", ""), match[0])
        if isinstance(found, Missing):
            step.lose(found.message, match[0], pointer, found.code)
            made.append(match[0])
        else:
            made.append(found)
        position = match.end()
    if position < len(text):
        made.append(text[position:])
    return made


def template_at(step: Step, name: str) -> str:
    """Return a setting as a template."""
    return template_of(parts_of(step, text_at(step, name), f"/{name}"))


def _resolve(step: Step, reference: str, written: str) -> Expression | Missing:
    flow = step.flow
    if reference == "question":
        if flow.start is None:
            return Missing("nothing in the file takes the question")
        return _of_start(step, flow.question or '""')
    if reference.startswith("$form."):
        if not flow.form:
            return Missing("the flow has no form")
        value = path(flow.form, fields_of(reference.removeprefix("$form.")))
        return _of_start(step, f'{value} | default("")')
    if reference == "$iteration" or reference.startswith("$iteration."):
        return _of_item(step, reference)
    if reference in _UNKNOWN:
        return Missing(_UNKNOWN[reference])
    for space, message in _SPACES.items():
        if reference.startswith(space):
            return Missing(message.format(ref=reference))
    return _of_step(step, reference, written)


def _of_start(step: Step, value: str) -> Expression | Missing:
    expression = of_top(step, value)
    return Expression(expression) if expression else Missing("the start does not lead to it")


def _of_item(step: Step, reference: str) -> Expression | Missing:
    if step.scope.region is None:
        return Missing("it reads an item outside of an iteration")
    fields = fields_of(reference.removeprefix("$iteration"))
    if not fields:
        return Expression("item")
    return Expression(f"({path('item', fields)} if item is mapping else item)")


def _of_step(step: Step, reference: str, written: str) -> Expression | Missing:
    match = _OF_OUTPUT.fullmatch(reference)
    name = match["node"] if match else reference
    owner = step.flow.by_id.get(name)
    if owner is None:
        return Missing(f"it refers to {name!r}, which is no step of the flow", "import-dangling")
    region = step.scope.region
    is_here = owner.scope is step.scope
    reader = step if is_here or region is None else region
    if owner.scope is not reader.scope:
        return Missing(f"step {owner.node.name!r} stands inside another one")
    if not owner.scope.is_before(owner, reader):
        return Missing(f"step {owner.node.name!r} does not run before it")
    value = _output(owner, match["path"] if match else "")
    if value is None:
        return Missing(f"{reference!r} has no counterpart here")
    if not owner.scope.has_run(owner, reader):
        value = _if_it_ran(owner, value, written)
    return Expression(value if is_here else step.scope.captures(value))


def _if_it_ran(owner: Step, value: str, written: str) -> str:
    """Return a value, or else the reference as it is written: that is what stays of it there."""
    return f"({value} if {owner.ran} else {quoted(written)})"


def _output(owner: Step, wanted: str) -> str | None:
    content = content_of(owner)
    if not wanted or wanted == "content":
        return content
    if owner.node.outcome == "placeholder":
        return path(output_of(owner.main.id), fields_of(wanted))
    fields = fields_of(wanted)
    for length in range(len(fields), 0, -1):
        known = owner.fields.get(".".join(map(str, fields[:length])))
        if known is not None:
            return path(known, fields[length:])
    return None


def fields_of(written: str) -> Sequence[str | int]:
    """Return the fields of a path such as ``items[0].name``."""
    return [
        int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name.strip("\"'")
        for name in _FIELD.findall(written)
    ]
