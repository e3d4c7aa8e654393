"""The steps and edges of an app: which stand where, which are ever run, and in which order they are converted."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, Final

from planwave.interop.importing.dify.steps import (
    FAIL_BRANCH,
    NORMAL_HANDLES,
    App,
    AppEdge,
    Scope,
    Step,
    settings_of,
)
from planwave.interop.importing.reading import object_of, objects_in, position_of, text_of
from planwave.interop.importing.regions import back_edges

_SHOWN_ELSEWHERE: Final = frozenset(
    {"type", "title", "desc", "selected", "code", "isInIteration", "isInLoop", "iteration_id", "loop_id"}
)  # fmt: skip
_REGIONS: Final = frozenset({"iteration", "loop"})
_BEGINNINGS: Final = frozenset({"start", "iteration-start", "loop-start"})
_TRIGGER: Final = "trigger-"


def read_graph(app: App, graph: Mapping[str, Any], pointer: str) -> None:
    """Announce every node and edge of the file, and put each into the graph that it stands in."""
    top = Scope(app, app.conversion.graph)
    steps: list[tuple[Step, Mapping[str, Any]]] = []
    for number, fields in objects_in(graph, "nodes"):
        step = _step(app, fields, f"{pointer}/nodes/{number}", top)
        if step is None:
            continue
        steps.append((step, fields))
        app.fields[step] = fields
        if step.id in app.by_id:
            step.node.note("import-renamed", f"two steps have the id {step.id!r}")
        elif step.id:
            app.by_id[step.id] = step
    for step, fields in steps:
        app.children.setdefault(_region_of(app, step, fields), []).append(step)
    app.start = next((s for s in app.children.get(None, ()) if s.kind == "start"), None)
    region_of = {step: region for region, steps in app.children.items() for step in steps}
    for number, fields in objects_in(graph, "edges"):
        _read_edge(app, fields, f"{pointer}/edges/{number}", region_of)


def _step(app: App, fields: Mapping[str, Any], pointer: str, top: Scope) -> Step | None:
    data = settings_of(fields)
    kind, title = text_of(data, "type"), text_of(data, "title")
    is_note = text_of(fields, "type") == "custom-note" or not kind
    node = app.conversion.source_node(
        pointer,
        kind or ("note" if is_note else ""),
        title or text_of(fields, "id"),
        parameters={k: v for k, v in data.items() if k not in _SHOWN_ELSEWHERE},
        code=text_of(data, "code"),
        position=position_of(object_of(fields, "position")),
    )
    if is_note:
        node.drop("import-ignored", "a note on the canvas runs nothing")
        return None
    return Step(app, text_of(fields, "id"), kind, data, node, top)


def _region_of(app: App, step: Step, fields: Mapping[str, Any]) -> Step | None:
    """Return the iteration or loop that a step stands in, as far as parents make no circle."""
    found: Step | None = None
    seen, here = {step.id}, fields
    while (region := app.by_id.get(_parent_id(here))) is not None and region.kind in _REGIONS:
        if region.id in seen:
            return None
        seen.add(region.id)
        found = found or region
        here = app.fields_of(region)
    return found


def _parent_id(fields: Mapping[str, Any]) -> str:
    data = settings_of(fields)
    return text_of(fields, "parentId") or text_of(data, "iteration_id") or text_of(data, "loop_id")


def _read_edge(
    app: App, fields: Mapping[str, Any], pointer: str, region_of: Mapping[Step, Step | None]
) -> None:
    source, target = (app.by_id.get(text_of(fields, end)) for end in ("source", "target"))
    entry = app.conversion.source_edge(
        pointer, source.node if source else None, target.node if target else None
    )
    if source is None or target is None:
        return
    region = region_of[source]
    if region is not region_of[target]:
        return  # closed by the frame: its target is a placeholder
    handle = text_of(fields, "sourceHandle")
    edge = AppEdge(entry, source, target, "" if handle in NORMAL_HANDLES else handle)
    app.edges.setdefault(region, []).append(edge)


def convert_steps(app: App, scope: Scope) -> None:
    """Convert the steps of one graph, in the order in which they run, and their edges."""
    steps, edges = app.children.get(scope.region, []), app.edges.get(scope.region, [])
    for step in steps:
        step.scope = scope
    edges = _without_cycles(steps, _ever_taken(edges))
    roots = _roots(app, scope, steps, edges)
    ordered = _reached(steps, edges, roots)
    live = set(ordered)
    for step in steps:
        if step not in live:
            _drop(app, step)
    kept = [edge for edge in edges if edge.source in live]
    scope.order(
        ordered,
        [(each.source, each.target, not _may_choose(each.source)) for each in kept],
        roots,
    )
    for edge in kept:
        if edge.target.kind in _BEGINNINGS:
            edge.target.lose("an edge leads into it, and it is where a run begins", edge.handle)
    for step in ordered:
        _convert(app, step)
    _drop_edges(edges, live)
    for edge in kept:
        _connect(edge)
    app.edges[scope.region] = kept


def _convert(app: App, step: Step) -> None:
    handler = app.handlers.get(step.kind)
    if handler is None:
        step.placeholder(f"steps of the type {step.kind!r} have no counterpart")
    else:
        handler(step)


def _ever_taken(edges: Sequence[AppEdge]) -> list[AppEdge]:
    """Return the edges without those that leave through a branch that their step has not."""
    taken: list[AppEdge] = []
    for edge in edges:
        known = _branches(edge.source)
        if known is None or edge.handle in known:
            taken.append(edge)
        elif edge.source.kind in _CHOOSING:
            edge.entry.drop(
                "import-dangling", f"its step has no branch {edge.handle or 'without a name'!r}"
            )
        else:  # versions differ in whether such an edge counts
            edge.target.lose(
                f"an edge leads to it from a branch that its step has not: {edge.handle!r}",
                edge.handle,
            )
            edge.handle = ""
            taken.append(edge)
    return taken


def _branches(step: Step) -> frozenset[str] | None:
    """Return the handles that edges can leave a step through; None where any name may be right."""
    if step.kind == "if-else":
        cases = [text_of(each, "case_id") or text_of(each, "id") for each in cases_of(step.data)]
        return frozenset({*cases, "false"})
    if step.kind == "question-classifier":
        classes = {text_of(each, "id") for _, each in objects_in(step.data, "classes")}
        return frozenset({*classes, FAIL_BRANCH} if _fails_over(step) else classes)
    if step.kind in _CALLING:
        return frozenset({"", FAIL_BRANCH} if _fails_over(step) else {""})
    return frozenset({""}) if step.kind in _SINGLE else None


def cases_of(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the cases of an if-else step; older files have one, without a list."""
    cases = [each for _, each in objects_in(data, "cases")]
    return cases or [{**data, "case_id": "true", "id": "true"}]


