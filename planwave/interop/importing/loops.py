"""Steps that lead back to earlier ones, as ``while`` nodes: for sources in which one step follows another.

A cycle becomes a loop where it has at most one way in, at least one way out, and each of its steps goes on in one
direction only: then exactly one step is next at any time, and the rounds of the loop are the turns of the
cycle. The ways out are kept apart. All other cycles are left as they are drawn; the conversion breaks and
reports them.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from planwave.graph.topology import strongly_connected
from planwave.interop.importing.conversion import SourceEdge, SourceNode
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.templates import inserted, output_of, quoted

_MOST_NESTED: Final = 4
"""Loops inside each other, within the default limit of nested graphs."""
_MOST_LEVELS: Final = 5
"""The default limit of nested graphs."""
_AGAIN: Final = "again"
_NEXT, _OUTPUT = "next", "output"
"""Fields of what a round gives: where it goes on, and with what."""


class Step(NamedTuple):
    """A step of the source.

    Attributes:
        node: Its entry in the report.
        handles: The outputs of which it takes one, in planwave's names.
        place: Makes its node or nodes in a graph, by ``node.becomes``; may return the one that has its
            outputs, which is the last one else, or those that have some of its outputs.
        entries: How many of these nodes, from the first, get what arrives.
    """

    node: SourceNode
    handles: Sequence[str]
    place: Callable[[GraphDraft], Target | Mapping[str, Target] | None]
    entries: int = 1


class Way(NamedTuple):
    """An edge of the source.

    Attributes:
        source: A key of the steps.
        handle: An output of that step.
        target: A key of the steps.
        edge: Its entry in the report.
    """

    source: str
    handle: str
    target: str
    edge: SourceEdge


class Output(NamedTuple):
    """Where what a step hands on comes out.

    Attributes:
        target: A node of the graph.
        handle: Its output.
    """

    target: Target
    handle: str


class Carried(NamedTuple):
    """What the steps of a loop read of the steps around it.

    Attributes:
        inputs: The output that each variable inside is wired to.
        enter: Is told the graph inside of which the variables are there.
    """

    inputs: Mapping[str, Output]
    enter: Callable[[GraphDraft], None]


Carry = Callable[[frozenset[str], GraphDraft], Carried | None]
"""Says what the steps of a loop, by their keys, read of the graph that it is put into; None for nothing."""


class Placed(NamedTuple):
    """Where the steps are.

    Attributes:
        entries: The nodes that what leads to a step leads to.
        outputs: Where each output of a step comes out.
    """

    entries: Mapping[str, Sequence[Target]]
    outputs: Mapping[tuple[str, str], Output]


class _Loop(NamedTuple):
    header: str
    keys: tuple[str, ...]
    members: frozenset[str]


def place_steps(
    steps: Mapping[str, Step],
    ways: Sequence[Way],
    graph: GraphDraft,
    *,
    nested: int = 0,
    carry: Carry | None = None,
) -> Placed:
    """Make the nodes and edges of steps, with loops where they lead back.

    Args:
        steps: The steps by any key, in the order of the source.
        ways: The edges between them.
        graph: The graph that they are put into.
        nested: Number of loops around them.
        carry: Says what a loop reads of the steps around it; such a loop is put into an ``inner``.
    """
    placement = _Placement(steps, ways, nested, carry)
    placement.place(graph)
    return Placed(placement.entries, placement.outputs)


class _Placement:
    """Puts steps into one graph; those of its loops by another placement."""

    def __init__(
        self, steps: Mapping[str, Step], ways: Sequence[Way], nested: int, carry: Carry | None
    ) -> None:
        self._steps, self._ways, self._nested, self._carry = steps, ways, nested, carry
        self._inside: Mapping[str, _Loop] = {}
        self._leaving = defaultdict[str, list[Way]](list)
        for way in ways:
            self._leaving[way.source].append(way)
        self.entries: dict[str, Sequence[Target]] = {}
        self.outputs: dict[tuple[str, str], Output] = {}

    def place(self, graph: GraphDraft) -> None:
        found = _loops(self._steps, self._ways) if self._has_room(graph) else []
        self._inside = {key: loop for loop in found for key in loop.members}
        for key, step in self._steps.items():
            loop = self._inside.get(key)
            if loop is None:
                self._place_step(key, step, graph)
            elif loop.header == key:
                self._place_loop(loop, graph)
        for way in self._ways:
            loop = self._inside.get(way.source)
            if loop is not None and way.target in loop.members:
                continue  # it is inside that loop
            source = self.outputs[way.source, way.handle]
            for entry in self.entries[way.target]:
                way.edge.becomes(source.target, entry, source.handle)

    def _has_room(self, graph: GraphDraft) -> bool:
        levels = 1 if self._carry is None else 2  # what a loop reads is brought in by an inner
        return self._nested < _MOST_NESTED and has_room(graph, levels)

    def _place_step(self, key: str, step: Step, graph: GraphDraft) -> None:
        before = len(step.node.targets)
        made = step.place(graph)
        self.entries[key] = step.node.targets[before : before + step.entries]
        for handle in step.handles:
            target = made.get(handle) if isinstance(made, Mapping) else made
            self.outputs[key, handle] = Output(target or step.node.target, handle)

    def _place_loop(self, loop: _Loop, graph: GraphDraft) -> None:
        """Put a ``while`` in place of the steps of a loop, and a ``switch`` behind it for its ways out."""
        header = self._steps[loop.header].node
        outer = self._place_carried(loop, header, graph)
        repeat = header.becomes(
            "while",
            node_id=f"{loop.header}.again",
            name=f"Repeat {header.name}",
            graph=graph if outer is None else header.body(),
        )
        if outer is not None:
            outer.node["data"]["graph"] = repeat.graph.document()
        body = header.body()
        inside = [way for key in loop.keys for way in self._leaving[key]]
        onward = [w for w in inside if w.target in loop.members and w.target != loop.header]
        steps = {key: self._steps[key] for key in loop.keys}
        placement = _Placement(steps, onward, self._nested + 1, self._carry)
        placement.place(body)
        start = header.becomes(
            "transform",
            {"expression": inserted(f"value.{_OUTPUT} if index else value")},
            node_id="value",
            name="Value",
            graph=body,
        )
        for entry in placement.entries[loop.header]:
            new_edge(body, start.id, entry.id)
        exits = self._place_ends(loop, placement, inside, header)
        condition = f"index == 0 or value.{_NEXT} == {quoted(_AGAIN)}"
        repeat.node["data"] = {"condition": condition, "body": body.document()}
        self._lead_out(header, outer or repeat, exits)
        self.entries.update(dict.fromkeys(loop.members, (outer or repeat,)))
        names = " → ".join(self._steps[key].node.name or key for key in _in_order(loop, inside))
        header.change(
            f"the steps that lead back ({names}) are repeated by a while here, whose rounds are limited",
            code="import-cycle",
        )

    def _place_carried(self, loop: _Loop, header: SourceNode, graph: GraphDraft) -> Target | None:
        """Put an ``inner`` around a loop that reads steps around it, with what it reads as inputs."""
        carried = None if self._carry is None else self._carry(loop.members, graph)
        if carried is None:
            return None
        data = {"inputs": dict.fromkeys(carried.inputs, "any"), "graph": {}}
        outer = header.becomes(
            "inner", data, node_id=f"{loop.header}.steps", name=header.name, graph=graph
        )
        carried.enter(header.body())
        for name, output in carried.inputs.items():
            new_edge(graph, output.target.id, outer.id, output.handle, name)
        return outer

    def _place_ends(
        self, loop: _Loop, inner: _Placement, ways: Sequence[Way], header: SourceNode
    ) -> list[tuple[str, str, str]]:
        """End each way of a round in a node that says where it leads.

        Returns:
            The ways out, each with its step, its output and the name that stands for it.
        """
        leading = defaultdict[tuple[str, str], list[Way]](list)
        for way in ways:
            leading[way.source, way.handle].append(way)
        exits: list[tuple[str, str, str]] = []
        for key, handle in self._outputs_of(loop):
            following = leading[key, handle]
            is_back = any(way.target == loop.header for way in following)
            if following and not is_back and following[0].target in loop.members:
                continue
            tag = _AGAIN if is_back else f"{key}.{handle}"
            source = inner.outputs[key, handle]
            fields = {_NEXT: tag, _OUTPUT: inserted("input")}
            graph = source.target.graph
            end = header.becomes(
                "transform", {"fields": fields}, node_id=tag, name=tag, graph=graph
            )
            if not following:
                new_edge(graph, source.target.id, end.id, source.handle)
            for way in following:
                way.edge.becomes(source.target, end, source.handle)
                if is_back:
                    way.edge.note("import-cycle", "it leads to the next round of a while")
                break
            if not is_back:
                exits.append((key, handle, tag))
        return exits

    def _outputs_of(self, loop: _Loop) -> list[tuple[str, str]]:
        return [(key, handle) for key in loop.keys for handle in self._steps[key].handles]

    def _lead_out(
        self, header: SourceNode, repeat: Target, exits: Sequence[tuple[str, str, str]]
    ) -> None:
        graph = repeat.graph
        result = header.becomes(
            "transform",
            {"expression": inserted(f"input.{_OUTPUT}")},
            node_id=f"{repeat.id}.result",
            name="Result",
            graph=graph,
        )
        new_edge(graph, repeat.id, result.id)
        if len(exits) == 1:
            key, handle, _ = exits[0]
            self.outputs[key, handle] = Output(result, "output")
        elif exits:
            data: dict[str, Any] = {
                "value": inserted(output_of(repeat.id, fields=[_NEXT])),
                "cases": [tag for _, _, tag in exits],
            }
            switch = header.becomes(
                "switch", data, node_id=f"{repeat.id}.way-out", name="Way out", graph=graph
            )
            new_edge(graph, result.id, switch.id)
            for number, (key, handle, _) in enumerate(exits):
                self.outputs[key, handle] = Output(switch, f"case-{number}")


def has_room(graph: GraphDraft, levels: int) -> bool:
    """Return whether graphs may be nested so many levels deep inside a node of a graph."""
    return graph.path.count("/") + levels <= _MOST_LEVELS


def _loops(steps: Mapping[str, Step], ways: Sequence[Way]) -> list[_Loop]:
    """Return the outermost cycles that have one way in and go on in one direction at each step."""
    number_of = {key: number for number, key in enumerate(steps)}
    adjacency: dict[int, list[int]] = {number: [] for number in number_of.values()}
    for way in ways:
        adjacency[number_of[way.source]].append(number_of[way.target])
    keys = list(steps)
    components = strongly_connected(adjacency, adjacency)
    component_of = {keys[n]: i for i, component in enumerate(components) for n in component}
    leaving, entries = defaultdict[int, list[Way]](list), defaultdict[int, set[str]](set)
    for way in ways:
        source, target = component_of[way.source], component_of[way.target]
        leaving[source].append(way)
        if source != target:
            entries[target].add(way.target)
    found: list[_Loop] = []
    for number, component in enumerate(components):
        first, own = component[0], leaving[number]
        if len(component) == 1 and first not in adjacency[first]:
            continue
        ordered = tuple(keys[each] for each in sorted(component))
        members, headers = frozenset(ordered), entries[number] or {ordered[0]}
        if len(headers) == 1 and _goes_one_way(members, own) and _ends(members, steps, own):
            found.append(_Loop(headers.pop(), ordered, members))
    return found


def _goes_one_way(members: frozenset[str], ways: Sequence[Way]) -> bool:
    """Return whether a step inside never leads on to two steps at once, one of them inside."""
    targets = defaultdict[tuple[str, str], list[str]](list)
    for way in ways:
        targets[way.source, way.handle].append(way.target)
    return all(len(each) == 1 or members.isdisjoint(each) for each in targets.values())


def _ends(members: frozenset[str], steps: Mapping[str, Step], ways: Sequence[Way]) -> bool:
    """Return whether an output of a step leads out of a cycle, or nowhere."""
    inside = {(way.source, way.handle) for way in ways if way.target in members}
    return any((key, handle) not in inside for key in members for handle in steps[key].handles)


def _in_order(loop: _Loop, ways: Sequence[Way]) -> list[str]:
    """Return the steps around a loop as they follow each other from its first one, and that again."""
    following = defaultdict[str, list[str]](list)
    for way in ways:
        if way.target in loop.members:
            following[way.source].append(way.target)
    order = dict[str, None]({loop.header: None})
    waiting = deque([loop.header])
    while waiting:
        new = [key for key in following[waiting.popleft()] if key not in order]
        order.update(dict.fromkeys(new))
        waiting.extend(new)
    return [*order, loop.header]
