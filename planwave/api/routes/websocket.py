"""Route: an execution over WebSocket, as periodic status messages or as events."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from math import nan
from typing import Final, Literal, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response
from starlette.websockets import WebSocket

from planwave.api.auth import authenticate
from planwave.api.dependencies import AUTHENTICATED, app_state, queries_of
from planwave.api.problems import InvalidRequest, ProblemError
from planwave.api.streaming.websocket import ExecutionSocket
from planwave.errors import NotFound
from planwave.graph.diagnostics import short_repr
from planwave.ids import UUID_PATTERN

router = APIRouter(dependencies=AUTHENTICATED)
INTERVAL_BOUNDS_S: Final = (0.1, 1.0, 60.0)
"""Seconds between two status messages: smallest, default, largest."""


class SubscriptionParams(NamedTuple):
    """The query parameters of a connection.

    Attributes:
        after: The last ``seq`` the client has; None for a snapshot and the events after it.
    """

    mode: Literal["poll", "events"]
    interval_s: float
    after: int | None


@router.websocket("/ws/{execution_id:path}")
async def watch(websocket: WebSocket) -> None:
    """Follow an execution until it ends."""
    execution_id = websocket.path_params["execution_id"]
    state, principal = app_state(websocket), authenticate(websocket)
    params = parse_subscription(websocket)
    if UUID_PATTERN.fullmatch(execution_id) is None:
        raise NotFound("the path holds no execution id")
    with state.connection_limiter.slot(principal.account, state.settings.limits.socket_connections):
        connection = ExecutionSocket(websocket, state.settings.limits)
        if params.mode == "poll":
            updates = state.service.executions.status_updates(execution_id, params.interval_s)
            async with aclosing(updates) as snapshots:
                first = await anext(snapshots)
                await connection.run(partial(connection.send_snapshots, first, snapshots))
        else:
            async with queries_of(websocket).subscribe(
                execution_id, params.after, connection.backlog_limits, with_snapshot=True
            ) as subscription:
                await connection.run(partial(connection.send_events, subscription))


@router.get("/ws/{execution_id:path}", include_in_schema=False)
async def require_upgrade(execution_id: str) -> Response:
    """Reject a plain request to the address of a WebSocket (426)."""
    raise ProblemError(
        426,
        "upgrade-required",
        f"{short_repr(f'/ws/{execution_id}')} is a WebSocket",
        hint="use a WebSocket client; a proxy in between has to forward Upgrade and Connection",
        headers={"Upgrade": "websocket", "Connection": "Upgrade"},
    )


def parse_subscription(websocket: WebSocket) -> SubscriptionParams:
    """Parse the query.

    Raises:
        InvalidRequest: A parameter is invalid.
    """
    query = websocket.query_params
    mode = query.get("mode", "poll")
    smallest, interval_s, largest = INTERVAL_BOUNDS_S
    after: int | None = None
    if mode not in ("poll", "events"):
        raise _invalid_parameter("mode", "must be poll or events")
    if (interval := query.get("interval")) is not None:
        try:
            interval_s = float(interval)
        except ValueError:
            interval_s = nan
        if not smallest <= interval_s <= largest:
            raise _invalid_parameter(
                "interval", f"must be a number of seconds from {smallest:g} to {largest:g}"
            )
    if (seq := query.get("after")) is not None:
        if not (seq.isascii() and seq.isdecimal() and len(seq) <= 15):
            raise _invalid_parameter("after", "must be the seq of an event, or 0")
        after = int(seq)
    return SubscriptionParams(mode, interval_s, after)


def _invalid_parameter(name: str, what: str) -> InvalidRequest:
    message = f"query parameter {name!r} {what}"
    issue = {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": name}
    return InvalidRequest(message, [issue])
