"""Build a graph document in Python: nodes, the edges between them, and what refers to both.

``DocumentBuilder`` knows no node types by itself. With a catalogue it checks names where they are
written, and finds the handle and the channel of an edge; all else is checked later, with the graph.
``planwave.GraphBuilder`` is the one that people use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, cast

from typing_extensions import TypeVar

from planwave.errors import InputError
from planwave.expressions import copy_json
from planwave.graph.json_values import JsonLimits, checked_copy, json_findings
from planwave.graph.keywords import data_name, handle_name
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    ID_HINT,
    Channel,
    Edge,
    Json,
    Retry,
    edge_document,
    is_id,
)
from planwave.graph.ports import connection, find_port
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.graph.reading.documents import unused_edge_ids
from planwave.graph.reading.fields import CHANNELS
from planwave.graph.reading.policy import read_policy

T_co = TypeVar("T_co", covariant=True, default=Any)

_Ends = tuple[str, str, str, str, Channel]
_MAX_STEM_CHARS: Final = 56
"""Characters of a type's name in a generated id, so that a number fits behind it."""
_JSON_LIMITS: Final = JsonLimits(levels_above=3)


class ResultReader(Protocol[T_co]):
    """Reads the stored result of a node as a Python value."""

    def read(self, value: Json, what: str, /) -> T_co:
        """Return the value of a JSON value; ``what`` names it in errors."""
        ...


class Endpoint:
    """A possible end of an edge: a node, or one handle of a node.

    Attributes:
        id: The node's id.
        handle: The handle; None for the node itself.
    """

    __slots__ = ("_builder", "handle", "id")

    def __init__(self, builder: DocumentBuilder, node_id: str, handle: str | None = None) -> None:
        self._builder, self.id, self.handle = builder, node_id, handle

    def require_from(self, builder: DocumentBuilder) -> None:
        """Check that the node belongs to a builder.

        Raises:
            InputError: It belongs to another one.
        """
        if builder is not self._builder:
            raise InputError(
                f"node {self.id!r} belongs to another graph builder",
                code="foreign-node",
                hint="make all nodes of one graph with the node(…) of one builder",
            )


class NodeRef(Endpoint, Generic[T_co]):
    """A node of a graph being built; ``ref["handle"]`` is one handle of it.

    Attributes:
        result_type: Reads the node's result as the type of this reference; None where it is JSON.
    """

    __slots__ = ("result_type",)

    __iter__: ClassVar[None] = None
    """Else ``__getitem__`` would make it an endless sequence of handles."""

    def __init__(
        self, builder: DocumentBuilder, node_id: str, result_type: ResultReader[T_co] | None = None
    ) -> None:
        super().__init__(builder, node_id)
        self.result_type = result_type

    def __getitem__(self, handle: str) -> HandleRef:
        return HandleRef(self._builder, self.id, handle)

    def __repr__(self) -> str:
        return f"<node {self.id!r}>"


class HandleRef(Endpoint):
    """One handle of a node of a graph being built."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<handle {self.handle!r} of node {self.id!r}>"


class NodeFields(NamedTuple):
    """The fields of a node's document that are the same for all types, as in a document."""

    name: str | None = None
    description: str | None = None
    data: Mapping[str, Json] | None = None
    policy: Mapping[str, Json | Retry] | None = None
    ui: Mapping[str, Json] | None = None


