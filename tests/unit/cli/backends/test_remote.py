"""Flows of a service, page by page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from planwave.cli.backends.remote import LockOwner, RemoteBackend, is_planwave_service, lock_owner
from planwave.cli.inputs import Source
from planwave.client import AsyncClient
from planwave.errors import GraphInvalid, InputError, NotFound
from planwave.storage.lock import LOCK_NAME

MADE = {
    "plan_id": None,
    "flow_id": None,
    "flow_version": None,
    "title": "T",
    "user_prompt": "",
    "status": "completed",
    "created_at": "t",
}
IDS = [f"{n:08x}-0000-7000-8000-000000000000" for n in range(250, 0, -1)]
GRAPH = {"nodes": [{"id": "a", "type": "text"}], "edges": []}


def told(directory: Path, **holder: Any) -> Path:
    (directory / LOCK_NAME).write_text(json.dumps(holder), "utf-8")
    return directory


def test_a_holder_says_where_it_is_and_shows_no_token(tmp_path: Path) -> None:
    found = lock_owner(told(tmp_path, pid=os.getpid(), url="http://there", token="hush"))
    assert found == LockOwner(os.getpid(), "http://there", "hush")
    assert "hush" not in f"{found!r} {found}"


@pytest.mark.parametrize(
    "said",
    [{}, {"pid": "1"}, {"pid": 0}, {"pid": -1}, {"pid": 10**30}, {"url": "http://there"}],
)
def test_what_names_no_process_is_no_holder(tmp_path: Path, said: Mapping[str, Any]) -> None:
    assert lock_owner(told(tmp_path, **said)) is None
    assert lock_owner(tmp_path / "nowhere") is None


def test_a_process_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert lock_owner(told(tmp_path, pid=gone.pid, url="http://127.0.0.1:1")) is None


def test_only_an_address_where_planwave_says_it_is_well_answers(unused_tcp_port: int) -> None:
    assert not is_planwave_service(f"http://127.0.0.1:{unused_tcp_port}")
    assert not is_planwave_service("http://[::1")
    assert not is_planwave_service("nonsense")


@pytest.mark.parametrize(
    ("said", "is_planwave"),
    [
        (b'{"status": "ok"}', True),
        (b'{"status": "disk-full"}', True),
        (b'{"status": "store-busy"}', True),
        (b'{"status": "store-read-only"}', True),
        (b'{"status": "UP"}', False),
        (b'{"status": ["ok"]}', False),
        (b'{"status": "ok", "version": 3}', False),
        (b"[]", False),
        (b"<html>", False),
    ],
)
def test_a_service_whose_disk_fails_is_still_planwave_and_others_are_not(
    said: bytes, is_planwave: bool
) -> None:
    class Says(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Says) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        assert is_planwave_service(f"http://127.0.0.1:{server.server_port}") is is_planwave
        thread.join()


class Shelves:
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
async def test_a_list_of_any_length_comes_page_by_page(page: int) -> None:
    async with remote(Shelves(page, busy=2)) as history:
        assert [each.execution_id for each in await history.executions(limit=120)] == IDS[:120]
        assert [each.execution_id for each in await history.executions(limit=1000)] == IDS


async def test_a_list_goes_on_behind_its_last_one() -> None:
    async with remote(Shelves(50)) as history:
        first = await history.executions(limit=60)
        rest = await history.executions(before=first[-1].execution_id, limit=500)
        assert [each.execution_id for each in [*first, *rest]] == IDS
        assert await history.executions(before=IDS[-1], limit=10) == []


async def test_an_old_id_is_found_by_its_start_and_an_unknown_one_is_not() -> None:
    shelves = Shelves(200)

    def service(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/api/plans":
            return httpx2.Response(200, json={"plans": [], "next_cursor": None})
        return shelves(request)

    async with remote(service) as history:
        assert (await history.find("00000001")).id == IDS[-1]
        assert (await history.find("last")).id == IDS[0]
        with pytest.raises(NotFound):
            await history.find("ffff")


async def test_a_document_that_is_no_graph_is_refused_before_it_is_sent() -> None:
    shelves = Shelves(50)
    async with remote(shelves) as place:
        for source in (b"{", b"[]", b'"text"', b'{"nodes": 1, "nodes": 2}'):
            with pytest.raises(GraphInvalid, match=r"^file\.json: "):
                await place.plan_source(Source("file.json", source), ())
    assert shelves.asked == 0


async def test_who_runs_a_file_there_cannot_be_chosen_here() -> None:
    async with remote(Shelves(50), provider="openai") as place:
        assert place.planner_name() == "openai"
        with pytest.raises(InputError, match="with its own default"):
            await place.plan_source(Source("f", json.dumps(GRAPH).encode()), ())


async def test_commands_become_requests_that_say_all_of_it() -> None:
    asked: list[tuple[str, Any]] = []

    def service(request: httpx2.Request) -> httpx2.Response:
        asked.append((request.url.path, json.loads(request.content) if request.content else None))
        if request.method == "GET":
            found = {"request_id": "r7", "path": "q", "request": {}, "since": "t", "timeout_s": 5.0}
            return httpx2.Response(200, json={"requests": [found]})
        return httpx2.Response(200, json={"execution_id": "new"})

    async with remote(service) as place:
        (request,) = await place.requests("x")
        assert (request.request_id, request.path, request.timeout_s) == ("r7", "q", 5.0)
        await place.answer("x", "r7", {"decision": "ok"})
        await place.pause("x")
        await place.resume("x")
        await place.cancel("x")
        await place.cancel("x", "enough", node="a")
        assert await place.retry("x") == "new"
        assert await place.fork("x", ["a"], {}) == "new"
        assert await place.fork("x", (), {"a": {"data": {}}}) == "new"
    assert asked[1:] == [
        ("/api/executions/x/requests/r7", {"decision": "ok"}),
        ("/api/executions/x/pause", None),
        ("/api/executions/x/resume", None),
        ("/api/executions/x/cancel", {}),
        ("/api/executions/x/cancel", {"cause": "enough", "node": "a"}),
        ("/api/executions/x/retry", {"start": True}),
        ("/api/executions/x/fork", {"rerun": ["a"], "start": True}),
        ("/api/executions/x/fork", {"rerun": [], "changes": {"a": {"data": {}}}, "start": True}),
    ]


GRAPH_remote_flows: dict[str, Any] = {"nodes": [{"id": "a", "type": "text"}], "edges": []}
IDS_remote_flows = [f"{number:08x}-0000-7000-8000-000000000000" for number in range(60, 0, -1)]
VERSIONS = [f"{number:064x}" for number in range(60, 0, -1)]


def flow(own: str) -> dict[str, Any]:
    return {
        "flow_id": own,
        "name": f"flow {int(own[:8], 16)}",
        "description": "",
        "version": VERSIONS[0],
        "revision": 60,
        "created_at": "t",
        "updated_at": "t",
    }


class Shelves_remote_flows:
    """A service with 60 flows of 60 versions that gives pages of its own size."""

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
        following = str(end) if end < len(IDS_remote_flows) else None
        if path == "/api/flows":
            found = [{**flow(own), "node_count": 1} for own in IDS_remote_flows[begin:end]]
            return httpx2.Response(200, json={"flows": found, "next_cursor": following})
        own = path.split("/")[3]
        if own not in IDS_remote_flows or query.get("version", VERSIONS[0]) not in VERSIONS:
            return httpx2.Response(404, json={"code": "not-found", "detail": "nothing"})
        if path.endswith("/versions"):
            facts = {"revision": 1, "created_at": "t", "node_count": 1}
            versions = [{**facts, "version": each} for each in VERSIONS[begin:end]]
            told = {"flow_id": own, "versions": versions, "next_cursor": following}
            return httpx2.Response(200, json=told)
        version = query.get("version", VERSIONS[0])
        return httpx2.Response(
            200, json={**flow(own), "version": version, "graph": GRAPH_remote_flows}
        )


def remote_remote_flows(page: int) -> RemoteBackend:
    return RemoteBackend(
        AsyncClient(transport=httpx2.MockTransport(Shelves_remote_flows(page))), Path("storage")
    )


@pytest.mark.parametrize("page", [7, 50, 200])
async def test_flows_and_versions_of_any_number_come_page_by_page(page: int) -> None:
    async with remote_remote_flows(page) as history:
        assert [each.flow_id for each in await history.flows(limit=55)] == IDS_remote_flows[:55]
        listed = await history.flow_versions(IDS_remote_flows[3], limit=55)
        assert [each.version for each in listed] == VERSIONS[:55]


async def test_a_flow_is_found_by_its_name_and_by_the_start_of_its_id() -> None:
    async with remote_remote_flows(7) as history:
        assert await history.find_flow("flow 1") == IDS_remote_flows[-1]
        assert await history.find_flow(IDS_remote_flows[-1][:-1]) == IDS_remote_flows[-1]
        assert await history.find_flow(IDS_remote_flows[5]) == IDS_remote_flows[5]
        for name in ("flow", "flow 61", "ffff"):
            with pytest.raises(NotFound):
                await history.find_flow(name)
        with pytest.raises(InputError):
            await history.find_flow("0000")


async def test_a_flow_comes_with_the_graph_of_its_version() -> None:
    async with remote_remote_flows(50) as history:
        found = await history.flow(IDS_remote_flows[0], VERSIONS[9])
        assert (found.version, found.graph) == (VERSIONS[9], GRAPH_remote_flows)
        with pytest.raises(NotFound, match="has no version"):
            await history.flow(IDS_remote_flows[0], "f" * 64)
        with pytest.raises(NotFound, match="no flow"):
            await history.flow("nobody")
