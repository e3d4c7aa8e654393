"""Routes: plans, and checking graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import ConfigDict, Field
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, PreassignedIdDep, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    Cursor,
    FlowName,
    Force,
    Named,
    PageSize,
    PlanId,
    SearchPlans,
    decode_cursor,
    page_size,
    paginate,
)
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import CHECK, FORECAST, GOAL, GRAPH, PLAN, PLANS, success
from planwave.api.schemas.requests import GoalModel, RequestModel
from planwave.api.streaming.sse import PLAN_STREAM_RESPONSES, PlanStream
from planwave.principals import principal_json
from planwave.service.plans.documents import CheckReport, plan_json, record_of
from planwave.service.plans.revisions import current_revision
from planwave.service.service import Service
from planwave.shapes.common import PlanStatus
from planwave.shapes.graphs import CheckResponse, ForecastResponse
from planwave.shapes.plans import PlanDocument, PlanResponse, PlansResponse, PlanSummary
from planwave.storage.records import PlanRecord

router = APIRouter(tags=["plans"], dependencies=AUTHENTICATED)


class PlanRequest(GoalModel):
    """A goal to be planned."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"prompt": GOAL}]})


class CheckRequest(RequestModel):
    """A graph to check; its problems are the response, not an error."""

    graph: dict[str, Any] = Field(
        description="`{nodes, edges}`, or a plan, whose goal `user_prompt` is checked too.",
        examples=[GRAPH],
    )


Stream = Annotated[
    bool,
    Query(description="Tell how the plan is written, as server-sent events, before giving it."),
]


@router.post(
    "/api/plan",
    operation_id="createPlan",
    summary="Plan a goal",
    status_code=201,
    responses={
        **success(PlanResponse, "The plan.", PLAN, 201),
        **PLAN_STREAM_RESPONSES,
        **problems(409, 502),
    },
)
async def create_plan(
    service: ServiceDep,
    preassigned_id: PreassignedIdDep,
    body: Annotated[PlanRequest, json_body(PlanRequest)],
    stream: Stream = False,
) -> Response:
    """Let a model write a plan for a goal; check and store the plan. Its hash is the `ETag`.

    Where the goal leaves open what the plan depends on, the plan has at most three `questions`, each with the
    answer under which it is written. Repeat the request with `answers` to have it written under others.

    With `stream=1` the answer is `200` with events: `delta {text, reasoning}`, `title {title}`,
    `node {id, name, …}`, `edge {source, target, channel}`, `repair {attempt, diagnostics}` (the
    plan is written again: discard its earlier events), `fix {fix}`; the last one is `plan` with the
    whole plan, or `problem`. An error before the first event is answered with its own status. A
    client that disconnects cancels the planning; nothing is stored then.
    """

    async def create(on_progress: Callable[[Any], None] | None = None) -> PlanResponse:
        plan = await service.plans.create(
            body.prompt,
            body.provider,
            body.model,
            plan_id=preassigned_id,
            on_progress=on_progress,
            answers=body.answers,
        )
        record = replace(record_of(plan), needs_approval=service.requires_approval)
        return await _with_inputs(service, plan_json(record, "draft"))

    if stream:
        return PlanStream(create, lambda: service.is_draining)
    plan = await create()
    location = f"/api/plans/{plan['plan_id']}"
    return json_response(plan, 201, location=location, etag=plan["hash"])


@router.get(
    "/api/plans",
    operation_id="listPlans",
    summary="List plans",
    responses={**success(PlansResponse, "One page.", PLANS), **problems(422)},
)
async def list_plans(
    service: ServiceDep,
    q: SearchPlans = None,
    name: FlowName = None,
    named: Named = None,
    cursor: Cursor = None,
    limit: PageSize = None,
) -> Response:
    """Return plans, with a name and without, newest first, page by page, each in its newest revision."""
    size, before = page_size(limit, service.limits), decode_cursor(cursor)
    records = await service.plans.list(
        text=q, name=name, named=named, before=before, limit=size + 1
    )
    page, next_cursor = paginate(records, size)
    statuses = await service.plans.statuses([plan.plan_id for plan in page])
    plans = [_summary(plan, statuses[plan.plan_id]) for plan in page]
    return json_response({"plans": plans, "next_cursor": next_cursor})


