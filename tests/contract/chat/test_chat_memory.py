"""The memory of ``chat`` nodes: turns that are kept under a key over executions."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import GraphInvalid
from planwave.ids import new_id
from planwave.service.chats.node_memory import ChatMemory
from planwave.service.flows.flow_queries import FlowRef
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.chat.chats import ChatBench, agent, chat_bench, edge
from tests.support.llm.fake_llm_server import ErrorReply, TextReply


def remembering(**memory: Any) -> dict[str, Any]:
    """Return a flow that is told a message, and remembers the turns of its chat."""
    kept = {"key": "{{ input.chatId }}", **memory}
    return {
        "nodes": [
            {"id": "ask", "type": "user_input", "data": {}},
            {"id": "talk", "type": "chat", "data": {"memory": kept}},
            agent("reply"),
        ],
        "edges": [
            edge("ask", "talk", "output", "input"),
            edge("talk", "reply", "messages", "messages"),
        ],
    }


async def ask(bench: ChatBench, plan_id: str, message: str, chat_id: str = "c") -> str:
    record = await bench.service.executions.execute(
        FlowRef(plan_id), inputs={"ask": {"message": message, "chatId": chat_id}}
    )
    await bench.service.executions.wait(record.execution_id)
    return record.execution_id


def asked(bench: ChatBench) -> list[str]:
    return [turn["content"] for turn in bench.llm.requests[-1].body["messages"]]


async def saved(bench: ChatBench, **memory: Any) -> str:
    return (await bench.service.flows.create(f"M {new_id()}", graph=remembering(**memory))).plan_id


async def test_turns_come_back_in_later_executions_of_the_same_key() -> None:
    async with chat_bench() as bench:
        plan_id = await saved(bench)
        bench.llm.add(*(TextReply(f"Reply {number}.") for number in range(4)))
        await ask(bench, plan_id, "One")
        await ask(bench, plan_id, "Two")
        assert asked(bench) == ["One", "Reply 0.", "Two"]
        await ask(bench, plan_id, "Else", "another chat")
        assert asked(bench) == ["Else"]
        await ask(bench, plan_id, "Three")
        assert asked(bench) == ["One", "Reply 0.", "Two", "Reply 1.", "Three"]


async def test_only_so_many_turns_and_tokens_come_back() -> None:
    async with chat_bench() as bench:
        last = await saved(bench, maxTurns=1)
        small = await saved(bench, maxTokens=1)
        bench.llm.add(*(TextReply(f"Reply {number}.") for number in range(4)))
        for message in ("One", "Two", "Three"):
            await ask(bench, last, message)
        assert asked(bench) == ["Two", "Reply 1.", "Three"]
        await ask(bench, small, "Four")
        assert asked(bench) == ["Four"]


async def test_failed_reply_leaves_the_message_alone() -> None:
    async with chat_bench() as bench:
        plan_id = await saved(bench)
        bench.llm.add(ErrorReply(400, "invalid_request_error"), TextReply("Well."))
        await ask(bench, plan_id, "One")
        await ask(bench, plan_id, "Two")
        assert asked(bench) == ["One", "Two"]


async def test_retried_execution_remembers_its_own_turn() -> None:
    async with chat_bench() as bench:
        plan_id = await saved(bench)
        bench.llm.add(ErrorReply(400, "invalid_request_error"), TextReply("A."), TextReply("B."))
        failed = await ask(bench, plan_id, "One")
        again = await bench.service.executions.retry(failed)
        await bench.service.executions.wait(again.execution_id)
        assert asked(bench) == ["One"]


async def test_turns_of_the_own_execution_take_no_place() -> None:
    store = MemoryStore()
    memory = ChatMemory(store)
    said = {"role": "user", "content": "One"}
    await memory.remember("k", "before", "talk", said)
    for path in ("a", "b", "c"):
        await memory.remember("k", "own", path, {"role": "user", "content": path})
    assert await memory.recall("k", "own", max_turns=2) == [[said]]


async def test_memory_needs_a_key() -> None:
    async with chat_bench() as bench:
        with pytest.raises(GraphInvalid):
            await ask(bench, await saved(bench, key=""), "One")
