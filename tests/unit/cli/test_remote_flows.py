"""Flows of a service, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.cli.remote import RemoteBackend
from planwave.client import AsyncClient
from planwave.errors import InputError, NotFound

GRAPH: dict[str, Any] = {"nodes": [{"id": "a", "type": "text"}], "edges": []}
IDS = [f"{number:08x}-0000-7000-8000-000000000000" for number in range(60, 0, -1)]
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


class Shelves:
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
        following = str(end) if end < len(IDS) else None
        if path == "/api/flows":
            found = [{**flow(own), "node_count": 1} for own in IDS[begin:end]]
            return httpx2.Response(200, json={"flows": found, "next_cursor": following})
        own = path.split("/")[3]
        if own not in IDS or query.get("version", VERSIONS[0]) not in VERSIONS:
            return httpx2.Response(404, json={"code": "not-found", "detail": "nothing"})
        if path.endswith("/versions"):
            facts = {"revision": 1, "created_at": "t", "node_count": 1}
            versions = [{**facts, "version": each} for each in VERSIONS[begin:end]]
            told = {"flow_id": own, "versions": versions, "next_cursor": following}
            return httpx2.Response(200, json=told)
        version = query.get("version", VERSIONS[0])
        return httpx2.Response(200, json={**flow(own), "version": version, "graph": GRAPH})


def remote(page: int) -> RemoteBackend:
    return RemoteBackend(AsyncClient(transport=httpx2.MockTransport(Shelves(page))), Path("storage"))


@pytest.mark.parametrize("page", [7, 50, 200])
async def test_flows_and_versions_of_any_number_come_page_by_page(page: int) -> None:
    async with remote(page) as history:
        assert [each.flow_id for each in await history.flows(limit=55)] == IDS[:55]
        listed = await history.flow_versions(IDS[3], limit=55)
        assert [each.version for each in listed] == VERSIONS[:55]


async def test_a_flow_is_found_by_its_name_and_by_the_start_of_its_id() -> None:
    async with remote(7) as history:
        assert await history.find_flow("flow 1") == IDS[-1]
        assert await history.find_flow(IDS[-1][:-1]) == IDS[-1]
        assert await history.find_flow(IDS[5]) == IDS[5]
        for name in ("flow", "flow 61", "ffff"):
            with pytest.raises(NotFound):
                await history.find_flow(name)
        with pytest.raises(InputError):
            await history.find_flow("0000")


async def test_a_flow_comes_with_the_graph_of_its_version() -> None:
    async with remote(50) as history:
        found = await history.flow(IDS[0], VERSIONS[9])
        assert (found.version, found.graph) == (VERSIONS[9], GRAPH)
        with pytest.raises(NotFound, match="has no version"):
            await history.flow(IDS[0], "f" * 64)
        with pytest.raises(NotFound, match="no flow"):
            await history.flow("nobody")
