"""Routes that need nothing worked out: they are asked the straight way.

FastAPI goes through all that a route may depend on with every request. Most of ours depend on a few
functions of the request alone, which are known once and for all: these are called one after the
other. That is a tenth of what a short request costs. What takes parameters of path or query is left
to FastAPI.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, get_type_hints

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, APIWebSocketRoute
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute, request_response, websocket_session

_Handle = Callable[[Any], Awaitable[Any]]


class _Step(NamedTuple):
    """A dependency, and as what the endpoint is given what it gives; None where it is not."""

    call: Callable[[HTTPConnection], Awaitable[Any]]
    name: str | None


def shorten(route: BaseRoute) -> None:
    """Have a route answer without FastAPI, if that would do nothing else with a request.

    Of ``dependency_overrides`` such a route knows nothing.
    """
    if isinstance(route, APIRoute):
        handle = _straight(route.dependant) if _gives_response(route.endpoint) else None
        if handle is not None:
            route.app = request_response(handle)
    elif isinstance(route, APIWebSocketRoute):
        handle = _straight(route.dependant)
        if handle is not None:
            route.app = websocket_session(handle)


def _straight(dependant: Dependant) -> _Handle | None:
    """Give what calls a route's dependencies, in order, and then the route; None if that is not all."""
    endpoint, steps = dependant.call, _steps(dependant.dependencies)
    if not inspect.iscoroutinefunction(endpoint) or steps is None or _takes_parameters(dependant):
        return None
    own = _connection_of(dependant)

    async def handle(connection: Any) -> Any:
        given: dict[str, Any] = {} if own is None else {own: connection}
        for call, name in steps:
            found = await call(connection)
            if name is not None:
                given[name] = found
        return await endpoint(**given)

    return handle


def _steps(dependencies: Sequence[Dependant]) -> list[_Step] | None:
    steps: list[_Step] = []
    for each in dependencies:
        call = each.call
        is_simple = (
            inspect.iscoroutinefunction(call)
            and not each.dependencies
            and not _takes_parameters(each)
            and _connection_of(each) is not None
        )
        if call is None or not is_simple or any(call is step.call for step in steps):
            return None
        steps.append(_Step(call, each.name))
    return steps


def _takes_parameters(dependant: Dependant) -> bool:
    of_request = (
        dependant.path_params, dependant.query_params, dependant.header_params,
        dependant.cookie_params, dependant.body_params,
    )  # fmt: skip
    of_fastapi = (
        dependant.response_param_name, dependant.background_tasks_param_name,
        dependant.security_scopes_param_name,
    )  # fmt: skip
    return any(of_request) or any(of_fastapi)


def _connection_of(dependant: Dependant) -> str | None:
    """Give the parameter that takes the request or WebSocket."""
    return (
        dependant.request_param_name
        or dependant.websocket_param_name
        or dependant.http_connection_param_name
    )


def _gives_response(endpoint: Callable[..., Any]) -> bool:
    given = get_type_hints(endpoint).get("return")
    return isinstance(given, type) and issubclass(given, Response)
