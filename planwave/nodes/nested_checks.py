"""Checking the graphs that nodes run inside, with the checker of the graph around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.expressions import compile_template
from planwave.graph.check import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, limit_exceeded
from planwave.graph.json_values import pointer_part
from planwave.graph.model import Graph, Json, Node
from planwave.graph.within import nodes_within
from planwave.nodes.fields import as_expression
from planwave.nodes.spec import TypeSpec

if TYPE_CHECKING:
    from planwave.nodes.registry import Registry
    from planwave.settings import Limits

_LIMIT: Final = "nested_depth"


class HeldGraph(NamedTuple):
    """A graph document in a node's data, and what its expressions may name besides.

    ``differs`` are those of the names that differ from one run of the graph to the next.
    """

    field: str
    document: Mapping[str, Json]
    names: tuple[str, ...]
    differs: tuple[str, ...]


def held_graphs(spec: TypeSpec, node: Node) -> Iterator[HeldGraph]:
    """Give the graph documents in a node's data.

    Left out is what is no object, a fault of the data that is told as such, and a graph whose names
    cannot be read.
    """
    for field in spec.fields:
        document = node.data.get(field.wire)
        if not field.marks.get("graph") or not isinstance(document, dict):
            continue
        names_of = field.marks.get("namesOf")
        named: Json = node.data.get(names_of) if names_of else None
        if named is None or isinstance(named, dict):
            differs = tuple(field.marks["names"])
            names = (*differs, *cast("dict[str, Json]", named or {}))
            yield HeldGraph(field.wire, cast("dict[str, Json]", document), names, differs)


def nested_findings(
    held: HeldGraph, node: Node, catalogue: Registry, limits: Limits | None
) -> list[Diagnostic]:
    """Find every fault of a graph in a node, in the node's own words and places.

    Args:
        held: The graph.
        node: The node that holds it.
        catalogue: The node types, as they are checked inside it.
        limits: What may not be passed, or None.
    """
    pointer = f"/data/{pointer_part(held.field)}"
    if limits is not None and catalogue.depth > limits.nested_depth:
        what = f"node {node.id!r}: graphs inside nodes"
        passed = limit_exceeded(_LIMIT, limits.nested_depth, catalogue.depth, what, pointer)
        return [replace(passed, node=node.id)]
    graph, findings = read_and_check(held.document, catalogue, limits)
    if graph is not None and not errors_in(findings):
        findings += _unused(held, graph, catalogue)
    return [
        replace(
            found,
            message=f"node {node.id!r}, data.{held.field}: {found.message}",
            pointer=pointer + found.pointer,
            node=node.id,
            edge=None,
            path=None,
        )
        for found in findings
    ]


def _unused(held: HeldGraph, graph: Graph, catalogue: Registry) -> Iterator[Diagnostic]:
    """Warn of a graph that is run again and again and never reads what differs from run to run."""
    facts = {node.type: catalogue.facts(node.type) for node in graph.nodes}
    if not held.differs or any(found is not None and found.entry for found in facts.values()):
        return
    if not any(name in held.differs for name in _names_read(graph, catalogue)):
        first = held.differs[0]
        message = f"nothing in it reads {first!r}, so that all its runs are the same"
        hint = f"write {{{{ {first} }}}} into a template in it, or begin it with a start node"
        yield Diagnostic("unused-item", "warning", message, hint=hint)


def _names_read(graph: Graph, catalogue: Registry) -> Iterator[str]:
    """Yield each variable that an expression in a graph names, graphs inside its nodes included."""
    for _, node in nodes_within(graph, catalogue):
        spec = catalogue.spec(node.type)
        templates = [compile_template(dict(node.data), fields=spec.facts.template_fields)]
        for field in spec.fields:
            if field.marks.get("expression") and (text := node.data.get(field.wire)):
                templates.append(compile_template(as_expression(str(text))))
        for template in templates:
            yield from () if template is None else (each.root for each in template.references)
