"""An execution that failed and delivered results says so to everybody who asks for it, with what is missing and why."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

import planwave
from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.interop.mcp_server.outcomes import outcome_of, text_of
from planwave.interop.mcp_server.results import outcome_result
from planwave.service.notifications.messages import message_of
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.notifications import NotificationRecord
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies, execute_goal

FAILS = "{{ 1 / 0 }}"
STEPS = {"summary": "Lisbon is on the sea.", "prices": FAILS, "report": "{{ input }}"}
"""Each step behind the entry, but for the report, which is behind the prices."""
ERROR = "division by zero"


def flow(entry: str, **data: Any) -> dict[str, Any]:
    nodes = [{"id": "ask", "type": entry, "data": data}]
    nodes += [
        {"id": own, "type": "text", "name": own.title(), "data": {"text": text}}
        for own, text in STEPS.items()
    ]
    pairs = [("ask", "summary"), ("ask", "prices"), ("prices", "report")]
    flow_edge = {"channel": "flow"}
    return {
        "nodes": nodes,
        "edges": [{"source": a, "target": b, "data": flow_edge} for a, b in pairs],
    }


class Asked(NamedTuple):
    """A caller, and the service that it asks."""

    calls: httpx2.AsyncClient
    plan_id: str
    headers: dict[str, str]

    async def document(self, execution_id: str, part: str = "") -> dict[str, Any]:
        await self.calls.get(f"/api/executions/{execution_id}/events")  # until the end
        return (await self.calls.get(f"/api/executions/{execution_id}{part}")).json()


@asynccontextmanager
async def service_with(
    directory: Path, graph: dict[str, Any], scopes: list[str] | None = None
) -> AsyncGenerator[Asked]:
    settings = Settings(storage_dir=directory, limits=NO_RATE_LIMITS, unsigned_webhooks=True)
    async with asgi_client(create_app(settings, open_service)) as calls:
        made = (await calls.post("/api/flows", json={"name": "trip", "graph": graph})).json()
        plan_id, headers = made["plan_id"], dict[str, str]()
        if graph["nodes"][0]["type"] == "start":
            path = f"/api/flows/{plan_id}/publication"
            assert (await calls.put(path, json={"model": True})).is_success
        if scopes is not None:
            body = {"name": "n", "scopes": scopes, "flows": [plan_id]}
            token = (await calls.post("/api/tokens", json=body)).json()["token"]
            headers = {"authorization": f"Bearer {token}"}
        yield Asked(calls, plan_id, headers)


@pytest.mark.parametrize("part", ["", "/result", "/document"])
async def test_status_result_and_document_name_what_is_missing_and_why(
    tmp_path: Path, part: str
) -> None:
    async with service_with(tmp_path, flow("start")) as asked:
        body = {"flow": asked.plan_id, "inputs": {"ask": {"output": "x"}}, "start": True}
        execution_id = (await asked.calls.post("/api/execute", json=body)).json()["execution_id"]
        shown = await asked.document(execution_id, part)
        assert (shown["status"], shown["outcome"]) == ("failed", "partial")
        [missing] = shown["missing"]
        cause = missing.pop("cause")
        assert missing == {"path": "report", "name": "Report", "status": "blocked"}
        assert cause["node"] == "prices"
        assert ERROR in cause["error"]["message"]
        if part:
            assert shown["result"] == {"nodes": ["summary"], "value": STEPS["summary"]}
        listed = (await asked.calls.get("/api/executions?status=failed")).json()["executions"]
        assert [each["outcome"] for each in listed] == ["partial"]


async def test_what_completed_has_no_outcome_beside_its_status(tmp_path: Path) -> None:
    graph = flow("start")
    graph["nodes"] = [each for each in graph["nodes"] if each["id"] in ("ask", "summary")]
    graph["edges"] = graph["edges"][:1]
    async with service_with(tmp_path, graph) as asked:
        body = {"flow": asked.plan_id, "inputs": {"ask": {"output": "x"}}, "start": True}
        execution_id = (await asked.calls.post("/api/execute", json=body)).json()["execution_id"]
        shown = await asked.document(execution_id)
        assert (shown["status"], shown["outcome"], shown["missing"]) == ("completed", None, [])


async def completion(asked: Asked) -> tuple[int, dict[str, Any]]:
    body = {"model": "trip", "messages": [{"role": "user", "content": "x"}]}
    answer = await asked.calls.post("/v1/chat/completions", json=body, headers=asked.headers)
    return answer.status_code, answer.json()["error"]


async def streamed_completion(asked: Asked) -> tuple[int, dict[str, Any]]:
    body = {"model": "trip", "messages": [{"role": "user", "content": "x"}], "stream": True}
    answer = await asked.calls.post("/v1/chat/completions", json=body, headers=asked.headers)
    assert answer.status_code == 200
    lines = [each for each in answer.text.splitlines() if each.startswith("data: {")]
    return 422, json.loads(lines[-1].removeprefix("data: "))["error"]


async def response(asked: Asked) -> tuple[int, dict[str, Any]]:
    body = {"model": "trip", "input": "x"}
    answer = await asked.calls.post("/v1/responses", json=body, headers=asked.headers)
    return answer.status_code, answer.json()["error"]


async def streamed_response(asked: Asked) -> tuple[int, dict[str, Any]]:
    body = {"model": "trip", "input": "x", "stream": True}
    answer = await asked.calls.post("/v1/responses", json=body, headers=asked.headers)
    lines = [each for each in answer.text.splitlines() if each.startswith("data: {")]
    return 422, json.loads(lines[-1].removeprefix("data: "))["response"]["error"]


@pytest.mark.parametrize("scopes", [None, ["chat"]], ids=["operator", "without read"])
@pytest.mark.parametrize(
    "ask", [completion, streamed_completion, response, streamed_response], ids=lambda f: f.__name__
)
async def test_an_answer_of_a_model_that_failed_names_its_parts_in_the_error(
    tmp_path: Path,
    ask: Callable[[Asked], Awaitable[tuple[int, dict[str, Any]]]],
    scopes: list[str] | None,
) -> None:
    async with service_with(tmp_path, flow("start"), scopes) as asked:
        status, error = await ask(asked)
        assert status == 422
        assert error["message"].endswith("; delivered: summary; missing: report")
        assert error["outcome"] == "partial"
        assert error["outputs"] == {"summary": STEPS["summary"]}
        [missing] = error["missing"]
        assert (missing["path"], missing["status"]) == ("report", "blocked")
        sees_causes = scopes is None
        assert ("cause" in missing) is sees_causes
        assert (ERROR in str(error)) is sees_causes
        assert ("prices" in str(error)) is sees_causes


async def test_the_sender_of_a_webhook_that_waits_gets_what_was_delivered_but_no_reason(
    tmp_path: Path,
) -> None:
    async with service_with(tmp_path, flow("webhook", auth="none", secrets=[])) as asked:
        hook = (await asked.calls.post("/api/triggers", json={"plan_id": asked.plan_id})).json()
        answer = await asked.calls.post(f"/hooks/{hook['trigger_id']}?wait=30", json={})
        told = answer.json()
        assert answer.status_code == 500
        assert told.pop("execution_id")
        assert told == {
            "status": "failed",
            "outcome": "partial",
            "outputs": {"summary": STEPS["summary"]},
            "missing": [{"path": "report", "name": "Report", "status": "blocked"}],
        }


GRAPH = make_graph(
    *(text_node(own, text) for own, text in STEPS.items()), edges=[("prices", "report")]
)


async def test_notifications_and_mcp_name_what_was_delivered_and_what_is_missing() -> None:
    parts = dependencies(GRAPH)
    async with Service(parts) as service:
        record = await execute_goal(service)
        await service.executions.wait(record.execution_id)
        state = await service.executions.state(record.execution_id)
        at = state.created_at or ""
        notice = NotificationRecord(
            "n", "t", record.execution_id, state.last_seq, "execution.failed", at, at, at
        )
        told = json.loads(await message_of(parts.store, notice, 10_000) or "{}")["data"]
        left_out = json.loads(await message_of(parts.store, notice, 10) or "{}")["data"]
        outcome = await outcome_of(service, record.execution_id)
    assert (told["status"], told["outcome"]) == ("failed", "partial")
    assert told["outputs"] == {"summary": STEPS["summary"]}
    assert [each["path"] for each in told["missing"]] == ["report"]
    assert told["missing"][0]["cause"]["node"] == "prices"
    assert (left_out["outcome"], left_out["outputs"], left_out["outputs_left_out"]) == (
        "partial",
        None,
        True,
    )

    assert (outcome["outcome"], outcome["result"]) == ("partial", STEPS["summary"])
    assert outcome_result(outcome).is_error
    text = text_of(outcome)
    assert text.startswith(f"{STEPS['summary']}\nstatus: failed\n")
    assert "missing: the result of 'report' (blocked, because 'prices' failed: " in text


def test_the_python_library_has_the_outcome_and_what_is_missing() -> None:
    with pytest.raises(planwave.ExecutionFailed) as failure:
        planwave.run_sync(GRAPH.to_document())
    result = failure.value.result
    assert (result.status, result.outcome, result.output) == ("failed", "partial", STEPS["summary"])
    [missing] = result.missing
    assert (missing.path, missing.status, missing.cause) == ("report", "blocked", "prices")
    assert ERROR in missing.message
