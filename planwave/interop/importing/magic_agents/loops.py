"""Loops, which there stand beside the steps that they repeat, as nodes with a body.

A body has no wires from outside: what its steps read of others comes in as an input of an ``inner`` that
stands around the loop, and is passed on by a step in the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from planwave.interop.importing.conversion import Code
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.magic_agents.flow import Step, Wire
from planwave.interop.importing.magic_agents.graphs import FEEDBACK, LINKED, Graph, Made, Plug
from planwave.interop.importing.reading import number_of
from planwave.interop.importing.templates import inserted

_ITEM: Final = "handle_item"
_ITEMS: Final = "items"
_MAX_ITEMS: Final = 100
"""The items that a loop takes there."""
Kinds = Callable[[Graph, Step], Made]


class Loops:
    """The loops of one graph.

    Attributes:
        inside: The steps that stand in a body.
    """

    def __init__(self, graph: Graph, kinds: Kinds) -> None:
        self._graph, self._kinds = graph, kinds
        self._leaving: dict[Step, list[Wire]] = {step: [] for step in graph.steps}
        for wire in graph.flow.wires:
            self._leaving.get(wire.source, []).append(wire)
        self._bodies = self._find_bodies()
        self.inside = {step for body in self._bodies.values() for step in body}
        self._loops: list[_Loop] = []

    def made(self, step: Step) -> Made | None:
        """Return what a loop became; None for other steps, and for loops that get lost."""
        body = self._bodies.get(step)
        if body is None:
            return None
        loop = _Loop(self._graph, step, body)
        loop.fill(self._kinds)
        self._loops.append(loop)
        return loop.made

    def connect(self) -> None:
        """Draw the wires that lead into bodies, and settle those that lead out of them."""
        for loop in self._loops:
            loop.connect()

    def _find_bodies(self) -> dict[Step, list[Step]]:
        """Return the outermost loops with the steps of their bodies; loops that overlap get lost."""
        bodies = {step: self._body_of(step) for step in self._graph.steps if step.kind == "loop"}
        outer: dict[Step, list[Step]] = {}
        taken: dict[Step, Step] = {}
        for loop, body in bodies.items():
            around = [other for other, inside in bodies.items() if loop in inside and other != loop]
            if not any(self._brings_list(wire, loop) for wire in self._graph.flow.wires):
                _lose(loop, "no list leads to it", "import-dangling")
            elif any(other in body for other in around):
                _lose(loop, "the bodies of two loops hold each other")
            elif not around:
                shared = next((taken[step] for step in body if step in taken), None)
                if shared is None:
                    outer[loop] = body
                    taken.update(dict.fromkeys(body, loop))
                else:
                    _lose(loop, f"its body shares steps with that of {shared.id!r}")
        return outer

    def _brings_list(self, wire: Wire, loop: Step) -> bool:
        return wire.target is loop and wire.into != FEEDBACK and wire.source.kind not in LINKED

    def _body_of(self, loop: Step) -> list[Step]:
        """Return the steps from the item of a loop on that do not follow its end."""
        wires = self._leaving[loop]
        after = self._reached(loop, [each for each in wires if each.out != _ITEM])
        reached = self._reached(loop, [each for each in wires if each.out == _ITEM])
        return [step for step in self._graph.steps if step in reached and step not in after]

    def _reached(self, loop: Step, wires: Sequence[Wire]) -> set[Step]:
        ahead = [wire.target for wire in wires]
        found: set[Step] = set()
        while ahead:
            step = ahead.pop()
            if step is not loop and step not in found:
                found.add(step)
                ahead.extend(wire.target for wire in self._leaving.get(step, ()))
        return found


class _Loop:
    """One loop with the steps of its body."""

    def __init__(self, graph: Graph, step: Step, body: Sequence[Step]) -> None:
        self._graph, self._step, self._body = graph, step, body
        self._crossing = [wire for wire in graph.flow.wires if self._crosses(wire)]
        self._names = _input_names(self._crossing)
        draft = graph.draft
        self._wrapper = self._wrap() if self._crossing else None
        if self._wrapper is not None:
            draft = GraphDraft(f"{self._wrapper.path}/", step.node)
            self._wrapper.node["data"]["graph"] = draft.document()
        self._loop = self._target(draft)
        self._outer = self._wrapper or self._loop
        self.made = Made(self._into, lambda _: Plug(self._outer, "output"))

    def fill(self, kinds: Kinds) -> None:
        """Make the body."""
        node = self._step.node
        draft = GraphDraft(f"{self._loop.path}/", node)
        self._loop.node["data"]["body"] = draft.document()
        item = "{{ item | string }}" if self._graph.flow.is_legacy else "{{ item }}"
        begins = node.becomes(
            "transform", {"expression": item}, node_id="item", name="item", graph=draft
        )
        outside = {(self._step.id, _ITEM): Plug(begins, "output")}
        for key, name in self._names.items():
            passed = node.becomes(
                "transform", {"expression": inserted(name)}, node_id=name, name=name, graph=draft
            )
            outside[key] = Plug(passed, "output")
        graph = Graph(
            self._graph.conversion, self._graph.flow, self._body, draft, outside, is_body=True
        )
        graph.build(kinds, lambda each: Loops(each, kinds))
        self._collect(graph, draft, begins)

    def connect(self) -> None:
        """Draw the wires around the body."""
        drawn: set[tuple[str, str]] = set()
        for wire in self._crossing:
            key = (wire.source.id, wire.out)
            if key not in drawn and self._graph.has(wire):
                drawn.add(key)
                plug = self._graph.plug_of(wire)
                wire.edge.becomes(plug.target, self._outer, plug.handle, self._names[key])
        inside = set(self._body)
        for wire in self._graph.flow.wires:
            if wire.source in inside and wire.target not in inside and wire.target != self._step:
                _settle_leak(wire, self._step)
            elif wire.target is self._step and wire.into == FEEDBACK and wire.source not in inside:
                self._step.node.lose(
                    "a step outside of its body leads to its feedback",
                    wire.source.id,
                    wire.edge.pointer,
                )

    def _crosses(self, wire: Wire) -> bool:
        inside, source = set(self._body), wire.source
        if wire.target not in inside or source in inside or source.kind in LINKED:
            return False
        return (source, wire.out) != (self._step, _ITEM)

    def _wrap(self) -> Target:
        inputs = dict.fromkeys((_ITEMS, *self._names.values()), "any")
        return self._step.node.becomes(
            "inner", {"inputs": inputs}, node_id=self._step.id, graph=self._graph.draft
        )

    def _target(self, draft: GraphDraft) -> Target:
        name = "input" if self._wrapper is None else _ITEMS
        limit = int(number_of(self._step.data, "max_iterations") or _MAX_ITEMS)
        self._step.node.note(
            "import-changed", f"it takes {limit} items at most, as there; the others are left out"
        )
        repeated = any(not step.data.get("iterate") for step in self._body)
        if self._graph.flow.is_legacy and repeated:
            self._step.node.change(
                "each step of its body runs for each item; there one that is not marked iterate gave the "
                "result of the first item again"
            )
        data: dict[str, Any] = {
            "items": f"{{{{ ({name} | fromjson({name}))[:{limit}] }}}}",
            "parallel": 1,
        }
        return self._step.node.becomes("loop", data, node_id=self._step.id, graph=draft)

    def _into(self, handle: str) -> Plug | None:
        if handle == FEEDBACK:
            return None
        return Plug(self._outer, "input" if self._wrapper is None else _ITEMS)

    def _collect(self, graph: Graph, draft: GraphDraft, begins: Target) -> None:
        """Make the result of the body what leads back to the loop, or null."""
        inside = set(self._body)
        wires = [
            wire
            for wire in graph.flow.wires
            if wire.target is self._step and wire.into == FEEDBACK and wire.source in inside
        ]
        node = self._step.node
        result = node.becomes("end", node_id="result", name="result", graph=draft)
        into = Plug(result, "input")
        if len(wires) != 1 or graph.guards_on(wires[0]):
            choice = node.becomes(
                "parser",
                {"template": "{{ inputs.feedback | default(none) }}"},
                node_id="feedback",
                name="feedback",
                graph=draft,
            )
            new_edge(draft, begins.id, choice.id)
            new_edge(draft, choice.id, result.id)
            into = Plug(choice, "feedback")
        for wire in wires:
            if graph.has(wire):
                plug = graph.plug_of(wire)
                wire.edge.becomes(plug.target, into.target, plug.handle, into.handle)


def _settle_leak(wire: Wire, loop: Step) -> None:
    """Settle a wire out of a body: what passes there is seen only while the loop goes on."""
    if wire.target.kind in ("end", "void"):
        wire.edge.drop("import-ignored", f"it marks an end inside the loop {loop.id!r}")
    elif wire.source.kind not in LINKED:
        wire.target.node.lose(
            f"it reads a step inside the loop {loop.id!r}", wire.source.id, wire.edge.pointer
        )
        wire.edge.drop("import-placeholder", "it leads out of the body of a loop")


def _lose(loop: Step, message: str, code: Code = "import-cycle") -> None:
    loop.node.lose(message, loop.id, code=code)


def _input_names(crossing: Sequence[Wire]) -> Mapping[tuple[str, str], str]:
    """Return a name of an input for each output that crosses the edge of a body."""
    names: dict[tuple[str, str], str] = {}
    taken = {_ITEMS}
    for wire in crossing:
        key = (wire.source.id, wire.out)
        if key not in names:
            plain = re.sub(r"\W+", "_", f"from_{wire.source.id}", flags=re.ASCII)[:48]
            name = plain
            while name in taken:
                name = f"{plain}_{len(taken)}"
            taken.add(name)
            names[key] = name
    return names
