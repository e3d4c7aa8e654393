"""Texts with ``{{ references }}`` as templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from planwave.interop.importing.flowise.conversation import conversation, said_in_run
from planwave.interop.importing.flowise.loops import LOOP, NOTHING, AtEnd, Loop
from planwave.interop.importing.flowise.rich_text import plain_text
from planwave.interop.importing.flowise.state import Latest, read_state
from planwave.interop.importing.flowise.steps import (
    Expression,
    Missing,
    Part,
    Scope,
    Step,
    content_of,
    of_top,
    passed_in,
    template_of,
)
from planwave.interop.importing.reading import text_of
from planwave.interop.importing.secrets import MARK
from planwave.interop.importing.templates import inserted, output_of, path, quoted

_REFERENCE: Final = re.compile(r"\{\{([^{}\n]{0,400})\}\}")
_OF_OUTPUT: Final = re.compile(r"(?P<node>.*?)\.output\.(?P<path>.+)")
_FIELD: Final = re.compile(r"[^.\[\]]+")
_UNKNOWN: Final[Mapping[str, str]] = {
    "current_date_time": "templates here do not know the time",
    "file_attachment": "the text of attached files is part of the message here",
}
_SPEAKING_TEXT: Final = frozenset(
    {
        "llmAgentflow",
        "agentAgentflow",
        "directReplyAgentflow",
        "iterationAgentflow",
        "llmChain",
        "promptTemplate",
    }
)
"""Steps whose content is a text."""
_STATE: Final = "$flow.state."
_SPACES: Final[Mapping[str, str]] = {
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
    if (read := _FACTS.get(reference)) is not None:
        return read(step)
    if reference.startswith("$form."):
        return _of_form(step, reference)
    if reference == "$iteration" or reference.startswith("$iteration."):
        return _of_item(step, reference)
    if reference.startswith(_STATE):
        return read_state(step, fields_of(reference.removeprefix(_STATE)), written)
    if reference in _UNKNOWN:
        return Missing(_UNKNOWN[reference])
    for space, message in _SPACES.items():
        if reference.startswith(space):
            return Missing(message.format(ref=reference))
    return _of_step(step, reference, written)


def _question(step: Step) -> Expression | Missing:
    if step.flow.start is None:
        return Missing("nothing in the file takes the question")
    found = _of_start(step, step.flow.question or '""')
    return found if isinstance(found, Missing) else found._replace(is_text=True)


def _of_form(step: Step, reference: str) -> Expression | Missing:
    form = step.flow.form
    if not form:
        return Missing("the flow has no form")
    value = path(form, fields_of(reference.removeprefix("$form.")))
    return _of_start(step, f'{value} | default("")')


def _messages(step: Step) -> Expression:
    """Return the number of messages of the run, without the first one."""
    return Expression(f"[({said_in_run(step)}) | length - 1, 0] | max | string", is_text=True)


def _chat(step: Step) -> Expression:
    """Return the conversation as a text with a line for each message, which a node works out."""
    if step.helper is None:
        said = conversation(step, with_question=False)
        speaker = (
            '"Assistant: " if m.role == "assistant" else "Human: " if m.role == "user" else ""'
        )
        end = inserted('"" if loop.last else "\\n"')
        text = f"{{% for m in {said} if m.content | string | trim %}}{inserted(speaker)}{inserted('m.content')}{end}{{% endfor %}}"  # fmt: skip
        step.help_by("text", {"text": text}, "history", "Chat history")
    return Expression('""' if step.helper is None else output_of(step.helper.id), is_text=True)


def _rounds(step: Step) -> Expression | Missing:
    """Return how often a run went back, where it is certain which loop is meant."""
    loop = step.scope.loop
    if loop is None or sum(each.kind == LOOP for each in step.flow.by_id.values()) != 1:
        return Missing("which loop has run last is not known")
    return Expression("index | string", is_text=True)


_FACTS: Final[Mapping[str, Callable[[Step], Expression | Missing]]] = {
    "question": _question,
    "chat_history": _chat,
    "runtime_messages_length": _messages,
    "loop_count": _rounds,
}
"""What reads each fact of a run."""


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
    output = _Output(owner, match["path"] if match else "", reference, quoted(written))
    found = _latest(output, step)
    if isinstance(found, Missing):
        return found
    is_text = output.path in ("", "content") and owner.kind in _SPEAKING_TEXT
    return Expression(found.or_else(output.written), is_text=is_text and not owner.node.is_lost)


class _Output(NamedTuple):
    """An output of a step, and how it is written where it is read."""

    owner: Step
    path: str
    reference: str
    written: str


def _latest(output: _Output, step: Step, *, is_after: bool = False) -> Latest | Missing:
    """Return an output as it was last before a step, or also of that step."""
    scope, owner = step.scope, output.owner
    here = _around(owner, scope)
    if here is None:
        if scope.region is None:
            return Missing(f"step {owner.node.name!r} stands inside another one")
        found = _latest(output, scope.region)
        if isinstance(found, Missing):
            return found
        return Latest(passed_in(step, scope.region.scope, found.or_else(output.written)), "")
    made: Latest | None = None
    if (is_after and here is step) or scope.is_before(here, step):
        made = _of_this_round(output, here, is_sure=here is step or scope.has_run(here, step))
        if made is None:
            return Missing(f"{output.reference!r} has no counterpart here")
    if scope.loop is None:
        return made or Missing(f"step {owner.node.name!r} does not run before it")
    return _of_any_round(output, step, made)


def _around(owner: Step, scope: Scope) -> Step | None:
    """Return a step, or that for the loop around it, where it stands in a graph."""
    while owner.scope is not scope:
        region = owner.scope.region
        if region is None or region.loop is None:
            return None
        owner = region
    return owner


def _of_this_round(output: _Output, here: Step, *, is_sure: bool) -> Latest | None:
    condition = "" if is_sure else here.ran
    if here.loop is None:
        value = _output(output.owner, output.path)
        return None if value is None else Latest(value, condition)
    inner = here.loop
    value = inner.after(("output", output.owner, output.path), _at_end(output, inner))
    return Latest(
        value, " and ".join([*([condition] if condition else []), f"{value} is not none"])
    )


def _of_any_round(output: _Output, step: Step, made: Latest | None) -> Latest:
    loop = step.scope.loop
    if loop is None or (made is not None and not made.condition):
        return made or Latest(NOTHING, "false")
    key = ("output", output.owner, output.path)
    earlier = loop.before(key, NOTHING, _at_end(output, loop))
    if made is None:
        return Latest(earlier, f"{earlier} is not none")
    return Latest(made.or_else(earlier), f"({made.condition} or {earlier} is not none)")


def _at_end(output: _Output, loop: Loop) -> AtEnd:
    def at_end(step: Step, _: str) -> str:
        found = _latest(output, step, is_after=True)
        if isinstance(found, Missing):
            loop.region.lose(found.message, output.reference, code=found.code)
            return NOTHING
        return found.or_else(NOTHING)

    return at_end


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
