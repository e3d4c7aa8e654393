"""Reading a graph document: strict JSON in, a :class:`GraphDocument` out, and every fault at once.

A well-formed node or edge takes a short path of a few type tests. Anything else goes through
``fields.py``, which finds out what is wrong and says where; it accepts everything the short path
accepts, so the two cannot disagree.

What is wrong in one place does not keep the rest from being read, so that ``check.py`` can tell its
findings together with those made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, errors_in, limit_exceeded, short_repr
from planwave.graph.json_values import JsonLimits, checked_copy, is_storable_text, pointer_of_name
from planwave.graph.model import (
    DEFAULT_POLICY,
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    ID_PATTERN,
    LINK,
    Channel,
    Edge,
    Graph,
    Json,
    Node,
)
from planwave.graph.reading.fields import EDGE_FIELDS, FieldReader, duplicate_ids
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.graph.reading.unreadable import UNREADABLE_EDGE, Unreadable
from planwave.jsonio import MAX_JSON_DEPTH
from planwave.validation import json_type

if TYPE_CHECKING:
    from planwave.settings import Limits

_TOP_FIELDS: Final = ("nodes", "edges")
_PLAIN_NODE: Final = frozenset({"id", "type", "name", "description", "data"})
_EDGE: Final = frozenset(EDGE_FIELDS)
_LEVELS_ABOVE_DATA: Final = 3
"""Levels of nesting around a node's or an edge's own fields: document, list, object."""

_is_id = re.compile(ID_PATTERN).fullmatch
_make: Callable[[type, tuple[Any, ...]], Any] = vars(tuple)["__new__"]
"""Makes a named tuple without the cost of its own constructor."""
_Get = Callable[[str], Any]
_REQUIRED_EDGE_FIELDS: Final = 3
"""Fields of an edge that may not be left out: its ends and its data."""
_OBJECT: Final[type] = dict
_LIST: Final[type] = list
_NO_DATA: Final[dict[str, Any]] = {}
_ONLY_CHANNEL: Final[dict[Channel, dict[str, Any]]] = {
    channel: {"channel": channel} for channel in (FLOW, LINK)
}
"""What most edges hold; they share it."""


class ReadResult(NamedTuple):
    """What became of a document.

    Attributes:
        graph: Everything that could be read. Every entry of ``nodes`` is a node of it.
        findings: What is wrong, and (severity ``info``) what was changed on the way.
        unreadable: What could not be read; None where all of it could.
        edge_indexes: Number in the document of each edge of the graph; None where it is its own.
    """

    graph: Graph
    findings: list[Diagnostic]
    unreadable: Unreadable | None
    edge_indexes: Sequence[int] | None


def read_graph(
    source: str | bytes | Mapping[str, Json], *, limits: Limits | None = None
) -> tuple[Graph, list[Diagnostic]]:
    """Read a graph document that is known to be sound; see ``read_and_check`` for any other.

    Args:
        source: See :func:`read_lenient`.
        limits: See :func:`read_lenient`.

    Returns:
        The graph, and what was changed on the way (severity ``info``): a duplicate edge is one.

    Raises:
        GraphInvalid: Every fault of the document that reading can find.
    """
    graph, findings, gaps, _ = read_lenient(source, limits=limits)
    if gaps is not None:
        raise GraphInvalid(findings)
    return graph, findings


def read_lenient(
    source: str | bytes | Mapping[str, Json],
    *,
    limits: Limits | None = None,
    trusted: bool = False,
) -> ReadResult:
    """Read what can be read of a graph document.

    Args:
        source: JSON text, or ``{"nodes": [{"id", "type", "name"?, "description"?, "data"?,
            "policy"?, "ui"?}], "edges": [{"id"?, "source", "sourceHandle"?, "target",
            "targetHandle"?, "type"?, "data": {"channel"}}]}``. Null is the same as missing. The
            values of a mapping are copied; ``ALREADY_REPORTED`` may stand for some of them.
        limits: What may not be passed; None means only the fixed nesting of 64.
        trusted: A mapping is what :func:`parse_strict_json` has just made of text, no deeper and with no
            longer strings than the limits allow, and nobody else's: its values become the graph's
            as they are, unsearched.

    Raises:
        GraphInvalid: It is not strict JSON, no object, or has too many nodes or edges.
    """
    room = JsonLimits(levels_above=_LEVELS_ABOVE_DATA)
    if limits is not None:
        room = JsonLimits(
            min(limits.json_depth, MAX_JSON_DEPTH), limits.string_bytes, _LEVELS_ABOVE_DATA
        )
    if isinstance(source, (str, bytes)):
        most = None if limits is None else limits.plan_bytes
        document: Json = parse_strict_json(source, max_bytes=most, max_depth=room.depth)
        trusted = len(source) * 4 <= room.string_bytes
    else:
        document = source
    fields = FieldReader(room)
    raw_nodes, raw_edges = _read_lists(document, limits, fields)
    inside = None if trusted else room
    nodes = _read_nodes(raw_nodes, inside, fields)
    edges, places = _read_edges(raw_edges, {node.id for node in nodes}, inside, fields)
    is_whole = not fields.saw_reported and not errors_in(fields.findings)
    gaps = None if is_whole else fields.unreadable
    return ReadResult(Graph(tuple(nodes), tuple(edges)), fields.findings, gaps, places)


def _read_lists(
    document: Json, limits: Limits | None, fields: FieldReader
) -> tuple[list[Any], list[Any]]:
    """Give the two lists of a document, empty where there are none, held against the limits."""
    if not isinstance(cast(object, document), Mapping):
        message = f"a graph must be an object, got {json_type(document)}"
        raise GraphInvalid([Diagnostic("invalid-field", "error", message)])
    nodes = _read_list(document, "nodes", fields)
    edges = _read_list(document, "edges", fields)
    for name in document:
        if name not in _TOP_FIELDS:
            message = f"unknown field {short_repr(name)}; a graph has nodes and edges"
            pointer = pointer_of_name(name)
            fields.findings.append(Diagnostic("unknown-field", "error", message, pointer))
    if limits is not None and (passed := _limits_exceeded(limits, nodes=nodes, edges=edges)):
        raise GraphInvalid([*fields.findings, *passed])
    if nodes is None:
        fields.unreadable.nodes_unreadable = True
    if edges is None:
        fields.unreadable.edges.append((0, UNREADABLE_EDGE))
    return nodes or [], edges or []


def _limits_exceeded(limits: Limits, **lists: list[Any] | None) -> list[Diagnostic]:
    return [
        limit_exceeded(name, getattr(limits, name), len(met), name, f"/{name}")
        for name, met in lists.items()
        if met is not None and len(met) > getattr(limits, name)
    ]


def _read_list(document: Mapping[str, Json], name: str, fields: FieldReader) -> list[Any] | None:
    value = document.get(name)
    if type(value) is _LIST:
        return value
    if fields.is_reported(value):
        return None
    code, message = "invalid-field", f"{name} must be an array, got {json_type(value)}"
    if value is None:
        code, message = "missing-field", f"field {name!r} is missing"
    fields.findings.append(Diagnostic(code, "error", message, f"/{name}"))
    return None


def _read_nodes(
    raw_nodes: Sequence[Any], json_limits: JsonLimits | None, fields: FieldReader
) -> list[Node]:
    nodes: list[Node] = []
    for number, raw in enumerate(raw_nodes):
        node = None
        if type(raw) is _OBJECT and raw.keys() <= _PLAIN_NODE:
            node = _plain_node(raw.get, json_limits)
        nodes.append(node or fields.node(raw, number))
    if len({node.id for node in nodes}) != len(nodes):
        fields.findings += duplicate_ids([node.id for node in nodes], "nodes")
    return nodes


def _plain_node(get: _Get, json_limits: JsonLimits | None) -> Node | None:
    """Read a node without policy and ui, or give None where it needs a closer look."""
    node_id, node_type = get("id"), get("type")
    if type(node_id) is not str or type(node_type) is not str or not _is_id(node_id):
        return None
    name, description, data = get("name"), get("description"), get("data")
    name = node_id if name is None else name
    description = "" if description is None else description
    data = _NO_DATA.copy() if data is None else data
    if type(name) is not str or type(description) is not str or type(data) is not _OBJECT:
        return None
    if json_limits is not None:
        most = json_limits.string_bytes
        if not is_storable_text(node_type, most) or not is_storable_text(name, most):
            return None
        if description and not is_storable_text(description, most):
            return None
        if data and (data := checked_copy(data, json_limits)) is None:
            return None
    values = (node_id, node_type, name, description, data, DEFAULT_POLICY, None, None)
    return _make(Node, values) if node_type and name else None


def _read_edges(
    raw_edges: Sequence[Any], ids: set[str], json_limits: JsonLimits | None, fields: FieldReader
) -> tuple[list[Edge], list[int] | None]:
    """Give the edges, and their places where some were left out."""
    edges: list[Edge] = []
    given = [raw["id"] for raw in raw_edges if type(raw) is _OBJECT and "id" in raw]
    taken = {edge_id for edge_id in given if type(edge_id) is str}
    fresh = _unused_edge_ids(taken)
    seen: dict[str, int] = {}
    handles: set[str] = {DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE}
    for number, raw in enumerate(raw_edges):
        edge = None
        if type(raw) is _OBJECT:
            edge = _plain_edge(raw, raw.get, ids, handles, fresh, json_limits)
        if edge is None:
            edge = fields.edge(raw, number, fresh.__next__)
            if edge is None:
                continue
            handles.update((edge.source_handle, edge.target_handle))
        ends = "\0".join(edge[1:6])  # text, because the garbage collector walks tuples
        if ends in seen:
            fields.report_duplicate_edge(edge, number, seen[ends])
        else:
            seen[ends] = number
            edges.append(edge)
    if taken and (fields.unreadable.edges or len({edge.id for edge in edges}) != len(edges)):
        unread = [
            (number, edge)
            for number, edge in fields.unreadable.edges
            if edge is not UNREADABLE_EDGE
        ]
        placed = sorted([*zip(seen.values(), edges, strict=True), *unread], key=itemgetter(0))
        names, numbers = [edge.id for _, edge in placed], [number for number, _ in placed]
        fields.findings += duplicate_ids(names, "edges", numbers)
    return edges, None if len(edges) == len(raw_edges) else list(seen.values())


def _unused_edge_ids(taken: set[str]) -> Iterator[str]:
    """Give ``e1``, ``e2``, … for edges without an id, but those that are taken."""
    for number in count(1):
        if (edge_id := f"e{number}") not in taken:
            yield edge_id


def _plain_edge(
    raw: dict[str, Any],
    get: _Get,
    ids: set[str],
    handles: set[str],
    new_ids: Iterator[str],
    json_limits: JsonLimits | None,
) -> Edge | None:
    """Read an edge between known nodes, or give None where it needs a closer look."""
    source, target, data = get("source"), get("target"), get("data")
    if type(source) is not str or type(target) is not str or type(data) is not _OBJECT:
        return None
    channel = data.get("channel")
    if source not in ids or target not in ids or (channel != FLOW and channel != LINK):
        return None
    edge_id, source_handle, target_handle = None, DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE
    if len(raw) > _REQUIRED_EDGE_FIELDS:
        if not raw.keys() <= _EDGE or get("type") is not None:
            return None
        edge_id, out, into = get("id"), get("sourceHandle"), get("targetHandle")
        if edge_id is not None and (type(edge_id) is not str or not _is_id(edge_id)):
            return None
        source_handle = source_handle if out is None else out
        target_handle = target_handle if into is None else into
        if type(source_handle) is not str or type(target_handle) is not str:
            return None
        if source_handle not in handles or target_handle not in handles:
            return None
    channel = FLOW if channel == FLOW else LINK
    if len(data) == 1:
        data = _ONLY_CHANNEL[channel]
    elif json_limits is not None and (data := checked_copy(data, json_limits)) is None:
        return None
    edge_id = edge_id or next(new_ids)
    values = (edge_id, source, source_handle, target, target_handle, channel, data, None)
    return _make(Edge, values)
