"""Routes: executing plans, and what becomes of executions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import Response

from planwave.api.access_rules import flow_to_run, require_flow
from planwave.api.dependencies import (
    AUTHENTICATED,
    AppState,
    ExecutionsDep,
    PreassignedExecutionIdDep,
    ServiceDep,
    StateDep,
    app_state,
    document_response,
)
from planwave.api.json_body import json_body
from planwave.api.pagination import (
    ExecutionId,
    validate_id,
)
from planwave.api.problems import GRAPH_POINTER, prefix_error_pointers, problems
from planwave.api.responses import json_response, json_response_in_thread
from planwave.api.schemas.examples import (
    CREATED,
    DOCUMENT,
    EXECUTION,
    EXPLANATION,
    GOAL,
    GRAPH,
    PLAN_ID,
    QUEUED,
    RESULT,
    success,
)
from planwave.api.schemas.requests import Documented, GoalModel, RequestModel, RunOptionsModel
from planwave.errors import NotFound, PlanwaveError
from planwave.events import Event, execution_logs, fold
from planwave.events.logs.typed_log import execution_log_entries
from planwave.events.outcome import outcome_of
from planwave.events.usage import UsageTotal
from planwave.executor.options import RunOptions
from planwave.service.executions.execution_service import Executable, PlanRef
from planwave.service.executions.labels import labels_json
from planwave.service.flows.flow_queries import FlowRef, flow_not_found
from planwave.service.queries.history import ExecutionQueries
from planwave.service.service import Service
from planwave.shapes.common import GraphDocument
from planwave.shapes.executions import (
    DocumentNode,
    DocumentResponse,
    ExecutionCreated,
    ExecutionResponse,
    ExplainResponse,
    ResultResponse,
)
from planwave.storage.records import ExecutionRecord

router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)


class ExecuteOptionsModel(RunOptionsModel):
    """How to run; limits of the service hold in any case."""

    policies: dict[str, dict[str, Any]] | None = Field(
        default=None,
        description=(
            "Node policies of this execution by node id, over those of the plan, field by field; "
            "null takes a field back to its default."
        ),
        examples=[{"note": {"timeoutS": 30, "retry": {"attempts": 2}}}],
    )


_INPUTS: Final[Any] = Field(
    None,
    description=(
        "`{node_id: {handle: value}}`: nodes settled with these values instead of being run; "
        "`{handle: value}` where there is one entry node."
    ),
    examples=[{"facts": {"output": "Ice floats."}}],
)
_REQUIRE_APPROVAL: Final[Any] = Field(
    False,
    description=(
        "Ask a person before the first node starts: the execution is paused with a request of the "
        "kind `plan-approval`. The operator may require it in any case."
    ),
)
_OPTIONS: Final[Any] = Field(
    default_factory=ExecuteOptionsModel,  # pydantic would copy a default deeply for each request
    json_schema_extra={"default": ExecuteOptionsModel().model_dump(mode="json")},
)


class ExecuteRequest(RequestModel):
    """The plan to execute: a stored plan, a flow, or a graph, which becomes a plan."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"plan_id": PLAN_ID, "start": True},
                {"flow": "Note", "inputs": {"facts": {"output": "Ice floats."}}},
                {"graph": GRAPH},
            ],
            "oneOf": [
                {"required": ["plan_id"]},
                {"required": ["flow"]},
                {"required": ["graph"]},
            ],
        }
    )

    plan_id: str | None = Field(None, description="A stored plan.")
    flow: str | None = Field(None, description="A flow, by its name or its id.", max_length=200)
    revision: int | None = Field(
        None,
        ge=1,
        description="One of its revisions; else the newest of a plan, or the live one of a flow.",
    )
    graph: Annotated[dict[str, Any], Documented(GraphDocument)] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    inputs: dict[str, Any] | None = _INPUTS
    options: ExecuteOptionsModel = _OPTIONS
    require_approval: bool = _REQUIRE_APPROVAL
    start: bool = Field(
        False, description="Start it at once; else `POST /api/execute/{execution_id}/start` does."
    )

    @model_validator(mode="after")
    def _require_one_source(self) -> ExecuteRequest:
        if [self.plan_id, self.flow, self.graph].count(None) != 2:
            raise PydanticCustomError("either", "give one of plan_id, flow and graph")
        if self.revision is not None and self.graph is not None:
            raise PydanticCustomError(
                "either", "a revision is one of a plan or a flow: give plan_id or flow"
            )
        return self


