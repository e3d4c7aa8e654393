"""Budgets of runs from Python, with the configured providers and a model that is scripted at protocol level."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.errors import Conflict
from tests.support.cli.command_process import isolated_directory
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    ReplyStep,
    TextReply,
    ToolCallReply,
    prompt_of,
    schema_of,
    tool_results_of,
)
from tests.support.llm.planner_replies import planner_reply, reply_node

MODEL = {"provider": "openai", "model": "gpt-4o-mini"}
USED = (150, 50)
"""The tokens of each reply, in and out."""


class Model:
    """Replies to everything, and counts the calls that are made at the same time."""

    def __init__(self) -> None:
        self.active = self.most_active = 0

    async def __call__(self, body: dict[str, Any]) -> ReplyStep:
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        await asyncio.sleep(0)
        self.active -= 1
        if schema_of(body) is not None or "planner" in prompt_of(body).lower():
            return TextReply(planner_reply(reply_node("only")), usage=USED)
        if "Lead" in prompt_of(body) and not tool_results_of(body):
            calls = [("delegate_clerk", {"task": f"Page {number}"}) for number in range(4)]
            return ToolCallReply(calls, usage=USED)
        return TextReply("fine", usage=USED)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return tmp_path


def wide(count: int, **data: Any) -> dict[str, Any]:
    nodes = [
        {"id": f"n{number}", "type": "llm", "data": {"prompt": "Go", **MODEL, **data}}
        for number in range(count)
    ]
    return {"nodes": nodes, "edges": []}


def team() -> dict[str, Any]:
    clerk = {"userPrompt": "Clerk: {{ input }}", **MODEL}
    return {
        "nodes": [
            {"id": "clerk", "type": "agent", "name": "clerk", "data": clerk},
            {"id": "lead", "type": "agent", "data": {"userPrompt": "Lead", **MODEL}},
        ],
        "edges": [
            {
                "source": "clerk",
                "sourceHandle": "tools-out",
                "target": "lead",
                "targetHandle": "tools",
                "data": {"channel": "link"},
            }
        ],
    }


def start(
    graph: Any, budget: Any, llm: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, **more: Any
) -> planwave.Run:
    monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
    options = planwave.RunOptions(budget=budget)
    return planwave.run(graph, options=options, check=False, **more)


def request_of(result: planwave.RunResult) -> tuple[str, Any]:
    (request,) = result.requests
    asked: Any = request.request
    assert (asked["kind"], request.path) == ("budget", None)
    return request.request_id, asked


async def test_fifty_calls_at_the_edge_of_a_budget_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model()
    async with FakeLLMServer(reply_to=model) as llm:
        # 50 calls use 10,000 tokens; each reserves 4,096 for its reply, and a few for its prompt
        result = await start(wide(50), {"tokens": 14_250}, llm, monkeypatch)
        assert len(llm.requests) == 50
    assert (result.status, result.document["budget"]["used"]) == ("completed", {"tokens": 10_000})
    assert model.most_active <= 3


async def test_one_call_more_than_the_budget_has_asks_and_a_small_raise_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeLLMServer(reply_to=Model()) as llm:
        result = await start(wide(50), {"calls": 48}, llm, monkeypatch)
        for used, limit in ((48, 49), (49, 60)):
            request_id, asked = request_of(result)
            assert asked["used"]["calls"] == len(llm.requests) == used
            answer = {"decision": "raise", "value": {"calls": limit}}
            result = await result.run.answer(request_id, answer)
        assert (result.status, len(llm.requests)) == ("completed", 50)


async def test_agents_share_the_budget_with_those_that_they_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with FakeLLMServer(reply_to=Model()) as llm:
        result = await start(team(), {"calls": 3}, llm, monkeypatch)
        request_id, asked = request_of(result)
        assert len(llm.requests) == 3  # that of the lead, and two of the four of its clerk
        assert [path.startswith("lead[delegate_clerk") for path in asked["waiting"]] == [True, True]
        stopped = await result.run.answer(request_id, {"decision": "stop"})
    assert (stopped.status, len(llm.requests)) == ("cancelled", 3)


async def test_a_model_without_a_price_counts_nothing_and_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    async with FakeLLMServer(reply_to=Model()) as llm:
        table = f'[providers.box]\nbase_url = "{llm.openai_url}"\nmodels = ["odd"]\n'
        (directory / "planwave.toml").write_text(table, "utf-8")
        monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")
        graph = wide(3, provider="box", model="odd")
        run = start(graph, {"usd": 0.000_001}, llm, monkeypatch)
        events = [event async for event in run]
        result = await run
    assert (result.status, result.document["budget"]["used"]) == ("completed", {"usd": 0})
    warnings = [event.data["message"] for event in events if event.type == "node.log"]
    assert warnings == ["the price of box (odd) is not known: its calls count as $0 in the budget"]


async def test_planning_inside_a_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = {
        "nodes": [{"id": "p", "type": "planner", "data": {"goal": "Do it.", **MODEL}}],
        "edges": [],
    }
    async with FakeLLMServer(reply_to=Model()) as llm:
        result = await start(graph, {"calls": 1}, llm, monkeypatch)
        request_id, asked = request_of(result)
        assert (len(llm.requests), asked["used"], asked["waiting"]) == (
            1,
            {"calls": 1},
            ["p[plan]/only"],
        )
        answer = {"decision": "raise", "value": {"calls": 2}}
        result = await result.run.answer(request_id, answer)
    assert (result.status, len(llm.requests), result.usage.calls) == ("completed", 2, 2)


async def test_an_exhausted_run_goes_on_in_another_process_where_it_was(
    monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    async with FakeLLMServer(reply_to=Model()) as llm:
        store = directory / "runs"
        paused = await start(wide(3), {"calls": 2}, llm, monkeypatch, store=store)
        request_id, _ = request_of(paused)
        opened = planwave.open(store, paused.execution_id, check=False)
        with pytest.raises(Conflict, match="waits for an answer"):
            await opened.resume()
        answer = {"decision": "raise", "value": {"calls": 3}}
        result = await opened.answer(request_id, answer)
    assert (result.status, len(llm.requests)) == ("completed", 3)
    assert result.document["budget"]["used"] == {"calls": 3}


async def test_the_budget_reserves_a_write_to_the_cache_and_counts_what_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = TextReply("fine", usage=(10_000, 10), cached=(9_000, 0))
    luna = {"model": "gpt-5.6-luna", "prompt": "word " * 8_000, "maxTokens": 10}
    fresh, written, reported = 0.002_012, 0.002_512, 0.000_392  # $0.2, $0.25 and $0.02 a million
    async with FakeLLMServer(step, step) as llm:
        result = await start(wide(1, **luna), {"usd": (fresh + written) / 2}, llm, monkeypatch)
        request_id, asked = request_of(result)
        assert (len(llm.requests), asked["used"]) == (0, {"usd": 0})
        answer = {"decision": "raise", "value": {"usd": written}}
        result = await result.run.answer(request_id, answer)
    assert (result.status, len(llm.requests)) == ("completed", 1)
    assert result.document["budget"]["used"] == {"usd": reported}