class DocumentBuilder:
    """Collects nodes and edges in the order they are added.

    The same calls always produce the same document, ids included.

    Args:
        types: The node types, to check names where they are written; None knows none.
        title: What runs of the graph are called; it is no part of the document.

    Raises:
        TypeError: The title is no text.
    """

    def __init__(self, types: NodeTypes | None = None, *, title: str = "") -> None:
        if not isinstance(cast("object", title), str):
            raise TypeError(f"the title of a graph is a text, not {title!r}")
        self._types, self.title = types, title
        self._nodes: dict[str, dict[str, Json]] = {}
        self._edges: dict[_Ends, Edge] = {}
        self._edge_ids: set[str] = set()

    def edge(
        self,
        source: Endpoint,
        target: Endpoint,
        *,
        id: str | None = None,
        channel: Channel = FLOW,
        data: Mapping[str, Json] | None = None,
        type: str | None = None,
    ) -> None:
        """Add an edge that no keyword of ``node`` can express.

        Args:
            source: The node, whose ``output`` it leaves, or a handle: ``node["errors"]``.
            target: The node, whose ``input`` it enters, or a handle.
            id: Its id; generated if None: ``e1``, ``e2``, … in the order the edges were added.
            channel: ``flow`` for values, ``link`` for what the target uses on demand.
            data: More data of the edge, besides the channel; planwave stores them.
            type: Its type in an editor; planwave stores it.

        Raises:
            InputError: An end belongs to another builder (``foreign-node``), the id is in use
                (``duplicate-id``) or malformed (``invalid-id``), the edge exists (``duplicate-edge``).
            TypeError: An end is no node of a graph, the channel is none, or the data are not JSON.
        """
        for end in (source, target):
            if not isinstance(cast("object", end), Endpoint):
                raise TypeError(f"an edge leads from node to node; {end!r} is none")
            end.require_from(self)
        if channel not in CHANNELS:
            raise TypeError(f"the channel is {' or '.join(map(repr, CHANNELS))}, not {channel!r}")
        if id is not None:
            _validate_id(id, "an edge", self._edge_ids)
        out, into = source.handle or DEFAULT_SOURCE_HANDLE, target.handle or DEFAULT_TARGET_HANDLE
        own_data = _json_copy({**(data or {}), "channel": channel}, "the edge")
        edge = Edge(id or "", source.id, out, target.id, into, channel, own_data, type)
        _put(self._edges, edge)
        if id is not None:
            self._edge_ids.add(id)

    def document(self) -> dict[str, Json]:
        """Return the graph document ``{"nodes": [...], "edges": [...]}``, a new copy for each call."""
        ids = unused_edge_ids(self._edge_ids)
        edges = [edge if edge.id else edge._replace(id=next(ids)) for edge in self._edges.values()]
        return {
            "nodes": [copy_json(node) for node in self._nodes.values()],
            "edges": [copy_json(edge_document(edge)) for edge in edges],
        }

    def _add_node(
        self,
        node_type: str,
        node_id: str | None,
        fields: NodeFields,
        keywords: Mapping[str, Any],
        edges: Mapping[str, Any],
    ) -> str:
        """Add a node and the edges into it; return its id.

        Args:
            node_type: Its type.
            node_id: Its id; generated from the type if None.
            fields: The fields that all types have.
            keywords: Data fields and edges by their Python names.
            edges: Edges by the names of the handles.

        Raises:
            InputError: The id is in use (``duplicate-id``) or malformed (``invalid-id``), something is
                given twice (``duplicate-key``), or a source is of another builder (``foreign-node``).
            TypeError: The type has no such field or input, a value is not JSON, or an input that
                takes one edge gets several.
            ValueError: No document may have the policy.
        """
        facts = self._facts(node_type)
        own_id = self._generate_id(node_type) if node_id is None else node_id
        _validate_id(own_id, "a node", self._nodes)
        data = dict(fields.data or {})
        sources = self._read_keywords(own_id, node_type, facts, data, keywords)
        for handle, value in edges.items():
            refs = _refs_in(value, handle)
            if not refs:
                raise TypeError(f"edges={{…}} leads from nodes into handles; {value!r} is no node")
            _set_once(sources, handle, refs, f"edges into {handle!r} of node {own_id!r}")
        document: dict[str, Json] = {"id": own_id, "type": node_type}
        policy = (facts.policy or None) if facts and fields.policy is None else fields.policy
        policy = None if policy is None else _policy_document(policy, f"node {own_id!r}")
        optional = fields._replace(data=data or fields.data, policy=policy)._asdict()
        document |= {name: held for name, held in optional.items() if held is not None}
        own_document = _json_copy(document, f"node {own_id!r}")
        added: dict[_Ends, Edge] = {}
        for handle, refs in sources.items():
            for edge in self._edges_into(own_id, handle, refs, facts):
                _put(added, edge)
        self._nodes[own_id] = own_document
        self._edges |= added
        return own_id

    def _read_keywords(
        self,
        node_id: str,
        node_type: str,
        facts: NodeTypeInfo | None,
        data: dict[str, Json],
        keywords: Mapping[str, Any],
    ) -> dict[str, list[Endpoint]]:
        """Add the data fields among keywords to the data; return the sources of the edges by handle."""
        sources: dict[str, list[Endpoint]] = {}
        for keyword, value in keywords.items():
            refs = _refs_in(value, keyword)
            if refs:
                handle = handle_name(keyword, node_type, facts)
                _set_once(sources, handle, refs, f"edges into {handle!r} of node {node_id!r}")
            else:
                name = data_name(keyword, node_type, facts)
                _set_once(
                    data,
                    name,
                    self._as_json(node_type, name, value),
                    f"data.{name} of node {node_id!r}",
                )
        return sources

    def _as_json(self, node_type: str, name: str, value: Any) -> Json:
        """Return the JSON of a data field of a type that was written as a Python object."""
        return value.document() if isinstance(value, DocumentBuilder) else value

    def _edges_into(
        self, node_id: str, handle: str, sources: Sequence[Endpoint], facts: NodeTypeInfo | None
    ) -> list[Edge]:
        """Return the edges from some sources into one handle of a node."""
        edges: list[Edge] = []
        for source in sources:
            source.require_from(self)
            source_facts = self._facts(str(self._nodes[source.id]["type"]))
            out, channel = connection(source_facts, source.handle, facts, handle)
            port = None if facts is None else find_port(facts.inputs, handle, channel)
            if port is not None and not port.multiple and len(sources) > 1:
                raise TypeError(
                    f"{handle!r} of node {node_id!r} takes one edge, not {len(sources)}; one value "
                    "of several comes from a node between, such as 'merge'"
                )
            edges.append(Edge("", source.id, out, node_id, handle, channel, {"channel": channel}))
        return edges

    def _facts(self, node_type: str) -> NodeTypeInfo | None:
        return None if self._types is None else self._types.type_info(node_type)

    def _generate_id(self, node_type: str) -> str:
        candidate, number = node_type, 1
        while candidate in self._nodes:
            number += 1
            candidate = f"{node_type[:_MAX_STEM_CHARS]}-{number}"
        return candidate


