"""Route: what was spent on calls of models."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep
from planwave.api.problems import problems
from planwave.api.responses import json_response
from planwave.api.schemas.examples import success
from planwave.shapes.spend import SpendResponse

_AMOUNTS: Final[dict[str, Any]] = {
    "calls": 8,
    "input_tokens": 9_120,
    "output_tokens": 2_412,
    "cost_usd": 0.0117,
    "unpriced_calls": 0,
    "planning_tokens": 2_604,
    "planning_cost_usd": 0.0021,
    "runs": 2,
}
_SPEND: Final[dict[str, Any]] = {
    "since": "2026-01-01",
    "until": "2026-01-31",
    "by": "day",
    "groups": [{"key": "2026-01-31", "name": None, **_AMOUNTS}],
    "total": _AMOUNTS,
    "warning": None,
}

router = APIRouter(tags=["executions"], dependencies=AUTHENTICATED)

Day = Annotated[
    str | None, Query(description="A day, UTC, which is included.", examples=["2026-01-31"])
]


@router.get(
    "/api/spend",
    operation_id="getSpend",
    summary="What was spent by day, flow or model",
    responses={**success(SpendResponse, "The sums.", _SPEND), **problems(422)},
)
async def get_spend(
    service: ServiceDep,
    by: Annotated[
        Literal["day", "flow", "model"], Query(description="What the groups are.")
    ] = "day",
    since: Day = None,
    until: Day = None,
) -> Response:
    """Return what calls of models used, the planning of goals included; of the last 30 days by default.

    What an execution used counts from its first pause or its end on, and stays when it is deleted.
    """
    return json_response(await service.spending.report(by, since, until))
