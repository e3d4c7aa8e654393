"""Models of changes to plans, and of their revisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from planwave.api.schemas.common import GraphDocument, RequestModel
from planwave.api.schemas.common import ResponseModel as _Response
from planwave.api.schemas.examples import EDITED_NOTE, GRAPH
from planwave.api.schemas.operations import OperationModel, to_operation
from planwave.api.schemas.plans import DiagnosticResponse, RevisionSummary
from planwave.graph import operations as edits

MAX_NOTE_CHARS: Final = 1_000
_Author = Literal["person", "api"]


class AuthoredRequest(RequestModel):
    """Who makes a change, and why."""

    author: _Author = Field("api", description="Who makes the change: a person, or a program.")
    note: str = Field(
        "", max_length=MAX_NOTE_CHARS, description="Why; it is stored with the revision."
    )


class PlanEditRequest(AuthoredRequest):
    """Changes to a plan or a flow, applied all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"operations": [EDITED_NOTE], "author": "person", "note": "shorter"},
                {"operations": [{"op": "replace_graph", "graph": GRAPH}]},
            ]
        }
    )

    operations: list[OperationModel] = Field(
        min_length=1, description="Applied in order; see the limit `plan_operations`."
    )

    def to_operations(self) -> Sequence[edits.Operation]:
        """Return the operations as the service takes them."""
        return [to_operation(each) for each in self.operations]


class RestoreRequest(AuthoredRequest):
    """The author of a restored revision; without a body, a program."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"author": "person"}]})


class RevisionsResponse(_Response):
    """One page of revisions, newest first."""

    plan_id: str
    revisions: list[RevisionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class RevisionResponse(RevisionSummary, GraphDocument):
    """One revision of a plan."""

    diagnostics: list[DiagnosticResponse]


class FieldDifference(_Response):
    """One field that differs; a value that is missing on a side is left out."""

    pointer: str = Field(examples=["/data/text"])
    """JSON pointer into the node or the edge."""
    before: Any = None
    after: Any = None


class ElementDifference(_Response):
    """One node or edge that differs."""

    id: str | None
    change: Literal["added", "removed", "changed"]
    before: dict[str, Any] | None = None
    """Of a removed one: all of it."""
    after: dict[str, Any] | None = None
    """Of an added one: all of it."""
    fields: list[FieldDifference] | None = None
    """Of a changed one."""


class RevisionDiffResponse(_Response):
    """The differences between two revisions of a plan, without `ui`."""

    plan_id: str
    a: int
    b: int
    hash: list[str]
    """Of A and of B."""
    title: list[str] | None
    """Of A and of B; null where they are the same."""
    nodes: list[ElementDifference]
    edges: list[ElementDifference]
    reordered: list[Literal["nodes", "edges"]]
    """Which lists have common members in another order."""
