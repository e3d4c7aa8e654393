"""The headers that keep browsers from running and framing responses: on each response of each route."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest

from planwave.api.app import create_app
from planwave.api.openapi import http_routes
from planwave.api.routes.web import WebUI
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import hook_flow, hook_service, listening, send

HOST = (b"host", b"127.0.0.1")
BROWSER = (b"accept", b"text/html")
APP = create_app(Settings(limits=NO_RATE_LIMITS), lambda _: Service(dependencies()))
FILES = {
    "index.html": '<!doctype html><head><base href="/" /></head>the page',
    ".made-from": "the hash",
    "favicon.svg": "<svg/>",
    "assets/index-abc.js": "a script",
    "assets/.hidden.js": "a hidden script",
    "assets/page.html": "another page",
}
DOTS = (
    "..",
    "%2e%2e",
    ".%2e",
    "%2E.",
    "%252e%252e",
    "..%00",
    "..;",
    "%c0%ae%c0%ae",
    ".",
    "%2e",
    "x/..",
)
SLASHES = ("/", "%2f", "%2F", "%252f", "\\", "%5c", "//", "/./")
STARTS = ("/", "/assets/", "/assets/x/../")


def headers_of(message: Any) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in message["headers"]}


async def request(
    app: Any, method: str, raw_path: str, *headers: Any
) -> tuple[int, dict[str, str], bytes]:
    """Send a request as uvicorn passes it on: the path is decoded once; no client cleans it up."""
    sent: list[Any] = []
    path = unquote_to_bytes(raw_path).decode(errors="replace")
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": raw_path.encode(),
        "query_string": b"", "headers": [HOST, *headers], "scheme": "http",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "http_version": "1.1",
    }  # fmt: skip

    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Any:
        return next(messages, None) or await asyncio.get_running_loop().create_future()

    async def keep(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, keep)
    body = b"".join(each.get("body", b"") for each in sent[1:])
    return sent[0]["status"], headers_of(sent[0]), body


def assert_guarded(headers: dict[str, str], where: object) -> None:
    policy = headers["content-security-policy"]
    assert "default-src" in policy, where
    assert "frame-ancestors 'none'" in policy, where
    assert "script-src" not in policy, where
    assert headers["referrer-policy"] == "same-origin", where
    assert headers["cross-origin-opener-policy"] == "same-origin", where
    assert headers["x-content-type-options"] == "nosniff", where


@asynccontextmanager
async def opened(**settings: Any) -> AsyncGenerator[Any]:
    app = create_app(Settings(limits=NO_RATE_LIMITS, **settings), lambda _: Service(dependencies()))
    async with asgi_client(app):
        yield app


async def test_every_response_of_every_route_has_the_headers() -> None:
    async with opened() as app:
        paths = sorted(
            {route.path or "" for route in http_routes(APP)}
            | {"/docs", "/openapi.json", "/metrics"}
        )
        assert len(paths) > 50
        for path, method in product(
            [*paths, "/", "/runs/1", "/nowhere", "/assets/x.js"],
            ("GET", "POST", "OPTIONS"),
        ):
            filled = path.replace("{", "").replace("}", "").replace(":path", "")
            _, answered, _ = await request(app, method, filled, BROWSER)
            assert_guarded(answered, (method, path))
        for refused in ((b"host", b"evil.example"), (b"x-pad", b"x" * 40_000)):
            status, answered, _ = await request(app, "GET", "/", BROWSER, refused)
            assert status in (403, 431)
            assert_guarded(answered, refused)


async def test_a_response_to_a_fault_has_the_headers_too() -> None:
    async with opened() as app:
        app.state.planwave.service.flows = None  # a fault in planwave
        status, answered, _ = await request(app, "GET", "/api/flows", BROWSER)
        assert status == 500
        assert_guarded(answered, "a fault")


@pytest.mark.parametrize(
    "kind", ["text/html", "application/xhtml+xml", "image/svg+xml", "TEXT/HTML; charset=utf-8"]
)
async def test_what_a_flow_answers_is_no_page_of_the_service(kind: str) -> None:
    reply = {"id": "reply", "type": "webhook_reply", "data": {"headers": {"Content-Type": kind}}}
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(reply))
        answer = await send(calls, hook, "<script>1</script>")
        assert answer.headers["content-type"] == kind
        assert_guarded(dict(answer.headers), kind)
        assert answer.headers["content-security-policy"].startswith("sandbox; ")


async def test_no_spelling_of_a_path_leads_from_one_built_file_to_another(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, "utf-8")
    async with opened() as app:
        assert isinstance(app.router.default, WebUI)
        app.router.default = WebUI(app.router.not_found, "", tmp_path)
        for start, dots, slash, name in product(STARTS, DOTS, SLASHES, FILES):
            for path in (f"{start}{dots}{slash}{name}", f"{start}{name}{slash}{dots}"):
                status, answered, body = await request(app, "GET", path, BROWSER)
                assert_guarded(answered, path)
                if status == 200:  # the page, with its headers: what its router makes of an address
                    assert "nonce-" in answered["content-security-policy"], path
                    assert b"style-nonce" in body, path
        served = {
            path: await request(app, "GET", path, BROWSER)
            for path in (f"/{name}" for name in FILES)
        }
        plain = {
            path
            for path, (_, answered, _) in served.items()
            if "nonce-" not in answered["content-security-policy"] and served[path][0] == 200
        }
        assert plain == {"/favicon.svg", "/assets/index-abc.js"}
