"""Puts the HTTP application together: routes, the one access check, bounds, problem answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI
from starlette.middleware import Middleware

from planwave.api import (
    catalogues,
    comparing,
    controlling,
    executions,
    first_service,
    flows,
    forking,
    operations,
    plans,
    problems,
    reference,
    sessions,
    sockets,
    sse,
)
from planwave.api.access import Access
from planwave.api.bounds import Bounds
from planwave.api.gate import Gate
from planwave.api.heads import Heads
from planwave.api.idempotency import Idempotency
from planwave.api.metrics import Metrics
from planwave.api.openapi import document
from planwave.api.requests import Requests
from planwave.api.shortcuts import shorten
from planwave.api.state import State
from planwave.service.service import Service
from planwave.service.watchdog import Watchdog
from planwave.settings import Settings

OpenService = Callable[[Settings], Service]

_ROOMS: Final = (
    sockets,  # first: routes are tried one after the other, and nobody else has WebSockets
    plans,
    executions,
    controlling,
    forking,
    comparing,
    flows,
    first_service,
    catalogues,
    sse,
    sessions,
    operations,
)


def create_app(settings: Settings, open_service: OpenService) -> FastAPI:
    """Make the application; the service is opened when it starts and closed when it stops.

    Args:
        settings: Token, hosts, origins and limits.
        open_service: Puts the rooms together; see ``main.open_service``.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        service = open_service(settings)
        metrics.watch(service)
        async with service, operations.upkeep(settings, service):
            access.closed.open(service.directory)
            app.state.planwave = State(settings, service, access, metrics)
            with Watchdog(metrics.turned):
                yield

    access, metrics = Access(settings), Metrics()
    app = FastAPI(
        title="planwave",
        summary="From a goal to a watched, controllable, reproducible result.",
        version=version("planwave"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(Requests, metrics),
            Middleware(Gate, settings),
            Middleware(Bounds, settings.limits),
            Middleware(Idempotency),
            Middleware(Heads),
        ],
    )
    problems.install(app)
    for routes in [*_ROOMS, reference] if settings.api_docs else _ROOMS:
        # Not include_router(): its routers within routers cost more than many an answer.
        for route in routes.router.routes:
            shorten(route)
            app.router.routes.append(route)
    app.openapi = cache(partial(document, app, app.openapi))
    return app
