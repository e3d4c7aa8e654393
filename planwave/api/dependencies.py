"""FastAPI dependencies of the routes: the application's state, the service, and the preassigned id."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from typing import Annotated, Final, cast

from fastapi import Depends
from starlette.requests import HTTPConnection
from starlette.responses import Response

from planwave.api.access_rules import access_token
from planwave.api.auth import Authenticator, authenticate, require_principal
from planwave.api.metrics import PrometheusObserver
from planwave.api.problems import InvalidRequest
from planwave.api.rate_limit import BytesInFlight, ConnectionLimiter, ResponseLimiter
from planwave.api.responses import file_response, pieces_response
from planwave.errors import ShuttingDown
from planwave.graph.diagnostics import short_repr
from planwave.interop.mcp_server.endpoint import McpEndpoint
from planwave.service.queries.history import ExecutionQueries
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
    response_limiter: ResponseLimiter = field(default_factory=ResponseLimiter)


def app_state(connection: HTTPConnection) -> AppState:
    """Return the state of the application that serves a request or WebSocket."""
    return cast("AppState", connection.app.state.planwave)


# async: FastAPI would call plain functions in threads.
async def _state(connection: HTTPConnection) -> AppState:
    return app_state(connection)


async def _service(connection: HTTPConnection) -> Service:
    return app_state(connection).service


def queries_of(connection: HTTPConnection) -> ExecutionQueries:
    """Return the executions as the principal of a request sees them.

    Raises:
        Unauthorized, Forbidden, TooManyRequests: See ``authenticate``.
    """
    authenticate(connection)  # from then on it is known whether it has an access token
    executions = app_state(connection).service.executions
    return executions.for_operator() if access_token(connection) is None else executions


async def _executions(connection: HTTPConnection) -> ExecutionQueries:
    return queries_of(connection)


async def _triggers(connection: HTTPConnection) -> TriggerHost:
    return app_state(connection).triggers


TriggersDep = Annotated[TriggerHost, Depends(_triggers)]
ServiceDep = Annotated[Service, Depends(_service)]
ExecutionsDep = Annotated[ExecutionQueries, Depends(_executions)]
"""For routes that show what only the operator sees of an execution."""
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


LIGHT_ROUTES: Final = frozenset(
    {
        "explainNode",  # a few sentences
        "forecastPlan",
        "getPublication",
        "getMetrics",
        "getModel",
        "listLimits",
        "listMcpServers",
        "listModels",
        "listNodeTypes",
        "listProviders",
        "listTokens",
        "listTools",
        "streamChat",  # streams have a limit of their own: socket_connections
        "streamEvents",
        "streamReply",
    }
)
"""Routes that read and whose responses are small, or streams; by ``operation_id``."""


def is_heavy(connection: HTTPConnection) -> bool:
    """Return whether the response may be large: that of every route that reads, but the light ones."""
    name = getattr(connection.scope.get("route"), "operation_id", None)
    if connection.scope.get("method") != "GET" or name is None:
        return False
    is_document = (
        name == "streamEvents" and connection.query_params.get("format", "events") != "events"
    )
    return is_document or name not in LIGHT_ROUTES


async def _hold_response_slot(connection: HTTPConnection) -> AsyncGenerator[None]:
    """Count a large response until its last byte is sent.

    Raises:
        TooManyRequests: The principal has as many as it may, for some seconds.
    """
    if not is_heavy(connection):
        yield
        return
    state, limits = app_state(connection), app_state(connection).settings.limits
    name = "operator_heavy_responses" if access_token(connection) is None else "heavy_responses"
    async with state.response_limiter.slot(
        authenticate(connection).account, name, getattr(limits, name)
    ):
        yield


async def document_response(
    connection: HTTPConnection,
    execution_id: str,
    names: Collection[str] | None = None,
    *,
    is_public: bool = False,
) -> Response:
    """Return the document of an execution, or some of its members; neither is ever one text in memory.

    For the operator it is read from the stored file if that is current, and else computed from the
    events; ``is_public``: also for the operator as everybody else sees it.

    Raises:
        NotFound: There is no execution of that id.
        Conflict: ``unreadable``.
        ProblemError: ``server-busy``: too many bytes are being sent.
    """
    everybodys = app_state(connection).service.executions
    executions = everybodys if is_public else queries_of(connection)
    in_flight = cast("BytesInFlight", connection.app.state.in_flight)
    if names is None:
        file = await executions.document_file(execution_id)
        if file is not None:
            return file_response(file)
    async with in_flight.rendering:
        pieces = await executions.document_pieces(execution_id, names)
        return await pieces_response(pieces, in_flight.hold(authenticate(connection).account))


AUTHENTICATED: Final = [
    Depends(require_principal),
    Depends(_require_single_parameters),
    Depends(_hold_response_slot),
]
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
    """Do as ``require_not_draining``, and count an execution.

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
