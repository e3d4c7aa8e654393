"""Flows as graphs: steps by their kinds, and the wires between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.interop.importing import branches
from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.magic_agents.flow import Flow, Step, Wire

if TYPE_CHECKING:
    from planwave.interop.importing.magic_agents.loops import Loops

FEEDBACK: Final = "handle_loop"
"""The handle of a loop that takes the result of an item."""
LINKED: Final = frozenset({"client", "mcp"})
"""Kinds that are no steps: what leaves them is a link."""


class Plug(NamedTuple):
    """An end of an edge here.

    Attributes:
        target: The node.
        handle: Its handle.
        is_link: Whether the edge is a link.
        also: Nodes from whose handle of the same name there is an edge, too.
        is_open: Whether it takes flow and links, as a placeholder does.
    """

    target: Target
    handle: str
    is_link: bool = False
    also: tuple[Target, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class Made:
    """What a step became.

    Attributes:
        into: The end of an edge into a handle of the step; None where nothing reads what arrives there.
        out: The end of an edge from a handle of the step.
    """

    into: Callable[[str], Plug | None]
    out: Callable[[str], Plug]


def simple(target: Target, into: str = "input", out: str = "output") -> Made:
    """Return what a step became that has one input and one output, whatever its wires are called."""
    return Made(lambda _: Plug(target, into), lambda _: Plug(target, out))


@dataclass
class Graph:
    """One graph that is being made of some steps of a flow.

    Attributes:
        conversion: What it is part of.
        flow: The flow that the steps are of.
        steps: The steps that stand in this graph, loops with their bodies.
        draft: The nodes and edges.
        outside: What stands here for steps outside, by id and handle.
        is_body: Whether it is the body of a loop.
        kinds: What makes the nodes of a step, for graphs inside a step.
    """

    conversion: Conversion
    flow: Flow
    steps: Sequence[Step]
    draft: GraphDraft
    outside: Mapping[tuple[str, str], Plug] = field(default_factory=dict[tuple[str, str], Plug])
    is_body: bool = False
    kinds: Callable[[Graph, Step], Made] | None = None
    _made: dict[str, Made] = field(default_factory=dict[str, Made])
    _guards: Mapping[str, frozenset[branches.Guard]] = field(
        default_factory=dict[str, frozenset[branches.Guard]]
    )

    def build(self, kinds: Callable[[Graph, Step], Made], loops: Callable[[Graph], Loops]) -> None:
        """Make the nodes and the edges.

        Args:
            kinds: Makes the nodes of a step.
            loops: Makes the loops of this graph with their bodies.
        """
        self.kinds = kinds
        own = {step.id for step in self.steps}
        self._guards = self._find_guards(own)
        regions = loops(self)
        for step in self.steps:
            if step not in regions.inside:
                made = regions.made(step)
                self._made[step.id] = kinds(self, step) if made is None else made
        self._connect(
            wire
            for wire in self.flow.wires
            if wire.target.id in self._made and self.has(wire) and wire.source not in regions.inside
        )
        regions.connect()

    def has(self, wire: Wire) -> bool:
        """Return whether something in this graph stands for the source of a wire."""
        return wire.source.id in self._made or (wire.source.id, wire.out) in self.outside

    def wires_into(self, step: Step) -> list[Wire]:
        """Return the wires into a step, wherever they come from."""
        return [wire for wire in self.flow.wires if wire.target is step]

    def wires_out(self, step: Step) -> list[Wire]:
        """Return the wires that leave a step."""
        return [wire for wire in self.flow.wires if wire.source is step]

    def is_optional(self, wire: Wire) -> bool:
        """Return whether the target of a wire may run although nothing arrives on the wire."""
        return bool(self.guards_on(wire) - self._guards.get(wire.target.id, frozenset()))

    def guards_on(self, wire: Wire) -> frozenset[branches.Guard]:
        """Return the branches without which nothing arrives on a wire."""
        is_choice = wire.source.kind == "conditional"
        own = {(wire.source.id, wire.out)} if is_choice else set[branches.Guard]()
        return self._guards.get(wire.source.id, frozenset()) | own

    def plug_of(self, wire: Wire) -> Plug:
        """Return what a wire leaves in this graph."""
        made = self._made.get(wire.source.id)
        return self.outside[wire.source.id, wire.out] if made is None else made.out(wire.out)

    def is_drawn(self, step: Step) -> bool:
        """Return whether a step stands in this graph itself, and not in a body."""
        return step.id in self._made

    def plug_from(self, step: Step, handle: str) -> Plug:
        """Return the end of an edge from a step of this graph."""
        return self._made[step.id].out(handle)

    def join(self, source: Target, target: Target, into: str = "input") -> None:
        """Draw an edge between two nodes of one step."""
        new_edge(self.draft, source.id, target.id, "output", into)

    def _find_guards(self, own: set[str]) -> Mapping[str, frozenset[branches.Guard]]:
        wires = [
            branches.Wire(wire.source.id, wire.out, wire.target.id)
            for wire in self.flow.wires
            if wire.source.kind not in LINKED
            and not (wire.target.kind == "loop" and wire.into == FEEDBACK)
        ]
        choosing = frozenset(step.id for step in self.steps if step.kind == "conditional")
        return branches.guards_of(own, wires, choosing)

    def _connect(self, wires: Iterable[Wire]) -> None:
        by_handle: defaultdict[tuple[str, str], list[Wire]] = defaultdict(list)
        for wire in wires:
            by_handle[wire.target.id, wire.into].append(wire)
        ends: dict[tuple[str, str], Plug | None] = {}
        for key, group in by_handle.items():
            into = self._made[key[0]].into(key[1])
            is_shared = into is not None and self._needs_last(group)
            ends[key] = self._last_of(group[0].target, into) if into and is_shared else into
        for wire in self.flow.wires:  # in the order of the file
            key = (wire.target.id, wire.into)
            if any(wire is each for each in by_handle.get(key, ())):
                self._draw(wire, ends[key])

    def _draw(self, wire: Wire, into: Plug | None) -> None:
        out = self.plug_of(wire)
        if into is None:
            name = wire.into or "that handle"
            wire.edge.drop("import-ignored", f"{wire.target.kind} reads nothing at {name}")
            return
        is_link = out.is_link or into.is_link
        if (out.is_link != into.is_link and not (out.is_open or into.is_open)) or _is_sink(wire):
            wire.edge.drop("import-ignored", "what leaves here does not fit there")
            wire.target.node.lose(
                f"{wire.source.kind} leads to its handle {wire.into!r}",
                wire.source.id,
                wire.edge.pointer,
            )
            return
        channel = "link" if is_link else "flow"
        for source in (out.target, *out.also):
            wire.edge.becomes(source, into.target, out.handle, into.handle, channel=channel)

    def _needs_last(self, group: Sequence[Wire]) -> bool:
        """Return whether several wires may bring a value to one handle in the same run."""
        if len(group) < 2 or group[0].target.kind in ("end", "void"):
            return False
        if any(self.plug_of(wire).is_link for wire in group):
            return False
        return not branches.are_exclusive([self.guards_on(wire) for wire in group])

    def _last_of(self, step: Step, into: Plug) -> Plug:
        """Put the choice of the last value in front of a handle, which takes one there."""
        step.node.change(
            f"several wires lead to {into.handle!r}: there the last value to arrive counted, here that of "
            "the last wire in the file"
        )
        merge = step.node.becomes(
            "merge", node_id=f"{step.id}-all", name=f"{step.id}: all", graph=self.draft
        )
        last = step.node.becomes(
            "transform",
            {"expression": "{{ input | last }}"},
            node_id=f"{step.id}-last",
            name=f"{step.id}: the last",
            graph=self.draft,
        )
        new_edge(self.draft, merge.id, last.id)
        new_edge(self.draft, last.id, into.target.id, "output", into.handle)
        return Plug(merge, "input")


def _is_sink(wire: Wire) -> bool:
    """Return whether nothing ever left the source of a wire."""
    return wire.source.kind == "void"
