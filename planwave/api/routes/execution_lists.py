"""Routes: the list of executions, what people call them, and their deletion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.access_rules import access_token, listed_flow
from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    Cursor,
    ExecutionId,
    PageSize,
    PlanIdFilter,
    SearchExecutions,
    decode_sorted_cursor,
    page_size,
    paginate,
)
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import EXECUTIONS, LABELS, success
from planwave.api.schemas.requests import RequestModel
from planwave.service.executions.labels import (
    MAX_NAME_CHARS,
    MAX_NOTE_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    execution_summary,
    labels_json,
)
from planwave.service.queries.digest import ExecutionDigest
from planwave.service.service import Service
from planwave.shapes.common import ExecutionStatus
from planwave.shapes.executions import (
    ExecutionsResponse,
    ExecutionSummary,
    LabelsResponse,
)
from planwave.storage.records import (
    ExecutionFilters,
    ExecutionOrder,
    ExecutionRecord,
    ExecutionSort,
)

router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)


class LabelsRequest(RequestModel):
    """What people call an execution; a field that is left out stays as it is."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Lisbon, second try", "starred": True}]}
    )

    name: str | None = Field(
        None,
        description="In place of the title; null or empty: the title.",
        max_length=MAX_NAME_CHARS,
    )
    tags: list[Annotated[str, Field(max_length=MAX_TAG_CHARS)]] = Field(
        default_factory=list[str],
        description="In place of those before, each once.",
        max_length=MAX_TAGS,
    )
    note: str = Field("", description="Any text.", max_length=MAX_NOTE_CHARS)
    starred: bool = Field(False, description="Whether it has a star.")


async def _filters(
    request: Request,
    q: SearchExecutions = None,
    since: Annotated[
        str | None,
        Query(
            description="Only those made at this time or later, ISO 8601; without a zone, UTC.",
            examples=["2026-01-31T12:00:00Z"],
        ),
    ] = None,
    until: Annotated[
        str | None,
        Query(description="Only those made before this time, ISO 8601.", examples=["2026-02-01"]),
    ] = None,
    plan_id: PlanIdFilter = None,
    tag: Annotated[
        str | None, Query(description="Only those with this tag.", max_length=MAX_TAG_CHARS)
    ] = None,
    starred: Annotated[
        bool | None, Query(description="Only starred ones; `false`: only those without a star.")
    ] = None,
) -> ExecutionFilters:
    return {
        "text": q,
        "since": since,
        "until": until,
        "plan_id": listed_flow(request, plan_id),
        "tag": tag,
        "starred": starred,
        # Runs of the plan before it had a name, and of its drafts, are not for tokens.
        "as_flow": access_token(request) is not None,
    }


async def _order(
    sort: Annotated[
        ExecutionOrder,
        Query(
            description="By what they are sorted; equal ones by age. A duration, a cost or tokens that are not known yet "
            "count as the least."
        ),
    ] = "created",
    order: Annotated[
        Literal["desc", "asc"], Query(description="`desc`: the newest, longest or most first.")
    ] = "desc",
) -> ExecutionSort:
    return ExecutionSort(sort, order == "desc")


@router.get(
    "/api/executions",
    operation_id="listExecutions",
    summary="List executions",
    responses={**success(ExecutionsResponse, "One page.", EXECUTIONS), **problems(422)},
)
async def list_executions(
    service: ServiceDep,
    filters: Annotated[ExecutionFilters, Depends(_filters)],
    sort: Annotated[ExecutionSort, Depends(_order)],
    status: Annotated[
        ExecutionStatus | None, Query(description="Only those that are this.")
    ] = None,
    waiting: Annotated[
        bool, Query(description="Only those that wait for an answer of a person.")
    ] = False,
    digest: Annotated[
        bool, Query(description="Tell of each how far it is: steps, waves, models, usage.")
    ] = False,
    counts: Annotated[
        bool, Query(description="Tell how many there are of each status, on all pages.")
    ] = False,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return executions, newest first unless `sort` and `order` say otherwise, page by page."""
    size = page_size(limit, service.limits)
    records = await service.executions.list(
        status=status,
        waiting=waiting,
        before=decode_sorted_cursor(cursor, sort),
        limit=size + 1,
        sort=sort,
        **filters,
    )
    page, next_cursor = paginate(records, size, sort)
    digests = await service.executions.digests.of(page) if digest else {}
    listed: ExecutionsResponse = {
        "executions": await _summaries(service, page, digests),
        "next_cursor": next_cursor,
    }
    if counts:
        listed["counts"] = await service.executions.count(**filters)
    return json_response(listed)


@router.patch(
    "/api/executions/{execution_id}",
    operation_id="labelExecution",
    summary="Name, tag, note or star an execution",
    responses={**success(LabelsResponse, "Its labels now.", LABELS), **problems(404)},
)
async def label_execution(
    service: ServiceDep,
    execution_id: ExecutionId,
    body: Annotated[LabelsRequest, json_body(LabelsRequest)],
) -> Response:
    """Change what people call an execution. The execution itself, its events and its document stay as they are."""
    labels = await service.executions.label(execution_id, body.model_dump(exclude_unset=True))
    return json_response(labels_json(labels))


@router.delete(
    "/api/executions/{execution_id}",
    operation_id="deleteExecution",
    summary="Delete an execution",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404, 409),
)
async def delete_execution(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Delete an execution that has ended: its events, its results and its document."""
    await service.maintenance.delete_execution(execution_id)
    return Response(status_code=204)


async def _summaries(
    service: Service, page: Sequence[ExecutionRecord], digests: Mapping[str, ExecutionDigest]
) -> list[ExecutionSummary]:
    cut_off = await service.executions.interrupted(page)
    waiting = await service.executions.waits_for(page)
    planned = await service.plans.planning(each.plan_id for each in page)
    return [
        execution_summary(
            record,
            is_interrupted=record.execution_id in cut_off,
            digest=digests.get(record.execution_id),
            planning=planned.get(record.plan_id or ""),
            waits_for=waiting.get(record.execution_id),
        )
        for record in page
    ]
