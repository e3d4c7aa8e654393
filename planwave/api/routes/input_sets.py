"""Routes: inputs of flows that are saved under a name."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.json_body import json_body
from planwave.api.pagination import FlowId
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import TIME, success
from planwave.api.schemas.requests import RequestModel
from planwave.service.executions.input_sets import MAX_NAME_CHARS
from planwave.shapes.plans import InputSetResponse, InputSetsResponse

router = APIRouter(tags=["flows"], dependencies=AUTHENTICATED)

_INPUT_SET: Final[dict[str, Any]] = {
    "name": "Weekend",
    "inputs": {"city": "Lisbon", "days": 2},
    "created_at": TIME,
    "updated_at": TIME,
    "created_by": {"kind": "operator"},
    "issues": [],
}
InputSetName = Annotated[
    str,
    Path(
        description="The name under which they are saved.",
        max_length=MAX_NAME_CHARS,
        examples=["Weekend"],
    ),
]


class InputSetRequest(RequestModel):
    """Inputs to be saved, or another name for those that are saved."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"inputs": {"city": "Lisbon", "days": 2}}, {"name": "Long weekend"}],
            "minProperties": 1,
        }
    )

    inputs: dict[str, Any] | None = Field(
        None, description="As `POST /api/execute` takes them; left out, they stay."
    )
    name: str | None = Field(
        None,
        description="Another name: one line without a slash.",
        min_length=1,
        max_length=MAX_NAME_CHARS,
    )

    @model_validator(mode="after")
    def _require_change(self) -> InputSetRequest:
        if self.inputs is None and self.name is None:
            raise PydanticCustomError("nothing", "give inputs or name")
        return self


@router.get(
    "/api/flows/{plan_id}/input-sets",
    operation_id="listInputSets",
    summary="List the saved inputs of a flow",
    responses={
        **success(InputSetsResponse, "By name.", {"input_sets": [_INPUT_SET]}),
        **problems(404),
    },
)
async def list_input_sets(service: ServiceDep, plan_id: FlowId) -> Response:
    """Return the inputs that are saved of a flow, each with what does not fit its live revision any more."""
    return json_response({"input_sets": await service.input_sets.list(plan_id)})


@router.put(
    "/api/flows/{plan_id}/input-sets/{name}",
    operation_id="saveInputSet",
    summary="Save inputs of a flow",
    responses={
        **success(InputSetResponse, "As they are saved.", _INPUT_SET),
        **problems(404, 409, 413),
    },
)
async def save_input_set(
    service: ServiceDep,
    plan_id: FlowId,
    name: InputSetName,
    body: Annotated[InputSetRequest, json_body(InputSetRequest)],
) -> Response:
    """Save inputs under a name, in place of those that have it; or give those another name.

    They are checked as `POST /api/execute` checks them, against the revision that callers start.
    """
    saved = await service.input_sets.save(plan_id, name, body.inputs, new_name=body.name)
    return json_response(saved)


@router.delete(
    "/api/flows/{plan_id}/input-sets/{name}",
    operation_id="deleteInputSet",
    summary="Delete saved inputs of a flow",
    status_code=204,
    response_description="They are gone.",
    responses=problems(404),
)
async def delete_input_set(service: ServiceDep, plan_id: FlowId, name: InputSetName) -> Response:
    """Delete the inputs that are saved under a name."""
    await service.input_sets.delete(plan_id, name)
    return Response(status_code=204)
