"""Write a graph in Python instead of JSON; the result is an ordinary graph document.

::

    g = planwave.GraphBuilder()
    goal = g.node("start", id="goal")
    facts = g.node("agent", id="facts", description="Find the facts.")
    doubts = g.node("agent", id="doubts", description="Find what speaks against it.")
    goal >> [facts, doubts] >> g.node("end")
    document = g.document()

``a >> b`` goes from ``output`` to ``input``, ``a["left"] >> b["doc"]`` between other handles, and
``a.link(b, "tools")`` is a link edge into a handle. The builder knows no node types: handles and data
are checked later, with the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, overload

from planwave.errors import InputError
from planwave.expressions import copy_json
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    ID_HINT,
    LINK,
    Channel,
    Json,
    is_id,
)

_MAX_STEM_CHARS: Final = 56
"""Characters of a type's name in a generated id, so that a number fits behind it."""


class Endpoint:
    """A possible end of an edge: a node, or one handle of a node."""

    __slots__ = ("_builder", "_handle", "_node_id")

    def __init__(self, builder: GraphBuilder, node_id: str, handle: str | None = None) -> None:
        self._builder, self._node_id, self._handle = builder, node_id, handle

    @overload
    def __rshift__(self, targets: Endpoint) -> NodeRef: ...
    @overload
    def __rshift__(self, targets: Sequence[Endpoint]) -> list[NodeRef]: ...
    def __rshift__(self, targets: Endpoint | Sequence[Endpoint]) -> NodeRef | list[NodeRef]:
        """Add a flow edge to each target; return the targets so that calls can be chained."""
        if isinstance(targets, Endpoint):
            self._builder.connect(self, targets, FLOW)
            return targets.node
        if not _are_endpoints(targets):
            return NotImplemented
        for target in targets:
            self._builder.connect(self, target, FLOW)
        return [target.node for target in targets]

    def __rrshift__(self, sources: Sequence[Endpoint]) -> NodeRef:
        """Add a flow edge from each of several nodes."""
        if not _are_endpoints(sources):
            return NotImplemented
        for source in sources:
            self._builder.connect(source, self, FLOW)
        return self.node

    def link(self, target: Endpoint, handle: str | None = None) -> None:
        """Add a link edge: the target uses this node's artefact on demand.

        Args:
            target: The node that uses this node, or one handle of it.
            handle: The handle of ``target`` if that is a node, such as ``tools``.

        Raises:
            InputError: The target belongs to another builder (``foreign-node``).
            TypeError: ``target`` is already a handle and ``handle`` names another.
        """
        if handle is not None:
            if not isinstance(target, NodeRef):
                raise TypeError(
                    f"{target!r} is one handle already, so {handle!r} cannot be named as well"
                )
            target = target[handle]
        self._builder.connect(self, target, LINK)

    @property
    def node(self) -> NodeRef:
        """The node itself."""
        return NodeRef(self._builder, self._node_id)

    def resolve(self, builder: GraphBuilder, default: str) -> tuple[str, str]:
        """Return the node's id and the handle.

        Raises:
            InputError: The node belongs to another builder than ``builder``.
        """
        if builder is not self._builder:
            raise InputError(
                f"node {self._node_id!r} belongs to another graph builder",
                code="foreign-node",
                hint="make all nodes of one graph with the node(…) of one builder",
            )
        return self._node_id, default if self._handle is None else self._handle


class NodeRef(Endpoint):
    """A node of a graph being built; ``ref["handle"]`` is one handle of it."""

    __slots__ = ()

    __iter__: ClassVar[None] = None
    """Else ``__getitem__`` would make it an endless sequence of handles."""

    @property
    def id(self) -> str:
        """The node's id."""
        return self._node_id

    def __getitem__(self, handle: str) -> HandleRef:
        return HandleRef(self._builder, self._node_id, handle)

    def __repr__(self) -> str:
        return f"<node {self._node_id!r}>"


