"""What every route finds: the settings, the service, and who may use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from planwave.api.access import Access, admitted
from planwave.api.metrics import Metrics
from planwave.api.seats import Seats
from planwave.service.service import Service
from planwave.settings import Settings


@dataclass(frozen=True, slots=True)
class State:
    """One running application."""

    settings: Settings
    service: Service
    access: Access
    metrics: Metrics = field(default_factory=Metrics)
    seats: Seats = field(default_factory=Seats)


def state_of(connection: HTTPConnection) -> State:
    """Give the state of the application a request or WebSocket came to."""
    return cast("State", connection.app.state.planwave)


# Not plain functions: FastAPI would call those in threads.
async def _state(connection: HTTPConnection) -> State:
    return state_of(connection)


async def _service(connection: HTTPConnection) -> Service:
    return state_of(connection).service


ServiceDep = Annotated[Service, Depends(_service)]
StateDep = Annotated[State, Depends(_state)]
# Where every request counts, state_of() and admit() are called instead: each dependency of another
# one costs a request more than what it finds.

ADMITTED: Final = [Depends(admitted)]
"""For routers: ``APIRouter(dependencies=ADMITTED)`` puts the access check before every route."""
