"""Routes that are called straight away answer as FastAPI would have them answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Path
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

from planwave.api.shortcuts import shorten

CALLED: list[str] = []


async def first(connection: HTTPConnection) -> str:
    CALLED.append("first")
    return "one"


async def second(request: Request) -> str:
    CALLED.append("second")
    return "two"


async def nested(given: Annotated[str, Depends(first)]) -> str:
    return given


def threaded(connection: HTTPConnection) -> str:
    return "thread"


First, Second = Annotated[str, Depends(first)], Annotated[str, Depends(second)]


async def straight(request: Request, a: Second, b: First) -> Response:
    return PlainTextResponse(f"{request.method} {a} {b}")


async def plain() -> PlainTextResponse:
    return PlainTextResponse("plain")


async def with_path(a: First, name: Annotated[str, Path()]) -> Response:
    return PlainTextResponse(name)


async def with_query(a: First, q: str = "q") -> Response:
    return PlainTextResponse(q)


async def with_nested(a: Annotated[str, Depends(nested)]) -> Response:
    return PlainTextResponse(a)


async def with_thread(a: Annotated[str, Depends(threaded)]) -> Response:
    return PlainTextResponse(a)


async def twice(a: First, b: First) -> Response:
    return PlainTextResponse(a + b)


async def with_response(response: Response, a: First) -> Response:
    response.headers["x-a"] = a
    return response


def in_thread(a: First) -> Response:
    return PlainTextResponse(a)


async def gives_json(a: First) -> dict[str, str]:
    return {"a": a}


def route_of(endpoint: Callable[..., Any], path: str = "/", **more: Any) -> tuple[APIRoute, bool]:
    """A route, and whether it was made shorter."""
    router = APIRouter(dependencies=more.pop("dependencies", None))
    router.add_api_route(path, endpoint, **more)
    (route,) = router.routes
    assert isinstance(route, APIRoute)
    before = route.app
    shorten(route)
    return route, route.app is not before


def answer_of(route: APIRoute, path: str = "/") -> str:
    app = FastAPI()
    app.router.routes.append(route)
    with TestClient(app) as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text


def test_dependencies_are_called_in_order_those_of_the_router_first() -> None:
    CALLED.clear()
    route, is_short = route_of(straight, dependencies=[Depends(second)])
    assert not is_short, "the same dependency twice is left to FastAPI, which calls it once"
    route, is_short = route_of(straight)
    assert is_short
    assert answer_of(route) == "GET two one"
    assert CALLED == ["second", "first"]


def test_what_depends_on_nothing_is_called_alone() -> None:
    route, is_short = route_of(plain, dependencies=[Depends(first)])
    CALLED.clear()
    assert is_short
    assert (answer_of(route), CALLED) == ("plain", ["first"])


@pytest.mark.parametrize(
    ("endpoint", "path", "asked", "text"),
    [
        (with_path, "/{name}", "/x", "x"),
        (with_query, "/", "/?q=y", "y"),
        (with_nested, "/", "/", "one"),
        (with_thread, "/", "/", "thread"),
        (twice, "/", "/", "oneone"),
        (gives_json, "/", "/", '{"a":"one"}'),
        (in_thread, "/", "/", "one"),
    ],
)
def test_what_needs_more_is_left_to_fastapi(
    endpoint: Callable[..., Any], path: str, asked: str, text: str
) -> None:
    route, is_short = route_of(endpoint, path)
    assert not is_short
    assert answer_of(route, asked) == text


def test_who_sets_headers_of_the_answer_is_left_to_fastapi() -> None:
    assert not route_of(with_response)[1]


def test_websockets_too() -> None:
    router = APIRouter(dependencies=[Depends(first)])

    @router.websocket("/{name}")
    async def watch(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text(websocket.path_params["name"])
        await websocket.close()

    (route,) = router.routes
    before: Any = route.app  # pyright: ignore[reportAttributeAccessIssue]
    shorten(route)
    assert route.app is not before  # pyright: ignore[reportAttributeAccessIssue]
    app = FastAPI()
    app.router.routes.append(route)
    CALLED.clear()
    with TestClient(app) as client, client.websocket_connect("/x") as socket:
        assert socket.receive_text() == "x"
    assert CALLED == ["first"]
