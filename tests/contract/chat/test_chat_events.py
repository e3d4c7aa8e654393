"""The events of a reply are those of the golden sequences, however the reply was begun."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from planwave.service.chats.chat_documents import UserContent
from planwave.service.chats.replies import ReplyProjector
from tests.support.chat import golden_chats as golden
from tests.support.chat.chats import (
    OPERATIONS,
    ChatBench,
    agent,
    applied,
    chat_bench,
    chat_flow,
    edge,
    story,
    texts_of,
)
from tests.support.llm.fake_llm_server import ErrorReply, TextReply, ToolCallReply

MAIN = agent("agent-1")
WITH_TOOLS = chat_flow(MAIN, kit_of=["agent-1"])
WITH_MEMBER = chat_flow(
    MAIN,
    {"id": "scout", "type": "agent", "name": "Scout", "description": "Finds things.", "data": {}},
    edges=[edge("scout", "agent-1", "tools-out", "tools", "link")],
)
IN_SEQUENCE = chat_flow(
    MAIN,
    agent("agent-2"),
    agent("agent-3"),
    edges=[
        edge("agent-1", "agent-2", "output", "input"),
        edge("agent-2", "agent-3", "output", "input"),
    ],
)
REFUND = ToolCallReply([("refund", {"order": "A-1", "amount": 5})])

operations = pytest.mark.parametrize("operation", OPERATIONS)


def expected(sequence: Sequence[str], operation: str) -> list[str]:
    """Give a golden sequence for an operation: one that continues begins with what was there."""
    lines = list(sequence)
    if operation == "continue":
        at = len(golden.BEGINNING) if lines[0] == "RunStarted" else 0
        lines.insert(at, golden.SEEDED)
    return lines


async def assert_reloads(bench: ChatBench, message_id: str) -> None:
    """A client shows what is stored, and what is stored is what its execution says again."""
    reply = await bench.service.chats.message(bench.chat_id, message_id)
    stored = await bench.stored(reply)
    assert {each["id"]: each["text"] for each in applied(bench.told)} == {
        each["id"]: each["text"] for each in texts_of(stored.blocks)
    }
    assert [each["seq"] for each in bench.told if "seq" in each][-1] == stored.cursor
    again = await ReplyProjector(bench.store, bench.service.executions).project(stored)
    assert list(again.blocks) == list(stored.blocks)
    assert (again.status, again.usage) == (stored.status, stored.usage)
    told = await bench.follow(stored)
    assert {each["id"]: each["text"] for each in applied(told)} == {
        each["id"]: each["text"] for each in texts_of(stored.blocks)
    }


@operations
async def test_simple_chat(operation: str) -> None:
    async with chat_bench() as bench:
        turn = await bench.turn(operation, TextReply("Hello, Ada.", chunks=3))
        told = await bench.follow(turn.reply)
        assert story(told) == expected(golden.SIMPLE, operation)
        assert {each["messageId"] for each in told} == {turn.reply.message_id}
        await assert_reloads(bench, turn.reply.message_id)


@operations
async def test_reasoning(operation: str) -> None:
    async with chat_bench() as bench:
        thinks = TextReply("Hello.", reasoning="They said hello. I do too.", chunks=2)
        turn = await bench.turn(operation, thinks)
        told = await bench.follow(turn.reply)
        assert story(told) == expected(golden.REASONING, operation)
        await assert_reloads(bench, turn.reply.message_id)


@operations
async def test_tool_call(operation: str) -> None:
    async with chat_bench(WITH_TOOLS) as bench:
        asks = ToolCallReply([("look_up", {"order": "A-1"})], text="Let me look.")
        turn = await bench.turn(operation, asks, TextReply("It is on its way.", chunks=2))
        told = await bench.follow(turn.reply)
        assert story(told) == expected(golden.TOOL_CALL, operation)
        await assert_reloads(bench, turn.reply.message_id)


@operations
async def test_approval_pauses_and_resumes_with_edited_arguments(operation: str) -> None:
    async with chat_bench(WITH_TOOLS) as bench:
        turn = await bench.turn(operation, REFUND, TextReply("Refunded.", chunks=2))

        async def answer(event: dict[str, Any]) -> None:
            if event["event"] == "ApprovalRequired":
                asked = event["tool"]
                assert asked["options"] == ["approve", "reject"]
                assert (asked["riskLevel"], asked["editable"]) == ("once", True)
                await bench.service.executions.answer(
                    asked["runId"],
                    asked["requestId"],
                    {"decision": "approve", "note": "", "value": {"order": "A-1", "amount": 3}},
                )

        told = await bench.follow(turn.reply, answer)
        assert story(told) == expected(golden.APPROVAL, operation)
        await assert_reloads(bench, turn.reply.message_id)


@operations
async def test_rejection(operation: str) -> None:
    async with chat_bench(WITH_TOOLS) as bench:
        turn = await bench.turn(operation, REFUND, TextReply("Refunded.", chunks=2))

        async def answer(event: dict[str, Any]) -> None:
            if event["event"] == "ApprovalRequired":
                asked = event["tool"]
                no = {"decision": "reject", "note": "too much"}
                await bench.service.executions.answer(asked["runId"], asked["requestId"], no)

        told = await bench.follow(turn.reply, answer)
        assert story(told) == expected(golden.REJECTION, operation)
        await assert_reloads(bench, turn.reply.message_id)


@operations
async def test_member_run(operation: str) -> None:
    async with chat_bench(WITH_MEMBER) as bench:
        turn = await bench.turn(
            operation,
            ToolCallReply([("delegate_Scout", {"task": "Find it"})]),
            TextReply("Found it.", chunks=2),
            TextReply("The scout found it."),
        )
        told = await bench.follow(turn.reply)
        assert story(told) == expected(golden.MEMBER, operation)
        await assert_reloads(bench, turn.reply.message_id)


@operations
async def test_cancellation_keeps_what_was_streamed(operation: str) -> None:
    async with chat_bench() as bench:
        never = asyncio.Event()
        turn = await bench.turn(
            operation, TextReply("Once upon a time.", chunks=2, gates={2: never})
        )

        async def cancel(event: dict[str, Any]) -> None:
            if event["event"] == "RunContent":
                await bench.service.chats.cancel_reply(bench.chat_id, turn.reply.message_id)

        told = await bench.follow(turn.reply, cancel)
        streamed = next(each["content"] for each in told if each["event"] == "RunContent")
        wanted = [line.replace("Once upon", streamed) for line in golden.CANCEL]
        assert story(told) == expected(wanted, operation)
        stored = await bench.stored(turn.reply)
        assert stored.status == "cancelled"
        assert stored.blocks[-1]["text"] == streamed
        assert texts_of(stored.blocks)[-1] in applied(await bench.follow(stored))
        bench.service.executions.live_executions.close()  # as a restart does
        again = await bench.follow(stored)
        assert applied(again) == texts_of(stored.blocks), "the execution has the text as well"


@operations
async def test_early_cancellation_is_remembered(operation: str) -> None:
    async with chat_bench() as bench:
        held = asyncio.Event()
        if operation == "send":
            hold_starts(bench, held)
            starting = bench.turn(operation)
        else:
            starting = await held_turn(bench, operation, held)
        turn_task = asyncio.ensure_future(starting)  # noqa: TID251 - it is held while another call is made
        while not (found := await bench.store.chats.open_messages()):  # noqa: ASYNC110 - of a store
            await asyncio.sleep(0)
        await bench.service.chats.cancel_reply(bench.chat_id, found[-1].message_id)
        held.set()
        turn = await turn_task
        told = await bench.follow(turn.reply)
        assert story(told) == expected(golden.EARLY_CANCEL, operation)
        assert (await bench.stored(turn.reply)).status == "cancelled"
        assert len(bench.llm.requests) == (0 if operation == "send" else 1)


def hold_starts(bench: ChatBench, held: asyncio.Event) -> None:
    """Hold replies that are stored, before their execution is created."""
    runs = bench.service.chats._runs
    start = runs.start

    async def wait(*given: Any) -> None:
        await held.wait()
        await start(*given)

    runs.start = wait


async def held_turn(bench: ChatBench, operation: str, held: asyncio.Event) -> Any:
    """Give a turn beside a reply, whose start is held."""
    bench.llm.add(TextReply("First."))
    before = await bench.say("Hello")
    await bench.follow(before.reply)
    await bench.stored(before.reply)
    hold_starts(bench, held)
    service, own, reply_id = bench.service, bench.chat_id, before.reply.message_id
    assert before.user is not None
    match operation:
        case "continue":
            return service.chats.continue_reply(own, reply_id)
        case "retry":
            return service.chats.retry_reply(own, reply_id)
        case _:
            return service.chats.edit(own, before.user.message_id, UserContent("Again"))


@operations
async def test_node_error(operation: str) -> None:
    async with chat_bench() as bench:
        turn = await bench.turn(operation, ErrorReply(400, "invalid_request_error"))
        told = await bench.follow(turn.reply)
        assert story(told) == expected(golden.NODE_ERROR, operation)
        stored = await bench.stored(turn.reply)
        assert stored.status == "failed"
        assert stored.blocks[-1]["type"] == "error"


async def test_three_agents_in_sequence_all_stream() -> None:
    async with chat_bench(IN_SEQUENCE) as bench:
        steps = [TextReply(text, chunks=2) for text in ("one", "two", "three")]
        turn = await bench.turn("send", *steps)
        told = await bench.follow(turn.reply)
        assert story(told) == list(golden.THREE_AGENTS)
        await assert_reloads(bench, turn.reply.message_id)


async def test_window_that_comes_back_has_each_character_once() -> None:
    async with chat_bench(WITH_TOOLS) as bench:
        asks = ToolCallReply([("look_up", {"order": "A-1"})], text="Let me look.")
        turn = await bench.turn("send", asks, TextReply("It is on its way.", chunks=2))
        whole = await bench.follow(turn.reply)
        stored = await bench.stored(turn.reply)
        for at in range(len(whole)):
            if "seq" in whole[at]:
                seen = whole[: at + 1]
                rest = await bench.follow(stored, after=whole[at]["seq"])
                assert applied([*seen, *rest]) == applied(whole), whole[at]
