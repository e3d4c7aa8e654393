"""Steps that call a tool, through the HTTP API: checked, run with a real server and a flow, answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import McpServerSettings, Settings
from tests.support.mcp.servers import Marks, scripted_program
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.server.in_process_client import NO_RATE_LIMITS, asgi_client


@asynccontextmanager
async def served(path: Path, marks: Marks) -> AsyncIterator[httpx2.AsyncClient]:
    settings = Settings(
        storage_dir=path,
        mcp={"box": McpServerSettings(**scripted_program(marks))},
        limits=NO_RATE_LIMITS,
    )
    async with asgi_client(create_app(settings, open_service)) as client:
        yield client


def graph(*steps: dict[str, Any]) -> dict[str, Any]:
    """Return a graph of a start node and steps that call tools, one after the other."""
    nodes = [node_document("start", "start", initialInput={"text": "hello"})]
    nodes += [node_document(f"s{i}", "call_tool", **data) for i, data in enumerate(steps)]
    ids = [each["id"] for each in nodes]
    return graph_document(*nodes, edges=[*pairwise(ids)])


async def started(client: httpx2.AsyncClient, document: dict[str, Any]) -> str:
    created = await client.post("/api/execute", json={"graph": document, "start": True})
    assert created.status_code == 202, created.text
    return f"/api/executions/{created.json()['execution_id']}"


async def ended(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    await client.get(f"{path}/events")
    document: dict[str, Any] = (await client.get(f"{path}/document")).json()
    return document


async def question(client: httpx2.AsyncClient, path: str) -> dict[str, Any]:
    """Wait for the one open request."""
    found: list[Any] = []
    while not found:
        await asyncio.sleep(0.01)
        found = (await client.get(f"{path}/requests")).json()["requests"]
    return dict(found[0])


SAVE = {"server": "box", "tool": "save", "arguments": {"text": "{{ input.text }}"}}


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_step_calls_a_server_as_the_person_who_was_asked_allows(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks")
    async with served(tmp_path / "storage", marks) as client:
        path = await started(client, graph(SAVE))
        request = await question(client, path)
        assert request["request"]["value"] == {"text": "hello"}
        assert request["request"]["tool"]["server"] == "box"
        answer = {"decision": "approve", "value": {"text": "changed"}}
        answered = await client.post(f"{path}/requests/{request['request_id']}", json=answer)
        assert answered.status_code == 200, answered.text
        document = await ended(client, path)
        (node,) = [each for each in document["nodes"] if each["path"] == "s0"]
        assert node["outputs"]["output"]["value"] == "saved changed"
        (call,) = node["calls"]
        assert (call["kind"], call["name"], call["result"]) == ("mcp", "box_save", "saved changed")
        path = await started(client, graph(SAVE))
        request = await question(client, path)
        answer = {"decision": "reject", "note": "Not this one."}
        await client.post(f"{path}/requests/{request['request_id']}", json=answer)
        document = await ended(client, path)
        assert (document["status"], document["error"]["code"]) == ("failed", "rejected")
    assert [line.split()[1] for line in marks.lines if line.startswith("save ")] == ["changed"]
    await marks.all_gone()


async def test_a_step_calls_a_published_flow(tmp_path: Path) -> None:
    greet = graph_document(
        node_document("start", "start"),
        node_document("say", "text", text="Hi, {{ input }}!"),
        edges=[("start", "say")],
    )
    step = {"flow": {"name": "Greet"}, "arguments": {"input": "{{ input.text }}"}}
    async with served(tmp_path / "storage", Marks(tmp_path / "marks")) as client:
        refused = await client.post("/api/check", json={"graph": graph(step)})
        assert [each["code"] for each in refused.json()["diagnostics"]] == ["unknown-flow"]
        saved = await client.post("/api/flows", json={"name": "Greet", "graph": greet})
        assert saved.status_code == 201, saved.text
        document = await ended(client, await started(client, graph(step)))
        (node,) = [each for each in document["nodes"] if each["path"] == "s0"]
        assert node["outputs"]["output"]["value"] == "Hi, hello!"


@pytest.mark.parametrize(
    ("step", "code", "pointer"),
    [
        ({"tool": "no_such_tool"}, "unknown-tool", "tool"),
        ({"server": "bx", "tool": "save"}, "unknown-mcp-server", "server"),
        ({"server": "{{ input }}", "tool": "save"}, "policy-field", "server"),
        ({}, "missing-required-input", "tool"),
    ],
)
async def test_what_is_wrong_with_a_step_is_found_before_it_runs(
    tmp_path: Path, step: dict[str, Any], code: str, pointer: str
) -> None:
    async with served(tmp_path / "storage", Marks(tmp_path / "marks")) as client:
        for route in ("/api/check", "/api/execute"):
            answer = (await client.post(route, json={"graph": graph(step)})).json()
            found = answer.get("diagnostics") or answer["issues"]
            issues = {each["code"]: each["pointer"].removeprefix("/graph") for each in found}
            assert issues[code] == f"/nodes/1/data/{pointer}", (route, answer)