def _put(edges: dict[_Ends, Edge], edge: Edge) -> None:
    """Add an edge whose ends are those of no other.

    Raises:
        InputError: ``duplicate-edge``.
    """
    if edge[1:6] in edges:
        ends = f"{edge.source}.{edge.source_handle} to {edge.target}.{edge.target_handle}"
        raise InputError(
            f"there is already an edge from {ends}",
            code="duplicate-edge",
            hint="connect each pair of handles once",
        )
    edges[edge[1:6]] = edge


def _validate_id(candidate: str, owner: str, used: Collection[str]) -> None:
    if not is_id(candidate):
        raise InputError(
            f"{candidate!r} cannot be the id of {owner}", code="invalid-id", hint=ID_HINT
        )
    if candidate in used:
        raise InputError(
            f"there is already {owner} {candidate!r}",
            code="duplicate-id",
            hint="choose another id, or omit it",
        )


def _refs_in(value: Any, name: str) -> list[Endpoint]:
    """Return the nodes that a value consists of; none if it is a value of its own.

    Raises:
        TypeError: It is a list of nodes and of other values.
    """
    if isinstance(value, Endpoint):
        return [value]
    members = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()
    refs = [each for each in members if isinstance(each, Endpoint)]
    if refs and len(refs) < len(members):
        raise TypeError(f"{name} is a list of nodes or of values, not of both: {value!r}")
    return refs


def _set_once(named: dict[str, Any], name: str, value: Any, what: str) -> None:
    if name in named:
        raise InputError(
            f"{what} is written twice",
            code="duplicate-key",
            hint="write it as a keyword, or in data={…} or edges={…}, not both",
        )
    named[name] = value


def _policy_document(policy: Mapping[str, Json | Retry], owner: str) -> dict[str, Json]:
    """Return a policy as in a document.

    Raises:
        ValueError: No document may have it; the message says where.
    """
    document = {
        name: value.to_document() if isinstance(value, Retry) else value
        for name, value in policy.items()
    }
    _, errors = read_policy(document, "")
    if errors:
        hint = f"; {errors[0].hint}" if errors[0].hint else ""
        raise ValueError(f"{owner}: {errors[0].message}{hint}")
    return document


def _json_copy(document: dict[str, Json], owner: str) -> dict[str, Json]:
    """Return a copy of a part of a document.

    Raises:
        TypeError: It is not JSON; the message says where.
    """
    own = checked_copy(document, _JSON_LIMITS)
    if own is None:
        finding = json_findings(document, "", _JSON_LIMITS)[0]
        hint = "" if finding.hint is None else f"; {finding.hint}"
        raise TypeError(f"{owner}: {finding.message}{hint}")
    return own