@router.get(
    "/api/plans/{plan_id}",
    operation_id="getPlan",
    summary="Look at a plan",
    responses={**success(PlanResponse, "The plan.", PLAN), **problems(404)},
)
async def get_plan(service: ServiceDep, plan_id: PlanId) -> Response:
    """Return a plan in its newest revision, with the status of its newest execution.

    Its `ETag` is what `If-Match` compares in all changes of the plan, also through `/api/flows`.
    """
    return await plan_response(service, await service.plans.get(plan_id))


@router.delete(
    "/api/plans/{plan_id}",
    operation_id="deletePlan",
    summary="Delete a plan",
    status_code=204,
    response_description="It is gone.",
    responses=problems(404, 409),
)
async def delete_plan(service: ServiceDep, plan_id: PlanId, force: Force = False) -> Response:
    """Delete a plan with its revisions. Its executions stay, with their graphs.

    An execution that has not ended forbids it. So does what leads to the name of a flow, which `flow-in-use` lists: its publication, triggers, access
    tokens, targets of notifications, and graphs that name it. With `force` all but the graphs are
    removed too.
    """
    await service.plans.delete(plan_id, force=force)
    return Response(status_code=204)


@router.post(
    "/api/plans/{plan_id}/validate",
    operation_id="validatePlan",
    summary="Check a plan again",
    responses={**success(CheckResponse, "What was found.", CHECK), **problems(404)},
)
async def validate_plan(service: ServiceDep, plan_id: PlanId) -> Response:
    """Check a plan against the node types, providers and limits there are now."""
    return await _check_response(service, await service.plans.validate(plan_id))


@router.get(
    "/api/plans/{plan_id}/forecast",
    operation_id="forecastPlan",
    summary="Estimate the calls, tokens and cost of a plan",
    responses={**success(ForecastResponse, "The estimate.", FORECAST), **problems(404, 422)},
)
async def forecast_plan(service: ServiceDep, plan_id: PlanId) -> Response:
    """Return waves, critical path, calls, tokens, cost range and side effects, by today's prices."""
    return json_response(await service.plans.forecast(plan_id))


@router.post(
    "/api/check",
    operation_id="checkGraph",
    summary="Check a graph",
    responses=success(CheckResponse, "What was found.", CHECK),
)
async def check_graph(
    service: ServiceDep, body: Annotated[CheckRequest, json_body(CheckRequest)]
) -> Response:
    """Return all errors of a graph at once, and what it will take; nothing is stored.

    Pointers are into the graph.
    """
    report = await asyncio.to_thread(service.plans.check, body.graph)
    return await _check_response(service, report)


async def plan_response(service: Service, plan: PlanRecord) -> Response:
    """Return a stored plan with its status; its hash is the ``ETag``."""
    return json_response(await _plan_document(service, plan), etag=plan.hash)


async def _plan_document(service: Service, plan: PlanRecord) -> PlanResponse:
    return await _with_inputs(service, plan_json(plan, await service.plans.status(plan.plan_id)))


async def _with_inputs(service: Service, plan: PlanDocument) -> PlanResponse:
    return {**plan, "inputs": await asyncio.to_thread(service.input_schema, plan)}


async def _check_response(service: Service, report: CheckReport) -> Response:
    """Write what was found, in a thread: the ports and the forecast of a large graph take long."""
    report = await service.flows.check_references(report)
    return json_response(await asyncio.to_thread(_check_document, service, report))


def _check_document(service: Service, report: CheckReport) -> dict[str, Any]:
    return {
        "valid": report.can_run,
        "diagnostics": [diagnostic.as_json() for diagnostic in report.diagnostics],
        "graph": report.graph_document(),
        "ports": {} if report.graph is None else service.node_ports(report.graph),
        "forecast": service.plans.forecast_report(report),
    }


def _summary(plan: PlanRecord, status: PlanStatus) -> PlanSummary:
    newest = current_revision(plan)
    return {
        "plan_id": plan.plan_id,
        "user_prompt": plan.user_prompt,
        "title": plan.title,
        "name": plan.name,
        "description": plan.description,
        "published": list(plan.published),
        "status": status,
        "revision": plan.revision,
        "live_revision": plan.live_revision,
        "hash": plan.hash,
        "created_at": plan.created_at,
        "updated_at": newest.created_at,
        "updated_by": principal_json(newest.created_by),
        "provider": plan.document.get("provider"),
        "model": plan.document.get("model"),
        "node_count": newest.node_count,
        "error_count": newest.error_count,
    }
