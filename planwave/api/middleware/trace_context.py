"""The trace context of a request: its ``traceparent`` is the parent of the executions it makes."""

from __future__ import annotations

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send


class TraceContextMiddleware:
    """Middleware that makes the trace context of a request current (W3C Trace Context).

    A context that is current already stays: the server is traced by others, and that one is nearer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._propagator = TraceContextTextMapPropagator()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or trace.get_current_span().get_span_context().is_valid:
            await self._app(scope, receive, send)
            return
        token = context.attach(self._propagator.extract(Headers(scope=scope)))
        try:
            await self._app(scope, receive, send)
        finally:
            context.detach(token)
