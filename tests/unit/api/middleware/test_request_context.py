import json
import logging
import threading
from typing import Any

import httpx2
import pytest
import websockets
from fastapi import FastAPI, WebSocket
from pydantic import SecretStr
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from websockets.asyncio.client import connect

from planwave.api.logging_config import request_id
from planwave.api.metrics import PrometheusObserver
from planwave.api.middleware.request_context import RequestContextMiddleware
from planwave.api.problems import Problem, register_handlers
from planwave.log_records import FIELDS
from tests.support.polling import until
from tests.support.server.raw_http import raw_connection
from tests.support.server.running_server import RunningServer, running_server

_log = logging.getLogger("planwave.test")


def broken_app() -> FastAPI:
    app = FastAPI()
    register_handlers(app)
    app.add_middleware(RequestContextMiddleware, PrometheusObserver())

    @app.get("/id")
    async def give_id() -> str | None:
        _log.warning("working")
        return request_id()

    @app.get("/breaks/{how}")
    async def breaks(how: str) -> None:
        raise {"fault": ZeroDivisionError("secret detail"), "gone": ClientDisconnect()}[how]

    @app.get("/half")
    async def half() -> StreamingResponse:
        async def pieces() -> Any:
            yield b"a"
            raise ZeroDivisionError

        return StreamingResponse(pieces())

    return app


async def get(path: str, **headers: str) -> httpx2.Response:
    transport = httpx2.ASGITransport(broken_app())
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.get(path, headers=headers)


def access_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [getattr(r, FIELDS) for r in caplog.records if r.name == "planwave.access"]


def own_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Give the lines of this thread: those of the server that is shared may come at any time."""
    own = [r for r in caplog.records if r.thread == threading.get_ident()]
    return [getattr(r, FIELDS) for r in own if r.name == "planwave.access"]


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    own = [r for r in caplog.records if r.thread == threading.get_ident()]
    return [r for r in own if r.levelname == "ERROR"]


@pytest.fixture(autouse=True)
def log_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "planwave")


async def test_valid_request_id_is_echoed() -> None:
    answer = await get("/id", **{"X-Request-Id": "my-id.1"})
    assert answer.headers["x-request-id"] == answer.json() == "my-id.1"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a/b", '"'])
async def test_invalid_request_id_is_replaced(given: str) -> None:
    answer = await get("/id", **{"X-Request-Id": given})
    assert answer.headers["x-request-id"] == answer.json() != given


async def test_request_ids_are_unique() -> None:
    ids = {(await get("/id")).headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    assert request_id() is None


async def test_access_log_has_route_status_time_and_request_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await get("/breaks/me?token=hush", Authorization="Bearer hush")
    (line,) = own_lines(caplog)
    assert line.pop("ms") >= 0
    assert line == {
        "method": "GET",
        "route": "/breaks/{how}",
        "status": 500,
        "request_id": answer.headers["x-request-id"],
    }
    assert "hush" not in caplog.text


async def test_internal_error_hides_details_and_logs_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = await get("/breaks/fault")
    problem = Problem.model_validate(answer.json())
    assert (answer.status_code, problem.code) == (500, "internal-error")
    assert problem.request_id == answer.headers["x-request-id"]
    assert str(problem.request_id) in str(problem.hint)
    assert "ZeroDivision" not in answer.text
    assert "secret detail" not in answer.text
    (broken,) = errors(caplog)
    assert broken.exc_info is not None


async def test_error_after_response_start_aborts_response() -> None:
    with pytest.raises(ZeroDivisionError):
        await get("/half")


async def test_client_disconnect_is_logged_as_499(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AssertionError):  # of the transport: nobody answered
        await get("/breaks/gone")
    assert [line["status"] for line in own_lines(caplog)] == [499]
    assert not errors(caplog)


async def test_rejected_request_has_request_id_and_security_headers(
    server: RunningServer,
) -> None:
    async with raw_connection(server) as raw:
        for request in (
            ("GET", "/nowhere"),
            ("GET", "/", "Host: evil"),
            ("GET", "/?" + "q" * 40_000),
        ):
            await raw.send(*request, "X-Request-Id: door")
            answer = await raw.read_response()
            assert answer.headers["x-request-id"] == "door"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_websocket_has_request_id_and_access_log(
    server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    socket = await connect(
        f"{server.ws_url}/ws/none", additional_headers={"X-Request-Id": "ws-1", "Origin": "null"}
    )
    async with socket:
        assert socket.response is not None
        assert socket.response.headers["x-request-id"] == "ws-1"
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()

    def lines() -> list[dict[str, Any]]:
        return [each for each in access_lines(caplog) if each["request_id"] == "ws-1"]

    await until(lines)  # it is written when the client knows the end already
    (line,) = lines()
    assert (line["method"], line["status"]) == ("WEBSOCKET", 4403)


async def test_websocket_error_closes_with_1011() -> None:
    app = broken_app()

    @app.websocket("/ws/{when}")
    async def breaks(socket: WebSocket, when: str) -> None:
        if when == "late":
            await socket.accept()
        raise ZeroDivisionError

    for when, expected in (("late", ["websocket.accept", "websocket.close"]), ("early", [])):
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        scope = {
            "type": "websocket", "path": f"/ws/{when}", "headers": [], "query_string": b"",
            "subprotocols": [], "scheme": "ws", "server": ("127.0.0.1", 80), "root_path": "",
        }  # fmt: skip
        if when == "early":
            with pytest.raises(ZeroDivisionError):
                await app(scope, receive, send)
        else:
            await app(scope, receive, send)
        assert [each["type"] for each in sent] == expected
        assert not sent or sent[-1]["code"] == 1011


def test_token_body_and_query_are_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    with running_server(token=SecretStr("hush-token")) as running:
        for headers in ({"Authorization": "Bearer hush-token"}, {"Authorization": "Bearer hush"}):
            httpx2.post(
                f"{running.base_url}/api/plan?hush=1",
                json={"prompt": "hush-goal"},
                headers={**headers, "Idempotency-Key": "hush-key"},
            )
        httpx2.post(f"{running.base_url}/api/session", json={"token": "hush-token"})
        httpx2.get(f"{running.base_url}/hush/path")
    assert len(access_lines(caplog)) >= 4
    assert "hush" not in caplog.text
    assert "hush" not in json.dumps(access_lines(caplog))


async def test_a_read_that_succeeds_has_a_line_only_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await get("/id")
    assert own_lines(caplog) == []
    caplog.set_level(logging.DEBUG, "planwave.access")
    await get("/id")
    await get("/nowhere")
    assert [line["status"] for line in own_lines(caplog)] == [200, 404]
    assert [each.levelname for each in caplog.records if each.name == "planwave.access"] == [
        "DEBUG",
        "INFO",
    ]
