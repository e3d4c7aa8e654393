"""Branches of a chat: siblings are added, nothing is overwritten, and each reply gets its own past."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, InputError, LimitExceeded, NotFound
from planwave.service.chats.chat_documents import UserContent
from planwave.service.chats.message_tree import CONTINUE_PROMPT
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.chat.chats import ChatBench, agent, chat_bench, chat_flow
from tests.support.llm.fake_llm_server import ErrorReply, TextReply, ToolCallReply
from tests.support.service.dependencies import dependencies

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def asked(bench: ChatBench, number: int = -1) -> list[tuple[str, str]]:
    """Give the conversation of a request to the model: role and text of each turn."""
    turns = bench.llm.requests[number].body["messages"]
    return [(turn["role"], _text(turn["content"])) for turn in turns if turn["role"] != "system"]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", f"<{part['type']}>") for part in content)


async def shown(bench: ChatBench) -> list[tuple[str, str, int, str | None]]:
    """Give role, text, number of siblings and status of all messages."""
    tree = (await bench.service.chats.get(bench.chat_id)).tree
    assert tree is not None
    return [
        (each.role, each.blocks[-1].get("text", "") if each.blocks else "", len(tree.siblings(each)), each.status)
        for each in tree.messages
    ]  # fmt: skip


async def test_each_message_follows_the_branch_that_is_shown() -> None:
    async with chat_bench(system_prompt="Be kind.", instructions="Be brief.") as bench:
        bench.llm.add(TextReply("One."), TextReply("Two."))
        first = await bench.say("Hello")
        await bench.follow(first.reply)
        second = await bench.say("And?")
        await bench.follow(second.reply)
        await bench.stored(second.reply)
        assert asked(bench)[-3:] == [("user", "Hello"), ("assistant", "One."), ("user", "And?")]
        assert bench.llm.requests[-1].body["messages"][0]["content"] == "Be kind.\n\nBe brief."
        assert await shown(bench) == [
            ("user", "Hello", 1, None),
            ("assistant", "One.", 1, "completed"),
            ("user", "And?", 1, None),
            ("assistant", "Two.", 1, "completed"),
        ]
        chat = await bench.service.chats.get(bench.chat_id)
        assert (chat.record.title, chat.status) == ("Hello", "completed")
        assert chat.record.head == second.reply.message_id


async def test_braces_in_the_system_prompt_of_a_chat_are_text() -> None:
    text = 'Say {{ name }}, {% raw %}, {% endraw %} and {"a": {"b": 1}}.'
    async with chat_bench(system_prompt=text, instructions="{# no comment #}") as bench:
        bench.llm.add(TextReply("One."))
        await bench.follow((await bench.say("Hello")).reply)
        system = bench.llm.requests[-1].body["messages"][0]["content"]
        assert system == f"{text}\n\n{{# no comment #}}"


async def test_retry_adds_a_sibling_that_does_not_know_the_first_reply() -> None:
    async with chat_bench() as bench:
        turn = await bench.turn("retry", TextReply("Second."))
        await bench.follow(turn.reply)
        await bench.stored(turn.reply)
        assert asked(bench) == [("user", "Hello")]
        assert await shown(bench) == [
            ("user", "Hello", 1, None),
            ("assistant", "First.", 2, "completed"),
            ("assistant", "Second.", 2, "completed"),
        ]


async def test_continued_reply_begins_with_what_was_there() -> None:
    async with chat_bench() as bench:
        turn = await bench.turn("continue", TextReply("Second."))
        await bench.follow(turn.reply)
        stored = await bench.stored(turn.reply)
        assert [block["text"] for block in stored.blocks] == ["First.", "Second."]
        assert asked(bench) == [
            ("user", "Hello"), ("assistant", "First."), ("user", CONTINUE_PROMPT),
        ]  # fmt: skip


async def test_continued_reply_drops_errors_at_the_end() -> None:
    async with chat_bench() as bench:
        bench.llm.add(ErrorReply(400, "invalid_request_error"), TextReply("Better."))
        first = await bench.say("Hello")
        await bench.follow(first.reply)
        failed = await bench.stored(first.reply)
        assert [block["type"] for block in failed.blocks] == ["error"]
        turn = await bench.service.chats.continue_reply(bench.chat_id, failed.message_id)
        await bench.follow(turn.reply)
        stored = await bench.stored(turn.reply)
        assert [block["text"] for block in stored.blocks] == ["Better."]
        assert asked(bench) == [("user", "Hello")]


async def test_edit_adds_a_message_beside_the_old_one_with_its_own_reply() -> None:
    async with chat_bench() as bench:
        turn = await bench.turn("edit", TextReply("Second."))
        await bench.follow(turn.reply)
        await bench.stored(turn.reply)
        assert asked(bench) == [("user", "Hello again")]
        assert await shown(bench) == [
            ("user", "Hello", 2, None),
            ("assistant", "First.", 1, "completed"),
            ("user", "Hello again", 2, None),
            ("assistant", "Second.", 1, "completed"),
        ]


async def test_message_follows_the_reply_that_it_names() -> None:
    async with chat_bench() as bench:
        retried = await bench.turn("retry", TextReply("Second."), TextReply("Third."))
        await bench.follow(retried.reply)
        await bench.stored(retried.reply)
        tree = (await bench.service.chats.get(bench.chat_id)).tree
        assert tree is not None
        first = tree.messages[1]
        turn = await bench.say("And?", parent_id=first.message_id, at_head=False)
        await bench.follow(turn.reply)
        assert asked(bench)[1] == ("assistant", "First.")
        bench.llm.add(TextReply("Fourth."))
        anew = await bench.say("Anew", parent_id=None, at_head=False)
        await bench.follow(anew.reply)
        assert asked(bench) == [("user", "Anew")]


async def test_tool_calls_are_blocks_and_the_text_around_them_is_the_past() -> None:
    flow = chat_flow(agent("agent-1"), kit_of=["agent-1"])
    async with chat_bench(flow) as bench:
        look = ToolCallReply([("look_up", {"order": "A-1"})], text="Let me look.")
        turn = await bench.turn("send", look, TextReply("On its way."), TextReply("Yes."))
        await bench.follow(turn.reply)
        stored = await bench.stored(turn.reply)
        assert [block["type"] for block in stored.blocks] == ["text", "tool_call", "text"]
        again = await bench.say("Sure?")
        await bench.follow(again.reply)
        assert asked(bench)[1] == ("assistant", "Let me look.\n\nOn its way.")


async def test_attachments_are_shown_to_the_model_and_kept() -> None:
    async with chat_bench() as bench:
        bench.llm.add(TextReply("I see."))
        note = {"name": "note.txt", "mime": "text/plain", "data": "R3LDvMOfZQ=="}
        turn = await bench.service.chats.send(bench.chat_id, UserContent("Look", [PIXEL], [note]))
        await bench.follow(turn.reply)
        ((role, text),) = asked(bench)
        assert (role, "Grüße" in text, "<image_url>" in text) == ("user", True, True)
        assert turn.user is not None
        assert [block["type"] for block in turn.user.blocks] == ["text", "image", "file"]


@pytest.mark.parametrize(
    "content",
    [
        UserContent("  "),
        UserContent("x", ["file:///etc/passwd"]),
        UserContent("x", (), [{"name": "a"}]),
        UserContent("x", (), [{"name": "a.txt", "mime": "text/plain", "data": "/w=="}]),
    ],
)
async def test_unusable_message_is_refused_before_it_is_stored(content: UserContent) -> None:
    async with chat_bench() as bench:
        with pytest.raises(InputError):
            await bench.service.chats.send(bench.chat_id, content)
        assert await shown(bench) == []
        assert bench.llm.requests == []


async def test_what_is_not_possible_is_refused() -> None:
    async with chat_bench() as bench:
        turn = await bench.turn("send", TextReply("One."))
        await bench.follow(turn.reply)
        await bench.stored(turn.reply)
        assert turn.user is not None
        own, user, reply = bench.chat_id, turn.user.message_id, turn.reply.message_id
        service = bench.service
        for call in (
            lambda: service.chats.edit(own, reply, UserContent("x")),
            lambda: service.chats.retry_reply(own, user),
            lambda: service.chats.continue_reply(own, user),
            lambda: service.chats.cancel_reply(own, user),
            lambda: service.chats.send(own, UserContent("x"), parent_id=user, at_head=False),
        ):
            with pytest.raises(Conflict) as refused:
                await call()
            assert refused.value.code == "wrong-role"
        with pytest.raises(Conflict) as refused:
            await service.chats.cancel_reply(own, reply)
        assert refused.value.code == "already-ended"
        with pytest.raises(NotFound):
            await service.chats.send("other", UserContent("x"))
        with pytest.raises(NotFound):
            await service.chats.retry_reply(own, "other")
        other = await service.chats.create()
        with pytest.raises(NotFound):
            await service.chats.retry_reply(other.record.chat_id, reply)
        assert len(await bench.store.chats.messages(own)) == 2


async def test_reply_that_runs_is_neither_followed_nor_retried() -> None:
    flow = chat_flow(agent("agent-1"), kit_of=["agent-1"])
    async with chat_bench(flow) as bench:
        refund = ToolCallReply([("refund", {"order": "A-1", "amount": 5})])
        turn = await bench.turn("send", refund)
        while (
            await bench.service.chats.message(bench.chat_id, turn.reply.message_id)
        ).status != "paused":
            await bench.service.executions.wait(turn.reply.execution_id or "")
        for call in (
            lambda: bench.say("And?"),
            lambda: bench.service.chats.retry_reply(bench.chat_id, turn.reply.message_id),
            lambda: bench.service.chats.continue_reply(bench.chat_id, turn.reply.message_id),
        ):
            with pytest.raises(Conflict) as refused:
                await call()
            assert refused.value.code == "message-running"
        cancelled = await bench.service.chats.cancel_reply(bench.chat_id, turn.reply.message_id)
        assert cancelled.status == "cancelled"
        assert [block["status"] for block in cancelled.blocks] == ["closed"]


async def test_of_messages_at_the_same_time_one_follows_the_head(tmp_path: Path) -> None:
    refused: list[str] = []

    async def say(bench: ChatBench, text: str) -> None:
        try:
            await bench.say(text)
        except Conflict as error:
            refused.append(error.code)

    async with chat_bench(store=SqliteStore.open(tmp_path)) as bench:
        held = asyncio.Event()
        bench.llm.add(TextReply("One.", gates={0: held}))
        async with asyncio.TaskGroup() as tasks:
            for number in range(4):
                tasks.create_task(say(bench, f"Message {number}"))
        held.set()
        assert refused == ["message-running"] * 3
        assert len(await bench.store.chats.messages(bench.chat_id)) == 2


async def test_request_that_is_repeated_at_once_gives_the_same_turn(tmp_path: Path) -> None:
    async with chat_bench(store=SqliteStore.open(tmp_path)) as bench:
        name = "01900000-0000-7000-8000-000000000001"
        async with asyncio.TaskGroup() as tasks:
            turns = [tasks.create_task(bench.say("Hello", message_id=name)) for _ in range(3)]
        assert {turn.result().reply.message_id for turn in turns} == {name}
        assert len(await bench.store.chats.messages(bench.chat_id)) == 2


async def test_chat_of_a_deleted_flow_says_so() -> None:
    async with chat_bench(chat_flow(agent("agent-1"))) as bench:
        bench.llm.add(TextReply("One."))
        turn = await bench.say("Hello")
        await bench.follow(turn.reply)
        chat = await bench.service.chats.get(bench.chat_id)
        await bench.service.flows.delete(chat.record.plan_id or "")
        for call in (
            lambda: bench.say("And?"),
            lambda: bench.service.chats.retry_reply(bench.chat_id, turn.reply.message_id),
        ):
            with pytest.raises(InputError, match="no flow") as refused:
                await call()
            assert refused.value.code == "invalid-chat"
        assert len(await bench.store.chats.messages(bench.chat_id)) == 2


async def test_repeated_request_gives_the_same_turn() -> None:
    async with chat_bench() as bench:
        bench.llm.add(TextReply("One."))
        name = "01900000-0000-7000-8000-000000000001"
        first = await bench.say("Hello", message_id=name)
        await bench.follow(first.reply)
        second = await bench.say("Hello", message_id=name)
        assert second.reply.message_id == first.reply.message_id == name
        assert second.user is not None
        assert first.user is not None
        assert second.user.message_id == first.user.message_id
        assert len(bench.llm.requests) == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"config": {"modell": "x"}}, "invalid-chat"),
        ({"config": {"provider": "nobody"}}, "unknown-provider"),
        ({"config": {"tools": ["nothing"]}}, "unknown-tool"),
        ({"config": {"temperature": "warm"}}, "invalid-data"),
        ({"config": {}, "plan_id": "f"}, "invalid-chat"),
        ({"node_id": "x"}, "invalid-chat"),
        ({"title": "x" * 201}, "invalid-chat"),
    ],
)
async def test_unusable_chat_is_refused(given: dict[str, Any], code: str) -> None:
    async with chat_bench() as bench:
        with pytest.raises(InputError) as refused:
            await bench.service.chats.create(**given)
        codes = {refused.value.code} | {
            each.code for each in getattr(refused.value, "diagnostics", ())
        }
        assert code in codes
        assert await bench.store.chats.count() == 1


async def test_flow_of_a_chat_needs_one_chat_start() -> None:
    async with chat_bench() as bench:
        start = {"id": "s", "type": "chat_start", "data": {}}
        graphs = {
            "no node": {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []},
            "several": {"nodes": [start, {**start, "id": "t"}], "edges": []},
        }
        for why, graph in graphs.items():
            flow = await bench.service.flows.create(why, graph=graph)
            with pytest.raises(InputError, match=why):
                await bench.service.chats.create(plan_id=flow.plan_id)
        chosen = await bench.service.chats.create(plan_id=flow.plan_id, node_id="t")
        assert chosen.record.node_id == "t"


async def test_chat_uses_the_live_revision_of_its_flow_unless_one_is_named() -> None:
    flow = chat_flow(agent("agent-1", systemPrompt="Old"))
    async with chat_bench(flow) as bench:
        chat = await bench.service.chats.get(bench.chat_id)
        saved = await bench.service.flows.get(chat.record.plan_id)
        pinned = await bench.service.chats.create(
            plan_id=saved.plan_id, plan_revision=saved.revision
        )
        newer = chat_flow(agent("agent-1", systemPrompt="New"))
        await bench.service.flows.update(saved.plan_id, graph=newer)
        bench.llm.add(TextReply("a"), TextReply("b"))
        await bench.follow((await bench.say("Hello")).reply)
        assert "New" in str(bench.llm.requests[-1].body)
        bench.chat_id = pinned.record.chat_id
        turn = await bench.say("Hello")
        await bench.follow(turn.reply)
        assert "Old" in str(bench.llm.requests[-1].body)
        record = await bench.service.executions.get(turn.reply.execution_id or "")
        assert (record.plan_id, record.revision) == (saved.plan_id, saved.revision)


async def test_limits_of_chats_and_messages_hold() -> None:
    store = MemoryStore()
    limits = Limits(chats=1, chat_messages=2)
    async with Service(dependencies(store=store, limits=limits)) as service:
        chat = await service.chats.create()
        with pytest.raises(LimitExceeded, match="chats"):
            await service.chats.create()
        own = chat.record.chat_id
        turn = await service.chats.send(own, UserContent("Hello"))
        await service.executions.wait(turn.reply.execution_id or "")
        with pytest.raises(LimitExceeded, match="chat_messages"):
            await service.chats.send(own, UserContent("Hello"), parent_id=None, at_head=False)


async def test_chat_is_renamed_shown_elsewhere_and_deleted() -> None:
    async with chat_bench() as bench:
        turn = await bench.turn("retry", TextReply("Second."))
        await bench.follow(turn.reply)
        await bench.stored(turn.reply)
        tree = (await bench.service.chats.get(bench.chat_id)).tree
        assert tree is not None
        first = tree.messages[1].message_id
        changed = await bench.service.chats.update(bench.chat_id, title=" Talk ", head=first)
        assert (changed.record.title, changed.record.head) == ("Talk", first)
        with pytest.raises(InputError):
            await bench.service.chats.update(bench.chat_id, title=" ")
        with pytest.raises(NotFound):
            await bench.service.chats.update(bench.chat_id, head="other")
        await bench.service.chats.delete(bench.chat_id)
        with pytest.raises(NotFound):
            await bench.service.chats.get(bench.chat_id)
        record = await bench.service.executions.get(turn.reply.execution_id or "")
        assert record.status == "completed"
