"""What every route finds: the settings, the service, and who may use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from planwave.api.access import Authenticator, require_principal
from planwave.api.metrics import PrometheusObserver
from planwave.api.seats import ConnectionLimiter
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
    return cast("State", connection.app.state.planwave)


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
