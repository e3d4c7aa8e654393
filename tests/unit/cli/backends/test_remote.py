"""Executions of a service, page by page; its plans are planned, its runs followed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.cli.backends.remote import RemoteBackend
from planwave.cli.inputs import Source
from planwave.cli.lookup import find
from planwave.client import AsyncClient
from planwave.errors import GraphInvalid, InputError, NotFound, Unreachable

MADE = {
    "plan_id": None,
    "revision": None,
    "flow": None,
    "title": "T",
    "user_prompt": "",
    "status": "completed",
    "created_at": "t",
    "created_by": None,
}
IDS = [f"{n:08x}-0000-7000-8000-000000000000" for n in range(250, 0, -1)]
GRAPH = {"nodes": [{"id": "a", "type": "text"}], "edges": []}


class ExecutionLists:
    """A service with 250 executions that gives pages of its own size, and is busy at times."""

    def __init__(self, page: int, busy: int = 0) -> None:
        self.page = page
        self.busy = busy
        self.asked = 0

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        query = request.url.params
        if request.url.path != "/api/executions":
            return httpx2.Response(404, json={"code": "not-found", "detail": "nothing"})
        if self.busy:
            self.busy -= 1
            problem = {"code": "too-many-requests", "detail": "slow", "retry_after_s": 0.001}
            return httpx2.Response(429, json=problem)
        size = int(query.get("limit", self.page))
        if size > self.page:
            problem = {"code": "limit-exceeded", "detail": "page", "limit": "page_items"}
            return httpx2.Response(422, json=problem)
        begin = int(query.get("cursor", 0))
        found = [
            {**MADE, "execution_id": i, "started_at": None, "completed_at": None}
            for i in IDS[begin : begin + size]
        ]
        end = begin + size
        following = str(end) if end < len(IDS) else None
        return httpx2.Response(200, json={"executions": found, "next_cursor": following})


def remote(service: Any, **more: Any) -> RemoteBackend:
    return RemoteBackend(
        AsyncClient(transport=httpx2.MockTransport(service)), Path("storage"), **more
    )


@pytest.mark.parametrize("page", [7, 50, 200, 1000])
async def test_executions_are_listed_across_pages(page: int) -> None:
    async with remote(ExecutionLists(page, busy=2)) as queries:
        assert [each.execution_id for each in await queries.executions.list(limit=120)] == IDS[:120]
        assert [each.execution_id for each in await queries.executions.list(limit=1000)] == IDS


async def test_executions_are_listed_after_a_cursor() -> None:
    async with remote(ExecutionLists(50)) as queries:
        first = await queries.executions.list(limit=60)
        rest = await queries.executions.list(before=first[-1].execution_id, limit=500)
        assert [each.execution_id for each in [*first, *rest]] == IDS
        assert await queries.executions.list(before=IDS[-1], limit=10) == []


async def test_execution_is_found_by_id_prefix() -> None:
    lists = ExecutionLists(200)

    def service(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/api/plans":
            return httpx2.Response(200, json={"plans": [], "next_cursor": None})
        return lists(request)

    async with remote(service) as queries:
        assert (await find(queries, "00000001")).id == IDS[-1]
        assert (await find(queries, "last")).id == IDS[0]
        with pytest.raises(NotFound):
            await find(queries, "ffff")


async def test_invalid_document_is_rejected_before_it_is_sent() -> None:
    lists = ExecutionLists(50)
    async with remote(lists) as backend:
        for source in (b"{", b"[]", b'"text"', b'{"nodes": 1, "nodes": 2}'):
            with pytest.raises(GraphInvalid, match=r"^file\.json: "):
                await backend.plan_source(Source("file.json", source), ())
    assert lists.asked == 0


async def test_remote_backend_rejects_provider_option() -> None:
    async with remote(ExecutionLists(50), provider="openai") as backend:
        assert backend.planner_name() == "the service at http://127.0.0.1:8000: openai"
        with pytest.raises(InputError, match="with its own default"):
            await backend.plan_source(Source("f", json.dumps(GRAPH).encode()), ())


async def test_commands_become_requests() -> None:
    requested: list[tuple[str, Any]] = []

    def service(request: httpx2.Request) -> httpx2.Response:
        requested.append(
            (request.url.path, json.loads(request.content) if request.content else None)
        )
        if request.method == "GET":
            found = {"request_id": "r7", "path": "q", "request": {}, "since": "t", "timeout_s": 5.0}
            return httpx2.Response(200, json={"requests": [found]})
        return httpx2.Response(200, json={"execution_id": "new"})

    async with remote(service) as backend:
        (request,) = await backend.executions.requests("x")
        assert (request.request_id, request.path, request.timeout_s) == ("r7", "q", 5.0)
        await backend.answer("x", "r7", {"decision": "ok"})
        await backend.executions.pause("x")
        await backend.resume("x")
        await backend.executions.cancel("x")
        await backend.executions.cancel("x", "enough", node="a")
        assert await backend.retry("x") == "new"
        assert await backend.fork("x", {"rerun": ["a"]}) == "new"
        changes = {"a": {"data": {}}}
        assert await backend.fork("x", {"rerun": (), "changes": changes, "graph": None}) == "new"
        await backend.preview_fork("x", {"graph": {"nodes": []}})
        await backend.fork("x", {"graph": {}})
    assert requested[1:] == [
        ("/api/executions/x/requests/r7", {"decision": "ok"}),
        ("/api/executions/x/pause", None),
        ("/api/executions/x/resume", None),
        ("/api/executions/x/cancel", {}),
        ("/api/executions/x/cancel", {"cause": "enough", "node": "a"}),
        ("/api/executions/x/retry", {"start": True}),
        ("/api/executions/x/fork", {"rerun": ["a"], "start": True}),
        ("/api/executions/x/fork", {"rerun": [], "changes": changes, "start": True}),
        ("/api/executions/x/fork/preview", {"rerun": [], "graph": {"nodes": []}}),
        ("/api/executions/x/fork", {"rerun": [], "graph": {}, "start": True}),
    ]


async def test_words_are_sent_with_the_hash_of_the_graph_that_they_change() -> None:
    sent: list[str | None] = []

    def service(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.headers.get("if-match"))
        return httpx2.Response(202, json={"execution_id": "x", "change": 1})

    async with remote(service) as backend:
        await backend.replan("x", "more", "some-hash")
        await backend.replan("x", "more")
    assert sent == ['"some-hash"', None]


async def test_wait_ends_with_the_document_that_shows_the_last_event(tmp_path: Path) -> None:
    path = tmp_path / f"{IDS[0]}.json"
    path.write_text('{"last_seq": 7}')  # of the pause before

    def service(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"last_seq": 9})

    async with (
        RemoteBackend(AsyncClient(transport=httpx2.MockTransport(service)), tmp_path) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        waiting = tasks.create_task(backend.executions.wait(IDS[0]))
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        path.write_text('{"last_seq": 9}')


class EndedCommand:
    """A command of another terminal that ends behind the last event of an execution."""

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        if not request.url.path.endswith("/events"):
            raise httpx2.ConnectError("refused")
        event = {
            "execution_id": "x",
            "seq": 7,
            "at": "t",
            "type": "execution.completed",
            "data": {},
        }
        sent = f"event: execution.completed\ndata: {json.dumps(event)}\n\n"
        return httpx2.Response(200, text=sent, headers={"content-type": "text/event-stream"})


@pytest.mark.parametrize(("last_seq", "is_there"), [(7, True), (6, False)])
async def test_document_of_an_ended_command_is_read_from_its_file_if_complete(
    tmp_path: Path, last_seq: int, is_there: bool
) -> None:
    document = {"execution_id": "x", "status": "completed", "last_seq": last_seq}
    (tmp_path / "x.json").write_text(json.dumps(document), "utf-8")
    client = AsyncClient("http://there", transport=httpx2.MockTransport(EndedCommand()))
    async with RemoteBackend(client, tmp_path, is_service=False) as backend:
        assert [event.seq async for event in backend.executions.watch("x")] == [7]
        if is_there:
            await backend.executions.wait("x")
            assert await backend.executions.document("x") == document
        else:
            with pytest.raises(Unreachable):
                await backend.executions.wait("x")
            with pytest.raises(Unreachable):
                await backend.executions.document("x")
