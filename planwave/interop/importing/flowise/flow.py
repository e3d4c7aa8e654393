"""The steps and edges of a flow: which stand where, and the order in which they are converted."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.flowise.conversation import keep_conversation
from planwave.interop.importing.flowise.loops import (
    ITERATION,
    Loop,
    exits_at,
    gather_loops,
    repeat,
)
from planwave.interop.importing.flowise.state import keep_state, keys_of
from planwave.interop.importing.flowise.steps import Flow, Scope, Step, Wire
from planwave.interop.importing.reading import object_of, objects_in, position_of, text_of
from planwave.interop.importing.regions import back_edges

_NOTES: Final = frozenset({"stickyNote", "stickyNoteAgentflow"})
_SEQUENTIAL: Final = frozenset({"worker", "supervisor", "agentMemory"})
"""Types of the older editor whose names do not say it."""
_NUMBERED: Final = re.compile(r"-output-(\d{1,4})\Z")
_CODE: Final = ("customFunctionJavascriptFunction", "javascriptFunction")


def read_flow(flow: Flow, document: Mapping[str, Any], pointer: str) -> None:
    """Announce every node and edge of the file, and put each into the graph that it stands in."""
    steps: list[tuple[Step, Mapping[str, Any]]] = []
    for number, fields in objects_in(document, "nodes"):
        step = _step(flow, fields, f"{pointer}/nodes/{number}")
        if step is None:
            continue
        steps.append((step, fields))
        if step.id in flow.by_id:
            message = f"two steps have the id {step.id!r}: which one is meant is not known"
            step.node.lose(message, step.id, code="import-renamed")
        else:
            flow.by_id[step.id] = step
    for step, fields in steps:
        _place(flow, step, text_of(fields, "parentNode") or text_of(fields, "parentId"))
    seen: set[tuple[Step, str, Step]] = set()
    for number, fields in objects_in(document, "edges"):
        _read_edge(flow, fields, f"{pointer}/edges/{number}", seen)


def _step(flow: Flow, fields: Mapping[str, Any], pointer: str) -> Step | None:
    data = object_of(fields, "data")
    inputs, kind = object_of(data, "inputs"), text_of(data, "name") or text_of(fields, "type")
    step_id = text_of(fields, "id") or text_of(data, "id")
    code = next((text for name in _CODE if (text := text_of(inputs, name))), "")
    node = flow.conversion.source_node(
        pointer,
        kind or "unknown",
        text_of(data, "label") or step_id,
        parameters={k: v for k, v in inputs.items() if k not in _CODE},
        code=code,
        position=position_of(object_of(fields, "position")),
    )
    if kind in _NOTES:
        node.drop("import-ignored", "a note on the canvas runs nothing")
        return None
    return Step(flow, step_id, kind, data, inputs, node, flow.top, keys=keys_of(inputs))


def _place(flow: Flow, step: Step, parent: str) -> None:
    region = flow.by_id.get(parent) if parent else None
    if parent and (region is None or region.kind != ITERATION or region is step):
        message = f"it stands inside {parent!r}, which is no iteration"
        step.node.lose(message, parent, code="import-dangling")
    elif region is not None and step.kind == ITERATION:
        step.node.lose("an iteration inside another one is not run there either", step.id)
    elif region is not None:
        body = flow.bodies.setdefault(region, Scope(GraphDraft("", region.node), region))
        step.scope = body
        region.keys |= step.keys
    step.scope.steps.append(step)


def _read_edge(
    flow: Flow, fields: Mapping[str, Any], pointer: str, seen: set[tuple[Step, str, Step]]
) -> None:
    source, target = (flow.by_id.get(text_of(fields, end)) for end in ("source", "target"))
    entry = flow.conversion.source_edge(
        pointer, source.node if source else None, target.node if target else None
    )
    if source is None or target is None or source.scope is not target.scope:
        return  # closed by the frame: its target is a placeholder
    match = _NUMBERED.search(text_of(fields, "sourceHandle"))
    handle = match[1] if match else ""
    if (source, handle, target) in seen:
        entry.drop("import-ignored", "the same edge is there twice")
        return
    seen.add((source, handle, target))
    source.scope.wires.append(Wire(entry, source, target, handle))


def convert_steps(flow: Flow, scope: Scope) -> None:
    """Convert the steps of one graph, each after those it follows, and then its edges."""
    gather_loops(scope)
    _order(scope)
    for step in scope.steps:
        made = flow.handlers.get(step.kind)
        if step.loop is not None:
            repeat(step, step.loop, lambda body: convert_steps(flow, body), _keep)
        elif made is None:
            step.placeholder(_without_counterpart(step.kind))
        else:
            made(step)
        if step.helper is not None:
            _lead_through(step, step.helper)
    for wire in scope.wires:
        _connect(wire)


def _lead_through(step: Step, helper: Target) -> None:
    """Let a node that works out a value run before a step."""
    for entry in step.entries:
        new_edge(helper.graph, helper.id, entry.id)
    step.entries = [helper]


def _without_counterpart(kind: str) -> str:
    if kind.startswith("seq") or kind in _SEQUENTIAL:
        return f"{kind!r} is a step of the sequential agents of Flowise's older editor, most of which are not read here"
    return f"steps of the type {kind!r} have no counterpart"


def _keep(loop: Loop) -> None:
    keep_conversation(loop)
    keep_state(loop)


def _order(scope: Scope) -> None:
    """Sort the steps; edges that close a cycle do not count."""
    number = {step: i for i, step in enumerate(scope.steps)}
    names = [str(i) for i in range(len(scope.steps))]
    ends = [(str(number[w.source]), str(number[w.target])) for w in scope.wires]
    for back in sorted(back_edges(names, ends), reverse=True):
        _break(scope.wires.pop(back.number), [scope.steps[int(name)] for name in back.path])
    wires = scope.wires
    waiting = dict.fromkeys(scope.steps, 0)
    following: dict[Step, list[Step]] = {step: [] for step in scope.steps}
    for wire in wires:
        waiting[wire.target] += 1
        following[wire.source].append(wire.target)
    ready = [number[step] for step, count in waiting.items() if not count]
    heapq.heapify(ready)
    ordered: list[Step] = []
    steps: Sequence[Step] = list(scope.steps)
    while ready:
        step = steps[heapq.heappop(ready)]
        ordered.append(step)
        for target in following[step]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, number[target])
    scope.order(ordered, wires)


def _break(wire: Wire, path: Sequence[Step]) -> None:
    """Leave out an edge that closes a cycle; its ends cannot run."""
    circle = " → ".join(step.node.name or step.id for step in path)
    wire.entry.drop("import-cycle", f"it closes the cycle {circle}, which is no loop here")
    for step in {wire.source, wire.target}:
        step.node.lose(f"the cycle {circle} is no loop here", circle, code="import-cycle")


def _connect(wire: Wire) -> None:
    """Draw an edge; where one of its ends has no place for it, that step is lost."""
    if wire.entry.outcome is not None or wire.entry.edges:
        return
    source, target = wire.source, wire.target
    exits = exits_at(source, wire.handle, wire.entry.pointer)
    if exits and not target.entries:
        target.node.lose("an edge leads to it, where a run begins", source.id, wire.entry.pointer)
        target.entries = [target.main]
    for begin, handle in exits:
        for entry in target.entries:
            wire.entry.becomes(begin, entry, handle)
