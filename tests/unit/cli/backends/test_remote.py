"""Flows of a service, page by page."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.cli.backends.remote import RemoteBackend
from planwave.cli.inputs import Source
from planwave.cli.lookup import find, find_flow, find_flow_id
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
        assert [each.execution_id for each in await queries.executions(limit=120)] == IDS[:120]
        assert [each.execution_id for each in await queries.executions(limit=1000)] == IDS


async def test_executions_are_listed_after_a_cursor() -> None:
    async with remote(ExecutionLists(50)) as queries:
        first = await queries.executions(limit=60)
        rest = await queries.executions(before=first[-1].execution_id, limit=500)
        assert [each.execution_id for each in [*first, *rest]] == IDS
        assert await queries.executions(before=IDS[-1], limit=10) == []


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
        (request,) = await backend.requests("x")
        assert (request.request_id, request.path, request.timeout_s) == ("r7", "q", 5.0)
        await backend.answer("x", "r7", {"decision": "ok"})
        await backend.pause("x")
        await backend.resume("x")
        await backend.cancel("x")
        await backend.cancel("x", "enough", node="a")
        assert await backend.retry("x") == "new"
        assert await backend.fork("x", ["a"], {}) == "new"
        assert await backend.fork("x", (), {"a": {"data": {}}}) == "new"
    assert requested[1:] == [
        ("/api/executions/x/requests/r7", {"decision": "ok"}),
        ("/api/executions/x/pause", None),
        ("/api/executions/x/resume", None),
        ("/api/executions/x/cancel", {}),
        ("/api/executions/x/cancel", {"cause": "enough", "node": "a"}),
        ("/api/executions/x/retry", {"start": True}),
        ("/api/executions/x/fork", {"rerun": ["a"], "start": True}),
        ("/api/executions/x/fork", {"rerun": [], "changes": {"a": {"data": {}}}, "start": True}),
    ]


FLOW_IDS = [f"{number:08x}-0000-7000-8000-000000000000" for number in range(60, 0, -1)]
REVISIONS = list(range(60, 0, -1))
"""Of each flow; the newest is a draft."""
LIVE = 59


def flow(own: str) -> dict[str, Any]:
    return {
        "plan_id": own,
        "name": f"flow {int(own[:8], 16)}",
        "title": "T",
        "description": "",
        "revision": LIVE,
        "live_revision": LIVE,
        "draft": revision(own, 60),
        "created_at": "t",
        "updated_at": "t",
        "published": ["model"],
    }


def flow_summary(own: str) -> dict[str, Any]:
    return {**flow(own), "updated_by": None, "node_count": 2}


def revision(own: str, number: int) -> dict[str, Any]:
    counts = {"node_count": 1, "error_count": int(number > LIVE)}
    about = {"title": "T", "author": "api", "note": "", "created_at": "t", "created_by": None}
    about |= {"approval": None}
    return {"plan_id": own, "revision": number, "hash": f"{number:064x}", **about, **counts}


class FlowLists:
    """A service with 60 flows of 60 revisions that gives pages of its own size."""

    def __init__(self, page: int) -> None:
        self.page = page

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        query, path = request.url.params, request.url.path
        size = int(query.get("limit", self.page))
        if size > self.page:
            problem = {"code": "limit-exceeded", "detail": "page", "limit": "page_items"}
            return httpx2.Response(422, json=problem)
        begin = int(query.get("cursor", 0))
        end = begin + size
        following = str(end) if end < len(FLOW_IDS) else None
        if path == "/api/flows":
            known = [flow_summary(own) for own in FLOW_IDS]
            if name := query.get("name"):
                known = [each for each in known if each["name"] == name.casefold()]
            found, following = known[begin:end], following if end < len(known) else None
            return httpx2.Response(200, json={"flows": found, "next_cursor": following})
        own = path.split("/")[3]
        number = int(query.get("revision", LIVE))
        if own not in FLOW_IDS or number not in REVISIONS:
            return httpx2.Response(404, json={"code": "not-found", "detail": "nothing"})
        if path.endswith("/revisions"):
            revisions = [revision(own, each) for each in REVISIONS[begin:end]]
            received = {"plan_id": own, "revisions": revisions, "next_cursor": following}
            return httpx2.Response(200, json=received)
        received = {**flow(own), "revision": number, "hash": f"{number:064x}", "graph": GRAPH}
        received["inputs"] = None
        return httpx2.Response(200, json=received)


def remote_flows(page: int) -> RemoteBackend:
    return RemoteBackend(
        AsyncClient(transport=httpx2.MockTransport(FlowLists(page))), Path("storage")
    )


@pytest.mark.parametrize("page", [7, 50, 200])
async def test_flows_and_revisions_are_listed_across_pages(page: int) -> None:
    async with remote_flows(page) as queries:
        found = await queries.flows(limit=55)
        assert [each.plan_id for each in found] == FLOW_IDS[:55]
        assert {each.live_revision for each in found} == {LIVE}
        listed = await queries.plan_revisions(FLOW_IDS[3], limit=55)
        assert [each.revision for each in listed] == REVISIONS[:55]


async def test_list_of_flows_shows_them_as_the_service_does() -> None:
    async with remote_flows(50) as queries:
        (found,) = await queries.flows(limit=1)
        assert await queries.flow_summaries([found]) == [flow_summary(FLOW_IDS[0])]


async def test_flow_is_found_by_name_and_id_prefix() -> None:
    async with remote_flows(7) as queries:
        for name in ("flow 1", "FLOW 1"):
            assert await find_flow_id(queries, name) == FLOW_IDS[-1]
        assert await find_flow_id(queries, FLOW_IDS[-1][:-1]) == FLOW_IDS[-1]
        assert await find_flow_id(queries, FLOW_IDS[5]) == FLOW_IDS[5]
        for name in ("flow", "flow 61", "ffff"):
            with pytest.raises(NotFound):
                await find_flow_id(queries, name)
        with pytest.raises(InputError):
            await find_flow_id(queries, "0000")


async def test_wait_ends_with_the_document_that_shows_the_last_event(tmp_path: Path) -> None:
    path = tmp_path / f"{IDS[0]}.json"
    path.write_text('{"last_seq": 7}')  # of the pause before

    def service(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"last_seq": 9})

    async with (
        RemoteBackend(AsyncClient(transport=httpx2.MockTransport(service)), tmp_path) as backend,
        asyncio.TaskGroup() as tasks,
    ):
        waiting = tasks.create_task(backend.wait(IDS[0]))
        await asyncio.wait([waiting], timeout=0.1)
        assert not waiting.done()
        path.write_text('{"last_seq": 9}')


async def test_flow_is_loaded_with_graph_of_revision() -> None:
    async with remote_flows(50) as queries:
        found = await queries.flow(FLOW_IDS[0], 9)
        assert (found.revision, found.graph) == (9, GRAPH)
        assert (await find_flow(queries, "flow 60", 9)).revision == 9
        assert (await find_flow(queries, "flow 60")).revision == LIVE
        with pytest.raises(NotFound):
            await queries.flow(FLOW_IDS[0], 61)
        with pytest.raises(NotFound):
            await queries.flow("nobody")


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
        assert [event.seq async for event in backend.watch("x")] == [7]
        if is_there:
            await backend.wait("x")
            assert await backend.document("x") == document
        else:
            with pytest.raises(Unreachable):
                await backend.wait("x")
            with pytest.raises(Unreachable):
                await backend.document("x")
