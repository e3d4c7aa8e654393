"""The headers that keep browsers from running and framing responses: on each response of each route."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from planwave.api.app import create_app
from planwave.api.openapi import http_routes
from planwave.api.routes.web import WebUI
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.in_process_client import asgi_client
from tests.support.server.raw_asgi import raw_request
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import hook_flow, hook_service, listening, send

BROWSER = {"accept": "text/html"}
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


def assert_guarded(headers: dict[str, str], where: object) -> None:
    policy = headers["content-security-policy"]
    assert "default-src" in policy, where
    assert "frame-ancestors 'none'" in policy, where
    assert "script-src" not in policy, where
    is_of_link = isinstance(where, tuple) and where[1] == "/links/{key}"
    referrers = "strict-origin" if is_of_link else "same-origin"  # its address is a secret
    assert headers["referrer-policy"] == referrers, where
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
            | {"/docs", "/llms.txt", "/openapi.json", "/metrics"}
        )
        assert len(paths) > 50
        for path, method in product(
            [*paths, "/", "/runs/1", "/nowhere", "/assets/x.js"],
            ("GET", "POST", "OPTIONS"),
        ):
            filled = path.replace("{", "").replace("}", "").replace(":path", "")
            _, answered, _ = await raw_request(app, method, filled, BROWSER)
            assert_guarded(answered, (method, path))
        for refused in ({"host": "evil.example"}, {"x-pad": "x" * 40_000}):
            status, answered, _ = await raw_request(app, "GET", "/", BROWSER | refused)
            assert status in (403, 431)
            assert_guarded(answered, refused)


async def test_a_response_to_a_fault_has_the_headers_too() -> None:
    async with opened() as app:
        app.state.planwave.service.flows = None  # a fault in planwave
        status, answered, _ = await raw_request(app, "GET", "/api/flows", BROWSER)
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
                status, answered, body = await raw_request(app, "GET", path, BROWSER)
                assert_guarded(answered, path)
                if status == 200:  # the page, with its headers: what its router makes of an address
                    assert "nonce-" in answered["content-security-policy"], path
                    assert b"style-nonce" in body, path
        served = {
            path: await raw_request(app, "GET", path, BROWSER)
            for path in (f"/{name}" for name in FILES)
        }
        plain = {
            path
            for path, (_, answered, _) in served.items()
            if "nonce-" not in answered["content-security-policy"] and served[path][0] == 200
        }
        assert plain == {"/favicon.svg", "/assets/index-abc.js"}
