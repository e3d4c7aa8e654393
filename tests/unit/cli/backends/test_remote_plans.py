"""Flows and revisions of a service, page by page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.cli.backends.remote import RESPONSE_TIMEOUT_S, RemoteBackend
from planwave.cli.lookup import find_flow, find_flow_id
from planwave.client import AsyncClient
from planwave.errors import InputError, NotFound

GRAPH = {"nodes": [{"id": "a", "type": "text"}], "edges": []}
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
        found = await queries.flows.list(limit=55)
        assert [each.plan_id for each in found] == FLOW_IDS[:55]
        assert {each.live_revision for each in found} == {LIVE}
        listed = await queries.revisions.list(FLOW_IDS[3], limit=55)
        assert [each.revision for each in listed] == REVISIONS[:55]


async def test_list_of_flows_shows_them_as_the_service_does() -> None:
    async with remote_flows(50) as queries:
        (found,) = await queries.flows.list(limit=1)
        assert await queries.flows.summaries([found]) == [flow_summary(FLOW_IDS[0])]


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


async def test_flow_is_loaded_with_graph_of_revision() -> None:
    async with remote_flows(50) as queries:
        found = await queries.flows.get(FLOW_IDS[0], 9)
        assert (found.revision, found.graph) == (9, GRAPH)
        assert (await find_flow(queries, "flow 60", 9)).revision == 9
        assert (await find_flow(queries, "flow 60")).revision == LIVE
        with pytest.raises(NotFound):
            await queries.flows.get(FLOW_IDS[0], 61)
        with pytest.raises(NotFound):
            await queries.flows.get("nobody")


async def test_words_are_sent_with_the_chosen_model_and_wait_as_long_as_it_takes() -> None:
    sent: list[httpx2.Request] = []

    def service(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(422, json={"code": "nothing-changed", "detail": "nothing"})

    client = AsyncClient(timeout_s=RESPONSE_TIMEOUT_S, transport=httpx2.MockTransport(service))
    async with RemoteBackend(client, None, "openai", "gpt-4o") as backend:
        for dry_run in (False, True):
            with pytest.raises(InputError):
                await backend.revisions.refine(FLOW_IDS[0], "add a sum", dry_run=dry_run)
    choice = {"request": "add a sum", "provider": "openai", "model": "gpt-4o"}
    assert [json.loads(each.content) for each in sent] == [
        {**choice, "dry_run": dry_run} for dry_run in (False, True)
    ]
    assert {each.extensions["timeout"]["read"] > 30 * RESPONSE_TIMEOUT_S for each in sent} == {True}
