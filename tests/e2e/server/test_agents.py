"""Agents with tools through the whole service: the real SDKs, real HTTP, and a person in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import Settings
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    ReplyStep,
    TextReply,
    ToolCallReply,
    tool_results_of,
    tools_of,
)
from tests.support.outbound.fake_network import response
from tests.support.outbound.loopback_server import loopback_server
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS

CREATED = response(b'{"ticket": 7}', kind="application/json")
_PATIENCE_S = 30.0
PROVIDERS = ["openai", "anthropic"]
OPEN_TICKET = ToolCallReply([("open_ticket", {"text": "Broken"})])


def graph_for(address: str, provider: str) -> dict[str, Any]:
    """Return an agent with a tool that writes to a service, which a person approves."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tool = {
        "name": "open_ticket",
        "description": "Open a ticket.",
        "method": "POST",
        "url": f"http://{address}/tickets",
        "parameters": schema,
    }
    return {
        "nodes": [
            {"id": "tickets", "type": "http_tool", "data": tool},
            {
                "id": "support",
                "type": "agent",
                "data": {"userPrompt": "Help.", "provider": provider, "approval": "write"},
            },
        ],
        "edges": [
            {
                "source": "tickets",
                "sourceHandle": "tools",
                "target": "support",
                "targetHandle": "tools",
                "data": {"channel": "link"},
            }
        ],
    }


class Run:
    """An execution of the graph, over HTTP."""

    def __init__(self, client: httpx2.AsyncClient, llm: FakeLLMServer, execution_id: str) -> None:
        self._client, self.llm, self.execution_id = client, llm, execution_id

    async def get(self, path: str) -> Any:
        return (await self._client.get(f"/api/executions/{self.execution_id}{path}")).json()

    async def post(self, path: str, body: Any, *, status: int = 200) -> Any:
        path = f"/api/executions/{self.execution_id}{path}"
        answer = await self._client.post(path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def request(self) -> dict[str, Any]:
        """Wait until it asks a person; return the only request."""
        async with asyncio.timeout(_PATIENCE_S):
            while not (found := (await self.get("/requests"))["requests"]):  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.01)
        (request,) = found
        return request

    async def ended(self) -> dict[str, Any]:
        """Wait until it has ended; return its document."""
        await self._client.get(f"/api/executions/{self.execution_id}/events")
        document: dict[str, Any] = await self.get("/document")
        return document

    async def answer(self, request: dict[str, Any], **answer: Any) -> dict[str, Any]:
        """Answer a request; return the document of the ended execution."""
        await self.post(f"/requests/{request['request_id']}", answer)
        return await self.ended()


@asynccontextmanager
async def running(
    provider: str, steps: Sequence[ReplyStep], path: Path, *, service_answer: bytes | None = CREATED
) -> AsyncIterator[Run]:
    async with FakeLLMServer() as llm, loopback_server(service_answer) as address:
        llm.add(*steps)
        settings = Settings(
            storage_dir=path,
            allowed_outbound=[address],
            openai_api_key="sk-test",
            openai_base_url=llm.openai_url,
            anthropic_api_key="sk-ant-test",
            anthropic_base_url=llm.anthropic_url,
            limits=NO_RATE_LIMITS,  # the tests look often
        )
        async with asgi_client(create_app(settings, open_service)) as client:
            body = {"graph": graph_for(address, provider), "start": True}
            created = await client.post("/api/execute", json=body)
            assert created.status_code == 202, created.text
            yield Run(client, llm, created.json()["execution_id"])


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_person_changes_a_call_and_approves_it(provider: str, tmp_path: Path) -> None:
    steps = OPEN_TICKET, TextReply("Ticket 7 is open.")
    async with running(provider, steps, tmp_path) as run:
        request = await run.request()
        assert request["request"]["value"] == {"text": "Broken"}
        assert request["request"]["tool"]["name"] == "open_ticket"
        document = await run.answer(request, decision="approve", value={"text": "Cracked"})
        first, second = run.llm.requests
    assert document["node_results"]["support"] == "Ticket 7 is open."
    assert list(tools_of(first.body)) == ["open_ticket"]
    (result,) = tool_results_of(second.body).values()
    assert '{"text":"Cracked"}' in result
    assert '{"ticket":7}' in result
    (support,) = (node for node in document["nodes"] if node["path"] == "support")
    kinds = [(call["kind"], call["name"]) for call in support["calls"]]
    assert [kind for kind, _ in kinds] == ["model", "http", "model"]
    assert kinds[1] == ("http", "open_ticket")
    assert support["calls"][1]["result"] == {"ticket": 7}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_rejection_with_a_note_reaches_the_model(provider: str, tmp_path: Path) -> None:
    steps = OPEN_TICKET, TextReply("I did not open one.")
    async with running(provider, steps, tmp_path) as run:
        document = await run.answer(await run.request(), decision="reject", note="We know it.")
        (result,) = tool_results_of(run.llm.requests[-1].body).values()
    assert document["node_results"]["support"] == "I did not open one."
    assert "They wrote: We know it." in result


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_error_of_the_service_is_handled_by_the_model(provider: str, tmp_path: Path) -> None:
    steps = OPEN_TICKET, TextReply("The ticket system is down.")
    down = response(b"maintenance", status=503)
    async with running(provider, steps, tmp_path, service_answer=down) as run:
        document = await run.answer(await run.request(), decision="approve")
        (result,) = tool_results_of(run.llm.requests[-1].body).values()
    assert document["node_results"]["support"] == "The ticket system is down."
    assert "503" in result


async def test_long_result_is_cut_in_the_event_and_read_whole_by_its_number(tmp_path: Path) -> None:
    steps = OPEN_TICKET, TextReply("Done.")
    long = response(b'{"log": "' + b"x" * 20_000 + b'"}', kind="application/json")
    async with running("openai", steps, tmp_path, service_answer=long) as run:
        await run.answer(await run.request(), decision="approve")
        events = (await run.get("/events?format=json"))["events"]
        (ended,) = (
            each["data"]["data"]
            for each in events
            if each["data"].get("event_type") == "tool_call_end"
        )
        assert len(ended["result"]) == 16_384
        assert ended["truncated"]
        assert ended["chars"] == 20_010
        calls = (await run.get(f"/nodes/support?call={ended['ordinal']}"))["calls"]
        shown = (await run.get("/nodes/support"))["calls"]
    assert [call["result"] for call in calls if call["kind"] == "http"] == [{"log": "x" * 20_000}]
    assert [call["result_bytes"] for call in shown if call["kind"] == "http"] == [20_010]


async def test_changed_arguments_have_to_fit_the_tool(tmp_path: Path) -> None:
    async with running("openai", [OPEN_TICKET, TextReply("Done.")], tmp_path) as run:
        request = await run.request()
        changed = {"decision": "approve", "value": {"text": 1}}
        refused = await run.post(f"/requests/{request['request_id']}", changed, status=422)
        assert refused["issues"][0]["pointer"] == "/value/text"
        document = await run.answer(request, decision="approve")
    assert document["status"] == "completed"


async def test_execution_is_cancelled_in_the_middle_of_a_call(tmp_path: Path) -> None:
    async with running("openai", [OPEN_TICKET], tmp_path, service_answer=None) as run:
        request = await run.request()
        await run.post(f"/requests/{request['request_id']}", {"decision": "approve"})
        async with asyncio.timeout(_PATIENCE_S):
            while "tool_call_start" not in str(await run.get("/events?format=json")):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await run.post("/cancel", {})
        document = await run.ended()
    assert document["status"] == "cancelled"
    assert len(run.llm.requests) == 1
