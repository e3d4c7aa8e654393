"""Requests and WebSockets that reach an application as they are: no client adds, checks or cleans anything."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import unquote_to_bytes

ACCEPTED: Final = 101


async def raw_request(
    app: Any,
    method: str,
    raw_path: str,
    headers: dict[str, str],
    body: bytes = b"",
    query: str = "",
) -> tuple[int, dict[str, str], bytes]:
    """Send a request as uvicorn passes it on: the path is decoded once.

    The client leaves once it has the head of the response, so that streams end.
    """
    sent: list[Any] = []
    is_answered = asyncio.Event()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for message in messages:
            return message
        await is_answered.wait()
        return {"type": "http.disconnect"}

    async def keep(message: Any) -> None:
        sent.append(message)
        is_answered.set()

    scope = _scope("http", raw_path, headers, query)
    await app({**scope, "method": method, "scheme": "http", "http_version": "1.1"}, receive, keep)
    answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], answered, b"".join(each.get("body", b"") for each in sent[1:])


async def raw_socket(app: Any, path: str, headers: dict[str, str]) -> int:
    """Open a WebSocket, and leave; return the code with which it was closed, else ``ACCEPTED``."""
    sent: list[Any] = []
    messages = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])

    async def receive() -> Any:
        return next(messages)

    async def keep(message: Any) -> None:
        sent.append(message)

    scope = _scope("websocket", path, headers, "mode=events")
    await app({**scope, "scheme": "ws", "subprotocols": []}, receive, keep)
    closed = [each["code"] for each in sent if each["type"] == "websocket.close"]
    return closed[0] if closed and closed[0] >= 4000 else ACCEPTED


def _scope(kind: str, raw_path: str, headers: dict[str, str], query: str) -> dict[str, Any]:
    return {
        "type": kind, "path": unquote_to_bytes(raw_path).decode(errors="replace"),
        "raw_path": raw_path.encode(), "query_string": query.encode(), "client": ("127.0.0.1", 1),
        "headers": [(n.lower().encode(), v.encode()) for n, v in ({"host": "127.0.0.1"} | headers).items()],
        "server": ("127.0.0.1", 80),
    }  # fmt: skip
