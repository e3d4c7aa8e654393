"""Replies that a model continues: what is sent, and what is paid for after a crash."""

from __future__ import annotations

from typing import Any

from planwave.graph.model import Node
from planwave.graph.protocols import FlowContext
from planwave.nodes.library.agent import Agent
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import ModelProfile
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.client_harness import ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, TextReply
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

MODEL = ModelProfile(small=True, max_output_tokens=20, continues=True, grammars=True)


def context_of(harness: ModelClientHarness, task: str = "") -> FlowContext:
    providers = ListedProviders({"box": ["box-1"]}, profiles={"box-1": MODEL})
    services = NodeServices(harness.client, providers, None)  # type: ignore[arg-type]
    return context_for(Node("a", "agent", "A", description=task), services=services)


def turns(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in body["messages"]]


async def test_the_conversation_ends_with_the_text_so_far() -> None:
    cut = TextReply("Oak la", finish="length")
    async with model_client_harness(cut, TextReply("sts.")) as harness:
        result, _ = await result_and_events(
            Agent().execute(
                {"systemPrompt": "Be brief"}, make_inputs("Why oak?"), context_of(harness)
            )
        )
        first, second = (request.body for request in harness.llm.requests)
    assert result.outputs["output"].value == "Oak lasts."
    assert turns(second) == [*turns(first), ("assistant", "Oak la")]
    assert (first["max_tokens"], second["max_tokens"]) == (40, 20)


async def test_a_grammar_is_sent_for_the_whole_reply_and_not_for_its_rest() -> None:
    cut = TextReply("1. Oak\n2. La", finish="length")
    async with model_client_harness(cut, TextReply("rch.")) as harness:
        context = context_of(harness, "Name two kinds of wood")
        await result_and_events(Agent().execute({}, make_inputs(""), context))
        first, second = (request.body for request in harness.llm.requests)
    assert first["grammar"].startswith('root ::= "1. " line "\\n" "2. " line')
    assert "grammar" not in second


async def test_both_calls_are_recorded_under_their_own_number() -> None:
    cut = TextReply("Oak la", finish="length")
    async with model_client_harness(cut, TextReply("sts."), recorder=MemoryStore()) as harness:
        for _ in range(2):  # the second time as after a crash
            result, events = await result_and_events(
                Agent().execute({}, make_inputs("Why oak?"), context_of(harness))
            )
            assert result.outputs["output"].value == "Oak lasts."
        assert len(harness.llm.requests) == 2
        keys = [request.headers["idempotency-key"] for request in harness.llm.requests]
    assert keys == ["run-1/a/0", "run-1/a/1"]
    assert len([event for event in events if event.event_type == "usage"]) == 2


async def test_after_a_crash_between_the_calls_only_the_continuation_is_paid() -> None:
    cut = TextReply("Oak la", finish="length")
    steps = [cut, ErrorReply(400), TextReply("sts.")]
    async with model_client_harness(*steps, recorder=MemoryStore()) as harness:
        for expected in ("Oak la", "Oak lasts."):
            result, _ = await result_and_events(
                Agent().execute({}, make_inputs("Why oak?"), context_of(harness))
            )
            assert result.outputs["output"].value == expected
        assert len(harness.llm.requests) == 3
        sent = [turns(request.body)[-1][0] for request in harness.llm.requests]
    assert sent == ["user", "assistant", "assistant"]
