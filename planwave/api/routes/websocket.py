"""Route: an execution over WebSocket, as periodic status messages or as events."""

from __future__ import annotations

from contextlib import aclosing, suppress
from functools import partial
from typing import Final, Literal, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response
from starlette.websockets import WebSocket

from planwave.api.auth import authenticate
from planwave.api.dependencies import AUTHENTICATED, app_state
from planwave.api.problems import InvalidRequest, ProblemError
from planwave.api.streaming.websocket import ExecutionSocket
from planwave.errors import (
    NotFound,
)
from planwave.graph.diagnostics import short_repr
from planwave.ids import UUID_PATTERN

router = APIRouter(dependencies=AUTHENTICATED)
INTERVAL_BOUNDS_S: Final = (0.1, 1.0, 60.0)
"""Between two glances: least, default, most."""


class SubscriptionParams(NamedTuple):
    """What a client asked for in its query.

    Attributes:
        after: The last ``seq`` it knows; None for a snapshot and what happens after it.
    """

    mode: Literal["poll", "events"]
    interval_s: float
    after: int | None


@router.websocket("/ws/{execution_id:path}")
async def watch(websocket: WebSocket) -> None:
    """Watch an execution until it is over."""
    execution_id = websocket.path_params["execution_id"]
    state, principal = app_state(websocket), authenticate(websocket)
    wanted = parse_subscription(websocket)
    if UUID_PATTERN.fullmatch(execution_id) is None:
        raise NotFound("that is no execution's id")
    with state.connection_limiter.slot(principal, state.settings.limits.socket_connections):
        connection = ExecutionSocket(websocket, state.settings.limits)
        if wanted.mode == "poll":
            found = state.service.status_updates(execution_id, wanted.interval_s)
            async with aclosing(found) as glances:
                first = await anext(glances)
                await connection.run(partial(connection.send_snapshots, first, glances))
        else:
            async with state.service.subscribe(
                execution_id, wanted.after, connection.backlog_limits, with_snapshot=True
            ) as following:
                opening = partial(connection.opening, following)
                await connection.run(partial(connection.send_events, following), opening)


@router.get("/ws/{execution_id:path}", include_in_schema=False)
async def require_upgrade(execution_id: str) -> Response:
    """Say what is missing where a request for a WebSocket came without asking to become one."""
    raise ProblemError(
        426,
        "upgrade-required",
        f"{short_repr(f'/ws/{execution_id}')} is spoken to over WebSocket",
        hint="use a WebSocket client; a proxy between has to pass Upgrade and Connection on",
        headers={"Upgrade": "websocket", "Connection": "Upgrade"},
    )


def parse_subscription(websocket: WebSocket) -> SubscriptionParams:
    """Read the query.

    Raises:
        InvalidRequest: It has something that does not fit.
    """
    query = websocket.query_params
    mode = query.get("mode", "poll")
    least, interval_s, most = INTERVAL_BOUNDS_S
    after: int | None = None
    if mode not in ("poll", "events"):
        raise _invalid_parameter("mode", "is poll or events")
    if (asked := query.get("interval")) is not None:
        with suppress(ValueError):
            interval_s = float(asked)
            asked = None
        if asked is not None or not least <= interval_s <= most:
            raise _invalid_parameter(
                "interval", f"is a number of seconds from {least:g} to {most:g}"
            )
    if (known := query.get("after")) is not None:
        if not (known.isascii() and known.isdecimal() and len(known) <= 15):
            raise _invalid_parameter("after", "is the seq of an event, or 0")
        after = int(known)
    return SubscriptionParams(mode, interval_s, after)


def _invalid_parameter(name: str, what: str) -> InvalidRequest:
    message = f"query parameter {name!r} {what}"
    issue = {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": name}
    return InvalidRequest(message, [issue])
