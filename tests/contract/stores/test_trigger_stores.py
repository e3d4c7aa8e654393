"""What every store promises of triggers and their deliveries, whatever it is made of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import NotFound
from planwave.principals import Principal
from planwave.storage.records import PageCursor, PlanRecord
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore
from planwave.storage.triggers import DELIVERIES_SHOWN, TriggerRecord


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000000Z"


LONG_AGO = "2000-01-01T00:00:00.000000Z"


def trigger(trigger_id: str = "t1", second: int = 0, **changes: object) -> TriggerRecord:
    made = TriggerRecord(trigger_id, "f1", f"hook of {trigger_id}", "webhook", at(second))
    return replace(made, **changes)  # pyright: ignore[reportArgumentType]


async def save_flow(store: Store, plan_id: str = "f1") -> None:
    document: dict[str, Any] = {"nodes": [], "edges": []}
    await store.save_plan(PlanRecord(plan_id, at(0), "", "F", "h1", document, name=f"F {plan_id}"))


async def save(store: Store, *triggers: TriggerRecord) -> None:
    await save_flow(store)
    for each in triggers:
        assert await store.triggers.create(each)


async def test_trigger_round_trips(store: Store) -> None:
    by = Principal("token", "t1", "crm")
    kept = trigger(revision=1, position="2026", enabled=False, created_by=by)
    await save(store, kept)
    assert await store.triggers.get("t1") == kept
    assert await store.triggers.get("other") is None
    assert await store.triggers.count() == 1


async def test_entry_node_has_one_trigger(store: Store) -> None:
    await save(store, trigger(node_id="n"))
    assert not await store.triggers.create(trigger("t2", node_id="n"))
    assert not await store.triggers.create(trigger("t1", node_id="other"))
    assert await store.triggers.create(trigger("t2", node_id="other"))


async def test_trigger_of_unknown_flow_is_rejected(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.triggers.create(trigger())


async def test_triggers_are_listed_newest_first_in_pages(store: Store) -> None:
    await save_flow(store, "f2")
    await save(store, trigger("a"), trigger("b", 1), trigger("c", 1, plan_id="f2"), trigger("d", 2))
    assert [each.trigger_id for each in await store.triggers.page()] == ["d", "c", "b", "a"]
    assert [each.trigger_id for each in await store.triggers.page(limit=2)] == ["d", "c"]
    rest = await store.triggers.page(before=PageCursor(at(1), "c"))
    assert [each.trigger_id for each in rest] == ["b", "a"]
    assert [each.trigger_id for each in await store.triggers.page(plan_id="f2")] == ["c"]


async def test_trigger_is_changed_and_deleted(store: Store) -> None:
    await save(store, trigger())
    assert await store.triggers.set_enabled("t1", enabled=False)
    await store.triggers.set_position("t1", "later")
    assert await store.triggers.get("t1") == trigger(enabled=False, position="later")
    await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)
    assert await store.triggers.delete("t1")
    assert await store.triggers.get("t1") is None
    assert await store.triggers.deliveries(["t1"]) == {}
    assert not await store.triggers.delete("t1")
    assert not await store.triggers.set_enabled("t1", enabled=True)
    with pytest.raises(NotFound):
        await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)


async def test_triggers_are_deleted_with_their_flow(store: Store) -> None:
    await save_flow(store, "f2")
    await save(store, trigger(), trigger("t2", plan_id="f2"))
    await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)
    await store.delete_plan("f1", force=True)
    assert [each.trigger_id for each in await store.triggers.page()] == ["t2"]
    assert await store.triggers.deliveries(["t1"]) == {}


async def test_delivery_is_claimed_once(store: Store) -> None:
    await save(store, trigger())
    async with asyncio.TaskGroup() as tasks:
        claims = [
            tasks.create_task(store.triggers.claim("t1", "k", at(1), expired=LONG_AGO))
            for _ in range(8)
        ]
    records = [each.result() for each in claims]
    assert sum(each.is_new for each in records) == 1
    assert len({each.execution_id for each in records}) == 1


async def test_settled_delivery_keeps_its_first_outcome(store: Store) -> None:
    await save(store, trigger())
    new = await store.triggers.claim("t1", "k\ud800", at(1), expired=LONG_AGO)
    await store.triggers.settle("t1", "k\ud800", "started", note="ü\ud800", reply="{}")
    await store.triggers.settle("t1", "k\ud800", "skipped", note="other", reply=None)
    await store.triggers.release("t1", "k\ud800")
    again = await store.triggers.claim("t1", "k\ud800", at(2), expired=LONG_AGO)
    assert (again.is_new, again.outcome, again.reply) == (False, "started", "{}")
    assert (again.execution_id, again.received_at) == (new.execution_id, at(1))


async def test_released_delivery_can_be_claimed_again(store: Store) -> None:
    await save(store, trigger())
    await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)
    await store.triggers.release("t1", "k")
    assert (await store.triggers.claim("t1", "k", at(2), expired=LONG_AGO)).is_new


async def test_expired_delivery_counts_as_another_one(store: Store) -> None:
    await save(store, trigger())
    first = await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)
    await store.triggers.settle("t1", "k", "started")
    assert not (await store.triggers.claim("t1", "k", at(2), expired=at(1))).is_new
    later = await store.triggers.claim("t1", "k", at(3), expired=at(2))
    assert later.is_new
    assert later.execution_id != first.execution_id


async def test_last_deliveries_are_listed_and_survive_expiry(store: Store) -> None:
    await save(store, trigger(), trigger("t2"))
    for second in range(DELIVERIES_SHOWN + 3):
        await store.triggers.claim("t1", f"k{second}", at(second), expired=LONG_AGO)
        if second != 1:
            await store.triggers.settle("t1", f"k{second}", "started")
    listed = await store.triggers.deliveries(["t1", "t2", "unknown"])
    newest = [f"k{second}" for second in range(DELIVERIES_SHOWN + 2, 2, -1)]
    assert [each.key for each in listed["t1"]] == newest
    assert set(listed) == {"t1"}
    assert await store.triggers.delete_expired(at(2)) == 1  # k0; k1 is under way, k2 is younger
    left = await store.triggers.deliveries(["t1"], 100)
    assert [each.key for each in left["t1"]] == [*newest, "k2", "k1"]


async def test_interrupted_delivery_is_claimed_by_the_next_process(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await save(store, trigger())
    first = await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)
    assert not (await store.triggers.claim("t1", "k", at(1), expired=LONG_AGO)).is_new
    await store.close()
    store = SqliteStore.open(tmp_path)
    again = await store.triggers.claim("t1", "k", at(9), expired=LONG_AGO)
    assert again == first, "the same execution, and still new"
    assert not (await store.triggers.claim("t1", "k", at(9), expired=LONG_AGO)).is_new
    await store.close()
