"""A process that ends between any two steps of a call of a tool, and another one that takes over."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest

import planwave
from planwave.bootstrap import open_models, open_providers
from planwave.errors import PlanwaveError
from planwave.nodes.agents.tool import Tool, ToolCallContext
from planwave.nodes.services import NodeServices
from planwave.providers.client import ModelClient
from planwave.settings import Settings
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    TextReply,
    ToolCallReply,
    tool_results_of,
)
from tests.support.nodes.agent_runs import Kit, agent_graph
from tests.support.nodes.nested_graphs import node_document, registry_with
from tests.support.recovery.crash_points import CrashPoint, HaltingProxy

ASKS_MODEL, CALLS_TOOL, ASKS_AGAIN = 0, 1, 2
"""The numbers of the calls of the agent."""


def model(body: dict[str, Any]) -> TextReply:
    """Call the tool, then end."""
    return TextReply("Done.") if tool_results_of(body) else ToolCallReply([("act", {})])


class TakenOver:
    """An execution whose process ends at a point, and the process that takes it over."""

    def __init__(self, effect: Any, llm: FakeLLMServer) -> None:
        self.keys: list[str] = []
        self._llm = llm
        self._store = MemoryStore()
        self._clients: list[ModelClient] = []
        said = {} if effect is None else {"effect": effect}
        tool = Tool("act", "Acts.", {"type": "object"}, self._act, **said)
        self._registry = registry_with(Kit([tool]))

    async def _act(self, arguments: Any, context: ToolCallContext) -> str:
        self.keys.append(context.idempotency_key)
        return f"acted {len(self.keys)} times"

    @property
    def requests(self) -> Counter[int]:
        """How often the model was asked, by the number of the call."""
        keys = [request.headers["idempotency-key"] for request in self._llm.requests]
        return Counter(int(key.rpartition("/")[2]) for key in keys)

    async def run(self, point: str) -> planwave.RunResult:
        """Run up to a point in one process, then in another to the end or to a question."""
        ending = HaltingProxy(self._store, CrashPoint.parse(point))
        agent = node_document("a", "agent", userPrompt="Go", provider="openai")
        run = planwave.run(
            agent_graph(agent),
            registry=self._registry,
            store=ending,
            services=self._services(ending),
            check=False,
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
                registry=self._registry,
                check=False,
            )
            result = await opened.resume()
            ending.is_released.set()
        for client in self._clients:
            await client.close()
        return result

    def _services(self, store: Any) -> NodeServices:
        settings = Settings(openai_api_key="sk-test", openai_base_url=self._llm.openai_url)
        providers, _ = open_providers(settings)
        self._clients.append(open_models(settings, providers, store))
        return NodeServices(self._clients[-1], providers, recorder=store)


BEFORE_THE_ACT = {
    "before:record:1:model": ASKS_MODEL,
    "after:record:1:model": None,
    "before:append:1:tool_call_start": None,
    "after:append:1:tool_call_start": None,
    "before:record:1:begun": None,
    "after:record:1:begun": None,
}
"""Points, and the model call that is paid for again because nobody knows its reply."""
AFTER_THE_RECORD = {
    "after:record:1:tool": None,
    "before:record:2:model": ASKS_AGAIN,
    "after:record:2:model": None,
}
BEGUN = {
    "before:append:1:tool_call_start",
    "after:append:1:tool_call_start",
    "after:record:1:begun",
    "before:record:1:tool",
}
"""Points at which it is stored that a call begins that must not act twice."""


def points(effect: str, *names: str) -> list[Any]:
    """Return those points that calls with an effect come to."""
    return [
        pytest.param(effect, name, id=f"{effect}-{name}")
        for name in names
        if not (effect == "read" and "start" in name) and not (effect != "once" and "begun" in name)
    ]


async def taken_over(effect: str | None, point: str) -> tuple[TakenOver, planwave.RunResult]:
    async with FakeLLMServer(reply_to=model) as llm:
        execution = TakenOver(effect, llm)
        return execution, await execution.run(point)


@pytest.mark.parametrize(
    ("effect", "point"),
    [
        case
        for effect in ("read", "write", "once")
        for case in points(effect, *BEFORE_THE_ACT, *AFTER_THE_RECORD)
        if effect != "once" or case.values[1] not in BEGUN
    ],
)
async def test_call_acts_once_where_it_is_known_whether_it_acted(effect: str, point: str) -> None:
    execution, result = await taken_over(effect, point)
    assert (result.text, len(execution.keys)) == ("Done.", 1)
    lost = {**BEFORE_THE_ACT, **AFTER_THE_RECORD}[point]
    assert execution.requests == Counter(
        [ASKS_MODEL, ASKS_AGAIN, *([] if lost is None else [lost])]
    )


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_call_whose_result_is_not_recorded_acts_again_with_the_same_key(effect: str) -> None:
    execution, result = await taken_over(effect, "before:record:1:tool")
    assert result.text == "Done."
    first, again = execution.keys
    assert first == again == f"{result.execution_id}/a/{CALLS_TOOL}"
    assert execution.requests == Counter([ASKS_MODEL, ASKS_AGAIN])


@pytest.mark.parametrize("effect", ["once", None])
@pytest.mark.parametrize("point", sorted(BEGUN))
async def test_person_is_asked_where_nobody_knows_whether_a_call_acted(
    point: str, effect: str | None
) -> None:
    execution, result = await taken_over(effect, point)
    (request,) = result.requests
    assert request.request["kind"] == "interrupted"
    has_acted = point == "before:record:1:tool"
    assert len(execution.keys) == has_acted
    assert execution.requests == Counter([ASKS_MODEL])
