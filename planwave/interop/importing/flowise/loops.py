"""Loop steps, which jump back to an earlier step, as ``while`` nodes.

The steps between the two become the body, where they have one way in and one of them is next at any time. What
the steps of a later round, or after the loop, read of a round is in its result: the conversation, the state,
outputs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from planwave.graph.topology import strongly_connected
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge
from planwave.interop.importing.flowise.steps import OUTER, Scope, Step, Wire
from planwave.interop.importing.reading import text_of
from planwave.interop.importing.templates import inserted, output_of, quoted

LOOP: Final = "loopAgentflow"
ITERATION: Final = "iterationAgentflow"
HUMAN_INPUT: Final = "humanInputAgentflow"
AGAIN, STOP = "again", "stop"
NEXT, MESSAGE = "next", "message"
"""Fields of what a round gives: where the run goes on, and the text with which it ends there."""
NOTHING: Final = "none"
_MOST_NESTED: Final = 2
"""Loops and iterations inside each other, each with an ``inner``, within the default limit of nested graphs."""
_MAX_NAMES: Final = 20
"""Steps that a report names."""
_BEGINNINGS: Final = frozenset({"startAgentflow", "seqStart", "promptTemplate"})

AtEnd = Callable[[Step, str], str]
"""Gives the expression of a value at the end of a round, by its last step and the output of that."""


class _End(NamedTuple):
    step: Step
    handle: str
    fields: dict[str, str]


class Loop:
    """The steps that a ``while`` repeats.

    Attributes:
        region: The step in the graph around that stands for all of them.
        header: The first step of a round.
        body: The graph of a round.
        jumps: The loop steps that begin the next round.
        ways_out: The outputs that lead out, each with a step.
    """

    def __init__(self, region: Step, header: Step, body: Scope, jumps: list[Step]) -> None:
        self.region, self.header, self.body, self.jumps = region, header, body, jumps
        self.ways_out: list[tuple[Step, str]] = []
        self._kept: dict[tuple[object, ...], tuple[str, AtEnd]] = {}
        self._ends: list[_End] = []
        self._has_ended = False

    def before(self, key: tuple[object, ...], initial: str, at_end: AtEnd) -> str:
        """Return what reads a value in the body as the round before left it.

        Args:
            key: What it is.
            initial: What it is in the first round, as an expression of the body.
            at_end: Its value at the end of a round.
        """
        return f"(value.{self._keep(key, at_end)} if index else {initial})"

    def after(self, key: tuple[object, ...], at_end: AtEnd) -> str:
        """Return what reads a value in the graph around, as the last round left it."""
        return output_of(self.region.main.id, fields=[self._keep(key, at_end)])

    def _keep(self, key: tuple[object, ...], at_end: AtEnd) -> str:
        if key not in self._kept:
            self._kept[key] = (f"kept{len(self._kept) + 1}", at_end)
            if self._has_ended:
                self._fill(key)
        return self._kept[key][0]

    def _fill(self, key: tuple[object, ...]) -> None:
        name, at_end = self._kept[key]
        for end in self._ends:
            end.fields[name] = inserted(at_end(end.step, end.handle))

    def add_end(self, step: Step, handle: str, onward: str, message: str = '""') -> Mapping[str, str]:  # fmt: skip
        """Return what a round gives that ends at a step; values that are kept come into it later."""
        fields = {NEXT: inserted(onward), MESSAGE: inserted(message)}
        self._ends.append(_End(step, handle, fields))
        return fields

    def end(self) -> None:
        """Write into each end what is kept; once all are there."""
        self._has_ended = True
        for key in list(self._kept):
            self._fill(key)

    @property
    def ends(self) -> list[Step]:
        """The steps with which a round may end."""
        return [end.step for end in self._ends]


def jump_of(step: Step) -> Step | None:
    """Return the step that a loop step leads back to."""
    wanted = text_of(step.inputs, "loopBackToNode")
    return next(
        (each for each in step.scope.steps if wanted and wanted.startswith(f"{each.id}-")),
        step.flow.by_id.get(wanted),
    )


def rounds_key(step: Step) -> str:
    """Return the field of the state for how often a loop step led back, where that is not the round.

    It is none again after a person decided: what runs then is a new request there.
    """
    return f" rounds of {step.id}"


# -- which steps a loop has ------------------------------------------------------------------------


def gather_loops(scope: Scope) -> None:
    """Put the steps of each loop into a graph of their own, with one step in their place."""
    around = scope.loop.jumps if scope.loop is not None else []
    jumps = {
        each: target
        for each in scope.steps
        if each.kind == LOOP and each not in around and (target := jump_of(each)) is not None
    }
    if not jumps:
        return
    number = {step: i for i, step in enumerate(scope.steps)}
    adjacency: dict[int, list[int]] = {i: [] for i in number.values()}
    for source, target in [*((w.source, w.target) for w in scope.wires), *jumps.items()]:
        if source in number and target in number:
            adjacency[number[source]].append(number[target])
    steps = scope.steps
    for component in strongly_connected(adjacency, adjacency):
        members = [steps[each] for each in sorted(component)]
        if any(each in jumps and number.get(jumps[each]) in component for each in members):
            _gather(scope, members, jumps)


def _gather(scope: Scope, members: list[Step], jumps: Mapping[Step, Step]) -> None:
    inside = set(members)
    entries = {w.target for w in scope.wires if w.target in inside and w.source not in inside}
    entries = entries or {target for each, target in jumps.items() if each in inside}
    own = [each for each in members if jumps.get(each) in entries]
    fault = _fault(scope, members, entries, own)
    if fault:
        scope.no_loops |= {each: fault for each in members if each in jumps}
        return
    first = own[0]
    people = [each for each in members if each.kind == HUMAN_INPUT]
    if len(own) > 1 or scope.loop is not None or people:
        keys = frozenset(map(rounds_key, own))
        for each in [*own, *people]:
            each.keys |= keys if each in people else {rounds_key(each)}
    region = Step(first.flow, first.id, LOOP, first.data, first.inputs, first.node, scope)
    body = Scope(GraphDraft("", first.node), region)
    region.loop = body.loop = Loop(region, entries.pop(), body, own)
    for each in members:
        each.scope = body
    body.steps = members
    _divide_wires(scope, body, region.loop)
    region.keys = frozenset(key for each in members for key in each.keys)
    around = scope
    while around.loop is not None:
        around.loop.region.keys |= region.keys
        around = around.loop.region.scope
    place = scope.steps.index(members[0])
    scope.steps = [each for each in scope.steps if each not in inside]
    scope.steps.insert(place, region)


def _fault(scope: Scope, members: list[Step], entries: set[Step], own: list[Step]) -> str:
    """Return why steps are no loop, or ""."""
    inside, depth, around = set(members), 1, scope
    while around.loop is not None:
        depth, around = depth + 1, around.loop.region.scope
    if around.region is not None:
        return "it stands inside an iteration"
    if len(entries) > 1:
        return "several of the steps that it repeats are led to from outside"
    if not own:
        return "the steps that it repeats begin before the one that it leads back to"
    if any(each.kind in _BEGINNINGS for each in members):
        return "a run begins inside"
    targets = defaultdict[tuple[Step, str], list[Step]](list)
    for wire in scope.wires:
        targets[wire.source, wire.handle].append(wire.target)
    for (source, _), each in targets.items():
        if source in inside and len(each) > 1 and not inside.isdisjoint(each):
            return f"several steps follow {source.node.name!r} at once"
    if depth + any(each.kind == ITERATION for each in members) > _MOST_NESTED:
        return "graphs here are not nested so deep"
    return ""


def _divide_wires(scope: Scope, body: Scope, loop: Loop) -> None:
    """Give a body its wires, and let those into it and out of it join the step in its place."""
    inside, left = set(body.steps), list[Wire]()
    if scope.loop is not None:  # whose ways out may begin in this one
        loop.ways_out = [way for way in scope.loop.ways_out if way[0] in inside]
        scope.loop.ways_out = [
            (loop.region, _way(loop.ways_out.index(way))) if way in loop.ways_out else way
            for way in scope.loop.ways_out
        ]
    for wire in scope.wires:
        if wire.source in inside and wire.target in inside:
            body.wires.append(wire)
        elif wire.source in inside:
            way = (wire.source, wire.handle)
            if way not in loop.ways_out:
                loop.ways_out.append(way)
            left.append(wire._replace(source=loop.region, handle=_way(loop.ways_out.index(way))))
        else:
            left.append(wire._replace(target=loop.region) if wire.target in inside else wire)
    scope.wires = left


def _way(number: int) -> str:
    return f"way-{number}"


# -- the nodes of a loop ---------------------------------------------------------------------------


def repeat(
    region: Step,
    loop: Loop,
    convert_steps: Callable[[Scope], None],
    keep: Callable[[Loop], None],
) -> None:
    """Become a ``while``, and a ``switch`` behind it where its steps lead out of it.

    Args:
        region: What stands for the steps of a loop.
        loop: The loop.
        convert_steps: Converts the steps of its body.
        keep: Says what the rounds keep, once the body is there.
    """
    condition = f"index == 0 or value.{NEXT} == {quoted(AGAIN)}"
    main = region.becomes("while", {"condition": condition})
    region.node.main, region.exits = main, {}
    region.flow.holders[loop.body.draft] = main
    names = _names(loop)
    convert_steps(loop.body)
    for number, (step, handle) in enumerate(loop.ways_out):
        _end_at(loop, step, handle, _way(number))
    _end_where_nothing_follows(loop)
    keep(loop)
    loop.end()
    main.node["data"]["body"] = loop.body.draft.document()
    if loop.body.captured:
        enclose(region, loop.body)
    region.content = output_of(main.id, fields=[MESSAGE])
    _lead_out(region, loop)
    region.node.change(
        f"the steps that it leads back to ({names}) are repeated by a while here",
        code="import-cycle",
    )


def _names(loop: Loop) -> str:
    order = [loop.header, *(each for each in loop.body.steps if each is not loop.header)]
    names = [each.node.name or each.id for each in [*order, loop.header]]
    return " → ".join(
        names if len(names) <= _MAX_NAMES else [*names[: _MAX_NAMES - 2], "…", names[-1]]
    )


def _end_at(loop: Loop, step: Step, handle: str, onward: str, message: str = '""') -> None:
    exits = exits_at(step, handle, step.pointer)
    fields = loop.add_end(step, handle, quoted(onward), message)
    node = loop.region.node.becomes(
        "transform", {"fields": fields}, node_id=onward, name=onward, graph=loop.body.draft
    )
    for begin, output in exits:
        new_edge(loop.body.draft, begin.id, node.id, output)


def exits_at(step: Step, handle: str, pointer: str) -> list[tuple[Target, str]]:
    """Return where an output of a step begins; a step without that output is lost."""
    exits = step.exits.get(handle)
    if exits is None and handle == "0":
        exits = step.exits.get("")
    if exits is not None:
        return exits
    if step.node.outcome != "placeholder":
        message = f"an edge leaves it at output {handle or 'none'}, which it does not have"
        step.node.lose(message, handle, pointer, code="import-dangling")
    return [(step.main, handle or "output")]


def _end_where_nothing_follows(loop: Loop) -> None:
    """Stop the run where nothing is wired to an output of a step; its text is the result."""
    taken = {(wire.source, wire.handle) for wire in loop.body.wires} | set(loop.ways_out)
    taken |= {(step, "") for step, handle in taken if handle == "0" and "0" not in step.exits}
    for step in loop.body.steps:
        if step in loop.jumps:
            continue
        for handle in step.exits:
            if (step, handle) not in taken:
                content = step.content if step.content is not None else '""'
                _end_at(loop, step, handle, STOP, content)


def _lead_out(region: Step, loop: Loop) -> None:
    """Let each way out, and the end of the run, begin at an output of a ``switch``."""
    main, ways = region.main, [_way(number) for number in range(len(loop.ways_out))]
    stop = (main, "output")
    if ways:
        data = {"value": inserted(output_of(main.id, fields=[NEXT])), "cases": ways}
        choice = region.add("switch", data, "way", name="Way out")
        new_edge(main.graph, main.id, choice.id)
        region.exits = {way: [(choice, f"case-{i}")] for i, way in enumerate(ways)}
        stop = (choice, "default")
    if region.scope.loop is not None:
        region.exits[STOP] = [stop]  # the loop around it ends there, too
        return
    end = region.add("text", {"text": inserted(region.content or '""')}, "stop", name="End")
    new_edge(main.graph, stop[0].id, end.id, stop[1])


def enclose(step: Step, body: Scope, given: Mapping[str, Any] | None = None) -> None:
    """Put an ``inner`` around the loop that a step became, with what its body reads outside.

    Args:
        step: What became one node with a body.
        body: The body.
        given: Further values, which are worked out outside.
    """
    main = step.main
    draft = GraphDraft("", step.node)
    kind, data = main.node["type"], main.node["data"]
    main.node["type"] = "inner"
    main.node["data"] = {"inputs": {OUTER: "json"}, "graph": draft.document()}
    inside = step.node.becomes(kind, data, node_id=step.id, graph=draft)
    step.flow.holders |= {draft: main, body.draft: inside}
    fields = {name: inserted(expression) for expression, name in body.captured.items()}
    before = step.add("transform", {"fields": {**(given or {}), **fields}}, "outer")
    new_edge(main.graph, before.id, main.id, "output", OUTER)
    step.entries = [before]


def settle_paths(holders: Mapping[GraphDraft, Target]) -> None:
    """Write into each graph where it stands, now that all of them are there."""

    def path(draft: GraphDraft) -> str:
        holder = holders.get(draft)
        return draft.path if holder is None else f"{path(holder.graph)}{holder.id}/"

    for draft, place in {draft: path(draft) for draft in holders}.items():
        draft.path = place
