"""Agents with tools of a real MCP server, through the whole service and the real SDKs of the providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import McpServerSettings, Settings
from tests.support.llm.fake_llm_server import FakeLLMServer, ToolCallReply, tool_results_of
from tests.support.mcp.servers import HttpServer, Marks, http_server, scripted_program
from tests.support.polling import until
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS

TOLD_TO_ASK = "ask"


def graph_for(provider: str) -> dict[str, Any]:
    """Return an agent with two parts of one server: a person approves the calls of one of them."""
    servers = {
        "free": {"server": "box", "approval": "never"},
        "asking": {
            "server": "box",
            "approval": "always",
            "prefix": TOLD_TO_ASK,
            "allow": ["save"],
        },
    }
    data = {"userPrompt": "Go.", "provider": provider}
    return {
        "nodes": [
            *({"id": name, "type": "mcp_server", "data": each} for name, each in servers.items()),
            {"id": "agent", "type": "agent", "data": data},
        ],
        "edges": [
            {
                "source": name,
                "sourceHandle": "tools",
                "target": "agent",
                "targetHandle": "tools",
                "data": {"channel": "link"},
            }
            for name in servers
        ],
    }


@asynccontextmanager
async def served(
    llm: FakeLLMServer, table: dict[str, Any], path: Path
) -> AsyncIterator[httpx2.AsyncClient]:
    settings = Settings(
        storage_dir=path,
        openai_api_key="sk-test",
        openai_base_url=llm.openai_url,
        anthropic_api_key="sk-ant-test",
        anthropic_base_url=llm.anthropic_url,
        mcp={"box": McpServerSettings(**table)},
        limits=NO_RATE_LIMITS,
    )
    async with asgi_client(create_app(settings, open_service)) as client:
        yield client


async def answer_all(client: httpx2.AsyncClient, path: str, answers: dict[str, Any]) -> None:
    """Answer the open requests by the text that the tool would save; wait until all are there."""
    found: list[Any] = []
    while len(found) < len(answers):
        await asyncio.sleep(0.01)
        found = (await client.get(f"{path}/requests")).json()["requests"]
    for each in found:
        answer = answers[each["request"]["value"]["text"]]
        answered = await client.post(f"{path}/requests/{each['request_id']}", json=answer)
        assert answered.status_code == 200, answered.text


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("way", "provider"), [("stdio", "anthropic"), ("http", "openai")])
async def test_agent_uses_a_server_that_errs_asks_dies_and_is_cut_off(
    way: str, provider: str, tmp_path: Path
) -> None:
    marks, came_back = Marks(tmp_path / "marks"), asyncio.Event()
    steps = (
        ToolCallReply([("box_add", {"a": 1, "b": 2}), ("box_fail", {"text": "no such order"})]),
        ToolCallReply([(f"{TOLD_TO_ASK}_save", {"text": text}) for text in ("first", "second")]),
        ToolCallReply([("box_die", {"status": 3})]),
        ToolCallReply([("box_add", {"a": 2, "b": 2})], hold_until=came_back),
        ToolCallReply([("box_hang", {"text": "here"})]),
    )
    with http_server(marks) if way == "http" else nullcontext() as server:
        table = scripted_program(marks) if server is None else server.table
        async with FakeLLMServer() as llm, served(llm, table, tmp_path / "storage") as client:
            llm.add(*steps)
            body = {"graph": graph_for(provider), "start": True}
            created = await client.post("/api/execute", json=body)
            path = f"/api/executions/{created.json()['execution_id']}"
            answers = {
                "first": {"decision": "approve", "value": {"text": "changed"}},
                "second": {"decision": "reject", "note": "Not this one."},
            }
            await answer_all(client, path, answers)
            await until(lambda: len(llm.requests) == 4)
            if isinstance(server, HttpServer):
                server.stop()
                server.start()
            came_back.set()
            await marks.seen("hang here")
            assert (await client.post(f"{path}/cancel", json={})).status_code == 200
            await client.get(f"{path}/events")
            document = (await client.get(f"{path}/document")).json()
            told = [list(tool_results_of(each.body).values()) for each in llm.requests[1:]]
    assert told[0][0] == '{"result":3}'
    assert "no such order" in told[0][1]
    assert told[1][2].endswith("saved changed")
    assert told[1][3].rstrip('"}').endswith("They wrote: Not this one.")
    assert "ended during the call" in told[2][4]
    assert told[3][5] == '{"result":4}'
    assert document["status"] == "cancelled"
    assert [line for line in marks.lines if line.startswith("save ")] == [
        f"save changed {path.rpartition('/')[2]}/agent/4"
    ]
    await marks.all_gone()
