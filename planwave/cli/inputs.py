"""``--input``: what a person writes on the command line, as an execution's inputs."""

from __future__ import annotations

from collections.abc import Iterable

from planwave.errors import InputError
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Graph, Json

Given = dict[str, dict[str, Json]]


def inputs_of(written: Iterable[str], graph: Graph, catalogue: Catalogue) -> Given:
    """Read all ``--input`` values against the graph they are meant for.

    Raises:
        InputError: A value names no node of the graph, or no node and there is no one entry node;
            an object that is not as an execution takes it.
    """
    given: Given = {}
    for text in written:
        for node, values in _one(text, graph, catalogue).items():
            given.setdefault(node, {}).update(values)
    return given


def _one(text: str, graph: Graph, catalogue: Catalogue) -> Given:
    if text.lstrip().startswith("{"):
        return _object(text, graph, catalogue)
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


def _object(text: str, graph: Graph, catalogue: Catalogue) -> Given:
    from planwave.executor.entry import own_inputs
    from planwave.executor.program import Program
    from planwave.graph.read import strict_json

    return own_inputs(Program(graph, catalogue), strict_json(text))
