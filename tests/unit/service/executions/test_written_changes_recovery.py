"""A process that ends anywhere between the request of a change and the change, and another one that takes over."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import planwave
from planwave.bootstrap import open_models, open_providers
from planwave.errors import PlanwaveError
from planwave.executor.options import RunOptions
from planwave.nodes.services import NodeServices
from planwave.planner.capabilities import PlanRules
from planwave.planner.planner import Planner
from planwave.providers.client import ModelClient
from planwave.settings import Limits, Settings
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_llm_server import FakeLLMServer
from tests.support.llm.fake_providers import library_registry
from tests.support.recovery.crash_points import CrashPoint, HaltingProxy

GRAPH = {
    "nodes": [
        {"id": "first", "type": "text", "data": {"text": "Begun."}},
        {"id": "old", "type": "fetch", "data": {"url": "http://127.0.0.1:9/"}},
        {"id": "last", "type": "text", "data": {"text": "Last: {{ input }}"}},
    ],
    "edges": [
        {"source": source, "target": target, "data": {"channel": "flow"}}
        for source, target in [("first", "old"), ("old", "last")]
    ],
}
OPTIONS = RunOptions(replan={"on_failure": True, "max": 1})
JUST_ENOUGH = replace(OPTIONS, budget={"calls": 3})
NEW = {"id": "new", "name": "New", "type": "text", "data": {"text": "Another way."}}


def change(target: str) -> str:
    operations = [
        {"op": "remove_node", "id": "old"},
        {"op": "add_node", "node": NEW},
        {"op": "add_edge", "edge": {"source": "first", "target": "new", "channel": "flow"}},
        {"op": "add_edge", "edge": {"source": "new", "target": target, "channel": "flow"}},
    ]
    return json.dumps({"answer": "Goes another way.", "operations": operations})


REPLIES = ["Let me think of another way.", change("nowhere-at-all"), change("last")]
"""What models write: no JSON at first, then an edge to no step, then the change."""


def reply(body: dict[str, Any]) -> str:
    text = json.dumps(body)
    if "nowhere-at-all" in text:
        return REPLIES[2]
    return REPLIES["think of another way" in text]


class TakenOver:
    """An execution whose process ends at a point, and the process that takes it over."""

    def __init__(self, llm: FakeLLMServer, options: RunOptions = OPTIONS) -> None:
        self._llm, self._store, self._options = llm, MemoryStore(), options
        self._clients: list[ModelClient] = []

    @property
    def asked(self) -> list[int]:
        """How often the model was asked, by the number of the call."""
        keys = [request.headers["idempotency-key"] for request in self._llm.requests]
        counts = Counter(int(key.rpartition("/")[2]) for key in keys)
        return [counts[each] for each in range(len(counts))]

    async def run(self, point: str) -> planwave.RunResult:
        """Run up to a point in one process, then in another to the end."""
        ending = HaltingProxy(self._store, CrashPoint.parse(point))
        run = planwave.run(
            GRAPH, store=ending, services=self._services(ending), check=False, options=self._options
        )

        async def go_on() -> None:
            with suppress(PlanwaveError):
                await run

        async with asyncio.TaskGroup() as group:
            group.create_task(go_on())
            await ending.has_ended.wait()
            opened = planwave.open(
                self._store,
                run.execution_id,
                services=self._services(self._store),
                check=False,
            )
            result = await opened.resume()
            ending.is_released.set()
        await self._close()
        return result

    async def run_alone(self) -> planwave.RunResult:
        """Run in one process to the end."""
        services = self._services(self._store)
        result = await planwave.run(
            GRAPH, store=self._store, services=services, check=False, options=self._options
        )
        await self._close()
        return result

    async def _close(self) -> None:
        for client in self._clients:
            await client.close()

    def _services(self, store: Any) -> NodeServices:
        settings = Settings(openai_api_key="sk-test", openai_base_url=self._llm.openai_url)
        providers, _ = open_providers(settings)
        self._clients.append(open_models(settings, providers, store))
        models, rules = self._clients[-1], PlanRules(node_types=["text", "fetch"])
        planner = Planner(models, providers, library_registry(providers), Limits(), rules)
        return NodeServices(models, providers, recorder=store, planner=planner)


POINTS = {
    "before:append:1:plan.requested": [1, 1, 1],
    "after:append:1:plan.requested": [1, 1, 1],
    "before:record:1:model": [2, 1, 1],  # nobody knows its reply
    "after:record:1:model": [1, 1, 1],
    "before:record:2:model": [1, 2, 1],
    "after:record:2:model": [1, 1, 1],
    "before:record:3:model": [1, 1, 2],
    "after:record:3:model": [1, 1, 1],
    "before:append:1:plan.revised": [1, 1, 1],
    "after:append:1:plan.revised": [1, 1, 1],
}
"""How often each call is made, by where the process ends."""
USAGE_POINTS = ["before:append:1:usage", "after:append:1:usage", "after:append:2:usage"]
"""Where, with a budget, no call has begun that the store does not know: it waits for what the one before has used."""


@pytest.mark.parametrize(
    ("point", "asked", "options"),
    [
        *((point, asked, OPTIONS) for point, asked in POINTS.items()),
        *((point, asked, JUST_ENOUGH) for point, asked in POINTS.items()),
        *((point, [1, 1, 1], JUST_ENOUGH) for point in USAGE_POINTS),
    ],
)
async def test_a_change_is_made_once_and_recorded_replies_are_paid_for_once(
    point: str, asked: list[int], options: RunOptions
) -> None:
    async with FakeLLMServer(reply_to=reply) as llm:
        taken = TakenOver(llm, options)
        result = await taken.run(point)
    document = result.document
    assert document["status"] == "completed", document["error"]
    assert [each["note"] for each in document["changes"]] == ["Goes another way."]
    assert document["node_results"]["last"] == "Last: Another way."
    assert taken.asked == asked
    assert document["usage"]["calls"] == 3


@pytest.mark.parametrize(
    ("budget", "calls"), [({"tokens": 500}, 0), ({"usd": 0.001}, 0), ({"calls": 2}, 2)]
)
async def test_a_call_that_the_budget_may_not_hold_is_not_made(
    budget: dict[str, float], calls: int
) -> None:
    async with FakeLLMServer(reply_to=reply) as llm:
        result = await TakenOver(llm, replace(OPTIONS, budget=budget)).run_alone()
    document = result.document
    assert len(llm.requests) == document["usage"]["calls"] == calls
    assert (document["status"], document["failures"]) == ("failed", ["old"])
    (refused,) = document["refused_changes"]
    assert refused["error"]["code"] == "budget-used"
