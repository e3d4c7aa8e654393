"""The application called in process, on the event loop of the test.

Each JSON response is compared with the shape that its route documents.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastapi import FastAPI

from planwave.api.app import create_app
from planwave.service.dependencies import ServiceDependencies
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.documented_shapes import check_response
from tests.support.server.running_server import NO_RATE_LIMITS

PROBLEM_TYPE = "application/problem+json"


class InProcessClient(httpx2.AsyncClient):
    """A client of one application, and the ``service`` behind it."""

    service: Service

    async def post_json(self, path: str, body: Any = None, status: int = 200) -> Any:
        """POST, expect a status, give the answer."""
        answer = await self.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def get_json(self, path: str, **query: Any) -> Any:
        """GET, expect 200, give the answer."""
        answer = await self.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def expect_problem(
        self, method: str, path: str, expected: int, body: Any = None, **query: Any
    ) -> dict[str, Any]:
        """Expect a problem of a status, and give it."""
        answer = await self.request(method, path, json=body, params=query)
        assert (answer.status_code, answer.headers["content-type"]) == (expected, PROBLEM_TYPE), (
            answer.text
        )
        problem = answer.json()
        assert problem["status"] == expected
        return problem


@asynccontextmanager
async def in_process_client(
    parts: ServiceDependencies, **settings: Any
) -> AsyncGenerator[InProcessClient]:
    """Open an application over these rooms; nobody's requests are counted."""
    chosen = Settings(**{"limits": NO_RATE_LIMITS, **settings})
    app = create_app(chosen, lambda _: Service(parts))
    async with (
        app.router.lifespan_context(app),
        InProcessClient(
            transport=httpx2.ASGITransport(app),
            base_url="http://127.0.0.1",
            event_hooks={"response": [check_response]},
        ) as calls,
    ):
        calls.service = app.state.planwave.service
        yield calls


@asynccontextmanager
async def asgi_client(app: FastAPI, **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Start an application and give a client for it, without a network between them."""
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=transport,
            base_url="http://127.0.0.1",
            headers=headers,
            event_hooks={"response": [check_response]},
        ) as client,
    ):
        yield client
