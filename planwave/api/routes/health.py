"""For operators: is it alive, does it take work, what does it do."""

from __future__ import annotations

from typing import Annotated, Final, cast

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from planwave.api.auth import require_principal
from planwave.api.dependencies import AppState, StateDep
from planwave.api.problems import ProblemError
from planwave.errors import ShuttingDown
from planwave.storage.records import (
    DISK_FULL,
    READ_ONLY,
    STORE_BUSY,
    STORE_OK,
    STORE_UNREACHABLE,
    TRANSIENT_CODES,
)

_RETRY_AFTER: Final = {"Retry-After": "5"}
_STORE_PROBLEMS: Final = {
    DISK_FULL: (
        "the disk is full, so nothing new is taken; executions wait",
        "free some space; it goes on by itself",
    ),
    STORE_BUSY: (
        "another program holds the database, so nothing new is taken; executions wait",
        "close that program; it goes on by itself",
    ),
    STORE_UNREACHABLE: (
        "the database server does not answer, so nothing new is taken; executions wait",
        "see whether it runs and can be reached; it goes on by itself",
    ),
    READ_ONLY: (
        "the store takes nothing more, because a write failed",
        "look into the service's log, check its disk, then start it again",
    ),
}
"""Why a store cannot write, and what to do; anybody may ask, so the particulars are for the log."""

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """How it is."""

    status: str = Field(
        default=STORE_OK,
        description="`ok`; `disk-full`, `store-busy` or `store-unreachable`: writes are refused until that has passed; "
        "`store-read-only`: writes are refused until a restart.",
    )


def _state_if_started(request: Request) -> AppState | None:
    return cast("AppState | None", getattr(request.app.state, "planwave", None))


async def _ready(request: Request) -> Health:
    """Return the health of a service that accepts work.

    Raises:
        ProblemError: ``starting``, ``carrier-unavailable``, or a code of ``Health`` other than ``ok``.
        ShuttingDown: The service is shutting down.
    """
    state = _state_if_started(request)
    if state is None:
        raise ProblemError(503, "starting", "the service has not started yet", headers=_RETRY_AFTER)
    if state.service.is_draining:
        raise ShuttingDown
    # Who serves takes work meanwhile: it is stored.
    if request.app.state.is_worker and state.service.lacks_carrier:
        raise ProblemError(
            503,
            "carrier-unavailable",
            "what hands executions to this process cannot be reached",
            hint="look into the log: it names the address",
            headers=_RETRY_AFTER,
        )
    status = state.service.store_stats.status
    if status == STORE_OK:
        return Health()
    message, hint = _STORE_PROBLEMS[status]
    passes = status in TRANSIENT_CODES
    raise ProblemError(503, status, message, hint=hint, headers=_RETRY_AFTER if passes else None)


@router.get("/healthz", operation_id="getHealth", summary="Whether the process is alive")
async def healthz(request: Request) -> Health:
    """Answer as long as the process runs and its event loop turns. Needs no token.

    The answer is 200 also where the store cannot write, and says so: reading works.
    """
    state = _state_if_started(request)
    return Health() if state is None else Health(status=state.service.store_stats.status)


@router.get("/readyz", operation_id="getReadiness", summary="Whether the service takes work")
async def readyz(ready: Annotated[Health, Depends(_ready)]) -> Health:
    """Answer 503 while it starts, goes down, its store cannot write, or a worker has no connection. Needs no token."""
    return ready


@router.get(
    "/metrics",
    operation_id="getMetrics",
    summary="What the service does, for Prometheus",
    dependencies=[Depends(require_principal)],
    response_class=PlainTextResponse,
)
async def metrics(request: Request, state: StateDep) -> Response:
    """Return all metrics in Prometheus' text format, or as OpenMetrics if `Accept` names it.

    Counters begin at 0 with the process and never fall. Scrape it with the service's token:
    `authorization: {credentials_file: …}` in Prometheus' scrape configuration.
    """
    text, media_type = await state.metrics.text(request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})
