"""Graphs that are built in Python: read, checked and bound to their node types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final, Literal

from planwave.errors import GraphInvalid, InputError
from planwave.executor.program import Program
from planwave.graph.builder import DocumentBuilder
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, sorted_by_location
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.document_text import begins_as_json
from planwave.graph.subgraphs import all_nodes
from planwave.service.plans.documents import foreign_finding

GraphSource = DocumentBuilder | Plan | Graph | Mapping[str, Json] | str | bytes
"""What holds a graph: ``{"nodes": [...], "edges": [...]}`` as JSON or YAML text or objects, and what planwave
makes of it."""
_MAX_SHOWN: Final = 60
_HAS_NODES: Final = re.compile(r"""^(?:nodes|"nodes"|'nodes')\s*:""", re.MULTILINE)
_FILE_ENDS: Final = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class BuiltGraph:
    """A checked graph, ready to be run any number of times.

    Attributes:
        graph: The graph as read.
        program: The graph bound to its node types.
        diagnostics: Warnings and fixes; a graph with errors is never built.
        goal: The goal of the plan that the graph belongs to, "" without one.
        title: The title of that plan, or of the builder; "" without one.
        written_by: ``model`` if a model wrote it.
    """

    graph: Graph
    program: Program
    diagnostics: tuple[Diagnostic, ...] = ()
    goal: str = ""
    title: str = ""
    written_by: Literal["model"] | None = None


def uses_services(program: Program) -> bool:
    """Return whether a node of a program, or of a graph inside one, needs ``context.services``."""
    types, catalogue = program.types.values(), program.catalogue
    used = [each.implementation for each in types]
    if any(each.facts.graph_fields for each in types):
        names = {placed.node.type for placed in all_nodes(program.graph, catalogue)}
        used += [catalogue.implementation(name) for name in names]
    marks = ("calls_model", "uses_services")
    return any(getattr(each, mark, False) for each in used for mark in marks)


def build_graph(
    spec: GraphSource,
    catalogue: NodeTypes,
    further: Callable[[Graph], Sequence[Diagnostic]] = lambda _: (),
) -> BuiltGraph:
    """Read and check a graph; see ``planwave.build``.

    Args:
        spec: What it is built from.
        catalogue: The node types.
        further: Returns what else is told of a graph that has errors.
    """
    source, plan = _source_of(spec)
    title = spec.title if isinstance(spec, DocumentBuilder | Plan) else ""
    graph, findings = read_and_check(source, catalogue)
    if graph is None or errors_in(findings):
        if (foreign := foreign_finding(source)) is not None:
            raise GraphInvalid([foreign])
        also = () if graph is None else further(graph)
        raise GraphInvalid(sorted_by_location([*findings, *also]))
    goal = "" if plan is None else plan.user_prompt
    author = None if plan is None else plan.author
    return BuiltGraph(graph, Program(graph, catalogue), tuple(findings), goal, title, author)


def _source_of(spec: Any) -> tuple[Any, Plan | None]:
    """Return what the reader takes, and the plan if it was one.

    Raises:
        InputError: ``not-a-graph``.
    """
    if isinstance(spec, DocumentBuilder):
        return spec.document(), None
    if isinstance(spec, Plan):
        return spec.graph, spec
    is_document = not isinstance(spec, str) or _is_document(spec)
    if is_document and isinstance(spec, str | bytes | Mapping | Graph):
        return spec, None  # pyright: ignore[reportUnknownVariableType]
    raise InputError(
        f"{_short(spec)} is not a graph", code="not-a-graph", hint=_hint_for_other(spec)
    )


def _is_document(text: str) -> bool:
    """Return whether a text is a document and not a goal: JSON, or YAML with nodes at the top."""
    return bool(text.strip()) and (begins_as_json(text) or _HAS_NODES.search(text) is not None)


def _hint_for_other(spec: object) -> str:
    """Return what to call with, or in place of, a value that is not a graph."""
    is_text = isinstance(spec, str)
    if isinstance(spec, PurePath) or (is_text and spec.strip().lower().endswith(_FILE_ENDS)):
        return f"pass the text of the file: Path({str(spec)!r}).read_text('utf-8')"
    if is_text:
        return "to plan and run a goal call planwave.run_goal_sync(…); planwave.plan_sync(…) only plans it"
    return 'pass {"nodes": […], "edges": […]}, its JSON or YAML text, a planwave.GraphBuilder or a Plan'


def _short(spec: object) -> str:
    """Return a value as Python shows it, shortened."""
    text = repr(spec)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
