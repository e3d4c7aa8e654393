"""What every store promises, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from copy import deepcopy
from typing import Any

import pytest

from planwave.errors import Conflict, NotFound, StaleEpoch, StoreError
from planwave.events import Event, fold
from planwave.principals import Principal
from planwave.providers.protocols import CallKey
from planwave.storage.records import (
    AnsweredRequest,
    ExecutionRecord,
    IdempotencyRecord,
    PageCursor,
    PlanRecord,
)
from planwave.storage.sql.store import Store


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}.000000Z"


def event(
    seq: int,
    kind: str = "node.log",
    /,
    *,
    of: str = "x1",
    path: str | None = None,
    attempt: int | None = None,
    **data: Any,
) -> Event:
    return Event(of, seq, at(seq), kind, path, attempt, data)


def plan(name: str, second: int = 0, **changes: Any) -> PlanRecord:
    fields = {
        "plan_id": name,
        "created_at": at(second),
        "user_prompt": f"goal of {name}",
        "title": f"Plan {name}",
        "hash": "h",
        "document": {"plan_id": name},
    }
    return PlanRecord(**{**fields, **changes})


def execution(name: str = "x1", second: int = 0, **changes: Any) -> ExecutionRecord:
    fields = {
        "execution_id": name,
        "plan_id": None,
        "title": f"Run {name}",
        "user_prompt": f"goal of {name}",
        "status": "starting",
        "created_at": at(second),
    }
    return ExecutionRecord(**{**fields, **changes})


async def create(store: Store, name: str = "x1", second: int = 0, **changes: Any) -> None:
    first = event(1, "execution.created", of=name, goal="g", title="t")
    await store.create_execution(execution(name, second, **changes), [first])


@pytest.mark.parametrize(
    "by",
    [
        None,
        Principal("operator"),
        Principal("token", "t1", "crm \N{SNOWMAN}"),
        Principal("trigger", "h1", "webhook", Principal("token", "t1", "\ud800")),
    ],
)
async def test_execution_keeps_its_creator(store: Store, by: Principal | None) -> None:
    await create(store, created_by=by)
    await store.append("x1", 1, [event(2, "execution.started")])
    kept = await store.execution("x1")
    assert kept is not None
    assert kept.created_by == by
    assert [each.created_by for each in await store.executions()] == [by]
    assert [each.created_by for each in await store.open_executions()] == [by]


async def test_open_executions_of_an_account_and_forks_are_counted(store: Store) -> None:
    one, another = Principal("token", "t1", "crm"), Principal("token", "t2")
    await create(store, "x1", created_by=one)
    await create(store, "x2", created_by=Principal("trigger", "h", by=one), parent_id="x1")
    await create(store, "x3", created_by=one, parent_id="x1")
    await create(store, "x4", created_by=another, parent_id="x3")
    await create(store, "x5")
    await store.append("x1", 1, [event(2, "execution.started"), event(3, "execution.completed")])
    accounts = (one.account, another.account, Principal("local").account, "token t3")
    assert [await store.count_open(each) for each in accounts] == [2, 1, 1, 0]
    assert [await store.count_forks(each) for each in ("x1", "x3", "x5")] == [2, 1, 0]
    kept = await store.execution("x4")
    assert kept is not None
    assert kept.parent_id == "x3"


async def test_accepted_executions_wait_until_they_begin(store: Store) -> None:
    assert (await store.load())[1:] == (0, None)
    await create(store, "x1", 2, queued=True)
    await create(store, "x2", 1, queued=True)
    await create(store, "x3", 0)
    found = await store.load()
    assert found[1:] == (2, at(1))
    assert found.size > 0
    await store.append("x2", 1, [event(2, "execution.started", of="x2")])
    assert (await store.load())[1:] == (1, at(2))
    await store.append("x1", 1, [event(2, "execution.cancelled", of="x1")])
    assert (await store.load())[1:] == (0, None)


async def test_plan_round_trips(store: Store) -> None:
    saved = plan("p1", document={"nodes": [{"id": "a"}], "n": 1.5, "none": None})
    await store.save_plan(saved)
    assert await store.plan("p1") == saved
    assert await store.plan("other") is None


async def test_saved_plan_is_replaced(store: Store) -> None:
    await store.save_plan(plan("p1"))
    await store.save_plan(plan("p1", title="New", document={"revision": 2}))
    assert [(p.title, p.document) for p in await store.plans()] == [("New", {"revision": 2})]


async def test_plan_and_execution_are_created_together(store: Store) -> None:
    new = plan("p1", document={"nodes": [], "none": None})
    await store.create_execution(execution("x1", plan_id="p1"), [], new)
    assert await store.plan("p1") == new
    with pytest.raises(StoreError):
        await store.create_execution(execution("x1", plan_id="p2"), [], plan("p2"))
    with pytest.raises(StoreError, match="p3") as refused:
        await store.create_execution(
            execution("x3", plan_id="p3"), [], plan("p3", document={1: {2}})
        )
    assert refused.value.code == "not-json"
    assert (await store.plan("p2"), await store.plan("p3")) == (None, None)
    assert await store.execution("x3") is None


async def test_existing_plan_is_kept_by_its_execution(store: Store) -> None:
    await store.save_plan(plan("p1", title="Old"))
    await store.create_execution(execution("x1", plan_id="p1"), [], plan("p1", title="New"))
    assert [each.title for each in await store.plans()] == ["Old"]


async def test_plans_are_listed_newest_first_in_stable_pages(store: Store) -> None:
    for name, second in (("a", 1), ("c", 2), ("b", 2), ("d", 0)):
        await store.save_plan(plan(name, second))
    pages: list[list[str]] = []
    before = None
    while page := [p.plan_id for p in await store.plans(before=before, limit=2)]:
        pages.append(page)
        before = page[-1]
    assert pages == [["c", "b"], ["a", "d"]]


async def test_page_follows_a_deleted_item(store: Store) -> None:
    for name, second in (("a", 1), ("c", 2), ("b", 2), ("d", 0)):
        await store.save_plan(plan(name, second))
        await create(store, name, second)
    gone = await store.plan("b")
    assert gone is not None
    await store.delete_plan("b")
    location = PageCursor(gone.created_at, "b")
    assert [p.plan_id for p in await store.plans(before=location, limit=1)] == ["a"]
    found = await store.executions(before=location._replace(id="bb"))
    assert [r.execution_id for r in found] == ["b", "a", "d"]


async def test_page_after_unknown_id_is_rejected(store: Store) -> None:
    with pytest.raises(NotFound, match="'nobody'"):
        await store.plans(before="nobody")
    with pytest.raises(NotFound, match="'nobody'"):
        await store.executions(before="nobody")


@pytest.mark.parametrize("text", ["ÜBERSICHT", "übersicht", "50%_off", "Straße", "STRASSE"])
async def test_search_ignores_case_and_wildcards(store: Store, text: str) -> None:
    await store.save_plan(plan("hit", title="Übersicht", user_prompt="50%_off in der Straße"))
    await store.save_plan(plan("miss", title="Ubersicht", user_prompt="50 off Strase"))
    await create(store, "hit", title="Übersicht", user_prompt="50%_off in der Straße")
    await create(store, "miss", title="Ubersicht", user_prompt="50 off Strase")
    assert [p.plan_id for p in await store.plans(text=text)] == ["hit"]
    assert [x.execution_id for x in await store.executions(text=text)] == ["hit"]


async def test_execution_is_created_with_its_first_events(store: Store) -> None:
    await store.create_execution(
        execution(plan_id="p1"),
        [event(1, "execution.created", goal="g"), event(2, "execution.started", waves=1)],
    )
    record = await store.execution("x1")
    assert record == execution(plan_id="p1", status="executing", started_at=at(2), last_seq=2)
    assert [e.type for e in await store.events("x1")] == ["execution.created", "execution.started"]


async def test_execution_can_be_created_without_events(store: Store) -> None:
    await store.create_execution(execution(), [])
    assert await store.execution("x1") == execution()
    assert await store.execution("x2") is None


async def test_duplicate_execution_is_rejected(store: Store) -> None:
    await create(store)
    with pytest.raises(StoreError) as refused:
        await create(store)
    assert refused.value.code == "duplicate-execution"
    assert len(await store.events("x1")) == 1


async def test_events_round_trip(store: Store) -> None:
    await create(store)
    sent = [
        event(2, "node.started", path="a", attempt=1, wave=1),
        event(
            3,
            "node.completed",
            path="a",
            attempt=1,
            outputs={"output": {"type": "any", "value": [1, None]}},
        ),
    ]
    await store.append("x1", 1, sent)
    assert (await store.events("x1"))[1:] == sent
    assert await store.events("x1", after=2) == sent[1:]
    assert await store.events("x1", after=1, limit=1) == sent[:1]
    assert await store.events("x1", limit=0) == []
    assert await store.events("nobody") == []


async def test_events_are_read_from_any_cursor(store: Store) -> None:
    sent = [event(seq, message=str(seq)) for seq in range(1, 13)]
    await store.create_execution(execution(), sent[:1])
    for first, last in ((1, 2), (2, 7), (7, 8), (8, 12)):
        await store.append("x1", 1, sent[first:last])
    for after in range(14):
        assert await store.events("x1", after=after) == sent[after:]
        for limit in range(14):
            page = await store.events("x1", after=after, limit=limit)
            assert page == sent[after : after + limit]


async def test_events_of_several_executions_are_read_at_once(store: Store) -> None:
    for own in ("x1", "x2", "x3"):
        await create(store, own)
        sent = [event(seq, "node.log", of=own) for seq in range(2, 6)]
        await store.append(own, 1, sent[:3])
        await store.append(own, 1, sent[3:])
    for asked in ({"x1": 0, "x2": 3, "x3": 9, "nobody": 0}, {"x3": 4}, {"nobody": 1}):
        alone = {own: await store.events(own, after=after) for own, after in asked.items()}
        at_once = await store.events_after(asked)
        assert {own: at_once.get(own, []) for own in asked} == alone
    assert [each.seq for each in (await store.events_after({"x2": 3}))["x2"]] == [4, 5]


async def test_appended_events_are_copied(store: Store) -> None:
    await create(store)
    data = {"outputs": {"output": {"type": "any", "value": [1]}}}
    await store.append("x1", 1, [Event("x1", 2, at(2), "node.completed", "a", 1, data)])
    stored = deepcopy(data)
    data["outputs"]["output"]["value"].append(2)
    (await store.events("x1", after=1))[0].data["outputs"].clear()
    assert (await store.events("x1", after=1))[0].data == stored


async def test_status_and_times_follow_events(store: Store) -> None:
    await create(store)
    seen: list[tuple[str, str | None, str | None]] = []
    kinds = ["started", "paused", "resumed", "failed"]
    for seq, kind in enumerate(kinds, 2):
        await store.append("x1", 1, [event(seq, f"execution.{kind}")])
        record = await store.execution("x1")
        assert record is not None
        assert record.last_seq == seq
        seen.append((record.status, record.started_at, record.completed_at))
    assert seen == [
        ("executing", at(2), None),
        ("paused", at(2), None),
        ("executing", at(2), None),
        ("failed", at(2), at(5)),
    ]


async def test_one_batch_can_hold_a_whole_run(store: Store) -> None:
    await create(store)
    kinds = ["execution.started", "node.log", "execution.completed"]
    await store.append("x1", 1, [event(seq, kind) for seq, kind in enumerate(kinds, 2)])
    record = await store.execution("x1")
    assert record == execution(status="completed", started_at=at(2), completed_at=at(4), last_seq=4)


async def test_deltas_are_not_stored(store: Store) -> None:
    await create(store)
    delta = event(0, "node.delta", path="a", attempt=1, kind="text", text="hi", offset=0)
    await store.append("x1", 1, [delta])
    await store.append("x1", 1, [delta, event(2), delta, event(3)])
    assert [e.seq for e in await store.events("x1")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("seqs", "code"),
    [
        ([1], "duplicate-seq"),
        ([2, 2], "duplicate-seq"),
        ([3], "seq-gap"),
        ([2, 4], "seq-gap"),
        ([0], "duplicate-seq"),
    ],
)
async def test_sequence_numbers_are_contiguous(store: Store, seqs: list[int], code: str) -> None:
    await create(store)
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [event(seq) for seq in seqs])
    assert refused.value.code == code
    assert [e.seq for e in await store.events("x1")] == [1]
    await store.append("x1", 1, [event(2)])
    assert [e.seq for e in await store.events("x1")] == [1, 2]


async def test_append_to_unknown_execution_is_rejected(store: Store) -> None:
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [event(1)])
    assert refused.value.code == "unknown-execution"
    await create(store)
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [event(2, of="x2")])
    assert refused.value.code == "wrong-execution"


async def test_stale_epoch_is_rejected(store: Store) -> None:
    await create(store)
    await store.append("x1", 1, [event(2)])
    assert await store.claim("x1") == 2
    with pytest.raises(StaleEpoch) as refused:
        await store.append("x1", 1, [event(3)])
    assert refused.value.message == (
        "execution 'x1' was taken over by another process or run: it is in epoch 2, and epoch 1 "
        "can write no more"
    )
    assert refused.value.hint == "open the execution again and continue from its stored state"
    await store.append("x1", 2, [event(3)])
    record = await store.execution("x1")
    assert record is not None
    assert (record.epoch, record.last_seq) == (2, 3)


async def test_claim_sets_queued(store: Store) -> None:
    await create(store, "x1")
    await create(store, "x2", queued=True)
    for name, queued, expected in (
        ("x1", None, False),
        ("x2", None, True),
        ("x1", True, True),
        ("x1", None, True),
        ("x2", False, False),
    ):
        await store.claim(name, queued=queued)
        found = await store.execution(name)
        assert found is not None
        assert found.queued is expected, (name, queued)


async def test_open_executions_are_listed_oldest_first(store: Store) -> None:
    ways = {
        "executing": ["execution.started"],
        "paused": ["execution.started", "execution.paused"],
        "resumed": ["execution.started", "execution.paused", "execution.resumed"],
        "completed": ["execution.started", "execution.completed"],
        "failed": ["execution.started", "execution.failed"],
        "cancelled": ["execution.cancelled"],
        "starting": [],
    }
    for second, (name, kinds) in enumerate(ways.items()):
        for is_queued in (False, True):
            own = f"{name} {is_queued}"
            await create(store, own, 50 - second, queued=is_queued)
            for seq, kind in enumerate(kinds, 2):
                await store.append(own, 1, [event(seq, kind, of=own)])
    found = await store.open_executions()
    assert [x.execution_id for x in found] == [
        "starting True",
        "resumed False",
        "resumed True",
        "paused False",
        "paused True",
        "executing False",
        "executing True",
    ]
    assert found == [await store.execution(x.execution_id) for x in found]


async def test_claim_of_unknown_execution_is_rejected(store: Store) -> None:
    with pytest.raises(NotFound):
        await store.claim("x1")
    assert await store.set_document_seqs({"x1": 1}) == ["x1"]


async def test_fifty_executions_append_concurrently(store: Store) -> None:
    async def run(name: str) -> None:
        await create(store, name)
        for seq in range(2, 12, 2):
            await store.append(name, 1, [event(seq, of=name), event(seq + 1, of=name)])

    names = [f"x{n}" for n in range(50)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(run(name))
    for name in names:
        assert [e.seq for e in await store.events(name)] == list(range(1, 12))


async def test_concurrent_appends_keep_their_order(one_process_store: Store) -> None:
    await create(one_process_store)
    async with asyncio.TaskGroup() as group:
        for seq in range(2, 52):
            group.create_task(one_process_store.append("x1", 1, [event(seq, message=str(seq))]))
    found = await one_process_store.events("x1", after=1)
    assert [(e.seq, e.data["message"]) for e in found] == [(n, str(n)) for n in range(2, 52)]


async def test_failed_append_fails_alone(one_process_store: Store) -> None:
    for name in ("x1", "x2", "x3"):
        await create(one_process_store, name)
    results: dict[str, str] = {}

    async def append(name: str, seq: int, epoch: int = 1) -> None:
        try:
            await one_process_store.append(name, epoch, [event(seq, of=name)])
        except StoreError as error:
            results[f"{name}:{seq}"] = error.code

    await one_process_store.claim("x3")
    async with asyncio.TaskGroup() as group:
        group.create_task(append("x1", 2))
        group.create_task(append("x2", 7))
        group.create_task(append("x3", 2, epoch=1))
        group.create_task(append("x1", 3))
        group.create_task(append("x2", 2))
    assert results == {"x2:7": "seq-gap", "x3:2": "late-writer"}
    assert [e.seq for e in await one_process_store.events("x1")] == [1, 2, 3]
    assert [e.seq for e in await one_process_store.events("x2")] == [1, 2]


async def test_concurrent_writes_keep_their_order(one_process_store: Store) -> None:
    async def told(write: Coroutine[Any, Any, object]) -> object:
        try:
            return await write
        except StoreError as error:
            return error.code

    def made(name: str, of: PlanRecord) -> Coroutine[Any, Any, object]:
        first = event(1, "execution.created", of=name)
        return one_process_store.create_execution(execution(name, plan_id=of.plan_id), [first], of)

    writes = (
        one_process_store.append("x1", 1, [event(1)]),
        made("x1", plan("p1", title="First")),
        made("x1", plan("p2")),
        made("x2", plan("p1", title="Second")),
        one_process_store.append("x2", 1, [event(2, "execution.started", of="x2")]),
        one_process_store.claim("x2"),
        one_process_store.append("x2", 1, [event(3, of="x2")]),
        one_process_store.append("x2", 2, [event(3, of="x2")]),
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(told(write)) for write in writes]
    assert [task.result() for task in tasks] == [
        "unknown-execution", None, "duplicate-execution", None, None, 2, "late-writer", None,
    ]  # fmt: skip
    assert [(each.plan_id, each.title) for each in await one_process_store.plans()] == [
        ("p1", "First")
    ]
    x1, x2 = [await one_process_store.execution(name) for name in ("x1", "x2")]
    assert x1 == execution("x1", plan_id="p1", last_seq=1)
    assert x2 == execution(
        "x2", plan_id="p1", status="executing", started_at=at(2), last_seq=3, epoch=2
    )


async def test_cancelled_append_is_stored(one_process_store: Store) -> None:
    await create(one_process_store)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one_process_store.append("x1", 1, [event(2)]))
        await asyncio.sleep(0)
        task.cancel()
    await one_process_store.append("x1", 1, [event(3)])
    assert [e.seq for e in await one_process_store.events("x1")] == [1, 2, 3]


@pytest.mark.parametrize(
    "text",
    ["日本語 🎉", "nul \x00 in it", "lone \ud800 surrogate", "\u2028\u2029", "x" * 300_000],
    ids=["unicode", "nul", "surrogate", "separators", "huge"],
)
async def test_any_text_round_trips(store: Store, text: str) -> None:
    await create(store)
    await store.append("x1", 1, [event(2, message=text)])
    await store.save_plan(plan("p1", document={"text": text}))
    key = CallKey("x1", "a", 1, 0, "h")
    await store.record(key, {"text": text})
    assert (await store.events("x1", after=1))[0].data == {"message": text}
    stored = await store.plan("p1")
    assert stored is not None
    assert stored.document == {"text": text}
    assert await store.recorded(key) == {"text": text}


async def test_invalid_unicode_in_titles_is_replaced(store: Store) -> None:
    await store.save_plan(plan("p1", title="a\ud800b", user_prompt="smile \ud83d\ude00"))
    await create(store, title="a\ud800b", user_prompt="smile \ud83d\ude00")
    (stored,) = await store.plans(text="SMILE \ud83d\ude00")
    assert (stored.title, stored.user_prompt) == ("a\ufffdb", "smile 😀")
    (run,) = await store.executions(text="a\ud800B")
    assert (run.title, run.user_prompt) == ("a\ufffdb", "smile 😀")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}])
async def test_invalid_json_is_rejected(store: Store, value: Any) -> None:
    await create(store)
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [event(2, value=value)])
    assert refused.value.code == "not-json"
    with pytest.raises(StoreError):
        await store.save_plan(plan("p1", document={"value": value}))
    with pytest.raises(StoreError):
        await store.record(CallKey("x1", "a", 1, 0, "h"), {"value": value})
    await store.append("x1", 1, [event(2)])


async def test_deeply_nested_json_is_rejected(store: Store) -> None:
    await create(store)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(StoreError):
        await store.append("x1", 1, [event(2, value=deep)])
    await store.append("x1", 1, [event(2)])


async def test_executions_are_filtered_by_status_and_time(store: Store) -> None:
    for second, name in enumerate(("a", "b", "c", "d")):
        await create(store, name, second)
    await store.append("b", 1, [event(2, "execution.started", of="b")])

    async def ids(**chosen: Any) -> list[str]:
        return [x.execution_id for x in await store.executions(**chosen)]

    assert await ids() == ["d", "c", "b", "a"]
    assert await ids(status="executing") == ["b"]
    assert await ids(since=at(2)) == ["d", "c"]
    assert await ids(before="c", limit=1) == ["b"]
    assert await ids(status="starting", before="c") == ["a"]
    assert await ids(limit=0) == []


async def test_documents_lag_until_the_last_event_is_written(store: Store) -> None:
    for second, (name, kind) in enumerate(
        {"run": "started", "wait": "paused", "end": "completed"}.items()
    ):
        await create(store, name, second)
        await store.append(name, 1, [event(2, f"execution.{kind}", of=name)])
    assert await store.lagging_documents() == ["wait", "end"]
    assert await store.set_document_seqs({"wait": 1, "nobody": 7, "end": 2}) == ["nobody"]
    assert await store.lagging_documents() == ["wait"]
    assert await store.set_document_seqs({"end": 1}) == []
    record = await store.execution("end")
    assert record is not None
    assert record.document_seq == 2


async def test_executions_are_filtered_by_plan(store: Store) -> None:
    for second, (name, of) in enumerate({"a": "p1", "b": "p2", "c": "p1", "d": None}.items()):
        await create(store, name, second, plan_id=of)
    assert [x.execution_id for x in await store.executions(plan_id="p1")] == ["c", "a"]
    assert [x.execution_id for x in await store.executions(plan_id="p1", before="c")] == ["a"]
    assert await store.executions(plan_id="p1", status="completed") == []


async def test_plan_status_follows_its_newest_execution(store: Store) -> None:
    for second, name in ((3, "new"), (1, "old"), (2, "same"), (2, "sane")):
        await create(store, name, second, plan_id="p2" if name.startswith("s") else "p1")
    await store.append("new", 1, [event(2, "execution.started", of="new")])
    await store.append("old", 1, [event(2, "execution.failed", of="old")])
    await store.append("sane", 1, [event(2, "execution.failed", of="sane")])
    found = await store.plan_statuses(["p1", "never ran", "p2", "'; --"])
    assert found == {"p1": "executing", "p2": "failed"}
    assert await store.plan_statuses([]) == {}


async def create_ended(store: Store, name: str, second: int = 0, **changes: Any) -> None:
    """Keep an execution that ended two seconds into the day."""
    await create(store, name, second, **changes)
    await store.append(name, 1, [event(2, "execution.completed", of=name)])


async def test_deleted_plan_leaves_its_executions(store: Store) -> None:
    await store.save_plan(plan("p1"))
    await create_ended(store, "x1", plan_id="p1")
    await store.delete_plan("p1")
    assert await store.plan("p1") is None
    assert await store.plans() == []
    assert [x.plan_id for x in await store.executions()] == ["p1"]
    with pytest.raises(NotFound, match="'p1'"):
        await store.delete_plan("p1")


@pytest.mark.parametrize("kind", ["created", "started", "paused", "resumed"])
async def test_plan_in_use_is_not_deleted(store: Store, kind: str) -> None:
    await store.save_plan(plan("p1"))
    await create_ended(store, "done", plan_id="p1")
    await create(store, "x1", plan_id="p1")
    await store.append("x1", 1, [event(2, f"execution.{kind}")])
    with pytest.raises(Conflict, match="x1") as refused:
        await store.delete_plan("p1")
    assert (refused.value.code, await store.plan("p1")) == ("plan-in-use", plan("p1"))
    await store.append("x1", 1, [event(3, "execution.cancelled")])
    await store.delete_plan("p1")


async def test_deleted_execution_leaves_nothing_behind(store: Store) -> None:
    await create_ended(store, "x1", plan_id="p1")
    await create_ended(store, "x2")
    own, other = CallKey("x1", "a", 1, 0, "h"), CallKey("x2", "a", 1, 0, "h")
    for key in (own, other):
        await store.record(key, {"text": "said"})
    await store.delete_execution("x1")
    assert await store.execution("x1") is None
    assert await store.events("x1") == []
    assert await store.recorded(own) is None
    assert await store.recorded(other) == {"text": "said"}
    assert [x.execution_id for x in await store.executions()] == ["x2"]
    assert await store.lagging_documents() == ["x2"]
    assert await store.plan_statuses(["p1"]) == {}
    for refusing in (store.delete_execution("x1"), store.claim("x1")):
        with pytest.raises(NotFound):
            await refusing


@pytest.mark.parametrize("kind", ["created", "started", "paused"])
async def test_running_execution_is_not_deleted(store: Store, kind: str) -> None:
    await create(store)
    await store.append("x1", 1, [event(2, f"execution.{kind}")])
    with pytest.raises(Conflict) as refused:
        await store.delete_execution("x1")
    assert refused.value.code == "execution-running"
    assert len(await store.events("x1")) == 2


async def test_append_to_deleted_execution_is_rejected(store: Store) -> None:
    await create_ended(store, "x1")
    await store.append("x1", 1, [event(3)])
    await store.delete_execution("x1")
    await create(store, "x2")
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [event(4)])
    assert refused.value.code == "unknown-execution"
    assert len(await store.events("x2")) == 1


async def test_prune_removes_oldest_ended_executions(store: Store) -> None:
    for second, name in enumerate(("a", "b", "c", "open")):
        await create(store, name, second)
        kind = "paused" if name == "open" else "completed"
        steps = [event(seq, of=name) for seq in range(2, 10 + second)]
        last = event(10 + second, f"execution.{kind}", of=name)
        await store.append(name, 1, [*steps, last])
    assert await store.prune(at(10), 9) == []  # a ended at 10
    assert await store.prune(at(60), 0) == []
    assert await store.prune(at(60), 2) == ["a", "b"]
    assert await store.prune(at(60), 2) == ["c"]
    assert await store.prune(at(60), 2) == []
    assert [x.execution_id for x in await store.executions()] == ["open"]


async def test_idempotency_key_is_claimed_once(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(store.claim_idempotency_key("k", "d", at(1), expired=at(0)))
            for _ in range(20)
        ]
    found = [task.result() for task in tasks]
    assert [each.is_new for each in found].count(True) == 1
    assert {(each.digest, each.status, each.body) for each in found} == {("d", None, None)}
    assert len({each.subject for each in found}) == 1


async def test_response_is_stored_under_its_key(store: Store) -> None:
    assert await store.idempotency_record("k") is None
    taken = await store.claim_idempotency_key("k", "d", at(1), expired=at(0))
    await store.store_response("k", 201, '{"é": "\\u0000"}')
    stored = IdempotencyRecord("d", at(1), taken.subject, 201, '{"é": "\\u0000"}')
    assert await store.idempotency_record("k") == stored
    assert await store.claim_idempotency_key("k", "other", at(2), expired=at(0)) == stored
    await store.store_response("k", 500, "late")
    await store.release_idempotency_key("k")
    assert await store.idempotency_record("k") == stored
    assert (await store.claim_idempotency_key("K", "d", at(2), expired=at(0))).is_new


async def test_released_key_can_be_claimed_again(store: Store) -> None:
    first = await store.claim_idempotency_key("k", "d", at(1), expired=at(0))
    await store.release_idempotency_key("k")
    again = await store.claim_idempotency_key("k", "other", at(2), expired=at(0))
    assert (again.is_new, again.digest) == (True, "other")
    assert again.subject != first.subject


async def test_key_is_kept_until_expired_and_its_execution_ended(
    store: Store,
) -> None:
    taken = await store.claim_idempotency_key("k", "d", at(1), expired=at(0))
    await store.store_response("k", 202, "{}")
    await create(store, taken.subject)
    await store.claim_idempotency_key("other", "d", at(1), expired=at(0))
    assert not (await store.claim_idempotency_key("k", "d", at(9), expired=at(1))).is_new
    assert not (await store.claim_idempotency_key("k", "d", at(9), expired=at(2))).is_new
    assert await store.delete_expired_keys(at(1)) == 0
    assert await store.delete_expired_keys(at(2)) == 1
    await store.append(taken.subject, 1, [event(2, "execution.completed", of=taken.subject)])
    again = await store.claim_idempotency_key("k", "new", at(9), expired=at(2))
    assert (again.is_new, again.created_at, again.status) == (True, at(9), None)
    assert again.subject != taken.subject


async def test_recorded_call_is_found_by_its_whole_key(store: Store) -> None:
    key = CallKey("x1", "a[0]/b", 1, 0, "hash")
    await store.record(key, {"text": "first"})
    await store.record(key, {"text": "second"})
    assert await store.recorded(key) == {"text": "first"}
    others = [
        key._replace(execution_id="x2"),
        key._replace(path="a"),
        key._replace(attempt=2),
        key._replace(ordinal=1),
        key._replace(request_hash="other"),
    ]
    assert [await store.recorded(other) for other in others] == [None] * 5


async def test_stored_events_fold_to_the_same_state(store: Store) -> None:
    graph = {"nodes": [{"id": "a", "type": "t", "name": "A", "data": {}}], "edges": []}
    events = [
        event(1, "execution.created", goal="g", title="t", graph=graph),
        event(2, "execution.started", waves=1),
        event(3, "node.started", path="a", attempt=1, wave=1),
        event(4, "node.completed", path="a", attempt=1, outputs={}, duration_s=0.25),
        event(5, "execution.completed"),
    ]
    await store.create_execution(execution(), events[:1])
    await store.append("x1", 1, events[1:])
    assert fold(await store.events("x1")).as_json() == fold(events).as_json()


async def test_executions_are_counted_by_status(store: Store) -> None:
    assert await store.count_executions() == {}
    for second, name in enumerate(("x1", "x2", "x3", "x4")):
        made = execution(name, second, plan_id="p1" if second else None)
        await store.create_execution(made, [event(1, "execution.created", of=name)])
        await store.append(name, 1, [event(2, "execution.started", of=name)])
    for name in ("x2", "x3"):
        await store.append(name, 1, [event(3, "execution.failed", of=name)])
    assert await store.count_executions() == {"executing": 2, "failed": 2}
    assert await store.count_executions(since=at(2)) == {"executing": 1, "failed": 1}
    assert await store.count_executions(plan_id="p1") == {"executing": 1, "failed": 2}
    assert await store.count_executions(plan_id="f2") == {}
    assert await store.count_executions(text="GOAL OF X3", plan_id="p1") == {"failed": 1}
    await store.delete_execution("x2")
    assert await store.count_executions() == {"executing": 2, "failed": 1}


def asked(seq: int, of: str, kind: str = "question") -> Event:
    request = {"kind": kind, "prompt": "Which one?"}
    return event(seq, "node.waiting", of=of, path="a", request_id=f"r{seq}", request=request)


def answered(seq: int, request: int, of: str, **more: Any) -> Event:
    return event(seq, "node.answered", of=of, path="a", request_id=f"r{request}", answer={}, **more)


async def test_answered_requests_are_listed_newest_first_in_pages(store: Store) -> None:
    await store.create_execution(execution("x1"), [event(1, "execution.created"), asked(2, "x1")])
    await store.create_execution(
        execution("x2"),
        [
            event(1, "execution.created", of="x2"),
            event(2, "execution.paused", of="x2", request_id="r2", request={"kind": "plan"}),
            event(3, "execution.resumed", of="x2", request_id="r2", answer={}),
            asked(4, "x2", "timer"),
            answered(5, 4, "x2", by="timeout"),
            event(6, "execution.resumed", of="x2", reason="answered"),
            asked(7, "x2"),
            answered(8, 99, "x2"),
        ],
    )
    assert await store.count_answered_requests() == 1, "neither the timer nor what nobody asked"
    await store.append("x1", 1, [answered(3, 2, "x1", by="timeout")])
    await store.append("x2", 1, [answered(9, 7, "x2")])
    expected = [
        AnsweredRequest(at(9), "x2", 9, 7),
        AnsweredRequest(at(3), "x2", 3, 2),
        AnsweredRequest(at(3), "x1", 3, 2),
    ]
    assert await store.answered_requests() == expected
    assert await store.answered_requests(limit=2) == expected[:2]
    assert await store.answered_requests(before=expected[1][:3], limit=2) == expected[2:]
    await store.append("x2", 1, [event(10, "execution.completed", of="x2")])
    await store.delete_execution("x2")
    assert await store.answered_requests() == expected[2:]
    assert await store.count_answered_requests() == 1


async def test_closed_store_rejects_writes(store: Store) -> None:
    await create(store)
    await store.close()
    await store.close()
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [event(2)])
    assert refused.value.code == "store-closed"


async def test_other_requests_under_the_number_of_a_call_are_seen(store: Store) -> None:
    key = CallKey("x1", "a", 1, 0, "h1")
    assert not await store.has_other(key)
    await store.record(key, {"text": "first"})
    await store.record(key._replace(request_hash="h1/begun"), {})
    assert not await store.has_other(key)
    assert await store.has_other(key._replace(request_hash="h2"))
    for field, value in {"execution_id": "x2", "path": "b", "attempt": 2, "ordinal": 1}.items():
        assert not await store.has_other(key._replace(request_hash="h2", **{field: value}))


async def test_calls_of_an_attempt_are_seen_by_any_of_its_calls(store: Store) -> None:
    key = CallKey("x1", "a", 1, 3, "h1/begun")
    assert not await store.has_calls(key)
    await store.record(key, {})
    assert await store.has_calls(key._replace(ordinal=0, request_hash="h2"))
    for field, value in {"execution_id": "x2", "path": "b", "attempt": 2}.items():
        assert not await store.has_calls(key._replace(**{field: value}))


async def test_all_that_is_recorded_of_executions_is_read_at_once(store: Store) -> None:
    keys = [CallKey(x, p, 1, n, "h") for x in ("x1", "x2", "x3") for p in "ab" for n in (0, 1)]
    for key in keys:
        await store.record(key, {"text": str(key)})
    found = await store.calls(["x1", "x3", "x4"])
    assert found.keys() == {"x1", "x3"}
    for execution_id, calls in found.items():
        wanted = [(k, {"text": str(k)}) for k in keys if k.execution_id == execution_id]
        assert sorted(calls) == wanted
