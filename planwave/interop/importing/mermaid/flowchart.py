"""Convert a flowchart: a box is a task for a model, a diamond a choice among the labels of its lines."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from planwave.graph.json_values import pointer_part
from planwave.interop.importing.conversion import Conversion, SourceEdge, SourceNode
from planwave.interop.importing.drafts import GraphDraft, new_edge
from planwave.interop.importing.importer import Source
from planwave.interop.importing.loops import Step, Way, place_steps
from planwave.interop.importing.mermaid.syntax import Chart, Link, Vertex, read_chart
from planwave.interop.importing.templates import literal

_ROUND: Final = frozenset({"stadium", "circle"})
"""Shapes that are the start and the end of a chart where they stand at its ends."""
_ASKING: Final = frozenset({"parallelogram", "hexagon"})
"""Shapes that ask a person where their label says so."""
_APPROVES: Final = re.compile(r"\bapprov|\bconfirm|\bsign[ -]?off\b", re.IGNORECASE)
_ANSWERS: Final = {
    "approve": "approve", "approved": "approve", "yes": "approve", "ok": "approve", "accept": "approve",
    "accepted": "approve", "": "approve", "reject": "reject", "rejected": "reject", "no": "reject",
    "decline": "reject", "declined": "reject",
}  # fmt: skip
"""The decisions that labels of lines stand for."""
_STYLE_WORDS: Final = "it styles the drawing"


class _Task(NamedTuple):
    """A step of the chart.

    Attributes:
        vertex: As it is drawn.
        node: Its entry in the report.
        kind: What it becomes.
        cases: The labels of a choice, in their order.
    """

    vertex: Vertex
    node: SourceNode
    kind: str
    cases: Sequence[str]


def convert(source: Source) -> Conversion:
    """Make a node of each step, an edge of each line, and loops of lines that lead back."""
    chart = read_chart(str(source.value))
    conversion = Conversion("mermaid", title=chart.title)
    nodes = {
        vertex.id: conversion.source_node(
            f"/nodes/{pointer_part(vertex.id)}",
            vertex.shape,
            _one_line(vertex.label) or vertex.id,
            parameters={"id": vertex.id, "label": vertex.label},
        )
        for vertex in chart.vertices.values()
    }
    edges = [
        conversion.source_edge(f"/edges/{number}", nodes.get(link.source), nodes.get(link.target))
        for number, link in enumerate(chart.links)
    ]
    drawn = _drawn(chart, nodes, edges)
    tasks = _tasks(chart, nodes, drawn)
    ways = _ways(tasks, drawn)
    steps = {
        key: Step(task.node, _handles(task), partial(_PLACES[task.kind], task), _entries(task))
        for key, task in tasks.items()
    }
    place_steps(steps, ways, conversion.graph)
    _note_lines(ways, drawn)
    _note_statements(conversion, chart)
    return conversion


def _drawn(
    chart: Chart, nodes: dict[str, SourceNode], edges: Sequence[SourceEdge]
) -> list[tuple[Link, SourceEdge]]:
    """Return the lines that lead from one step to another; the others are accounted for."""
    seen, kept = set[tuple[str, str, str]](), list[tuple[Link, SourceEdge]]()
    for link, edge in zip(chart.links, edges, strict=True):
        ends = [nodes.get(link.source), nodes.get(link.target)]
        key = (link.source, link.target, link.label)
        if link.is_hidden:
            edge.drop("import-ignored", "it is not drawn: it only moves the steps")
        elif None in ends:
            edge.drop("import-dangling", "it leads to or from a group of steps")
            for node in ends if link.has_arrow else ():
                if node is not None:
                    message = "a line leads to or from a group of steps, which is no step here"
                    text = f"{link.source} → {link.target}"
                    node.lose(message, text, edge.pointer, code="import-dangling")
        elif link.is_two_way:
            edge.drop("import-cycle", "it leads both ways")
            for node in ends:
                if node is not None:
                    text = f"{link.source} ↔ {link.target}"
                    node.lose("a line leads both ways", text, edge.pointer, code="import-cycle")
        elif key in seen:
            edge.drop("import-ignored", "it is drawn twice")
        else:
            kept.append((link, edge))
            seen.add(key)
    return kept


def _tasks(
    chart: Chart, nodes: dict[str, SourceNode], drawn: Sequence[tuple[Link, SourceEdge]]
) -> dict[str, _Task]:
    arriving, leaving = set[str](), defaultdict[str, list[Link]](list)
    for link, _ in drawn:
        arriving.add(link.target)
        leaving[link.source].append(link)
    has_start = False
    tasks: dict[str, _Task] = {}
    for key, vertex in chart.vertices.items():
        links = leaving[key]
        kind, cases = "agent", list[str]()
        if vertex.shape in _ROUND and key not in arriving and links:
            kind, has_start = ("text" if has_start else "start"), True
        elif vertex.shape in _ROUND and key in arriving and not links:
            kind = "end"
        elif vertex.shape in _ASKING and _APPROVES.search(vertex.label):
            kind = "approval"
        elif vertex.shape == "diamond" and any(link.label for link in links):
            kind = "choice"
            cases = list(dict.fromkeys(link.label for link in links if link.label))
        tasks[key] = _Task(vertex, nodes[key], kind, cases)
        open_ways = [link for link in links if not link.label]
        if vertex.shape == "diamond" and len(open_ways) > 1:
            message = "several of its lines have no label: nothing says which one is taken"
            nodes[key].lose(message, vertex.label, nodes[key].pointer)
    return tasks


def _ways(tasks: dict[str, _Task], drawn: Sequence[tuple[Link, SourceEdge]]) -> list[Way]:
    ways: list[Way] = []
    taken = set[tuple[str, str, str]]()
    for link, edge in drawn:
        task = tasks[link.source]
        handle = "output"
        if task.kind == "choice":
            handle = f"case-{task.cases.index(link.label)}" if link.label else "default"
        elif task.kind == "approval":
            handle = _ANSWERS.get(link.label.strip().lower(), "")
            if not handle:
                message = "a person answers approve or reject, and a line has another label"
                task.node.lose(message, link.label, edge.pointer)
                handle = "approve"
        if (link.source, handle, link.target) in taken:
            edge.drop("import-ignored", "another line of the same ends counts")
            continue
        taken.add((link.source, handle, link.target))
        ways.append(Way(link.source, handle, link.target, edge))
    return ways


def _note_lines(ways: Sequence[Way], drawn: Sequence[tuple[Link, SourceEdge]]) -> None:
    """Say of lines what they do not say here."""
    handles = {id(way.edge): way.handle for way in ways}
    for link, edge in drawn:
        handle = handles.get(id(edge))
        if handle == "output" and link.label:
            edge.note("import-changed", f"its label {link.label!r} is not used here")
        if handle is not None and not link.has_arrow:
            edge.note("import-changed", "it has no arrow: it leads from left to right here")


def _handles(task: _Task) -> tuple[str, ...]:
    if task.kind == "choice":
        return (*(f"case-{number}" for number in range(len(task.cases))), "default")
    return ("approve", "reject") if task.kind == "approval" else ("output",)


def _entries(task: _Task) -> int:
    return 2 if task.kind == "choice" else 1


# -- nodes -----------------------------------------------------------------------------------------


def _place_agent(task: _Task, graph: GraphDraft) -> None:
    task.node.becomes("agent", node_id=task.vertex.id, description=_description(task), graph=graph)
    if not _description(task):
        task.node.lose("nothing is written in it", task.vertex.id)


def _place_start(task: _Task, graph: GraphDraft) -> None:
    task.node.becomes("start", node_id=task.vertex.id, graph=graph)


def _place_text(task: _Task, graph: GraphDraft) -> None:
    """Give the label of a second start; a graph has one."""
    data = {"text": literal(_description(task))}
    task.node.becomes("text", data, node_id=task.vertex.id, graph=graph)
    task.node.change("a graph has one start: this one gives its label as a text")


def _place_end(task: _Task, graph: GraphDraft) -> None:
    task.node.becomes("end", node_id=task.vertex.id, graph=graph)


def _place_approval(task: _Task, graph: GraphDraft) -> None:
    data = {"prompt": literal(_description(task))}
    task.node.becomes("approval", data, node_id=task.vertex.id, graph=graph)


def _place_choice(task: _Task, graph: GraphDraft) -> None:
    """Ask a model for one of the labels; what arrived goes on by the way of that label."""
    question, cases = _description(task), "\n".join(f"- {case}" for case in task.cases)
    prompt = (
        f"{literal(question)}\n\n{{{{ PREVIOUS_OUTPUT }}}}\n\nReply with one of these, and nothing else:\n"
        f"{literal(cases)}"
    )
    ask = task.node.becomes(
        "llm",
        {"prompt": prompt},
        node_id=f"{task.vertex.id}.ask",
        name=f"Ask: {_one_line(task.vertex.label)}",
        graph=graph,
    )
    data: dict[str, Any] = {"cases": [literal(case) for case in task.cases], "caseSensitive": False}
    switch = task.node.becomes("switch", data, node_id=task.vertex.id, graph=graph)
    new_edge(graph, ask.id, switch.id, target_handle="value")
    task.node.change(
        f"a model is asked for one of {', '.join(task.cases)}, in words of planwave",
        code="import-changed",
    )


_PLACES: Final[dict[str, Callable[[_Task, GraphDraft], None]]] = {
    "agent": _place_agent,
    "start": _place_start,
    "text": _place_text,
    "end": _place_end,
    "approval": _place_approval,
    "choice": _place_choice,
}


def _description(task: _Task) -> str:
    return task.vertex.label.strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _note_statements(conversion: Conversion, chart: Chart) -> None:
    for number, word, text in chart.ignored:
        message = f"{word}: {_STYLE_WORDS}"
        if word == "subgraph":
            message = "subgraph: its steps are in the graph itself"
        elif word == "click":
            message = "click: nothing happens at a click on a step"
        conversion.note("import-ignored", f"{message} ({text[:80]})", f"/lines/{number}")
    seen: dict[int, int] = {}
    for number, _, text in chart.unreadable:
        seen[number] = seen.get(number, 0) + 1
        pointer = f"/lines/{number}" + (f"/{seen[number]}" if seen[number] > 1 else "")
        node = conversion.source_node(pointer, "statement", parameters={"text": text})
        node.becomes_placeholder("it is no statement of a flowchart that is read here")
