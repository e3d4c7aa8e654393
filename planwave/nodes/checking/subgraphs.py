"""Checks of nested graphs, with the checker of the outer graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.expressions import compile_template
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic, errors_in, limit_exceeded
from planwave.graph.json_values import pointer_part
from planwave.graph.model import Graph, Json, Node
from planwave.graph.reading.documents import SCHEMA_FIELD
from planwave.graph.subgraphs import all_nodes
from planwave.nodes.authoring.data_fields import as_expression
from planwave.nodes.spec import RegisteredType

if TYPE_CHECKING:
    from planwave.nodes.registry import Registry
    from planwave.settings import Limits

_DEPTH_LIMIT: Final = "nested_depth"


class InlineGraph(NamedTuple):
    """A graph document in a node's data, and the additional variables of its expressions.

    ``varying`` are the variables whose values change from one run of the graph to the next.
    """

    field: str
    document: Mapping[str, Json]
    names: tuple[str, ...]
    varying: tuple[str, ...]


def inline_graphs(spec: RegisteredType, node: Node) -> Iterator[InlineGraph]:
    """Return the graph documents in a node's data.

    Leave out fields that are not objects (the check of data reports these) and graphs whose variable
    names cannot be read.
    """
    for field in spec.fields:
        document = node.data.get(field.json_name)
        if not field.extra.get("graph") or not isinstance(document, dict):
            continue
        names_of = field.extra.get("namesOf")
        named: Json = node.data.get(names_of) if names_of else None
        if named is None or isinstance(named, dict):
            differs = tuple(field.extra["names"])
            names = (*differs, *cast("dict[str, Json]", named or {}))
            yield InlineGraph(field.json_name, cast("dict[str, Json]", document), names, differs)


def check_subgraph(
    inline: InlineGraph, node: Node, catalogue: Registry, limits: Limits | None
) -> list[Diagnostic]:
    """Return every finding of a nested graph, with messages and pointers relative to the node.

    Args:
        inline: The graph.
        node: The node that holds it.
        catalogue: The node types, for graphs inside this node.
        limits: The limits, or None.
    """
    pointer = f"/data/{pointer_part(inline.field)}"
    if limits is not None and catalogue.depth > limits.nested_depth:
        what = f"node {node.id!r}: graphs inside nodes"
        passed = limit_exceeded(_DEPTH_LIMIT, limits.nested_depth, catalogue.depth, what, pointer)
        return [replace(passed, node=node.id)]
    graph, findings = read_and_check(inline.document, catalogue, limits)
    if SCHEMA_FIELD in inline.document:  # it would be stored: only of the whole document it is not
        message = f"{SCHEMA_FIELD!r} stands at the top of a document, not in a graph inside a node"
        findings.append(Diagnostic("unknown-field", "error", message, f"/{SCHEMA_FIELD}"))
    if graph is not None and not errors_in(findings):
        findings += _check_unused_variables(inline, graph, catalogue)
    return [
        replace(
            finding,
            message=f"node {node.id!r}, data.{inline.field}: {finding.message}",
            pointer=pointer + finding.pointer,
            node=node.id,
            edge=None,
            path=None,
            suggestion=None,
        )
        for finding in findings
    ]


def _check_unused_variables(
    inline: InlineGraph, graph: Graph, catalogue: Registry
) -> Iterator[Diagnostic]:
    """Warn of a graph that is run repeatedly and reads none of the variables that change."""
    facts = {node.type: catalogue.type_info(node.type) for node in graph.nodes}
    if not inline.varying or any(info is not None and info.entry for info in facts.values()):
        return
    if not any(name in inline.varying for name in _names_read(graph, catalogue)):
        first = inline.varying[0]
        message = f"nothing in it reads {first!r}, so that all its runs are the same"
        hint = f"write {{{{ {first} }}}} into a template in it, or begin it with a start node"
        yield Diagnostic("unused-item", "warning", message, hint=hint)


def _names_read(graph: Graph, catalogue: Registry) -> Iterator[str]:
    """Yield each variable that an expression of a graph, or of its nested graphs, names."""
    for _, node in all_nodes(graph, catalogue):
        spec = catalogue.spec(node.type)
        templates = [compile_template(dict(node.data), fields=spec.type_info.template_fields)]
        for field in spec.fields:
            if field.extra.get("expression") and (text := node.data.get(field.json_name)):
                templates.append(compile_template(as_expression(str(text))))
        for template in templates:
            yield from () if template is None else (each.root for each in template.references)
