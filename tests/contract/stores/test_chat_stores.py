"""What every store promises of chats, their messages and remembered turns, whatever it is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.principals import Principal
from planwave.storage.chats import ChatRecord, MessageRecord, Projected, Turn
from planwave.storage.records import PageCursor
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000000Z"


def chat(chat_id: str = "c1", second: int = 0, **changes: Any) -> ChatRecord:
    return replace(ChatRecord(chat_id, at(second), at(second)), **changes)


def said(message_id: str, **changes: Any) -> MessageRecord:
    blocks = [{"type": "text", "text": f"text of {message_id}"}]
    made = MessageRecord(message_id, "c1", "user", "send", at(1), blocks=blocks, seed=[])
    return replace(made, **changes)


def reply(message_id: str, parent_id: str | None = "u1", **changes: Any) -> MessageRecord:
    made = MessageRecord(
        message_id,
        "c1",
        "assistant",
        "send",
        at(1),
        parent_id,
        [],
        f"x-{message_id}",
        "starting",
        seed=[],
    )
    return replace(made, **changes)


async def with_turn(store: Store) -> None:
    assert await store.chats.create(chat())
    assert await store.chats.add([said("u1"), reply("a1")], title="Hello")


async def test_chat_round_trips(store: Store) -> None:
    kept = chat(
        title="Grüße \U0001f30a", plan_id="f", plan_revision=1, node_id="n", config={"model": "m"},
        created_by=Principal("session", "s"),
    )  # fmt: skip
    assert await store.chats.create(kept)
    assert await store.chats.get("c1") == kept
    assert not await store.chats.create(replace(kept, title="another"))
    assert await store.chats.get("c1") == kept
    assert await store.chats.get("other") is None
    assert await store.chats.count() == 1


async def test_chats_are_listed_newest_first_and_found_by_title(store: Store) -> None:
    for second in range(4):
        await store.chats.create(chat(f"c{second}", second, title=f"Über {second}"))
    page = await store.chats.page(limit=2)
    assert [each.chat_id for each in page] == ["c3", "c2"]
    before = PageCursor(page[-1].created_at, page[-1].chat_id)
    assert [each.chat_id for each in await store.chats.page(before=before)] == ["c1", "c0"]
    assert [each.chat_id for each in await store.chats.page(text="ÜBER 2")] == ["c2"]
    assert await store.chats.page(text="none") == []


async def test_first_messages_give_head_and_title(store: Store) -> None:
    await with_turn(store)
    kept = await store.chats.get("c1")
    assert kept is not None
    assert (kept.head, kept.title, kept.revision) == ("a1", "Hello", 2)
    assert kept.updated_at == at(1)
    assert [each.chat_id for each in await store.chats.page(text="hello")] == ["c1"]
    await store.chats.add([said("u2", parent_id="a1"), reply("a2", "u2")], title="Another")
    kept = await store.chats.get("c1")
    assert kept is not None
    assert (kept.head, kept.title) == ("a2", "Hello")


async def test_messages_keep_their_order_and_content(store: Store) -> None:
    await with_turn(store)
    seeded = reply("a2", seed=[{"type": "text", "text": "so far \ud800"}], origin="continue")
    await store.chats.add([seeded])
    assert await store.chats.messages("c1") == [
        said("u1"),
        reply("a1"),
        seeded,
    ]
    assert await store.chats.message("u1") == said("u1")
    assert await store.chats.message("other") is None
    assert await store.chats.siblings(seeded) == ["a1", "a2"]
    assert await store.chats.siblings(said("u1")) == ["u1"]
    assert await store.chats.messages("other") == []


async def test_messages_of_unknown_chats_and_known_ids_are_refused(store: Store) -> None:
    assert not await store.chats.add([said("u1")])
    await with_turn(store)
    assert not await store.chats.add([said("u2"), reply("a1")])
    assert [each.message_id for each in await store.chats.messages("c1")] == ["u1", "a1"]


async def test_projection_is_stored_until_the_reply_has_ended(store: Store) -> None:
    await with_turn(store)
    paused = Projected([{"type": "text", "text": "a"}], "paused", 7, {"totalTokens": 3})
    assert await store.chats.project("a1", paused, at(2))
    assert not await store.chats.project("a1", replace(paused, cursor=6), at(3))
    ended = Projected([{"type": "text", "text": "ab"}], "completed", 9)
    assert await store.chats.project("a1", ended, at(4))
    assert not await store.chats.project("a1", replace(ended, status="failed", cursor=10), at(5))
    kept = await store.chats.message("a1")
    assert kept is not None
    assert (kept.blocks, kept.status, kept.cursor, kept.usage) == (
        [{"type": "text", "text": "ab"}], "completed", 9, None,
    )  # fmt: skip
    owner = await store.chats.get("c1")
    assert owner is not None
    assert (owner.revision, owner.updated_at) == (4, at(4))


async def test_open_replies_of_all_chats_are_found_in_order(store: Store) -> None:
    await with_turn(store)
    await store.chats.create(chat("c2"))
    await store.chats.add([said("u2", chat_id="c2"), reply("a2", "u2", chat_id="c2")])
    assert [each.message_id for each in await store.chats.open_messages()] == ["a1", "a2"]
    await store.chats.project("a1", Projected([], "cancelled", 1), at(2))
    assert [each.message_id for each in await store.chats.open_messages()] == ["a2"]
    statuses = await store.chats.statuses(["c1", "c2", "c3"])
    assert statuses == {"c1": "cancelled", "c2": "starting"}


async def test_cancellation_is_remembered_until_the_end(store: Store) -> None:
    await with_turn(store)
    assert await store.chats.request_cancel("a1")
    kept = await store.chats.message("a1")
    assert kept is not None
    assert kept.is_cancelled
    await store.chats.project("a1", Projected([], "cancelled", 1), at(2))
    assert not await store.chats.request_cancel("a1")
    assert not await store.chats.request_cancel("u1")
    assert not await store.chats.request_cancel("other")


async def test_title_and_head_are_changed(store: Store) -> None:
    await with_turn(store)
    changed = await store.chats.update("c1", at(5), title="Neu", head="u1")
    assert changed is not None
    assert (changed.title, changed.head, changed.revision) == ("Neu", "u1", 3)
    assert await store.chats.get("c1") == changed
    assert [each.chat_id for each in await store.chats.page(text="neu")] == ["c1"]
    same = await store.chats.update("c1", at(6))
    assert same is not None
    assert (same.title, same.head) == ("Neu", "u1")
    assert await store.chats.update("other", at(5), title="x") is None


async def test_deleted_chat_takes_its_messages_along(store: Store) -> None:
    await with_turn(store)
    await store.chats.create(chat("c2"))
    assert await store.chats.delete("c1")
    assert not await store.chats.delete("c1")
    assert await store.chats.message("a1") is None
    assert await store.chats.open_messages() == []
    assert [each.chat_id for each in await store.chats.page()] == ["c2"]


async def test_turns_are_remembered_by_key_and_completed_once(store: Store) -> None:
    first, second = Turn("k", "x1", "chat", at(1), [{"role": "user"}]), Turn("k", "x2", "p", at(2))
    for each in (first, second, Turn("other", "x1", "chat", at(3))):
        await store.chats.remember(each)
    complete = replace(first, messages=[{"role": "user"}, {"role": "a"}], is_complete=True)
    await store.chats.remember(replace(complete, at=at(9)))
    await store.chats.remember(replace(first, messages=[]))
    assert await store.chats.turns("k", limit=5) == [complete, replace(second, messages=[])]
    assert [each.execution_id for each in await store.chats.turns("k", limit=1)] == ["x2"]
    (other,) = await store.chats.turns("k", limit=1, without="x2")
    assert other.execution_id == "x1"
    assert await store.chats.turns("k", limit=0) == []
    assert await store.chats.turns("none", limit=5) == []


async def test_what_is_no_json_is_refused(store: Store) -> None:
    await store.chats.create(chat())
    with pytest.raises(StoreError, match="not JSON"):
        await store.chats.add([said("u1", blocks=[{"type": object()}])])
    assert await store.chats.messages("c1") == []


async def test_chats_outlive_their_process(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await with_turn(store)
    before = await store.chats.messages("c1")
    await store.close()
    store = SqliteStore.open(tmp_path, read_only=True)
    assert await store.chats.messages("c1") == before
    await store.close()
