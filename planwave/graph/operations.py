"""Operations that change the title and the graph of a plan or a flow; ``editing/editor.py`` applies them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, TypeAlias

from planwave.graph.model import Json


@dataclass(frozen=True, slots=True)
class AddNode:
    """Add a node at the end."""

    op: ClassVar = "add_node"
    node: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class UpdateNode:
    """Apply a merge patch (RFC 7396) to the document of a node."""

    op: ClassVar = "update_node"
    id: str
    set: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Remove a node and its edges."""

    op: ClassVar = "remove_node"
    id: str


@dataclass(frozen=True, slots=True)
class AddEdge:
    """Add an edge at the end; without an id it gets one, and without a channel it is a flow edge."""

    op: ClassVar = "add_edge"
    edge: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class RemoveEdge:
    """Remove an edge."""

    op: ClassVar = "remove_edge"
    id: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Change the id of a node, also in its edges and in the expressions of other nodes."""

    op: ClassVar = "rename"
    id: str
    to: str


@dataclass(frozen=True, slots=True)
class SetTitle:
    """Change the title of the plan."""

    op: ClassVar = "set_title"
    title: str


@dataclass(frozen=True, slots=True)
class SetGoal:
    """Change the goal of the plan."""

    op: ClassVar = "set_goal"
    goal: str


@dataclass(frozen=True, slots=True)
class ReplaceGraph:
    """Replace the graph; a node without ``ui`` keeps that of the node of its id."""

    op: ClassVar = "replace_graph"
    graph: Mapping[str, Json]


Operation: TypeAlias = (
    AddNode
    | UpdateNode
    | RemoveNode
    | AddEdge
    | RemoveEdge
    | Rename
    | SetTitle
    | SetGoal
    | ReplaceGraph
)

_BY_NAME: Final[Mapping[str, type[Operation]]] = {
    kind.op: kind
    for kind in (
        AddNode, UpdateNode, RemoveNode, AddEdge, RemoveEdge, Rename, SetTitle, SetGoal, ReplaceGraph,
    )
}  # fmt: skip


def operation_json(operation: Operation) -> dict[str, Json]:
    """Return an operation in the JSON form of the API."""
    fields = {name: getattr(operation, name) for name in operation.__slots__}
    return {"op": operation.op, **fields}


def operation_from_json(document: Mapping[str, Any]) -> Operation:
    """Return an operation that ``operation_json`` wrote."""
    fields = {name: value for name, value in document.items() if name != "op"}
    return _BY_NAME[document["op"]](**fields)
