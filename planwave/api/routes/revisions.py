"""Routes: changing plans, and their revisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.middleware.audit import set_audit_action
from planwave.api.pagination import (
    MAX_REVISION,
    Cursor,
    ExecutionId,
    PageSize,
    PlanId,
    decode_revision_cursor,
    page_size,
    paginate,
)
from planwave.api.preconditions import IfMatch, expected_versions, required_versions
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.routes.plans import plan_response
from planwave.api.schemas.examples import (
    APPROVED_PLAN,
    EDITED_NOTE,
    EDITED_PLAN,
    GRAPH,
    PLAN,
    REVISION,
    REVISION_DIFF,
    REVISIONS,
    success,
)
from planwave.api.schemas.requests import AuthoredRequest, Documented, RequestModel
from planwave.graph import operations as edits
from planwave.graph.editing.forms import MAX_TITLE_CHARS
from planwave.service.plans.revisions import revision_json, revision_summary
from planwave.shapes.common import AddedEdgeDocument, GraphDocument, NodeDocument
from planwave.shapes.plans import (
    PlanResponse,
    RevisionDiffResponse,
    RevisionResponse,
    RevisionsResponse,
)

router = APIRouter(tags=["plans"], dependencies=AUTHENTICATED)


class AddNodeOperation(RequestModel):
    """Adds a node at the end."""

    op: Literal["add_node"]
    node: Annotated[dict[str, Any], Documented(NodeDocument)]


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
    """Adds an edge at the end; without an id it gets one, and without a channel it is a flow edge."""

    op: Literal["add_edge"]
    edge: Annotated[dict[str, Any], Documented(AddedEdgeDocument)]


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


class SetGoalOperation(RequestModel):
    """Changes the goal of the plan; of a flow also its description, which is the goal of its executions."""

    op: Literal["set_goal"]
    goal: str = Field(description="A template over the inputs of the flow; see `goal_chars`.")


class ReplaceGraphOperation(RequestModel):
    """Replaces the graph; a node without `ui` keeps that of the node of its id."""

    op: Literal["replace_graph"]
    graph: Annotated[dict[str, Any], Documented(GraphDocument)]


OperationModel = Annotated[
    AddNodeOperation
    | UpdateNodeOperation
    | RemoveNodeOperation
    | AddEdgeOperation
    | RemoveEdgeOperation
    | RenameOperation
    | SetTitleOperation
    | SetGoalOperation
    | ReplaceGraphOperation,
    Field(discriminator="op"),
]


def to_operation(model: OperationModel) -> edits.Operation:
    """Return an operation as the service takes it."""
    return edits.operation_from_json({n: getattr(model, n) for n in type(model).model_fields})


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


class RevisionRequest(AuthoredRequest):
    """The author of a revision that is restored or made of what ran; without a body, a program."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"author": "person"}]})


Revision = Annotated[
    int, Path(description="The number of a revision.", ge=1, le=MAX_REVISION, examples=[1])
]
OtherRevision = Annotated[
    int | None,
    Query(
        description="The number of the other revision; else the current one.",
        ge=1,
        le=MAX_REVISION,
        examples=[2],
    ),
]


@router.patch(
    "/api/plans/{plan_id}",
    operation_id="editPlan",
    summary="Change a plan",
    responses={
        **success(PlanResponse, "The plan as it is now.", EDITED_PLAN),
        **problems(404, 412, 428),
    },
)
async def edit_plan(
    service: ServiceDep,
    plan_id: PlanId,
    body: Annotated[PlanEditRequest, json_body(PlanEditRequest)],
    if_match: IfMatch = None,
) -> Response:
    """Apply operations to a plan, all or none, and store the result as a new revision.

    `If-Match` is required (`428` without it). If the plan has another hash, the answer is `412`; it
    names the present hash in `current`. A graph with errors is stored as a draft with its
    `diagnostics`, and cannot be executed; callers of a flow go on starting `live_revision`. A change of
    nothing but `ui` and the title makes no revision and leaves the hash as it is.
    """
    plan = await service.plans.edit(
        plan_id,
        body.to_operations(),
        expected=required_versions(if_match),
        author=body.author,
        note=body.note,
    )
    return await plan_response(service, plan)


