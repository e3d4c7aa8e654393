"""``--input``: what a person writes on the command line, as an execution's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from planwave.errors import InputError
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Graph, Json

Given = dict[str, dict[str, Json]]


def inputs_of(written: Iterable[str], graph: Graph, catalogue: Catalogue) -> Given:
    """Read all ``--input`` values against the graph they are meant for.

    Raises:
        InputError: A value names no node of the graph, or no node and there is no one entry node.
    """
    given: Given = {}
    for text in written:
        for node, values in _one(text, graph, catalogue).items():
            given.setdefault(node, {}).update(values)
    return given


def _one(text: str, graph: Graph, catalogue: Catalogue) -> Given:
    if text.lstrip().startswith("{"):
        return _object(text, graph)
    name, equals, value = text.partition("=")
    node, _, handle = name.strip().partition(":")
    if equals and node in graph.by_id:
        return {node: {handle or DEFAULT_SOURCE_HANDLE: value}}
    entries = [n.id for n in graph.nodes if (f := catalogue.facts(n.type)) is not None and f.entry]
    if len(entries) == 1:
        return {entries[0]: {DEFAULT_SOURCE_HANDLE: text}}
    raise InputError(
        f"--input {text[:60]!r} does not say which node it is for, and the graph has "
        f"{len(entries)} entry nodes",
        hint=f"write NODE=TEXT; the nodes are {', '.join(list(graph.by_id)[:8])}",
    )


def _object(text: str, graph: Graph) -> Given:
    from planwave.graph.read import strict_json

    value: Any = strict_json(text)
    given: Given = {}
    for node, values in cast("Mapping[str, Any]", value).items():
        if node not in graph.by_id:
            raise InputError(
                f"--input names node {node!r}, which the graph does not have",
                hint=f"the nodes are {', '.join(list(graph.by_id)[:8])}",
            )
        if not isinstance(values, dict):
            raise InputError(f"--input for node {node!r} must be an object {{handle: value}}")
        given[node] = cast("dict[str, Json]", values)
    return given
