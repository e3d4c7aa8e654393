"""Older files of Flowise: sequential agents, and a chain of a model and a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.flowise.conversation import conversation
from planwave.interop.importing.flowise.models import model_fields, needs_provider
from planwave.interop.importing.flowise.references import parts_of, text_at
from planwave.interop.importing.flowise.steps import Part, Said, Step, Wire, template_of
from planwave.interop.importing.reading import json_of, object_of, text_of
from planwave.interop.importing.templates import inserted, output_of

_BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_SEQUENCE: Final = frozenset({"seqStart", "seqAgent", "seqEnd"})
_UNREAD: Final = ("tools", "outputParser", "inputModeration", "agentMemory", "state", "interrupt")
"""Settings of a step whose meaning would get lost."""


def is_model(step: Step) -> bool:
    """Return whether a node of an older file is a chat model."""
    return text_of(step.data, "category") == "Chat Models"


def model(step: Step) -> None:
    """Become a ``model``, which is linked to each step that asks it."""
    fields = model_fields(step, step.kind, step.inputs, "")
    main = step.becomes("model", fields)
    step.entries = []
    needs_provider(step, main)
    # Who asks it draws the link; what else an edge leads to is closed by the frame.
    step.exits = {"": []}


def _into(step: Step) -> list[Wire]:
    return [wire for wire in step.scope.wires if wire.target is step]


def _lose_unread(step: Step) -> None:
    for name in _UNREAD:
        if value := step.inputs.get(name):
            step.lose(f"its setting {name} has no counterpart", value, f"/{name}")


def _models_of(step: Step) -> list[Wire]:
    return [wire for wire in _into(step) if is_model(wire.source)]


def _link_model(step: Step, wires: list[Wire]) -> None:
    """Link the model that a step asks, its own one before that of the start."""
    if len(wires) != 1:
        step.lose("it has no model, or several", str(len(wires)), "/model")
        return
    (wire,) = wires
    source = wire.source.main
    if wire.target is step:
        wire.entry.becomes(source, step.main, "output", "model", channel="link")
    else:
        new_edge(step.scope.draft, source.id, step.main.id, "output", "model", "link")


def _chain(step: Step) -> None:
    """Become an ``llm`` with a linked model and a prompt."""
    main = step.becomes("llm", {})
    step.content = output_of(main.id)
    _lose_unread(step)
    _link_model(step, _models_of(step))
    prompts = [wire for wire in _into(step) if wire.source.kind == "promptTemplate"]
    if len(prompts) != 1:
        step.lose("it has no prompt template, or several", str(len(prompts)), "/prompt")
    if text_of(object_of(step.data, "outputs"), "output") not in ("", "llmChain"):
        step.lose("what it gives is used as a text of another step", "outputPrediction", "")


def _prompt(step: Step) -> None:
    """Become a ``text``, the prompt of the chain that it leads to."""
    begin = step.add("text", {"text": ""})
    question = step.add("chat_start", {}, "question", name="Question")
    new_edge(begin.graph, question.id, begin.id)
    step.entries, step.exits = [], {"": [(begin, "output")]}
    step.flow.start, step.flow.question = step, output_of(question.id, "message")
    begin.node["data"]["text"] = template_of(_prompt_parts(step))
    step.content = output_of(begin.id)


def _prompt_parts(step: Step) -> list[Part]:
    values = step.inputs.get("promptValues")
    if isinstance(values, str):
        try:
            values = json_of(values or "{}")
        except ValueError:
            step.lose("the values of its prompt are no JSON", values, "/promptValues")
    given = object_of({"v": values}, "v")
    text, made, position = text_of(step.inputs, "template"), list[Part](), 0
    names = {match[1] for match in _BRACES.finditer(text) if match[1] is not None}
    free = names - given.keys()
    for match in _BRACES.finditer(text):
        made.append(text[position : match.start()])
        position = match.end()
        if match[1] is None:
            made.append(match[0][0])
            if len(match[0]) == 1:
                step.lose("a brace of its prompt has no other half", text, "/template")
        elif match[1] in given:
            made += parts_of(step, text_at(step, match[1], given), "/promptValues")
        elif len(free) == 1:
            made += parts_of(step, "{{question}}", "/template")
        else:
            step.lose("a variable of its prompt has no value", match[0], "/template")
    made.append(text[position:])
    return [part for part in made if part]


def _seq_start(step: Step) -> None:
    """Become a ``chat_start``; its model is linked to the agents."""
    main = step.becomes("chat_start", {})
    step.entries = []
    flow = step.flow
    flow.start, flow.question = step, output_of(main.id, "message")
    flow.sent, flow.history = flow.question, output_of(main.id, "history")
    _lose_unread(step)
    for wire in _models_of(step):
        wire.entry.absorbed("the model is linked to each agent that has none of its own")


def _seq_agent(step: Step) -> None:
    """Become an ``agent`` that is shown what all before it said."""
    data: dict[str, Any] = {}
    for name, field in (
        ("systemMessagePrompt", "systemPrompt"),
        ("humanMessagePrompt", "userPrompt"),
    ):
        text = text_at(step, name)
        if "{" in text or "}" in text:
            step.lose("variables of its prompt have no counterpart", text, f"/{name}")
        if text.strip():
            data[field] = template_of([text])
    main = step.becomes("agent", data)
    step.content = output_of(main.id)
    step.said = [Said("user", step.content)]
    step.opening = [Said("user", step.flow.sent)] if step.flow.sent else []
    _lose_unread(step)
    for name in ("updateStateMemoryUI", "updateStateMemoryCode"):
        if step.inputs.get(name):
            step.lose("it writes the state of the flow, which has no counterpart", "", f"/{name}")
    _lose_other_neighbours(step)
    start = step.flow.start
    shared = _models_of(start) if start is not None else []
    _link_model(step, _models_of(step) or shared)
    said = step.add("transform", {"expression": inserted(conversation(step))}, "messages")
    new_edge(main.graph, said.id, main.id, "output", "messages")
    step.entries = [said]
    step.change("the messages that all agents share are written out: the question and the replies")


def _lose_other_neighbours(step: Step) -> None:
    for wire in _into(step):
        if wire.source.kind not in _SEQUENCE and not is_model(wire.source):
            step.lose("what leads to it has no counterpart", wire.source.kind, "/sequentialNode")


def _seq_end(step: Step) -> None:
    step.becomes("end", {})


CHAIN_KINDS: Final[Mapping[str, Callable[[Step], None]]] = {
    "seqStart": _seq_start,
    "seqAgent": _seq_agent,
    "seqEnd": _seq_end,
    "llmChain": _chain,
    "promptTemplate": _prompt,
}
"""What becomes of each type of step of older files."""
