"""A URL that a caller gives and that cannot be requested is the caller's fault, whatever way it came in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import Settings
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.triggers.hook_sender import hook_flow

FLOW = {"channel": "flow"}
OWN = "http://127.0.0.1:1/own"
"""A URL of the flow itself."""
URLS = {
    "http://127.0.0.1:1/x?key=1": "http://127.0.0.1:1/x",
    "http://10.0.0.1/x.png": "http://10.0.0.1/x.png",
    "http://user:word@x.example/y": "http://x.example/y",
    "ftp://x.example/y": "ftp://x.example/y",
    "http://no.such.invalid/x#part": "http://no.such.invalid/x",
    "http://[::1]:1/x": "http://[::1]:1/x",
}
"""What callers give, and what is stored of it."""


def fetching(url: str) -> dict[str, Any]:
    """Return a flow that requests a URL."""
    fetch = {"id": "get", "type": "fetch", "data": {"url": url}}
    return {
        "nodes": [{"id": "ask", "type": "start"}, fetch],
        "edges": [{"source": "ask", "target": "get", "data": FLOW}],
    }


async def flow_of(calls: httpx2.AsyncClient, graph: dict[str, Any], *, as_model: bool) -> str:
    made = (await calls.post("/api/flows", json={"name": "get", "graph": graph})).json()
    if as_model:
        path = f"/api/flows/{made['plan_id']}/publication"
        assert (await calls.put(path, json={"model": True})).is_success
    return made["plan_id"]


Outcome = tuple[int, str]
"""The status that the caller gets, and the execution."""


async def completions(calls: httpx2.AsyncClient, url: str, template: str) -> Outcome:
    await flow_of(calls, fetching(template.format("input")), as_model=True)
    body = {"model": "get", "messages": [{"role": "user", "content": url}]}
    answer = await calls.post("/v1/chat/completions", json=body)
    return answer.status_code, answer.headers["x-planwave-execution-id"]


async def responses(calls: httpx2.AsyncClient, url: str, template: str) -> Outcome:
    await flow_of(calls, fetching(template.format("input")), as_model=True)
    answer = await calls.post("/v1/responses", json={"model": "get", "input": url})
    return answer.status_code, answer.headers["x-planwave-execution-id"]


async def hooks(calls: httpx2.AsyncClient, url: str, template: str) -> Outcome:
    fetch = {"id": "get", "type": "fetch", "data": {"url": template.format("input.body.url")}}
    graph = hook_flow(fetch, auth="none", secrets=[])
    plan_id = await flow_of(calls, graph, as_model=False)
    hook = (await calls.post("/api/triggers", json={"plan_id": plan_id})).json()
    answer = await calls.post(f"/hooks/{hook['trigger_id']}?wait=30", json={"url": url})
    return answer.status_code, answer.json()["execution_id"]


async def executions(calls: httpx2.AsyncClient, url: str, template: str) -> Outcome:
    plan_id = await flow_of(calls, fetching(template.format("input")), as_model=False)
    body = {"flow": plan_id, "inputs": {"ask": {"output": url}}, "start": True}
    answer = await calls.post("/api/execute", json=body)
    return answer.status_code, answer.json()["execution_id"]


WAYS: dict[Callable[..., Awaitable[Outcome]], tuple[int, int]] = {
    completions: (400, 422),
    responses: (400, 422),
    hooks: (400, 500),
    executions: (202, 202),
}
"""Each way in, and its status where the URL is the caller's and where it is the flow's."""


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("url", [*URLS, OWN])
async def test_url_of_a_caller_is_known_as_such(
    url: str, way: Callable[..., Awaitable[Outcome]], tmp_path: Path
) -> None:
    settings = Settings(storage_dir=tmp_path, limits=NO_RATE_LIMITS, unsigned_webhooks=True)
    async with asgi_client(create_app(settings, open_service)) as calls:
        # The caller names another page of the host that the flow requests.
        is_own = url == OWN
        given, template = ("http://127.0.0.1:1/ow", OWN) if is_own else (url, "{{{{ {} }}}}")
        status, execution_id = await way(calls, given, template)
        assert status == WAYS[way][is_own]
        await calls.get(f"/api/executions/{execution_id}/events")
        shown = (await calls.get(f"/api/executions/{execution_id}")).json()
        assert (shown["status"], shown["error"]["url"]) == ("failed", URLS.get(url, OWN))
        assert "word@" not in str(shown["error"])
