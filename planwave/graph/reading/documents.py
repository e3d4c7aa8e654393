"""Read a graph document: strict JSON or YAML in, a [Graph][planwave.Graph] and every finding of reading out.

An error in one node or edge does not stop the rest from being read, so ``checking/checker.py`` can
report its findings together with those made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import count, filterfalse
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard, cast

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, errors_in, limit_exceeded, short_repr
from planwave.graph.json_values import JsonLimits, checked_copy, pointer_of_name
from planwave.graph.model import Edge, Graph, Json
from planwave.graph.reading.document_text import parse_document_text
from planwave.graph.reading.fields import FieldReader, duplicate_ids
from planwave.graph.reading.unreadable import ALREADY_REPORTED, UNREADABLE
from planwave.jsonio import MAX_JSON_DEPTH
from planwave.validation import json_type

if TYPE_CHECKING:
    from planwave.settings import Limits

_TOP_FIELDS: Final = ("nodes", "edges")
SCHEMA_FIELD: Final = "$schema"
_LEVELS_ABOVE_DATA: Final = 3
"""Levels of nesting around a node's or an edge's own fields: document, list, object."""


class ReadResult(NamedTuple):
    """The readable part of a document, and what is wrong with the rest.

    Attributes:
        graph: All nodes and edges, with ``UNREADABLE`` in the fields that could not be read.
        findings: Errors, and (severity ``info``) changes made while reading.
        partial_ids: Ids of nodes with an unread field or a malformed id; None if the whole document
            was read.
        edge_indexes: Position in the document of each edge of the graph; None if all edges of the
            document are in the graph.
    """

    graph: Graph
    findings: list[Diagnostic]
    partial_ids: Set[str] | None
    edge_indexes: Sequence[int] | None


def read_graph(
    source: str | bytes | Mapping[str, Json], *, limits: Limits | None = None
) -> tuple[Graph, list[Diagnostic]]:
    """Read a graph document that is known to be valid; see ``read_and_check`` for any other.

    Args:
        source: See ``read_lenient``.
        limits: See ``read_lenient``.

    Returns:
        The graph, and the changes made while reading (severity ``info``), such as a dropped
        duplicate edge.

    Raises:
        GraphInvalid: The document has errors; the exception holds all that reading can find.
    """
    graph, findings, partial_ids, _ = read_lenient(source, limits=limits)
    if partial_ids is not None:
        raise GraphInvalid(findings)
    return graph, findings


def read_lenient(
    source: str | bytes | Mapping[str, Json],
    *,
    limits: Limits | None = None,
) -> ReadResult:
    """Read as much of a graph document as can be read.

    Args:
        source: JSON or YAML text, or ``{"$schema"?, "nodes": [{"id", "type", "name"?, "description"?, "data"?,
            "policy"?, "ui"?}], "edges": [{"id"?, "source", "sourceHandle"?, "target",
            "targetHandle"?, "type"?, "data": {"channel"}}]}``, or the document of an execution, of which
            the graph is read. ``$schema``, which editors use, is read by nobody else. Null is the same as missing. The
            values of a mapping are copied; ``ALREADY_REPORTED`` may stand in for some of them.
        limits: The configured limits; None enforces only the fixed nesting of 64.

    Raises:
        GraphInvalid: The source is neither strict JSON nor YAML, not an object, or has too many nodes or edges.
    """
    json_limits = JsonLimits()
    if limits is not None:
        json_limits = JsonLimits(min(limits.json_depth, MAX_JSON_DEPTH), limits.string_bytes)
    if isinstance(source, (str, bytes)):
        max_bytes = None if limits is None else limits.plan_bytes
        document = parse_document_text(source, max_bytes=max_bytes, max_depth=json_limits.depth)
    else:
        document = source
    fields = FieldReader(json_limits._replace(levels_above=_LEVELS_ABOVE_DATA))
    if is_execution_document(document):
        fields.findings.append(_execution_finding(document))
        document = document["graph"]
    raw_nodes, raw_edges = _read_lists(document, limits, fields)
    own = checked_copy({"nodes": raw_nodes, "edges": raw_edges}, json_limits)
    if own is not None:  # checked and copied as a whole, in a third of the time
        raw_nodes, raw_edges = own["nodes"], own["edges"]
        fields.checks_values = False
    nodes = [fields.node(raw, number) for number, raw in enumerate(raw_nodes)]
    fields.findings += duplicate_ids([node.id for node in nodes], "nodes")
    edges, edge_indexes = _read_edges(raw_edges, fields)
    is_complete = not fields.saw_reported and not errors_in(fields.findings)
    partial_ids = None if is_complete else fields.partial_ids
    graph = Graph(tuple(nodes), tuple(edges))
    return ReadResult(graph, fields.findings, partial_ids, edge_indexes)


def is_execution_document(document: Json) -> TypeGuard[Mapping[str, Json]]:
    """Return whether a document is that of an execution, which has its graph below ``graph``."""
    return (
        isinstance(cast(object, document), Mapping)
        and "execution_id" in document
        and isinstance(document.get("graph"), Mapping)
    )


def _execution_finding(document: Mapping[str, Json]) -> Diagnostic:
    message = (
        f"this is the document of execution {short_repr(document['execution_id'])}: its graph is "
        "read, nothing else of it"
    )
    return Diagnostic("execution-document", "info", message)


def _read_lists(
    document: Json, limits: Limits | None, fields: FieldReader
) -> tuple[list[Any], list[Any]]:
    """Return the nodes and edges of a document after checking their number."""
    if not isinstance(cast(object, document), Mapping):
        message = f"a graph must be an object, got {json_type(document)}"
        raise GraphInvalid([Diagnostic("invalid-field", "error", message)])
    nodes = _read_list(document, "nodes", fields)
    edges = _read_list(document, "edges", fields)
    for name in document:
        if name not in _TOP_FIELDS and not names_schema(name, document):
            message = f"unknown field {short_repr(name)}; a graph has nodes and edges"
            pointer = pointer_of_name(name)
            fields.findings.append(Diagnostic("unknown-field", "error", message, pointer))
    if limits is not None and (exceeded := _limits_exceeded(limits, nodes=nodes, edges=edges)):
        raise GraphInvalid([*fields.findings, *exceeded])
    unread = [ALREADY_REPORTED]
    return unread if nodes is None else nodes, unread if edges is None else edges


def names_schema(name: str, document: Mapping[str, Json]) -> bool:
    """Return whether a field is the address of a JSON Schema: editors complete the text by it."""
    return name == SCHEMA_FIELD and isinstance(document[name], str)


def _limits_exceeded(limits: Limits, **lists: list[Any] | None) -> list[Diagnostic]:
    return [
        limit_exceeded(name, getattr(limits, name), len(items), name, f"/{name}")
        for name, items in lists.items()
        if items is not None and len(items) > getattr(limits, name)
    ]


def _read_list(document: Mapping[str, Json], name: str, fields: FieldReader) -> list[Any] | None:
    value = document.get(name)
    if type(value) is list:
        return cast("list[Any]", value)
    if fields.is_reported(value):
        return None
    code, message = "invalid-field", f"{name} must be an array, got {json_type(value)}"
    if value is None:
        code, message = "missing-field", f"field {name!r} is missing"
    hint = 'a graph is {"nodes": […], "edges": […]}; without edges, write []'
    if name == "nodes":
        hint = 'a graph is {"nodes": […], "edges": […]}'
    fields.findings.append(Diagnostic(code, "error", message, f"/{name}", hint=hint))
    return None


def _read_edges(
    raw_edges: Sequence[Any], fields: FieldReader
) -> tuple[list[Edge], list[int] | None]:
    """Return the edges, and their positions in the document if duplicates were left out."""
    raw_ids = [cast("dict[str, Any]", raw).get("id") for raw in raw_edges if type(raw) is dict]
    used_ids = {edge_id for edge_id in raw_ids if type(edge_id) is str}
    new_ids = unused_edge_ids(used_ids)
    edges: list[Edge] = []
    edge_indexes: list[int] = []
    positions: dict[str, int] = {}
    for number, raw in enumerate(raw_edges):
        edge = fields.edge(raw, number, new_ids.__next__)
        ends = "\0".join(edge[1:6])  # text, because the garbage collector walks tuples
        if ends in positions and UNREADABLE not in edge[1:6]:
            fields.report_duplicate_edge(edge, number, positions[ends])
        else:
            positions[ends] = number
            edges.append(edge)
            edge_indexes.append(number)
    fields.findings += duplicate_ids([edge.id for edge in edges], "edges", edge_indexes)
    return edges, None if len(edges) == len(raw_edges) else edge_indexes


def unused_edge_ids(used_ids: set[str]) -> Iterator[str]:
    """Return ``e1``, ``e2``, … for edges without an id, skipping ids that are in use."""
    return filterfalse(used_ids.__contains__, map("e{}".format, count(1)))