class HandleRef(Endpoint):
    """One handle of a node of a graph being built."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<handle {self._handle!r} of node {self._node_id!r}>"


class GraphBuilder:
    """Collects nodes and edges in the order they are added.

    The same calls always produce the same document, ids included.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, dict[str, Json]] = {}
        self._edges: dict[tuple[str, str, str, str, Channel], None] = {}

    def node(
        self,
        type: str,
        *,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        data: Mapping[str, Json] | None = None,
        policy: Mapping[str, Json] | None = None,
        ui: Mapping[str, Json] | None = None,
        **fields: Json,
    ) -> NodeRef:
        """Add a node.

        Args:
            type: Its node type.
            id: Its id; generated from the type if None (``agent``, ``agent-2``, …).
            name: Its display name; the id if None.
            description: Its task.
            data: Its data, as in a document.
            policy: Its policy, as in a document: ``{"retry": {"attempts": 2}}``.
            ui: Stored for editors; planwave ignores it.
            **fields: More data, spelled as in a document: ``systemPrompt="…"``.

        Raises:
            InputError: The id is in use (``duplicate-id``) or malformed (``invalid-id``), or a field is
                both in ``data`` and a keyword (``duplicate-key``).
        """
        node_id = self._generate_id(type) if id is None else self._validate_id(id)
        if repeated := sorted(fields.keys() & (data or {}).keys()):
            raise InputError(
                f"node {node_id!r} has data.{repeated[0]} twice",
                code="duplicate-key",
                hint="write it in data={…} or as a keyword, not both",
            )
        document: dict[str, Json] = {"id": node_id, "type": type}
        optional: dict[str, Json] = {"name": name, "description": description}
        optional |= {"data": {**(data or {}), **fields}, "policy": {**(policy or {})}}
        optional["ui"] = {**(ui or {})}
        for field, value in optional.items():
            if value:
                document[field] = copy_json(value)
        self._nodes[node_id] = document
        return NodeRef(self, node_id)

    def connect(self, source: Endpoint, target: Endpoint, channel: Channel) -> None:
        """Add an edge, unless it exists; ``>>`` and ``link`` are the short forms.

        Raises:
            InputError: An end belongs to another builder (``foreign-node``).
        """
        begin = source.resolve(self, DEFAULT_SOURCE_HANDLE)
        self._edges[*begin, *target.resolve(self, DEFAULT_TARGET_HANDLE), channel] = None

    def document(self) -> dict[str, Json]:
        """Return the graph document ``{"nodes": [...], "edges": [...]}``, a new copy for each call.

        Edge ids are ``e1``, ``e2``, … in the order the edges were added.
        """
        return {
            "nodes": [copy_json(node) for node in self._nodes.values()],
            "edges": [
                {
                    "id": f"e{number}",
                    "source": source,
                    "sourceHandle": source_handle,
                    "target": target,
                    "targetHandle": target_handle,
                    "data": {"channel": channel},
                }
                for number, (source, source_handle, target, target_handle, channel) in enumerate(
                    self._edges, 1
                )
            ],
        }

    def _generate_id(self, node_type: str) -> str:
        candidate, number = node_type, 1
        while candidate in self._nodes:
            number += 1
            candidate = f"{node_type[:_MAX_STEM_CHARS]}-{number}"
        return self._validate_id(candidate)

    def _validate_id(self, node_id: str) -> str:
        if not is_id(node_id):
            raise InputError(
                f"{node_id!r} cannot be the id of a node",
                code="invalid-id",
                hint=ID_HINT,
            )
        if node_id in self._nodes:
            raise InputError(
                f"there is already a node {node_id!r}",
                code="duplicate-id",
                hint="give every node its own id, or omit the id",
            )
        return node_id


def _are_endpoints(values: object) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(end, Endpoint) for end in values)  # pyright: ignore[reportUnknownVariableType]
