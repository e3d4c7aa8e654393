"""Whoever asks for the end of an execution gets it once its JSON document is in place."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from planwave.api.app import create_app
from planwave.api.openapi import http_routes
from planwave.graph.model import Node
from planwave.interop.mcp_server.outcomes import outcome_of
from planwave.service.executions import document_writer
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.triggers.webhook_answers import wait_for_answer
from tests.support.graph.builders import make_graph
from tests.support.nodes.held_nodes import HeldNode
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies, execute_goal

GRAPH = make_graph(Node("h", "held", "H"))
ROUTES = sorted(
    route.path
    for route in http_routes(create_app(Settings(), lambda _: Service(dependencies())))
    if "GET" in (route.methods or ()) and (route.path or "").startswith("/api/execution")
    if "{execution_id}" in (route.path or "")
)
COMMANDS = {"answer", "cancel", "cancel_unneeded", "create", "delete_execution", "execute", "fork", "preview_fork"} | {
    "join", "label", "leave", "pause", "promote", "propose", "replan", "report", "resume", "retry", "revise", "send_command", "settle_delivery", "start",
    "store_answer", "supersede",
}  # fmt: skip
PUSHED = {"subscribe", "watch"}
NO_STATE = {"document_path", "following", "has_clients", "page", "wait_end_written"}
"""Tell of no end: a path, clients, links, nothing."""
MORE: dict[str, tuple[Any, ...]] = {
    "explain": ("h",),
    "node_document": ("h",),
    "status_updates": (60.0,),
}
READS = sorted(
    (room, name)
    for room, feature in vars(Service(dependencies())).items()
    if type(feature).__module__.startswith("planwave.service.") and not room.startswith("_")
    for name, method in inspect.getmembers(feature, inspect.ismethod)
    if "execution_id" in inspect.signature(method).parameters
    if not name.startswith("_") and name not in COMMANDS | PUSHED | NO_STATE
)


@pytest.fixture
def may_write(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once documents may be written."""
    gate, write = asyncio.Event(), document_writer.write_documents

    async def write_then(*args: Any) -> Any:
        await gate.wait()
        return await write(*args)

    monkeypatch.setattr(document_writer, "write_documents", write_then)
    return gate


@asynccontextmanager
async def ended(tmp_path: Path) -> AsyncGenerator[tuple[InProcessClient, str]]:
    """Open a service with an execution that has ended, as its pushed events say."""
    held = HeldNode()
    async with in_process_client(dependencies(GRAPH, types=[held], directory=tmp_path)) as client:
        execution_id = (await execute_goal(client.service)).execution_id
        held.release.set()
        async with (
            asyncio.timeout(20),
            aclosing(client.service.executions.watch(execution_id)) as events,
        ):
            types = [event.type async for event in events]
        assert types[-1] == "execution.completed"
        yield client, execution_id


async def assert_waits(
    tmp_path: Path, may_write: asyncio.Event, ask: Callable[[InProcessClient, str], Awaitable[Any]]
) -> Any:
    async with ended(tmp_path) as (client, execution_id):
        path = tmp_path / f"{execution_id}.json"
        asked = asyncio.get_running_loop().create_task(ask(client, execution_id))
        try:
            done, _ = await asyncio.wait([asked], timeout=0.2)
            assert not done, "it was told before the document was in place"
            assert not path.exists()  # the pushed events did not wait
        finally:
            may_write.set()  # the end of the service waits for the document
        async with asyncio.timeout(20):
            answer = await asked
        assert path.exists()
        return answer


@pytest.mark.parametrize("route", ROUTES)
async def test_every_route_that_reads_an_execution_waits(
    tmp_path: Path, may_write: asyncio.Event, route: str
) -> None:
    async def ask(client: InProcessClient, execution_id: str) -> int:
        path = route.replace("{execution_id}", execution_id).replace("{other_id}", execution_id)
        return (await client.get(path.replace("{path:path}", "h") + "?format=json")).status_code

    async def ask_plainly(client: InProcessClient, execution_id: str) -> int:
        path = route.replace("{execution_id}", execution_id).replace("{other_id}", execution_id)
        query = {"to": "mermaid"} if route.endswith("/export") else None
        return (await client.get(path.replace("{path:path}", "h"), params=query)).status_code

    chosen = ask if route.endswith("/events") else ask_plainly
    assert await assert_waits(tmp_path, may_write, chosen) == 200


@pytest.mark.parametrize(("room", "name"), READS)
async def test_every_read_of_the_service_waits(
    tmp_path: Path, may_write: asyncio.Event, room: str, name: str
) -> None:
    async def ask(client: InProcessClient, execution_id: str) -> Any:
        given = MORE.get(name, (execution_id,) if name == "diff" else ())
        asked = getattr(getattr(client.service, room), name)(execution_id, *given)
        if inspect.isasyncgen(asked):
            return [each async for each in asked]
        return await asked

    await assert_waits(tmp_path, may_write, ask)


async def test_a_comparison_waits_for_the_second_execution(
    tmp_path: Path, may_write: asyncio.Event
) -> None:
    async def ask(client: InProcessClient, execution_id: str) -> Any:
        executions = client.service.executions
        (ended,) = await executions.list()
        created = await executions.create(ended.plan_id)
        return await executions.diff(created.execution_id, execution_id)

    await assert_waits(tmp_path, may_write, ask)


@pytest.mark.parametrize("with_result", [True, False])
async def test_the_reply_of_a_webhook_waits(
    tmp_path: Path, may_write: asyncio.Event, with_result: bool
) -> None:
    answer = await assert_waits(
        tmp_path,
        may_write,
        lambda client, own: wait_for_answer(client.service, own, with_result=with_result),
    )
    assert answer.status == (200 if with_result else 202)


async def test_the_outcome_for_a_client_of_mcp_waits(
    tmp_path: Path, may_write: asyncio.Event
) -> None:
    outcome = await assert_waits(
        tmp_path, may_write, lambda client, own: outcome_of(client.service, own)
    )
    assert outcome["status"] == "completed"


def test_the_ways_of_asking_are_all_known() -> None:
    assert len(ROUTES) >= 11
    reads = {name for room, name in READS if room == "executions"}
    assert {"document", "document_pieces", "events", "get", "requests", "state", "wait"} <= reads
