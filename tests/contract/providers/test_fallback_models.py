"""Models that are called where a call has failed for good, through the real SDKs and the engine."""

from __future__ import annotations

from typing import Any

import pytest

import planwave
from planwave.graph.model import Node
from planwave.graph.protocols import FlowContext
from planwave.nodes.library.agent import Agent
from planwave.nodes.services import NodeServices
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.client_harness import MODELS, ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, ReplyStep, TextReply
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

PROVIDERS = ListedProviders({name: [model] for name, model in MODELS.items()})
DATA = {"provider": "openai", "fallback": [{"provider": "anthropic"}, {"provider": "box"}]}
LIMITS = Limits(call_attempts=2)
BUSY = ErrorReply(529, "overloaded_error")


def context_of(harness: ModelClientHarness) -> FlowContext:
    services = NodeServices(harness.client, PROVIDERS, None)  # type: ignore[arg-type]
    return context_for(Node("a", "agent", "A"), services=services)


def models_called(harness: ModelClientHarness) -> list[str]:
    return [request.body["model"] for request in harness.llm.requests]


def start(harness: ModelClientHarness) -> planwave.Run:
    """Run one agent in the engine."""
    g = planwave.GraphBuilder()
    g.node("agent", id="a", user_prompt="Why oak?", data=DATA)
    services = NodeServices(harness.client, PROVIDERS)
    return planwave.run(g, services=services, check=False)


@pytest.mark.slow
async def test_the_next_provider_is_called_after_the_retries_of_the_first() -> None:
    async with model_client_harness(BUSY, BUSY, TextReply("Oak."), limits=LIMITS) as harness:
        run = start(harness)
        events = [event async for event in run]
        result = await run
        assert models_called(harness) == [MODELS["openai"]] * 2 + [MODELS["anthropic"]]
    assert (result.status, result.text) == ("completed", "Oak.")
    (node,) = [each for each in result.document["nodes"] if each["id"] == "a"]
    assert (node["provider"], node["model"]) == ("anthropic", MODELS["anthropic"])
    assert (node["prompt"]["provider"], node["usage"]["calls"]) == ("anthropic", 1)
    repeated, log = [event.data for event in events if event.type == "node.log"]
    assert "is repeated" in repeated["message"]
    assert log == {
        "message": f"openai ({MODELS['openai']}) failed (provider-overloaded); "
        f"anthropic ({MODELS['anthropic']}) is called next",
        "level": "warning",
    }


async def test_a_reply_cut_off_after_its_first_words_leaves_none_of_them_behind() -> None:
    cut = TextReply("Wrong words", chunks=4, cut_after=3)
    async with model_client_harness(cut, TextReply("Oak."), limits=LIMITS) as harness:
        run = start(harness)
        events = [event async for event in run]
        result = await run
        assert models_called(harness) == [MODELS["openai"], MODELS["anthropic"]]
    assert result.text == "Oak."
    shown, discards = "", 0
    for event in events:
        if event.type == "node.delta":
            assert event.data["offset"] == len(shown)
            shown += event.data["text"]
        elif event.data.get("event_type") == "text_discarded":
            assert shown
            shown, discards = "", discards + 1
    assert (shown, discards) == ("Oak.", 1)


async def test_an_error_of_the_request_is_final() -> None:
    async with model_client_harness(ErrorReply(400), limits=LIMITS) as harness:
        result = await start(harness)
        assert len(harness.llm.requests) == 1
    assert [failure.code for failure in result.failures] == ["bad-request"]


@pytest.mark.parametrize("ends_before", ["anthropic", "completion"])
async def test_after_a_crash_a_recorded_failure_is_final_too(ends_before: str) -> None:
    steps: list[ReplyStep] = [ErrorReply(401), TextReply("Oak.")]
    async with model_client_harness(*steps, recorder=MemoryStore(), limits=LIMITS) as harness:
        execution: Any = Agent().execute(DATA, make_inputs("Why oak?"), context_of(harness))
        async for item in execution:
            logged = getattr(item, "event_type", "") == "log"
            if ends_before == "anthropic" and logged:
                break  # the process ends after the failure, before the next call
        await execution.aclose()
        calls_before = len(harness.llm.requests)
        result, events = await result_and_events(
            Agent().execute(DATA, make_inputs("Why oak?"), context_of(harness))
        )
        assert models_called(harness) == [MODELS["openai"], MODELS["anthropic"]]
        keys = [request.headers["idempotency-key"] for request in harness.llm.requests]
    assert calls_before == (1 if ends_before == "anthropic" else 2)
    assert keys == ["run-1/a/0", "run-1/a/1"]
    assert result.outputs["output"].value == "Oak."
    (usage,) = [event.data for event in events if event.event_type == "usage"]
    assert usage.get("recorded", False) == (ends_before == "completion")
    assert usage["provider"] == "anthropic"
