"""Models of the operations that change plans and flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from planwave.api.schemas.common import EdgeDocument, GraphDocument, NodeDocument, RequestModel
from planwave.api.schemas.common import ResponseModel as _Response
from planwave.graph import operations as edits
from planwave.graph.editing.forms import MAX_TITLE_CHARS


class _Documented:
    """The schema of a model for an object whose form the operation checks, to report every error."""

    def __init__(self, model: type[_Response]) -> None:
        self._model = model

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(self._model.__pydantic_core_schema__)


class AddNodeOperation(RequestModel):
    """Adds a node at the end."""

    op: Literal["add_node"]
    node: Annotated[dict[str, Any], _Documented(NodeDocument)]


class UpdateNodeOperation(RequestModel):
    """Changes fields of a node, but not its id."""

    op: Literal["update_node"]
    id: str
    set: dict[str, Any] = Field(
        description="A merge patch (RFC 7396) for the node: null removes a field."
    )


class RemoveNodeOperation(RequestModel):
    """Removes a node and its edges."""

    op: Literal["remove_node"]
    id: str


class AddEdgeOperation(RequestModel):
    """Adds an edge at the end; without an id it gets one."""

    op: Literal["add_edge"]
    edge: Annotated[dict[str, Any], _Documented(EdgeDocument)]


class RemoveEdgeOperation(RequestModel):
    """Removes an edge."""

    op: Literal["remove_edge"]
    id: str


class RenameOperation(RequestModel):
    """Changes the id of a node, in its edges and in expressions too."""

    op: Literal["rename"]
    id: str
    to: str


class SetTitleOperation(RequestModel):
    """Changes the title of the plan, or the name of the flow."""

    op: Literal["set_title"]
    title: str = Field(description=f"One line of at most {MAX_TITLE_CHARS} characters.")


class ReplaceGraphOperation(RequestModel):
    """Replaces the graph; a node without `ui` keeps that of the node of its id."""

    op: Literal["replace_graph"]
    graph: Annotated[dict[str, Any], _Documented(GraphDocument)]


OperationModel = Annotated[
    AddNodeOperation
    | UpdateNodeOperation
    | RemoveNodeOperation
    | AddEdgeOperation
    | RemoveEdgeOperation
    | RenameOperation
    | SetTitleOperation
    | ReplaceGraphOperation,
    Field(discriminator="op"),
]
_CLASSES: Final[Mapping[str, type[edits.Operation]]] = {
    kind.op: kind
    for kind in (
        edits.AddNode,
        edits.UpdateNode,
        edits.RemoveNode,
        edits.AddEdge,
        edits.RemoveEdge,
        edits.Rename,
        edits.SetTitle,
        edits.ReplaceGraph,
    )
}


def to_operation(model: OperationModel) -> edits.Operation:
    """Return an operation as the service takes it."""
    fields = {name: getattr(model, name) for name in type(model).model_fields if name != "op"}
    return _CLASSES[model.op](**fields)
