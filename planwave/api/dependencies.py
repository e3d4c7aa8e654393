"""FastAPI dependencies of the routes: the application's state, the service, and the preassigned id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from planwave.api.auth import Authenticator, authenticate, require_principal
from planwave.api.metrics import PrometheusObserver
from planwave.api.rate_limit import ConnectionLimiter
from planwave.errors import ShuttingDown
from planwave.service.service import Service
from planwave.settings import Settings


@dataclass(frozen=True, slots=True)
class AppState:
    """One running application."""

    settings: Settings
    service: Service
    access: Authenticator
    metrics: PrometheusObserver = field(default_factory=PrometheusObserver)
    connection_limiter: ConnectionLimiter = field(default_factory=ConnectionLimiter)


def app_state(connection: HTTPConnection) -> AppState:
    """Give the state of the application a request or WebSocket came to."""
    return cast("AppState", connection.app.state.planwave)


# Not plain functions: FastAPI would call those in threads.
async def _state(connection: HTTPConnection) -> AppState:
    return app_state(connection)


async def _service(connection: HTTPConnection) -> Service:
    return app_state(connection).service


ServiceDep = Annotated[Service, Depends(_service)]
StateDep = Annotated[AppState, Depends(_state)]
# Where every request counts, state_of() and admit() are called instead: each dependency of another
# one costs a request more than what it finds.

AUTHENTICATED: Final = [Depends(require_principal)]
"""For routers: ``APIRouter(dependencies=ADMITTED)`` puts the access check before every route."""
PREASSIGNED_ID: Final = "planwave.subject"


async def require_not_draining(connection: HTTPConnection) -> str | None:
    """Have a route that makes something make nothing when draining.

    Returns:
        The id chosen with the request's key for what it makes; None without a key. Done again after
        a crash, the request is given the same id.

    Raises:
        ShuttingDown: The service is going down.
    """
    if app_state(connection).service.is_draining:
        raise ShuttingDown
    return connection.scope.get(PREASSIGNED_ID)


async def require_execution_rate(connection: HTTPConnection) -> str | None:
    """Do as :func:`makes`, and count an execution.

    Raises:
        ShuttingDown: The service is going down.
        Busy: This principal made too many within a minute.
    """
    principal = authenticate(connection)
    subject = await require_not_draining(connection)
    app_state(connection).access.check_execution_rate(principal)
    return subject


PreassignedIdDep = Annotated[str | None, Depends(require_not_draining)]
"""For routes that make something."""
PreassignedExecutionIdDep = Annotated[str | None, Depends(require_execution_rate)]
"""For routes that make an execution."""
