"""The FastAPI application: routers, middleware, error handlers and the service's lifetime."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from typing import Final

from fastapi import FastAPI
from starlette.middleware import Middleware

from planwave.api import problems
from planwave.api.auth import Authenticator
from planwave.api.dependencies import AppState
from planwave.api.metrics import VERSION, PrometheusObserver
from planwave.api.middleware.audit import AuditMiddleware
from planwave.api.middleware.credential_lifetime import CredentialLifetimeMiddleware
from planwave.api.middleware.head_method import HeadMethodMiddleware
from planwave.api.middleware.host_origin import HostOriginMiddleware
from planwave.api.middleware.idempotency import IdempotencyMiddleware
from planwave.api.middleware.request_context import RequestContextMiddleware
from planwave.api.middleware.request_limits import RequestLimitsMiddleware
from planwave.api.middleware.response_limits import ResponseLimitsMiddleware
from planwave.api.middleware.root_path import RootPathMiddleware
from planwave.api.middleware.security_headers import SecurityHeadersMiddleware
from planwave.api.middleware.store_outage import StoreOutageMiddleware
from planwave.api.middleware.trace_context import TraceContextMiddleware
from planwave.api.openapi import build_openapi
from planwave.api.rate_limit import BytesInFlight
from planwave.api.routes import (
    catalog,
    docs,
    events,
    execution_commands,
    execution_lists,
    executions,
    exports,
    flows,
    forks,
    health,
    imports,
    input_sets,
    legacy,
    links,
    notifications,
    plans,
    revisions,
    sessions,
    spend,
    tokens,
    websocket,
)
from planwave.api.routes.chats import collection as chat_collection
from planwave.api.routes.chats import messages as chat_messages
from planwave.api.routes.chats import streams as chat_streams
from planwave.api.routes.mcp import McpGate, mcp_route
from planwave.api.routes.openai import answers, models
from planwave.api.routes.triggers import bindings, hooks
from planwave.api.routes.web import WebUI
from planwave.api.session_cookies import SessionCookies
from planwave.interop.mcp_server.endpoint import McpEndpoint
from planwave.service.loop_monitor import EventLoopMonitor
from planwave.service.maintenance import retention_task
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.triggers.host import TriggerHost

ServiceFactory = Callable[[Settings], Service]

ROUTERS: Final = (
    chat_streams.router,
    websocket.router,
    plans.router,
    revisions.router,
    executions.router,
    execution_lists.router,
    execution_commands.router,
    forks.router,
    forks.diff_router,
    flows.router,
    input_sets.router,
    imports.router,
    exports.router,
    chat_collection.router,
    chat_messages.router,
    bindings.router,
    hooks.router,
    notifications.router,
    models.router,
    answers.router,
    legacy.router,
    catalog.router,
    events.router,
    sessions.router,
    tokens.router,
    links.router,
    links.public_router,
    spend.router,
    health.router,
)


def create_app(
    settings: Settings, create_service: ServiceFactory, *, is_worker: bool = False
) -> FastAPI:
    """Build the application; it opens the service when it starts and closes it when it stops.

    Args:
        settings: Token, hosts, origins and limits.
        create_service: Builds the service; see ``bootstrap.create_service``.
        is_worker: Whether only health and metrics are served.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        service = create_service(settings)
        state = attach_service(app, settings, service)
        lead = service.leader.lead
        prune, days = service.maintenance.prune, settings.retention_days
        pruning = partial(retention_task, prune, days, service.now)
        async with (
            service,
            state.triggers,
            lead(service.notifications.sender),
            state.mcp,
            lead(pruning),
            _sessions_opened(state.authenticator.sessions, service),
            lead(service.executions.sweeping),
            lead(service.followers.sweeping),
            lead(service.chats.recovering),
        ):
            if service.audit is not None:
                names = sorted(settings.model_fields_set)
                await service.audit.record("service.started", {}, settings=names)
            with EventLoopMonitor(state.metrics.loop_lagged):
                yield

    return create_detached_app(settings, lifespan, is_worker=is_worker)


@asynccontextmanager
async def _sessions_opened(sessions: SessionCookies, service: Service) -> AsyncGenerator[None]:
    """Read the sessions that were closed, and within the block also those that other processes close."""
    shared = service.shared_sessions
    if shared is None:
        sessions.open(service.directory)
        yield
        return
    following = service.following("sessions", sessions.reload)
    await sessions.share(shared, following.require_confirmed)
    async with following:
        yield


def attach_service(app: FastAPI, settings: Settings, service: Service) -> AppState:
    """Let the application answer requests with a service; return the state of the application."""
    metrics: PrometheusObserver = app.state.metrics
    metrics.attach(service)
    triggers = TriggerHost(service, settings)
    authenticator = Authenticator(
        settings,
        now=lambda: service.now().timestamp(),
        find_token=service.access_tokens.find,
        note_use=service.access_tokens.note_use,
        why_denied=service.access_tokens.why_denied,
    )
    endpoint = McpEndpoint(service, McpGate(authenticator))
    state = AppState(settings, service, authenticator, triggers, endpoint, metrics)
    app.state.planwave = state
    return state


def create_detached_app(
    settings: Settings,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
    *,
    is_worker: bool = False,
) -> FastAPI:
    """Build the application without a service; see ``attach_service``.

    Args:
        settings: Token, hosts, origins and limits.
        lifespan: Runs while the application does.
        is_worker: Whether only health and metrics are served.
    """
    metrics, root_path = PrometheusObserver(), settings.root_path
    in_flight = BytesInFlight(settings.limits.sending_bytes)
    documentation = (docs.router, docs.public_router) if settings.api_docs else ()
    routers = (health.router,) if is_worker else (*ROUTERS, *documentation)
    app = FastAPI(
        title="planwave",
        summary="From a goal to a watched, controllable, reproducible result.",
        version=VERSION,
        lifespan=lifespan,
        # ``include_router`` would build each route again, for each application, at its first request.
        routes=[route for router in routers for route in router.routes],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        servers=[{"url": root_path}] if root_path else None,
        middleware=_middleware(settings, metrics, in_flight),
    )
    app.state.metrics, app.state.in_flight = metrics, in_flight
    app.state.is_worker = is_worker
    app.state.error_pages = {"/links/": links.error_page}
    problems.register_handlers(app)
    if not is_worker:
        app.router.routes.append(mcp_route)
        app.router.default = WebUI(app.router.default, root_path)
    app.openapi = cache(partial(build_openapi, app, app.openapi))
    return app


def _middleware(
    settings: Settings, metrics: PrometheusObserver, in_flight: BytesInFlight
) -> list[Middleware]:
    """Return what each request passes, the outermost first."""
    return [
        Middleware(SecurityHeadersMiddleware),
        Middleware(RequestContextMiddleware, metrics),
        Middleware(AuditMiddleware),
        Middleware(RootPathMiddleware, settings.root_path),
        Middleware(HostOriginMiddleware, settings),
        Middleware(RequestLimitsMiddleware, settings.limits),
        Middleware(StoreOutageMiddleware),
        Middleware(ResponseLimitsMiddleware, in_flight),
        Middleware(IdempotencyMiddleware),
        Middleware(HeadMethodMiddleware),
        Middleware(CredentialLifetimeMiddleware),
        *([Middleware(TraceContextMiddleware)] if settings.tracing else ()),
    ]
