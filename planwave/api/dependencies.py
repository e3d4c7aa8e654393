"""FastAPI dependencies of the routes: the application's state, the service, and the preassigned id."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from planwave.api.access_rules import access_token
from planwave.api.auth import Authenticator, authenticate, require_principal
from planwave.api.metrics import PrometheusObserver
from planwave.api.problems import InvalidRequest
from planwave.api.rate_limit import ConnectionLimiter
from planwave.errors import ShuttingDown
from planwave.graph.diagnostics import short_repr
from planwave.interop.mcp_server.endpoint import McpEndpoint
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.triggers.host import TriggerHost


@dataclass(frozen=True, slots=True)
class AppState:
    """The state of one running application."""

    settings: Settings
    service: Service
    authenticator: Authenticator
    triggers: TriggerHost
    mcp: McpEndpoint
    metrics: PrometheusObserver = field(default_factory=PrometheusObserver)
    connection_limiter: ConnectionLimiter = field(default_factory=ConnectionLimiter)


def app_state(connection: HTTPConnection) -> AppState:
    """Return the state of the application that serves a request or WebSocket."""
    return cast("AppState", connection.app.state.planwave)


# async: FastAPI would call plain functions in threads.
async def _state(connection: HTTPConnection) -> AppState:
    return app_state(connection)


async def _service(connection: HTTPConnection) -> Service:
    return app_state(connection).service


async def _triggers(connection: HTTPConnection) -> TriggerHost:
    return app_state(connection).triggers


TriggersDep = Annotated[TriggerHost, Depends(_triggers)]
ServiceDep = Annotated[Service, Depends(_service)]
StateDep = Annotated[AppState, Depends(_state)]


async def _require_single_parameters(connection: HTTPConnection) -> None:
    """Refuse a query parameter that is given twice: every parameter takes one value.

    Raises:
        InvalidRequest: With an issue for each.
    """
    counts = Counter(name for name, _ in connection.query_params.multi_items())
    messages = {
        name: f"query parameter {short_repr(name)} is given {count} times"
        for name, count in counts.items()
        if count > 1
    }
    if messages:
        issues = [
            {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": name}
            for name, message in messages.items()
        ]
        raise InvalidRequest("; ".join(messages.values()), issues)


AUTHENTICATED: Final = [Depends(require_principal), Depends(_require_single_parameters)]
"""For routers: ``APIRouter(dependencies=AUTHENTICATED)`` authenticates every request."""
PREASSIGNED_ID: Final = "planwave.subject"


async def require_not_draining(connection: HTTPConnection) -> str | None:
    """Refuse a request that creates something while the service is draining.

    Returns:
        The id that the resource is to have, chosen with the request's ``Idempotency-Key``; None
        without a key. A request that is repeated after a crash has the same id.

    Raises:
        ShuttingDown: The service is shutting down.
    """
    if app_state(connection).service.is_draining:
        raise ShuttingDown
    return connection.scope.get(PREASSIGNED_ID)


async def require_execution_rate(connection: HTTPConnection) -> str | None:
    """Do as :func:`require_not_draining`, and count an execution.

    Raises:
        ShuttingDown: The service is shutting down.
        TooManyRequests: The principal created too many within a minute.
    """
    account = authenticate(connection).account
    preassigned_id = await require_not_draining(connection)
    authenticator = app_state(connection).authenticator
    authenticator.check_token_rate(access_token(connection))
    authenticator.check_execution_rate(account)
    return preassigned_id


PreassignedIdDep = Annotated[str | None, Depends(require_not_draining)]
"""For routes that create a resource."""
PreassignedExecutionIdDep = Annotated[str | None, Depends(require_execution_rate)]
"""For routes that create an execution."""