class RefineRequest(RequestModel):
    """A change in words, or the hash of a proposal to take."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"request": "Name the pressure, too"}],
            "oneOf": [{"required": ["request"]}, {"required": ["accept"]}],
        }
    )

    request: str | None = Field(None, description="What is to be different, in your words.")
    provider: str | None = Field(None, description="Who writes the change; else the default.")
    model: str | None = Field(None, description="A model of that provider.")
    dry_run: bool = Field(False, description="Show the proposal without storing it.")
    accept: str | None = Field(
        None, description="The `hash` of the proposal that becomes a revision."
    )
    author: Literal["person", "api"] = Field(
        "api", description="Who accepts it: a person, or a program."
    )

    @model_validator(mode="after")
    def _require_one(self) -> RefineRequest:
        if (self.request is None) == (self.accept is None):
            raise PydanticCustomError("either", "give request or accept")
        is_for_model = self.dry_run or self.provider is not None or self.model is not None
        if self.accept is not None and is_for_model:
            raise PydanticCustomError(
                "of-request", "give dry_run, provider and model with request, not with accept"
            )
        return self


@router.post(
    "/api/plans/{plan_id}/refine",
    operation_id="refinePlan",
    summary="Change a plan in words",
    responses={
        **success(PlanResponse, "The plan, with its proposal.", PLAN),
        **problems(404, 409, 412, 428, 502),
    },
)
async def refine_plan(
    request: Request,
    service: ServiceDep,
    plan_id: PlanId,
    body: Annotated[RefineRequest, json_body(RefineRequest)],
    if_match: IfMatch = None,
) -> Response:
    """Have a model write a change of a plan, or take the change that it wrote.

    With `request` the plan stays as it is and has a `proposal`: the operations, what they change, and what the plan would
    reach that it does not yet. With `accept` and `If-Match` (`428` without it) the proposal of that hash becomes the
    newest revision.
    """
    if body.accept is not None:
        set_audit_action(request, "plan.edited")
        plan = await service.revisions.accept(
            plan_id, body.accept, expected=required_versions(if_match), author=body.author
        )
        return await plan_response(service, plan)
    if body.dry_run:
        set_audit_action(request, "plan.tried")
    plan = await service.revisions.refine(
        plan_id,
        body.request or "",
        provider=body.provider,
        model=body.model,
        dry_run=body.dry_run,
    )
    return await plan_response(service, plan)


@router.get(
    "/api/plans/{plan_id}/revisions",
    operation_id="listRevisions",
    summary="List the revisions of a plan",
    responses={**success(RevisionsResponse, "One page.", REVISIONS), **problems(404, 422)},
)
async def list_revisions(
    service: ServiceDep, plan_id: PlanId, cursor: Cursor = None, limit: PageSize = None
) -> Response:
    """Return all revisions of a plan, newest first, page by page."""
    size = page_size(limit, service.limits)
    before = decode_revision_cursor(cursor)
    records = await service.revisions.list(plan_id, before=before, limit=size + 1)
    page, next_cursor = paginate(records, size)
    revisions = [revision_summary(each) for each in page]
    return json_response({"plan_id": plan_id, "revisions": revisions, "next_cursor": next_cursor})


@router.get(
    "/api/plans/{plan_id}/revisions/{revision}",
    operation_id="getRevision",
    summary="Look at a revision",
    responses={**success(RevisionResponse, "The revision.", REVISION), **problems(404)},
)
async def get_revision(service: ServiceDep, plan_id: PlanId, revision: Revision) -> Response:
    """Return one revision of a plan, with its graph and its diagnostics."""
    plan_revision = await service.revisions.get(plan_id, revision)
    return json_response(revision_json(plan_revision), etag=plan_revision.hash)


@router.get(
    "/api/plans/{plan_id}/revisions/{revision}/diff",
    operation_id="diffRevisions",
    summary="Compare two revisions",
    responses={
        **success(RevisionDiffResponse, "The differences.", REVISION_DIFF),
        **problems(404, 422),
    },
)
async def diff_revisions(
    service: ServiceDep, plan_id: PlanId, revision: Revision, to: OtherRevision = None
) -> Response:
    """Return the nodes and edges that were added, removed and changed from one to the other."""
    return json_response(await service.revisions.diff(plan_id, revision, to))


@router.post(
    "/api/plans/{plan_id}/revisions/{revision}/restore",
    operation_id="restoreRevision",
    summary="Restore a revision",
    responses={**success(PlanResponse, "The plan as it is now.", PLAN), **problems(404, 412, 428)},
)
async def restore_revision(
    service: ServiceDep,
    plan_id: PlanId,
    revision: Revision,
    body: Annotated[RevisionRequest, json_body(RevisionRequest, may_be_empty=True)],
    if_match: IfMatch = None,
) -> Response:
    """Restore the title and the graph of an earlier revision, as a new revision.

    `If-Match` is required, as for `PATCH`. Nodes that the plan has now keep their `ui`.
    """
    plan = await service.revisions.restore(
        plan_id,
        revision,
        expected=required_versions(if_match),
        author=body.author,
        note=body.note,
    )
    return await plan_response(service, plan)


@router.post(
    "/api/executions/{execution_id}/promote",
    operation_id="promoteExecution",
    summary="Make what ran the newest revision of its plan",
    responses={**success(PlanResponse, "The plan as it is now.", PLAN), **problems(404, 409, 412)},
)
async def promote_execution(
    service: ServiceDep,
    execution_id: ExecutionId,
    body: Annotated[RevisionRequest, json_body(RevisionRequest, may_be_empty=True)],
    if_match: IfMatch = None,
) -> Response:
    """Make the graph of an execution, such as a fork, the newest revision of its plan.

    Without `If-Match` the plan must still be what the execution, or the one that it is a fork of, was started from: else
    the answer is `412`, as a change of others would be lost. With it, the plan must have that hash.
    """
    plan = await service.revisions.promote(
        execution_id, expected=expected_versions(if_match), author=body.author, note=body.note
    )
    return await plan_response(service, plan)


@router.post(
    "/api/plans/{plan_id}/revisions/{revision}/approve",
    operation_id="approveRevision",
    summary="Approve a revision",
    responses={
        **success(PlanResponse, "The plan as it is now.", APPROVED_PLAN),
        **problems(404, 412, 422, 428),
    },
)
async def approve_revision(
    service: ServiceDep, plan_id: PlanId, revision: Revision, if_match: IfMatch = None
) -> Response:
    """Approve a revision of a flow, for all who call it.

    Where the operator requires approval (`PLANWAVE_REQUIRE_APPROVAL`), callers start the newest approved
    revision, and its executions ask no more. `If-Match` is required and names the hash of the revision: the
    approval is of this hash, in whatever revision. A revision with errors cannot be approved.
    """
    plan = await service.revisions.approve(plan_id, revision, expected=required_versions(if_match))
    return await plan_response(service, plan)
