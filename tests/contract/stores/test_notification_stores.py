"""What every store promises of outgoing notifications, whatever it is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import NotFound, StoreError
from planwave.events import Event
from planwave.storage.notifications import DEAD, DELIVERED, NotificationTarget
from planwave.storage.records import ExecutionRecord, PageCursor, PlanRecord
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore

ENDS = ("execution.completed", "execution.failed", "execution.cancelled")
OPERATOR = NotificationTarget(
    "ops", "https://ops.example/", ("main",), (*ENDS, "execution.waiting")
)


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000000+00:00"


def target(target_id: str = "t1", second: int = 0, **changes: Any) -> NotificationTarget:
    made = NotificationTarget(target_id, "https://a.example/", ("main",), ENDS, "f1", at(second))
    return replace(made, **changes)


async def save_flow(store: Store, plan_id: str = "f1") -> None:
    document: dict[str, Any] = {"nodes": [], "edges": []}
    await store.save_plan(PlanRecord(plan_id, at(0), "", "F", "h1", document, name=f"F {plan_id}"))


async def create(store: Store, execution_id: str, plan_id: str | None = None) -> None:
    flow = None if plan_id is None else "F"
    record = ExecutionRecord(execution_id, plan_id, "t", "g", "starting", at(0), flow=flow)
    await store.create_execution(record, [event(execution_id, 1, "execution.created")])


def event(execution_id: str, seq: int, kind: str, **data: Any) -> Event:
    path = "a" if kind.startswith("node.") else None
    return Event(execution_id, seq, at(seq), kind, path, None, data)


async def end(store: Store, execution_id: str, kind: str = "execution.completed") -> None:
    await store.append(execution_id, 1, [event(execution_id, 2, kind)])


async def with_dead(store: Store) -> str:
    """Store a notification, and let all its attempts have failed; return its id."""
    store.notifications.set_operator_targets([OPERATOR])
    await create(store, "e")
    await end(store, "e")
    (pending,) = await store.notifications.page()
    dead = replace(pending, status=DEAD, attempts=9, error="it \ud800 failed", body="{}")
    await store.notifications.update(dead)
    return pending.notification_id


async def test_end_of_an_execution_is_stored_for_each_target(store: Store) -> None:
    await save_flow(store)
    await save_flow(store, "f2")
    store.notifications.set_operator_targets([OPERATOR])
    assert await store.notifications.create_target(target())
    assert await store.notifications.create_target(target("t2", plan_id="f2"))
    await create(store, "e", "f1")
    assert await store.notifications.page() == []
    await end(store, "e", "execution.failed")
    found = await store.notifications.page()
    assert {each.target_id for each in found} == {"ops", "t1"}
    assert {(x.execution_id, x.seq, x.event, x.created_at, x.next_at) for x in found} == {
        ("e", 2, "execution.failed", at(2), at(2))
    }
    assert len({each.notification_id for each in found}) == 2


async def test_request_to_a_person_is_stored_for_those_who_asked_for_it(store: Store) -> None:
    await save_flow(store)
    store.notifications.set_operator_targets([OPERATOR])
    await store.notifications.create_target(target())
    await create(store, "e", "f1")
    asked = {"request_id": "r2", "request": {"kind": "question"}}
    timer = {"request_id": "r3", "request": {"kind": "timer"}}
    approval = {"request_id": "r4", "request": {"kind": "plan-approval"}}
    await store.append(
        "e",
        1,
        [
            event("e", 2, "node.waiting", **asked),
            event("e", 3, "node.waiting", **timer),
            event("e", 4, "execution.paused", **approval),
            event("e", 5, "execution.paused"),
        ],
    )
    found = await store.notifications.page()
    assert [(x.target_id, x.seq, x.event) for x in found] == [
        ("ops", 4, "execution.waiting"),
        ("ops", 2, "execution.waiting"),
    ]


async def test_refused_batch_stores_no_notification(store: Store) -> None:
    store.notifications.set_operator_targets([OPERATOR])
    await create(store, "e")
    with pytest.raises(StoreError):
        await store.append("e", 1, [event("e", 7, "execution.completed")])
    assert await store.notifications.page() == []


async def test_listener_hears_of_new_notifications(store: Store) -> None:
    heard: list[int] = []
    store.notifications.on_new = lambda: heard.append(1)
    own_id = await with_dead(store)
    assert heard
    heard.clear()
    await store.notifications.resend(own_id, at(9))
    assert heard


async def test_targets_are_listed_newest_first_after_those_of_the_operator(store: Store) -> None:
    await save_flow(store)
    store.notifications.set_operator_targets([OPERATOR])
    for each in (target("a"), target("c", 1), target("b", 1)):
        assert await store.notifications.create_target(each)
    assert not await store.notifications.create_target(target("a", url="https://b.example/"))
    assert await store.notifications.targets() == [
        OPERATOR, target("c", 1), target("b", 1), target("a"),
    ]  # fmt: skip
    assert await store.notifications.count_targets() == 3
    assert await store.notifications.target("ops") == OPERATOR
    assert await store.notifications.target("b") == target("b", 1)
    assert await store.notifications.target("other") is None


async def test_target_of_an_unknown_flow_is_rejected(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.notifications.create_target(target())


@pytest.mark.parametrize("with_flow", [False, True])
async def test_target_is_deleted_with_its_notifications(store: Store, with_flow: bool) -> None:
    await save_flow(store)
    store.notifications.set_operator_targets([OPERATOR])
    await store.notifications.create_target(target())
    await create(store, "e", "f1")
    await end(store, "e")
    if with_flow:
        await store.delete_plan("f1", force=True)
    else:
        assert await store.notifications.delete_target("t1")
        await create(store, "e2", "f1")
        await end(store, "e2")
    assert {each.target_id for each in await store.notifications.page()} == {"ops"}
    assert not await store.notifications.delete_target("t1")
    assert not await store.notifications.delete_target("ops")
    assert await store.notifications.targets() == [OPERATOR]


async def test_due_notifications_come_in_order_and_without_busy_targets(store: Store) -> None:
    await save_flow(store)
    store.notifications.set_operator_targets([OPERATOR])
    await store.notifications.create_target(target())
    await create(store, "e", "f1")
    await end(store, "e")
    first, second = sorted(await store.notifications.page(), key=lambda each: each.target_id)
    assert (first.target_id, second.target_id) == ("ops", "t1")
    await store.notifications.update(replace(first, next_at=at(9), attempts=1))
    assert [x.target_id for x in await store.notifications.due(at(9), 9)] == ["t1", "ops"]
    assert [x.target_id for x in await store.notifications.due(at(8), 9)] == ["t1"]
    assert [x.target_id for x in await store.notifications.due(at(9), 1)] == ["t1"]
    assert [x.target_id for x in await store.notifications.due(at(9), 9, busy=["t1"])] == ["ops"]
    assert await store.notifications.next_due() == at(2)
    assert await store.notifications.next_due(busy=["t1"]) == at(9)
    assert await store.notifications.next_due(busy=["t1", "ops"]) is None


async def test_settled_notification_stays_as_it_is_until_it_is_sent_again(store: Store) -> None:
    own_id = await with_dead(store)
    dead = await store.notifications.get(own_id)
    assert dead is not None
    assert (dead.status, dead.error) == (DEAD, "it � failed")
    await store.notifications.update(replace(dead, status=DELIVERED))
    assert await store.notifications.get(own_id) == dead
    assert await store.notifications.due(at(60), 9) == []
    assert await store.notifications.resend(own_id, at(50))
    again = await store.notifications.get(own_id)
    assert again == replace(dead, status="pending", attempts=0, since=at(50), next_at=at(50))
    assert await store.notifications.resend(own_id, at(55)), "it is pending already"
    assert await store.notifications.get(own_id) == again
    assert not await store.notifications.resend("other", at(50))


async def test_notifications_are_listed_newest_first_in_pages(store: Store) -> None:
    store.notifications.set_operator_targets([OPERATOR])
    for own_id in ("a", "b", "c"):
        await create(store, own_id)
        await end(store, own_id)
    all_ = await store.notifications.page()
    assert len(all_) == 3
    first, *rest = all_
    before = PageCursor(first.created_at, first.notification_id)
    assert await store.notifications.page(before=before) == rest
    assert await store.notifications.page(limit=2) == all_[:2]
    await store.notifications.update(replace(first, status=DELIVERED))
    assert [x.status for x in await store.notifications.page(status=DELIVERED)] == [DELIVERED]
    assert await store.notifications.page(status=DEAD) == []


async def test_settled_notifications_expire(store: Store) -> None:
    own_id = await with_dead(store)
    assert await store.notifications.delete_expired(delivered=at(60), dead=at(2)) == 0
    await create(store, "pending")
    await end(store, "pending")
    assert await store.notifications.delete_expired(delivered=at(2), dead=at(60)) == 1
    left = await store.notifications.page()
    assert [each.execution_id for each in left] == ["pending"]
    assert await store.notifications.get(own_id) is None
    await store.notifications.update(replace(left[0], status=DELIVERED))
    assert await store.notifications.delete_expired(delivered=at(60), dead=at(60)) == 1


async def test_flow_targets_outlive_the_process(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await save_flow(store)
    await store.notifications.create_target(target())
    await create(store, "e", "f1")
    await store.close()
    store = SqliteStore.open(tmp_path)
    await end(store, "e")
    await store.close()
    store = SqliteStore.open(tmp_path)
    assert [each.target_id for each in await store.notifications.page()] == ["t1"]
    await store.close()
