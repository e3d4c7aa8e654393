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
from planwave.api.access import Authenticator
from planwave.api.bounds import RequestLimitsMiddleware
from planwave.api.gate import HostOriginMiddleware
from planwave.api.heads import HeadMethodMiddleware
from planwave.api.idempotency import IdempotencyMiddleware
from planwave.api.metrics import PrometheusObserver
from planwave.api.openapi import build_openapi
from planwave.api.requests import RequestContextMiddleware
from planwave.api.shortcuts import shorten
from planwave.api.state import AppState
from planwave.service.service import Service
from planwave.service.watchdog import EventLoopMonitor
from planwave.settings import Settings

ServiceFactory = Callable[[Settings], Service]

ROUTERS: Final = (
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


def create_app(settings: Settings, create_service: ServiceFactory) -> FastAPI:
    """Make the application; the service is opened when it starts and closed when it stops.

    Args:
        settings: Token, hosts, origins and limits.
        open_service: Puts the rooms together; see ``main.create_service``.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        service = create_service(settings)
        metrics.attach(service)
        async with service, operations.retention_task(settings, service):
            access.closed.open(service.directory)
            app.state.planwave = AppState(settings, service, access, metrics)
            with EventLoopMonitor(metrics.loop_lagged):
                yield

    access, metrics = Authenticator(settings), PrometheusObserver()
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
            Middleware(RequestContextMiddleware, metrics),
            Middleware(HostOriginMiddleware, settings),
            Middleware(RequestLimitsMiddleware, settings.limits),
            Middleware(IdempotencyMiddleware),
            Middleware(HeadMethodMiddleware),
        ],
    )
    problems.register_handlers(app)
    for routes in [*ROUTERS, reference] if settings.api_docs else ROUTERS:
        # Not include_router(): its routers within routers cost more than many an answer.
        for route in routes.router.routes:
            shorten(route)
            app.router.routes.append(route)
    app.openapi = cache(partial(build_openapi, app, app.openapi))
    return app
