"""The conversion of a graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from planwave.interop.importing import branches
from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.covalt.expressions import duplicate_labels
from planwave.interop.importing.covalt.flow import Wire, merge_index, read_flow
from planwave.interop.importing.covalt.kinds import Graph, Made, Plug, made_of
from planwave.interop.importing.drafts import new_edge
from planwave.interop.importing.importer import Source
from planwave.interop.importing.reading import text_of

_TYPES: Final[Mapping[str, str]] = {
    "data": "any", "string": "text", "int": "integer", "float": "number", "boolean": "boolean",
    "json": "json", "tools": "tool", "model": "model",
}  # fmt: skip
_OPEN: Final = "placeholder"
_TOOLS: Final = "tools"
_NUMBERS: Final[Mapping[str, frozenset[str]]] = {
    "temperature": frozenset({"output", "integer"}),
    "maxTokens": frozenset({"integer"}),
}
"""Handles that take a number, and the outputs of a number that fit there."""
_ANY: Final = frozenset({"placeholder", "parser", "transform", "llm", "conditional"})
"""Node types whose results may be numbers: what they are is known in a run."""


def convert(source: Source) -> Conversion:
    """Make a graph of a Covalt graph."""
    document = cast("Mapping[str, Any]", source.value)
    conversion = Conversion("covalt", title=text_of(document, "name"))
    flow = read_flow(conversion, document, source.pointer)
    conversion.set_option(
        "on_failure",
        "stop",
        source.pointer,
        "a failure ends the run there; here that is an option of it",
    )
    for label in duplicate_labels(flow):
        conversion.note(
            "import-renamed",
            f"several nodes have the label {label!r}: expressions mean the last one",
        )
    graph = Graph(conversion, flow)
    for step in flow.steps:
        graph.ids[step.id] = conversion.graph.reserve(step.id)
    for step in flow.steps:
        graph.made[step.id] = made_of(graph, step)
    _connect(graph)
    return conversion


def _connect(graph: Graph) -> None:
    by_handle: defaultdict[tuple[str, str], list[Wire]] = defaultdict(list)
    for wire in graph.flow.wires:
        if not wire.is_link:
            by_handle[wire.target.id, wire.into].append(wire)
    guards = graph.flow.guards()
    ends = {key: _end(graph, group, guards) for key, group in by_handle.items()}
    for start, agent in graph.histories:
        new_edge(graph.conversion.graph, graph.ids[start.id], agent.id, "history", "messages")
    for wire in sorted(graph.flow.wires, key=_order):
        if wire.is_link:
            _link(graph, wire)
        else:
            _draw(graph, wire, ends[wire.target.id, wire.into])
    _end_errors(graph)
    _lose_unreached(graph)


def _lose_unreached(graph: Graph) -> None:
    """Lose nodes that name another one from which no edge of the graph leads to them, as some are left out."""
    if not graph.flow.named:
        return
    sources: defaultdict[str, list[str]] = defaultdict(list)
    for edge in graph.conversion.graph.edges:
        if edge["data"]["channel"] == "flow":
            sources[edge["target"]].append(edge["source"])
    for step, named in dict.fromkeys(graph.flow.named):
        found = set[str]()
        ahead = [target.id for target in step.node.targets]
        while ahead:
            new = [each for each in sources[ahead.pop()] if each not in found]
            found.update(new)
            ahead += new
        if graph.ids[named.id] not in found and not step.node.is_lost:
            message = f"it reads the node {named.label!r}, from which nothing leads to it here"
            step.node.lose(message, f"$({named.label!r})")


def _end_errors(graph: Graph) -> None:
    """End the errors of nodes that nothing follows: the run goes on after them."""
    draft = graph.conversion.graph
    handled = {edge["source"] for edge in draft.edges if edge["sourceHandle"] == "error"}
    for step in graph.flow.steps:
        main = graph.made[step.id].main
        if "policy" in main.node and main.id not in handled:
            end = step.node.becomes("void", node_id=f"{step.id}-error", name=f"{step.label}: error")
            new_edge(draft, main.id, end.id, "error")


def _order(wire: Wire) -> int:
    """Return the place of an edge: those into a merge come in the order of its inputs."""
    return merge_index(wire.into) if wire.target.kind == "merge" else 0


def _end(
    graph: Graph, group: Sequence[Wire], guards: Mapping[str, frozenset[branches.Guard]]
) -> Plug | None:
    """Return what the wires into a handle lead to: the last of several values counts there."""
    step = group[0].target
    into = graph.made[step.id].into(group[0].into)
    choosing = frozenset(s.id for s in graph.flow.steps if s.kind == "conditional")
    on_wires = [
        branches.guards_on(branches.Wire(w.source.id, w.out, w.target.id), guards, choosing)
        for w in group
    ]
    if into is None or len(group) < 2 or branches.are_exclusive(on_wires):
        return into
    step.node.change(
        f"several wires lead to {group[0].into!r}: the last one in the file counts, as there"
    )
    merge = step.node.becomes("merge", node_id=f"{step.id}-all", name=f"{step.label}: all")
    last = step.node.becomes(
        "transform",
        {"expression": "{{ input | last }}"},
        node_id=f"{step.id}-last",
        name=f"{step.label}: the last",
    )
    new_edge(graph.conversion.graph, merge.id, last.id)
    new_edge(graph.conversion.graph, last.id, into.target.id, "output", into.handle)
    return Plug(merge, "input")


def _draw(graph: Graph, wire: Wire, into: Plug | None) -> None:
    source = graph.made[wire.source.id]
    if into is None:
        wire.edge.drop("import-ignored", f"{wire.target.kind} reads nothing at {wire.into}")
        if wire.into != "input":
            wire.target.node.lose(
                f"what arrives at its handle {wire.into}", wire.into, wire.edge.pointer
            )
        return
    if wire.source.kind == "conditional" and wire.out not in ("true", "false"):
        wire.edge.drop("import-ignored", f"nothing leaves a conditional at {wire.out}")
        wire.target.node.lose(
            f"the branch {wire.out} of {wire.source.id!r}", wire.out, wire.edge.pointer
        )
        return
    handle = source.out(wire.out)
    if (why := _misfit(source, handle, into)) is not None:
        wire.edge.drop("import-ignored", f"{why}: there the run failed")
        wire.target.node.lose(why, wire.into, wire.edge.pointer)
        return
    wire.edge.becomes(source.main, into.target, handle, into.handle)
    if "policy" in source.main.node:
        wire.edge.becomes(source.main, into.target, "error", into.handle)
        wire.edge.note(
            "import-changed", "what follows gets the error of a failed node, with its message"
        )


def _misfit(source: Made, handle: str, into: Plug) -> str | None:
    """Return why data of a node cannot arrive at a handle; None if they can."""
    if into.target.node["type"] == _OPEN:
        return None
    if into.handle == _TOOLS:
        return "a wire of data leads to its tools"
    node_type = source.main.node["type"]
    if into.handle not in _NUMBERS or node_type in _ANY:
        return None
    if node_type == "number" and handle in _NUMBERS[into.handle]:
        return None
    return f"what leads to its {into.handle} is no number that it takes"


def _link(graph: Graph, wire: Wire) -> None:
    source, target = graph.made[wire.source.id], graph.made[wire.target.id]
    into = target.into(wire.into)
    is_open = target.main.node["type"] == _OPEN
    wanted = {"model": "model", "tools": "tools"}.get(wire.into)
    fits = bool(source.link) and into is not None and (is_open or wanted == into.handle)
    if fits and not is_open and source.main.node["type"] != _OPEN:
        fits = (wanted == "model") == (wire.source.kind == "model-selector")
    if not fits or into is None:
        wire.edge.drop("import-ignored", "what leaves here does not fit there")
        if wire.source.kind == "agent" and not graph.flow.into(wire.source, "input"):
            wire.source.node.lose(
                "nothing leads to it, and no agent may call it", "", wire.edge.pointer
            )
        wire.target.node.lose(f"a link into its handle {wire.into}", wire.into, wire.edge.pointer)
        return
    wire.edge.becomes(source.main, into.target, source.link, into.handle, channel="link")
