"""The planning loop over real HTTP and the real SDKs, against a scripted server on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.errors import PlanInvalid, ProviderError
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.planner import Planner
from planwave.planner.progress import PlanProgress
from planwave.providers.client import ModelClient
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Limits, ProviderSettings, Settings
from tests.support.llm.fake_llm_server import ErrorReply, FakeLLMServer, TextReply, schema_of
from tests.support.llm.planner_replies import (
    DIAMOND_REPLY,
    planner_reply,
    reply_edge,
    reply_node,
    reply_step,
    step_reply,
)

CYCLE = planner_reply(
    reply_node("a"), reply_node("b"), edges=[reply_edge("a", "b"), reply_edge("b", "a")]
)
PROVIDERS = ("openai", "anthropic", "mine")


@pytest.fixture(autouse=True)
def _no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def planning(llm: FakeLLMServer, **limits: Any) -> AsyncIterator[Planner]:
    settings = Settings(
        OPENAI_API_KEY="sk-test",  # type: ignore[call-arg]
        OPENAI_BASE_URL=llm.openai_url,
        ANTHROPIC_API_KEY="sk-test",
        ANTHROPIC_BASE_URL=llm.anthropic_url,
        providers={"mine": ProviderSettings(base_url=llm.openai_url, models=["m-1"])},
        limits=Limits(**limits),
    )
    providers = ProviderRegistry(settings)
    models = ModelClient(settings, providers)
    try:
        yield Planner(models, providers, Registry(LIBRARY, providers=providers), settings.limits)
    finally:
        await models.close()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_faulty_plan_is_repaired_with_every_provider(provider: str) -> None:
    heard: list[PlanProgress] = []
    async with (
        FakeLLMServer(TextReply(CYCLE, chunks=5), TextReply(DIAMOND_REPLY, chunks=20)) as llm,
        planning(llm) as planner,
    ):
        plan = await planner.create_plan("Do it", provider=provider, on_progress=heard.append)
        first, second = llm.requests
    assert [n.id for n in plan.graph.nodes] == ["a", "b", "c", "d"]
    assert all(n.data["provider"] == provider for n in plan.graph.nodes)
    assert [len(a["diagnostics"]) for a in plan.attempts] == [1, 0]
    assert "flow-cycle" not in str(first.body)
    assert "[flow-cycle]" in str(second.body)
    kinds = [p.kind for p in heard if p.kind != "delta"]
    assert kinds.count("repair") == 1
    last = kinds[kinds.index("repair") + 1 :]
    assert last == ["title", *["node"] * 4, *["edge"] * 4]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_steps_are_asked_for_and_reported_with_their_edges(provider: str) -> None:
    ghost = step_reply(reply_step("a"), reply_step("b", "gost"))
    steps = step_reply(reply_step("a"), reply_step("b", "a"), reply_step("c", "a", "b"))
    heard: list[PlanProgress] = []
    async with (
        FakeLLMServer(TextReply(ghost), TextReply(steps, chunks=40)) as llm,
        planning(llm) as planner,
    ):
        plan = await planner.create_plan("Do it", provider=provider, on_progress=heard.append)
        first, second = llm.requests
    assert '"depends_on"' in json.dumps(schema_of(first.body))
    assert "/steps/1/depends_on/0" in str(second.body)
    ends = [("a", "b"), ("a", "c"), ("b", "c")]
    assert [(e.source, e.target) for e in plan.graph.edges] == ends
    kinds = [p.kind for p in heard if p.kind != "delta"]
    last = kinds[kinds.index("repair") + 1 :]
    assert last == ["title", "node", "node", "edge", "node", "edge", "edge"]


async def test_unrepairable_model_is_asked_three_times() -> None:
    async with FakeLLMServer(reply_to=lambda _: TextReply(CYCLE)) as llm, planning(llm) as planner:
        with pytest.raises(PlanInvalid) as caught:
            await planner.create_plan("Do it", provider="openai")
        assert len(llm.requests) == 3
    assert [a["reply"] for a in caught.value.attempts] == [CYCLE] * 3
    assert [d.code for d in caught.value.diagnostics] == ["flow-cycle"]


async def test_truncated_reply_is_requested_again_with_the_reason() -> None:
    cut = TextReply(DIAMOND_REPLY[:60], finish="length", usage=(20, 300))
    async with FakeLLMServer(cut, TextReply(DIAMOND_REPLY)) as llm, planning(llm) as planner:
        plan = await planner.create_plan("Do it", provider="anthropic")
        first, second = llm.requests
    assert plan.attempts[0]["finish_reason"] == "length"
    assert "finish_reason length" in str(second.body)
    assert second.body["max_tokens"] == first.body["max_tokens"], "the model's own limit stays"


async def test_oversized_reply_is_stopped_and_disconnected() -> None:
    flood = TextReply("x" * 400_000, chunks=400)
    async with (
        FakeLLMServer(flood, TextReply(DIAMOND_REPLY)) as llm,
        planning(llm, plan_bytes=4_096) as planner,
    ):
        plan = await planner.create_plan("Do it", provider="openai")
        assert len(llm.requests) == 2
    assert plan.attempts[0]["finish_reason"] == "plan_bytes"
    assert len(plan.attempts[0]["reply"]) < 40_000


async def test_refused_key_is_passed_on() -> None:
    async with FakeLLMServer(ErrorReply(401, "invalid_api_key")) as llm, planning(llm) as planner:
        with pytest.raises(ProviderError) as caught:
            await planner.create_plan("Do it", provider="openai")
        assert len(llm.requests) == 1
    assert caught.value.status == 401