class RunRequest(GoalModel):
    """A goal to be planned and run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"prompt": GOAL}]})

    inputs: dict[str, Any] | None = _INPUTS
    options: ExecuteOptionsModel = _OPTIONS
    require_approval: bool = _REQUIRE_APPROVAL


NodePath = Annotated[str, Path(description="A node's id, or the path of a nested one.")]
WholeCall = Annotated[
    int | None,
    Query(ge=0, description="The number of a call whose request and result are whole."),
]
STARTED_RESPONSES = success(ExecutionCreated, "It is made and queued (`start: true`).", QUEUED, 202)
"""Of routes that make an execution, and start it where they are asked to."""
_QUEUED_RESPONSES = success(ExecutionCreated, "It is queued, or runs already.", QUEUED, 202)


@router.post(
    "/api/execute",
    operation_id="createExecution",
    summary="Make an execution",
    status_code=201,
    responses={
        **success(ExecutionCreated, "It is made.", CREATED, 201),
        **STARTED_RESPONSES,
        **problems(404, 409),
    },
)
async def create_execution(
    request: Request,
    preassigned_id: PreassignedExecutionIdDep,
    body: Annotated[ExecuteRequest, json_body(ExecuteRequest)],
) -> Response:
    """Make an execution of a stored plan, of a flow, or of a graph, which becomes a plan by it.

    It is checked whether it can run here; otherwise nothing is made. Its subscribers may come before
    its start: `POST /api/execute/{execution_id}/start`, or `start: true` to have it at once.
    """
    service = app_state(request).service
    flow_id = await _flow_id(body.flow, service)
    require_flow(request, flow_id)
    make = service.executions.execute if body.start else service.executions.create
    with prefix_error_pointers("" if body.graph is None else GRAPH_POINTER):
        chosen = await _execution_source(body, flow_id, service)
        if isinstance(chosen, FlowRef):
            own = body.options.budget, body.options.policies, body.options.replan
            terms = any(each is not None for each in own)
            chosen = await flow_to_run(request, service, chosen, body.inputs, changes_terms=terms)
        record = await make(
            chosen,
            **run_arguments(body.inputs, body.options),
            execution_id=preassigned_id,
            require_approval=body.require_approval,
        )
    return created_response(service, record, 202 if body.start else 201)


@router.post(
    "/api/execute/{execution_id}/start",
    operation_id="startExecution",
    summary="Start an execution",
    status_code=202,
    responses={**_QUEUED_RESPONSES, **problems(404, 409, 422)},
)
async def start_execution(service: ServiceDep, execution_id: ExecutionId) -> Response:
    """Queue an execution that was made before; it starts when its turn comes."""
    return created_response(service, await service.executions.start(execution_id), 202)


@router.post(
    "/api/run",
    operation_id="run",
    summary="Plan a goal and run the plan",
    status_code=202,
    responses={**_QUEUED_RESPONSES, **problems(409, 502)},
)
async def run(
    service: ServiceDep,
    preassigned_id: PreassignedExecutionIdDep,
    body: Annotated[RunRequest, json_body(RunRequest)],
) -> Response:
    """Have a model write a plan for a goal, keep it, and run it, in one step."""
    plan_id = await _plan_of_first_request(service, preassigned_id)
    if plan_id is None:
        service.executions.driver.check_capacity()
        own_id = None if preassigned_id is None else sibling_id(preassigned_id)
        plan = await service.plans.create(
            body.prompt, body.provider, body.model, plan_id=own_id, answers=body.answers
        )
        plan_id = plan.plan_id
    how = run_arguments(body.inputs, body.options)
    try:
        with prefix_error_pointers():
            record = await service.executions.execute(
                plan_id,
                **how,
                execution_id=preassigned_id,
                require_approval=body.require_approval,
            )
    except PlanwaveError as error:
        hint = f"the plan is kept: execute it with plan_id {plan_id}"
        error.hint = f"{error.hint}; {hint}" if error.hint else hint
        raise
    return created_response(service, record, 202)


@router.get(
    "/api/executions/{execution_id}",
    operation_id="getExecution",
    summary="Look at an execution",
    responses={**success(ExecutionResponse, "Its state.", EXECUTION), **problems(404, 409)},
)
async def get_execution(
    state: StateDep, executions: ExecutionsDep, execution_id: ExecutionId
) -> Response:
    """Return the status of the execution and of each node, and the log so far."""
    return json_response(await execution_state_json(state, executions, execution_id))


@router.get(
    "/api/executions/{execution_id}/result",
    operation_id="getResult",
    summary="What an execution gave",
    responses={**success(ResultResponse, "Its results.", RESULT), **problems(404, 409)},
)
async def get_result(request: Request, execution_id: ExecutionId) -> Response:
    """Return the results of the nodes as text, and the log; before the end, those that exist."""
    return await document_response(request, execution_id, ResultResponse.__annotations__)


@router.get(
    "/api/executions/{execution_id}/document",
    operation_id="getDocument",
    summary="The whole execution as one document",
    responses={**success(DocumentResponse, "The document.", DOCUMENT), **problems(404, 409)},
)
async def get_document(
    request: Request,
    execution_id: ExecutionId,
    public: Annotated[
        bool,
        Query(
            description="As everybody but the operator sees it, to be handed on: without tracebacks."
        ),
    ] = False,
) -> Response:
    """Return the whole document: graph, inputs, prompts, results, times and usage of every node, the log."""
    return await document_response(request, execution_id, is_public=public)


@router.get(
    "/api/executions/{execution_id}/nodes/{path:path}",
    operation_id="getNode",
    summary="All there is of one node",
    responses={**success(DocumentNode, "The node.", DOCUMENT["nodes"][1]), **problems(404, 409)},
)
async def get_node(
    executions: ExecutionsDep, execution_id: ExecutionId, path: NodePath, call: WholeCall = None
) -> Response:
    """Return what the document of the execution has of one node: inputs, prompt, outputs, usage."""
    return await json_response_in_thread(await executions.node_document(execution_id, path, call))


@router.get(
    "/api/executions/{execution_id}/explain/{path:path}",
    operation_id="explainNode",
    summary="Why a node ran, did not run, or waits",
    responses={**success(ExplainResponse, "Why.", EXPLANATION), **problems(404, 409)},
)
async def explain_node(
    executions: ExecutionsDep,
    execution_id: ExecutionId,
    path: NodePath,
) -> Response:
    """Explain the status of one node."""
    return json_response(await executions.explain(execution_id, path))


async def log_response(executions: ExecutionQueries, execution_id: str, after: int = 0) -> Response:
    """Return the typed log of an execution: the entries of events after ``after``.

    Raises:
        NotFound: There is no execution of that id.
        Conflict: ``unreadable_error``.
    """
    events = await executions.events(execution_id)
    log = await asyncio.to_thread(_log_json, events, after)
    return await json_response_in_thread({"execution_id": execution_id, **log})


async def execution_state_json(
    state: AppState, executions: ExecutionQueries, execution_id: str
) -> ExecutionResponse:
    """Return the current state of one of the executions that a caller sees; see ``ExecutionResponse``.

    Raises:
        NotFound: There is no execution of that id.
        Conflict: ``unreadable_error``.
    """
    events = await executions.events(execution_id)
    position = state.service.executions.driver.position(execution_id)
    record = await executions.get(execution_id)
    planned = await state.service.plans.planning([record.plan_id])
    document = await asyncio.to_thread(
        _state_json, events, position, record, planned.get(record.plan_id or "")
    )
    if await executions.interrupted([record]):
        document["interrupted"] = True
    for waits_for in (await executions.waits_for([record])).values():
        document["waits_for"] = waits_for
    template, trace_id = state.settings.tracing_url_template, events[0].data.get("trace_id")
    if template is not None and trace_id is not None:
        document["trace_url"] = template.replace("{trace_id}", trace_id)
    return document


def _state_json(
    events: Sequence[Event],
    queue_position: int | None,
    record: ExecutionRecord,
    planning: UsageTotal | None,
) -> ExecutionResponse:
    state = fold(events)
    response: ExecutionResponse = {
        "execution_id": state.execution_id,
        "plan_id": state.plan_id,
        "revision": state.revision,
        "plan_hash": state.plan_hash,
        "flow": state.flow,
        "title": state.title,
        "user_prompt": state.goal,
        "status": state.status,
        **outcome_of(state),
        "node_states": {path: node.status for path, node in state.nodes.items()},
        "logs": execution_logs(events),
        "wave": state.wave_json(),
        "queue_position": queue_position,
        "waitingForInput": state.waiting_for_input,
        "currentNodeId": state.current_node_id,
        "requests": [request.as_json() for request in state.requests.values()],
        "usage": state.usage.as_json(),
        "planning": None if planning is None else planning.as_json(),
        "budget": state.budget_json(),
        "error": state.error,
        "failures": state.failures,
        "handled_failures": state.handled_failures,
        "reason": state.reason,
        "cause": state.cause,
        "inputs": state.inputs,
        "options": state.options,
        "parent": state.parent,
        "trigger": state.trigger,
        "created_by": state.created_by,
        "approval": state.approval,
        "last_seq": state.last_seq,
        "created_at": state.created_at,
        "started_at": state.started_at,
        "completed_at": state.completed_at,
        **labels_json(record.labels),
    }
    if state.changes.open is not None:
        response["plan_request"] = state.changes.open
    return response


def _log_json(events: Sequence[Event], after: int) -> dict[str, Any]:
    state = fold(events)
    return {
        "status": state.status,
        "entries": [
            entry.as_json() for entry in execution_log_entries(events) if entry.seq > after
        ],
        "last_seq": state.last_seq,
    }


async def _flow_id(flow: str | None, service: Service) -> str | None:
    """Return the id of a flow that a body names; one that is not there is as one of another token."""
    if flow is None:
        return None
    try:
        return (await service.flows.find(flow)).plan_id
    except NotFound as error:
        raise flow_not_found(flow) from error


async def _execution_source(
    body: ExecuteRequest, flow_id: str | None, service: Service
) -> Executable:
    """Return the plan, the flow or the graph; the body has one of them.

    Raises:
        NotFound: No id of that form was ever given out.
        GraphInvalid: The graph cannot be read.
    """
    if body.graph is not None:
        return await service.plans.parse_and_check(body.graph)
    if flow_id is not None:
        return FlowRef(flow_id, body.revision)
    plan_id = validate_id(body.plan_id or "", "plan")
    return plan_id if body.revision is None else PlanRef(plan_id, body.revision)


async def _plan_of_first_request(service: Service, execution_id: str | None) -> str | None:
    """Return the plan of the execution that an earlier try of this request created."""
    if execution_id is not None:
        with suppress(NotFound):
            return (await service.executions.get(execution_id)).plan_id
    return None


def sibling_id(execution_id: str) -> str:
    """Return the id of the plan for a preassigned execution id: a repeated request pays for one plan."""
    return str(UUID(int=UUID(execution_id).int ^ 1))


def run_options(options: RunOptionsModel) -> RunOptions:
    """Return the run options of a body."""
    return RunOptions(
        options.scheduling,
        options.on_failure,
        options.max_parallel,
        run_to=tuple(options.run_to),
        run_from=tuple(options.run_from),
        budget=None if options.budget is None else options.budget.model_dump(exclude_unset=True),
        replan=None if options.replan is None else options.replan.model_dump(),
    )


def run_arguments(inputs: dict[str, Any] | None, options: ExecuteOptionsModel) -> dict[str, Any]:
    """Return the keyword arguments of the service's calls that start an execution."""
    return {"inputs": inputs, "options": run_options(options), "policies": options.policies}


def created_response(service: Service, record: ExecutionRecord, status: int) -> Response:
    """Return the response that ``ExecutionCreated`` documents."""
    document: ExecutionCreated = {
        "execution_id": record.execution_id,
        "plan_id": record.plan_id,
        "revision": record.revision,
        "flow": record.flow,
        "status": record.status,
        "position": service.executions.driver.position(record.execution_id),
    }
    return json_response(document, status, location=f"/api/executions/{record.execution_id}")
