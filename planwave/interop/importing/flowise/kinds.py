"""The steps of Agentflow V2: what each becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from planwave.interop.importing.drafts import GraphDraft, new_edge
from planwave.interop.importing.flowise.chains import CHAIN_KINDS
from planwave.interop.importing.flowise.conditions import condition
from planwave.interop.importing.flowise.conversation import asked
from planwave.interop.importing.flowise.flow import convert_steps
from planwave.interop.importing.flowise.loops import AGAIN, LOOP, STOP, enclose, jump_of, rounds_key
from planwave.interop.importing.flowise.models import agent, condition_agent, llm
from planwave.interop.importing.flowise.references import parts_of, template_at, text_at
from planwave.interop.importing.flowise.requests import http
from planwave.interop.importing.flowise.state import UPDATE, begin_state, keys_of, latest_state
from planwave.interop.importing.flowise.steps import (
    OUTER,
    Expression,
    Missing,
    Said,
    Scope,
    Step,
    content_of,
    expression_of,
    template_of,
)
from planwave.interop.importing.flowise.updates import write_state
from planwave.interop.importing.reading import json_of, objects_in, text_of
from planwave.interop.importing.templates import inserted, literal, output_of, path, quoted

_FORM_TYPES: Final[Mapping[str, str]] = {
    "string": "string", "number": "number", "boolean": "boolean", "options": "string",
}  # fmt: skip
_DEFAULT_QUESTION: Final = "Do you want to proceed?"
_MAX_PARALLEL: Final = 20
_DEFAULT_ROUNDS: Final = 5
_DEFAULT_OF_INSTALLATION: Final = 10
"""Rounds of a loop step whose number cannot be read, unless the installation says otherwise."""
_WHOLE_NUMBER: Final = re.compile(r"\s*[+-]?[0-9]{1,9}")
_MAX_PATH: Final = 20
"""Steps of a cycle that a report names."""


def _start(step: Step) -> None:
    """Become a ``chat_start``, or a ``start`` with the values of a form."""
    kind = text_of(step.inputs, "startInputType") or "chatInput"
    if kind == "formInput":
        _start_form(step)
    else:
        if kind != "chatInput":
            step.lose("this way to begin has no counterpart", kind, "/startInputType")
        main = step.becomes("chat_start", {})
        step.content = output_of(main.id, "message")
    step.entries = []
    begin_state(step)


def _start_form(step: Step) -> None:
    properties: dict[str, Any] = {}
    for number, each in objects_in(step.inputs, "formInputTypes"):
        name, kind = text_of(each, "name"), text_of(each, "type")
        if not name or name in properties:
            step.change(
                "a field without a name of its own is left out", f"/formInputTypes/{number}"
            )
            continue
        made: dict[str, Any] = {"type": _FORM_TYPES.get(kind, "string")}
        if label := text_of(each, "label"):
            made["title"] = label
        options = [text_of(option, "option") for _, option in objects_in(each, "addOptions")]
        if kind == "options" and any(options):
            made["enum"] = list(dict.fromkeys(filter(None, options)))
        properties[name] = made
    schema = {"type": "object", "properties": properties}
    main = step.becomes("start", {"initialInput": {}, "schema": schema})
    root = output_of(main.id)
    values = (
        f'{quoted(f"{name}: ")} ~ ({path(root, [name])} | default(""))' for name in properties
    )
    step.content = f"({' ~ quoted_break ~ '.join(values)})".replace("quoted_break", '"\\n"')
    if not properties:
        step.content = '""'
    step.change("a value that a run does not bring is an empty text here")


def know_start(step: Step) -> None:
    """Say for all others what the run begins with."""
    flow = step.flow
    is_form = text_of(step.inputs, "startInputType") == "formInput"
    root = output_of(step.main.id)
    flow.form = root if is_form else ""
    flow.question = "" if is_form else output_of(step.main.id, "message")
    flow.sent = step.content or ""
    if not is_form and step.inputs.get("startEphemeralMemory") is not True:
        flow.history = output_of(step.main.id, "history")


def _human_input(step: Step) -> None:
    """Become an ``approval``: proceed is output 0, reject is output 1."""
    question: list[str | Expression] = [_DEFAULT_QUESTION]
    if text_of(step.inputs, "humanInputDescriptionType") == "dynamic":
        step.lose(
            "its question is written by a model at that moment",
            "dynamic",
            "/humanInputDescriptionType",
        )
    elif text := text_at(step, "humanInputDescription"):
        question = parts_of(step, text, "/humanInputDescription")
    prompt = template_of(question)
    data = {"prompt": prompt, "actions": ["proceed", "reject"], "editable": False}
    main = step.becomes("approval", data)
    step.exits = {"0": [(main, "proceed")], "1": [(main, "reject")]}
    step.said = [Said("assistant", expression_of(question))]
    step.writes = dict.fromkeys(
        step.keys - keys_of(step.inputs), "0"
    )  # how often loop steps led back
    before = (
        "the reply before it is shown beside the question, and is no part of its text; after a decision models "
        "are shown what was said in the run here, and the stored messages of the chat there"
    )
    if step.inputs.get("humanInputEnableFeedback") is True:
        before += "; the models are told the decision, not what the person writes besides"
    step.change(before)


def _direct_reply(step: Step) -> None:
    """Become a ``text``, the result of the run, or a ``send_message`` where the run goes on."""
    parts = parts_of(step, text_at(step, "directReplyMessage"), "/directReplyMessage")
    if all(wire.source is not step for wire in step.scope.wires):
        main = step.becomes("text", {"text": template_of(parts)})
        step.content = output_of(main.id)
        return
    step.becomes("send_message", {"message": template_of(parts)})
    step.content = expression_of(parts)


def _execute_flow(step: Step) -> None:
    """Become an ``inner`` that runs a stored flow."""
    name = text_of(step.inputs, "executeFlowSelectedFlow")
    if not name:
        step.lose("it names no flow", "", "/executeFlowSelectedFlow")
    sent = template_at(step, "executeFlowInput")
    main = step.becomes("inner", {"flow": {"name": name or "flow"}})
    given = step.add("text", {"text": sent}, "input")
    new_edge(main.graph, given.id, main.id)
    step.entries = [given]
    step.flow.conversion.needs("flow", name or "flow", main)
    step.content = output_of(main.id)
    step.change(
        "it runs the flow that is stored here under the id that it has there",
        "/executeFlowSelectedFlow",
        hint="import that flow too, and save it under this name",
    )
    write_state(step, "executeFlowUpdateState")
    if step.inputs.get("executeFlowOverrideConfig"):
        step.lose("it changes settings of that flow", "", "/executeFlowOverrideConfig")
    role = "assistant" if text_of(step.inputs, "executeFlowReturnResponseAs") == "assistantMessage" else "user"  # fmt: skip
    step.said = [Said(role, step.content)]
    step.opening = asked(step)


# -- iterations and loops --------------------------------------------------------------------------


def _iteration(step: Step) -> None:
    """Become a ``loop``; what its body reads of steps outside comes in through an ``inner`` around it."""
    number = step.inputs.get("iterationConcurrency")
    text = str(number) if isinstance(number, str | int) and not isinstance(number, bool) else ""
    parallel = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 1
    items = _items(step)
    data: dict[str, Any] = {"parallel": min(max(parallel, 1), _MAX_PARALLEL), "items": items}
    main = step.becomes("loop", data)
    body = step.flow.bodies.setdefault(step, Scope(GraphDraft("", step.node), step))
    step.flow.holders[body.draft] = main
    convert_steps(step.flow, body)
    if not body.steps:
        step.lose("it has no step inside", step.id)
    _add_result(step, body)
    main.node["data"]["body"] = body.draft.document()
    if body.captured:
        begin = data["items"]
        main.node["data"]["items"] = inserted(f"{OUTER}.begin")
        enclose(step, body, {"begin": begin})
    step.content = f'({output_of(main.id)} | join("\\n"))'
    step.fields = {"iterationResults": output_of(main.id)}
    step.change("an item that fails ends the run here; there its error is its result")


def _items(step: Step) -> Any:
    text = text_at(step, "iterationInput")
    parts = parts_of(step, text, "/iterationInput")
    if any(isinstance(part, Expression) for part in parts):
        return template_of([part for part in parts if not isinstance(part, str) or part.strip()])
    try:
        value = json_of(text)
    except ValueError:
        value = None
    if not isinstance(value, list):
        step.lose("it goes through no list", text, "/iterationInput")
        return []
    return _escaped(value)


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {literal(k): _escaped(v) for k, v in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_escaped(each) for each in cast("list[Any]", value)]
    return literal(value) if isinstance(value, str) else value


def _add_result(step: Step, body: Scope) -> None:
    """Give each item the text of its last step as result."""
    sources = {wire.source for wire in body.wires}
    last = [each for each in body.steps if each not in sources]
    told = [(each, content_of(each)) for each in last]
    if len(told) != 1:
        step.change("the steps inside end in several places: the first that ran gives the result")
    chain = ""
    for each, content in told:
        if content is None:
            continue
        if body.has_run(each, None):
            chain += content
            break
        chain += f"{content} if {each.ran} else "
    else:
        chain += '""'
    result = step.node.becomes(
        "transform",
        {"expression": inserted(chain)},
        node_id="result",
        name="Result",
        graph=body.draft,
    )
    taken = {(wire.source, wire.handle) for wire in body.wires}
    for each in body.steps:
        free = [exits for number, exits in each.exits.items() if (each, number) not in taken]
        for target, handle in {(t.id, h): (t, h) for e in free for t, h in e}.values():
            if target.graph is body.draft:
                new_edge(body.draft, target.id, result.id, handle)


def _loop(step: Step) -> None:
    """Lead back to the first step of a loop as often as it may; or become a placeholder where there is none."""
    loop = step.scope.loop
    if loop is None or step not in loop.jumps:
        _lose_loop(step)
        return
    most = _most_rounds(step)
    text = text_at(step, "fallbackMessage") or f"Loop completed after reaching maximum iteration count of {most}."  # fmt: skip
    message = expression_of(parts_of(step, text, "/fallbackMessage"))
    rounds = _rounds_before(step)
    onward = f"{quoted(AGAIN)} if {rounds} + 1 < {most} else {quoted(STOP)}"
    step.becomes("transform", {"fields": loop.add_end(step, "", onward, message)})
    step.exits, step.content = (
        {},
        quoted(f"Loop back to {loop.header.node.name} ({loop.header.id})"),
    )
    write_state(step, "loopUpdateState")


def _most_rounds(step: Step) -> int:
    """Return how often a loop step is reached before the run ends there."""
    value = step.inputs.get("maxLoopCount")
    if not value or isinstance(value, bool):
        return _DEFAULT_ROUNDS
    match = _WHOLE_NUMBER.match(text_of(step.inputs, "maxLoopCount"))
    return int(match[0]) if match and int(match[0]) else _DEFAULT_OF_INSTALLATION


def _rounds_before(step: Step) -> str:
    """Return how often a loop step has led back: the rounds, or a number of its own where there are several."""
    key = rounds_key(step)
    if key not in step.keys:
        return "index"
    found = latest_state(step, key)
    if isinstance(found, Missing):
        step.lose(found.message, key)
    rounds = "0" if isinstance(found, Missing) else found.or_else("0")
    step.writes[key] = f"({rounds} + 1)"
    return rounds


def _lose_loop(step: Step) -> None:
    target = jump_of(step)
    way = _way(step, target) if target is not None else []
    names = " → ".join(each.node.name or each.id for each in way)
    names = names or text_of(step.inputs, "loopBackToNode") or "nowhere"
    reason = step.scope.no_loops.get(step, "")
    step.node.lose(
        f"it leads back to an earlier step, which is no loop here: {names}{f' ({reason})' if reason else ''}",
        names,
        f"{step.pointer}/loopBackToNode",
        code="import-cycle",
    )
    step.becomes("placeholder", {"kind": step.kind})


def _way(step: Step, target: Step) -> list[Step]:
    """Return the steps from one that a loop leads back to, to the loop and back."""
    before: dict[Step, Step] = {}
    waiting = [target]
    for here in waiting:
        for wire in step.scope.wires:
            if wire.source is here and wire.target not in before:
                before[wire.target] = here
                waiting.append(wire.target)
    way = [step]
    while way[-1] is not target and way[-1] in before and len(way) < _MAX_PATH:
        way.append(before[way[-1]])
    return [*reversed(way), target]


# -- what has no counterpart -----------------------------------------------------------------------


def _tool(step: Step) -> None:
    name = text_of(step.inputs, "toolAgentflowSelectedTool") or "tool"
    made = step.placeholder(
        f"the tool {name!r} of Flowise has no counterpart",
        "call a tool, an MCP server or a flow that does the same in its place",
    )
    write_state(step, "toolUpdateState")
    step.flow.conversion.needs("tool", name, made)


def _no_counterpart(message: str, hint: str | None = None) -> Callable[[Step], None]:
    def become_placeholder(step: Step) -> None:
        step.placeholder(message, hint)
        for name in step.inputs:
            if name.endswith(UPDATE):
                write_state(step, name)

    return become_placeholder


KINDS: Final[Mapping[str, Callable[[Step], None]]] = MappingProxyType(
    {
        "startAgentflow": _start,
        "llmAgentflow": llm,
        "agentAgentflow": agent,
        "conditionAgentflow": condition,
        "conditionAgentAgentflow": condition_agent,
        "iterationAgentflow": _iteration,
        "httpAgentflow": http,
        "humanInputAgentflow": _human_input,
        "directReplyAgentflow": _direct_reply,
        "executeFlowAgentflow": _execute_flow,
        LOOP: _loop,
        "toolAgentflow": _tool,
        "retrieverAgentflow": _no_counterpart(
            "a search in a store of documents has no counterpart",
            "ask your search service over HTTP, or by a tool of an agent",
        ),
        "customFunctionAgentflow": _no_counterpart("a program in JavaScript is not run here"),
        **CHAIN_KINDS,
    }
)
"""What becomes of each type of step; any other one is a placeholder."""
