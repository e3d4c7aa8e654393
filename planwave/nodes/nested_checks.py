"""Checking the graphs that nodes run inside, with the checker of the graph around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.graph.check import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json, Node
from planwave.graph.strict import limit_exceeded, pointer_part
from planwave.nodes.spec import TypeSpec

if TYPE_CHECKING:
    from planwave.nodes.registry import Registry
    from planwave.settings import Limits

_LIMIT: Final = "nested_depth"


class HeldGraph(NamedTuple):
    """A graph document in a node's data, and what its expressions may name besides."""

    field: str
    document: Mapping[str, Json]
    names: tuple[str, ...]


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
            names = (*field.marks["names"], *cast("dict[str, Json]", named or {}))
            yield HeldGraph(field.wire, cast("dict[str, Json]", document), names)


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
    _, findings = read_and_check(held.document, catalogue, limits)
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
