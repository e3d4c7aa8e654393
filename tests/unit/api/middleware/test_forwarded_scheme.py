"""What a proxy may say about a request."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from planwave.api.middleware.forwarded_scheme import ForwardedSchemeMiddleware

FORWARDED = [(b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"203.0.113.9")]


@pytest.mark.parametrize(("trusted", "scheme"), [("10.0.0.1", "https"), ("10.0.0.2", "http")])
async def test_trusted_proxy_names_the_scheme_and_no_address(trusted: str, scheme: str) -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append((scope["scheme"], scope["client"], set(scope)))

    peer = ("10.0.0.1", 4321)
    scope: dict[str, Any] = {
        "type": "http", "scheme": "http", "client": peer, "headers": FORWARDED,
    }  # fmt: skip
    wrapped: Any = ForwardedSchemeMiddleware(app, trusted)
    await wrapped(scope, None, None)
    assert seen == [(scheme, peer, {"type", "scheme", "client", "headers"})]
