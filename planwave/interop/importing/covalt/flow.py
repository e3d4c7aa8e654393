"""The nodes and wires of a Covalt graph as its file has them, each announced to the report."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planwave.interop.importing import branches
from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.reading import object_of, objects_in, position_of, text_of

LINKED: Final = frozenset({"model-selector", "mcp-server", "toolset"})
"""Types that are no steps: what leaves them is a link."""
PASSING: Final = frozenset({"conditional", "reroute"})
"""Types that hand their input on."""
_PREFIX: Final = "np:"


@dataclass(eq=False)
class Step:
    """A node of the graph.

    Attributes:
        id: Its id, which is unique.
        kind: Its type, in the spelling of today.
        data: Its fields, without secrets.
        label: The name that expressions have for it.
        node: Its account in the report.
    """

    id: str
    kind: str
    data: Mapping[str, Any]
    label: str
    node: SourceNode

    @property
    def goes_on(self) -> bool:
        """Whether what follows runs after its failure, with the error."""
        return self.data.get("on_error") == "continue"


@dataclass(eq=False)
class Wire:
    """An edge of the graph.

    Attributes:
        source: The node that it leaves.
        target: The node that it leads to.
        out: The handle that it leaves by.
        into: The handle that it leads to.
        is_link: Whether it carries no data.
        types: The types of its two ends, as the file says them.
        edge: Its account in the report.
    """

    source: Step
    target: Step
    out: str
    into: str
    is_link: bool
    types: Mapping[str, str]
    edge: SourceEdge


@dataclass
class Flow:
    """The nodes and wires of one graph.

    Attributes:
        steps: In the order of the file.
        wires: In the order of the file.
        named: Which node each expression that names another one stands in, and which one it names.
    """

    steps: list[Step] = field(default_factory=list[Step])
    wires: list[Wire] = field(default_factory=list[Wire])
    named: list[tuple[Step, Step]] = field(default_factory=list[tuple[Step, Step]])
    _into: defaultdict[str, list[Wire]] = field(
        default_factory=lambda: defaultdict[str, list[Wire]](list)
    )

    def add(self, wire: Wire) -> None:
        """Add a wire."""
        self.wires.append(wire)
        self._into[wire.target.id].append(wire)

    def into(self, step: Step, *handles: str) -> list[Wire]:
        """Return the wires of data into a node, at some of its handles or at any."""
        return [
            wire
            for wire in self._into[step.id]
            if not wire.is_link and (not handles or wire.into in handles)
        ]

    def links_into(self, step: Step) -> list[Wire]:
        """Return the links into a node."""
        return [wire for wire in self._into[step.id] if wire.is_link]

    def is_linked(self, step: Step) -> bool:
        """Return whether a link leaves a node: an agent may call it."""
        return any(wire.is_link and wire.source is step for wire in self.wires)

    def before(self, step: Step) -> set[str]:
        """Return the ids of the nodes from which data lead to a node."""
        found: set[str] = set()
        ahead = [step]
        while ahead:
            for wire in self.into(ahead.pop()):
                if wire.source.id not in found and wire.source is not step:
                    found.add(wire.source.id)
                    ahead.append(wire.source)
        return found

    def guards(self) -> Mapping[str, frozenset[branches.Guard]]:
        """Return the branches without which each node does not run."""
        wires = [
            branches.Wire(w.source.id, w.out, w.target.id) for w in self.wires if not w.is_link
        ]
        choosing = frozenset(step.id for step in self.steps if step.kind == "conditional")
        return branches.guards_of([step.id for step in self.steps], wires, choosing)


def read_flow(conversion: Conversion, document: Mapping[str, Any], pointer: str) -> Flow:
    """Announce the nodes and edges of a graph, and return those that count."""
    flow = Flow()
    by_id: dict[str, Step] = {}
    for number, entry in objects_in(document, "nodes"):
        step = _step(conversion, entry, f"{pointer}/nodes/{number}")
        if step.id in by_id:
            step.node.lose(f"two nodes have the id {step.id!r}", step.id, code="import-renamed")
            step.id = f"{step.id}#{number}"
        by_id[step.id] = step
        flow.steps.append(step)
    seen: set[tuple[str, ...]] = set()
    for number, entry in objects_in(document, "edges"):
        for wire in _wires(conversion, entry, f"{pointer}/edges/{number}", by_id, seen):
            flow.add(wire)
    return flow


def _step(conversion: Conversion, entry: Mapping[str, Any], pointer: str) -> Step:
    data = object_of(entry, "data")
    step_id, written = text_of(entry, "id"), text_of(entry, "type")
    kind = written.removeprefix(_PREFIX).replace("_", "-")
    label = next(
        (
            text
            for text in (text_of(data, "_label"), text_of(data, "label"), text_of(entry, "label"))
            if text
        ),
        step_id,
    )
    node = conversion.source_node(
        pointer,
        written or "unknown",
        step_id,
        parameters={k: v for k, v in data.items() if k != "code"},
        code=text_of(data, "code"),
        position=position_of(object_of(entry, "position")),
    )
    if kind != written:
        node.note("import-changed", f"its type is called {kind} today")
    return Step(step_id, kind, data, label, node)


def _wires(
    conversion: Conversion,
    entry: Mapping[str, Any],
    pointer: str,
    by_id: Mapping[str, Step],
    seen: set[tuple[str, ...]],
) -> Iterator[Wire]:
    source, target = (by_id.get(text_of(entry, end)) for end in ("source", "target"))
    edge = conversion.source_edge(pointer, source and source.node, target and target.node)
    out, into = (
        text_of(entry, "sourceHandle") or "output",
        text_of(entry, "targetHandle") or "input",
    )
    data = object_of(entry, "data")
    channel = text_of(data, "channel")
    if channel not in ("flow", "link"):
        channel = "link" if "tools" in (out, into) else "flow"
        edge.note("import-inferred-channel", f"it names no channel: it is taken for a {channel}")
    if source is None or target is None:
        edge.drop("import-dangling", "it leads to or from a node that is not there")
        return
    if (key := (source.id, target.id, out, into, channel)) in seen:
        edge.drop("import-ignored", "the same wire is there twice")
        return
    seen.add(key)
    # A chosen model, and the tools of a server, are links here whatever the wire is there.
    is_link = channel == "link" or source.kind in LINKED
    types = {end: kind for end in ("sourceType", "targetType") if (kind := text_of(data, end))}
    yield Wire(source, target, out, into, is_link, types, edge)


def merge_index(handle: str) -> int:
    """Return the place of an input of a merge: ``input`` is the first one, that with the number 2 the second."""
    match = re.fullmatch(r"input(?:_(\d{1,6}))?", handle)
    return int(match[1] or 1) if match else 10**6