def _fails_over(step: Step) -> bool:
    return text_of(step.data, "error_strategy") == FAIL_BRANCH


def _may_choose(step: Step) -> bool:
    return _branches(step) != frozenset({""})


_CHOOSING: Final = frozenset({"if-else", "question-classifier"})
_CALLING: Final = frozenset({"llm", "http-request", "parameter-extractor", "agent", "code"})
_SINGLE: Final = frozenset(
    {
        "start", "iteration-start", "loop-start", "answer", "end", "template-transform",
        "variable-aggregator", "variable-assigner", "assigner", "iteration", "loop", "list-operator",
    }
)  # fmt: skip
"""Types of steps that always go on by all their edges."""


def _without_cycles(steps: Sequence[Step], edges: Sequence[AppEdge]) -> list[AppEdge]:
    """Leave out edges that close a cycle: their ends cannot run."""
    names = {step: str(number) for number, step in enumerate(steps)}
    backs = back_edges(
        [*names.values()], [(names[edge.source], names[edge.target]) for edge in edges]
    )
    for back in backs:
        edge = edges[back.number]
        circle = " → ".join(steps[int(name)].node.name for name in back.path)
        edge.entry.drop("import-cycle", f"it closes the cycle {circle}, which is no loop there")
        for step in (edge.source, edge.target):
            step.lose(f"it is in the cycle {circle}", circle, code="import-cycle")
    left_out = {back.number for back in backs}
    return [edge for number, edge in enumerate(edges) if number not in left_out]


def _roots(app: App, scope: Scope, steps: Sequence[Step], edges: Sequence[AppEdge]) -> list[Step]:
    """Return the steps that a run begins with."""
    if scope.region is not None:
        named = app.by_id.get(text_of(scope.region.data, "start_node_id"))
        if named in steps and named is not None:
            return [named]
        return [step for step in steps if step.kind in _BEGINNINGS][:1]
    if app.start is not None:
        others = [step for step in steps if step.kind.startswith(_TRIGGER)]
        return [app.start, *others]
    targets = {edge.target for edge in edges}
    roots = [step for step in steps if step not in targets]
    for step in roots:
        if not step.kind.startswith(_TRIGGER):
            step.lose("the app has no start step", step.id)
    return roots


def _reached(steps: Sequence[Step], edges: Sequence[AppEdge], roots: Sequence[Step]) -> list[Step]:
    """Return the steps that a run can come to, each after those that lead to it."""
    following: dict[Step, list[Step]] = {step: [] for step in steps}
    for edge in edges:
        following[edge.source].append(edge.target)
    reached = set(roots)
    waiting = list(roots)
    while waiting:
        for step in following[waiting.pop()]:
            if step not in reached:
                reached.add(step)
                waiting.append(step)
    open_edges = {step: 0 for step in steps}
    for edge in edges:
        if edge.source in reached:
            open_edges[edge.target] += 1
    return _ordered(steps, following, open_edges, reached)


def _ordered(
    steps: Sequence[Step],
    following: Mapping[Step, Sequence[Step]],
    open_edges: dict[Step, int],
    reached: set[Step],
) -> list[Step]:
    """Return steps in topological order, and beyond that in the order of the file."""
    number = {step: place for place, step in enumerate(steps)}
    ready = [number[step] for step in steps if step in reached and not open_edges[step]]
    ordered: list[Step] = []
    while ready:
        step = steps[heapq.heappop(ready)]
        ordered.append(step)
        for other in following[step]:
            open_edges[other] -= 1
            if not open_edges[other]:
                heapq.heappush(ready, number[other])
    return ordered


def _drop(app: App, step: Step) -> None:
    """Leave out a step that nothing leads to, with all steps inside it."""
    step.node.drop("import-ignored", "nothing leads to it from the start: it is never run")
    for edge in app.edges.get(step, ()):
        edge.entry.drop("import-ignored", "it stands inside a step that is never run")
    for inside in app.children.get(step, ()):
        _drop(app, inside)


def _drop_edges(edges: Sequence[AppEdge], live: set[Step]) -> None:
    for edge in edges:
        if edge.source not in live:
            edge.entry.drop("import-ignored", "it leads from a step that is never run")


def _connect(edge: AppEdge) -> None:
    exits = edge.source.exits.get(edge.handle)
    if exits is None:
        if edge.source.is_lost or "" in edge.source.exits:
            main = edge.source.main
            exits = [(main, edge.handle or "output")]
        else:
            return
    for target, handle in exits:
        for entry in edge.target.entries:
            edge.entry.becomes(target, entry, handle)
