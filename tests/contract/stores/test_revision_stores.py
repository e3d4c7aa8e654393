"""What every store promises of changed plans and their revisions, whatever it is made of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.events import Event
from planwave.principals import Principal
from planwave.storage.records import ExecutionRecord, PlanRecord, PlanRevision
from planwave.storage.sql.store import Store
from planwave.storage.sql.stores.revisions import CompletedRun
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-01T00:00:01.000000Z"
DOCUMENT: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "t", "ui": {"x": 1.5, "none": None, "text": "ü\u0000"}}],
    "edges": [{"id": "e", "source": "a", "target": "a", "data": {"more": [1, [2]]}}],
    "diagnostics": [],
}
PLAN = PlanRecord("p1", AT, "a goal", "Title", "h1", {**DOCUMENT, "revision": 1})


def revision(number: int = 1, **changes: Any) -> PlanRevision:
    facts = ("p1", number, f"h{number}", "Title", "planner", "", AT, 1, 0)
    return replace(PlanRevision(*facts, document=DOCUMENT), **changes)


def changed(number: int = 2, **changes: Any) -> PlanRecord:
    return replace(
        PLAN,
        hash=f"h{number}",
        document={**DOCUMENT, "edges": [], "revision": number},
        edits=number - 1,
        author="person",
        note="why",
        updated_at=LATER,
        **changes,
    )


async def test_plan_that_was_never_changed_has_no_revisions(store: Store) -> None:
    await store.save_plan(PLAN)
    assert await store.plan("p1") == PLAN
    assert await store.revisions.page("p1") == []
    assert await store.revisions.get("p1", 1) is None


async def test_completed_executions_have_the_goals_of_their_plans(store: Store) -> None:
    await store.save_plan(PLAN)
    by = Principal("session", "s1")
    for name, plan_id, kind in [
        ("x1", "p1", "execution.completed"),
        ("x2", "p1", "execution.failed"),
        ("x3", "gone", "execution.completed"),
        ("x4", "p1", "execution.completed"),
    ]:
        row = ExecutionRecord(name, plan_id, "t", "another", "starting", f"{AT[:-2]}{name[1]}Z")
        row = replace(row, revision=1, created_by=None if name == "x4" else by)
        await store.create_execution(row, [Event(name, 1, AT, "execution.created", None, None, {})])
        await store.append(name, 1, [Event(name, 2, LATER, kind, None, None, {})])
    expected = [CompletedRun("p1", 1, None, "a goal"), CompletedRun("p1", 1, by, "a goal")]
    assert await store.revisions.completed(9) == expected
    assert await store.revisions.completed(1) == expected[:1]


async def test_change_supersedes_a_revision(store: Store) -> None:
    await store.save_plan(PLAN)
    assert await store.revisions.save(changed(), revision(), after=0)
    assert await store.plan("p1") == changed()
    assert await store.plans() == [changed()]
    assert await store.revisions.get("p1", 1) == revision()
    assert await store.revisions.page("p1") == [revision(document=None)]
    assert await store.revisions.get("p2", 1) is None


async def test_change_without_new_revision_is_saved(store: Store) -> None:
    await store.save_plan(PLAN)
    moved = replace(PLAN, document={**PLAN.document, "nodes": []}, edits=1)
    assert await store.revisions.save(moved, after=0)
    assert await store.plan("p1") == moved
    assert await store.revisions.page("p1") == []


async def test_stale_change_is_not_saved(store: Store) -> None:
    await store.save_plan(PLAN)
    assert await store.revisions.save(changed(), revision(), after=0)
    late = changed(title="late")
    assert not await store.revisions.save(late, revision(note="late"), after=0)
    assert not await store.revisions.save(replace(late, plan_id="nobody"), after=1)
    assert await store.plan("p1") == changed()
    assert await store.revisions.get("p1", 1) == revision()
    assert await store.plan("nobody") is None


async def test_one_of_concurrent_changes_is_saved(store: Store) -> None:
    await store.save_plan(PLAN)
    changes = [changed(title=f"T{n}") for n in range(10)]
    async with asyncio.TaskGroup() as group:
        saved = [
            group.create_task(store.revisions.save(each, revision(), after=0)) for each in changes
        ]
    (winner,) = [n for n, each in enumerate(saved) if each.result()]
    assert await store.plan("p1") == changes[winner]


async def test_revisions_are_paged_newest_first(store: Store) -> None:
    await store.save_plan(PLAN)
    for number in range(1, 12):
        after = number - 1
        assert await store.revisions.save(changed(number + 1), revision(number), after=after)
    first = await store.revisions.page("p1", limit=4)
    rest = await store.revisions.page("p1", before=first[-1].revision)
    assert [each.revision for each in [*first, *rest]] == list(range(11, 0, -1))
    assert await store.revisions.page("p1", limit=0) == []


async def test_changed_plan_is_found_by_its_new_title(store: Store) -> None:
    await store.save_plan(PLAN)
    await store.revisions.save(changed(title="Übersicht"), revision(), after=0)
    assert [each.plan_id for each in await store.plans(text="übersicht")] == ["p1"]
    assert await store.plans(text="Title") == []


async def test_deleted_plan_takes_its_revisions_along(store: Store) -> None:
    await store.save_plan(PLAN)
    await store.revisions.save(changed(), revision(), after=0)
    await store.delete_plan("p1")
    assert await store.revisions.page("p1") == []
    assert not await store.revisions.save(changed(3), revision(2), after=1)
    await store.save_plan(PLAN)
    assert await store.revisions.get("p1", 1) is None


async def test_stored_revision_is_a_copy(store: Store) -> None:
    document: dict[str, Any] = {"nodes": [{"id": "a"}], "edges": [], "diagnostics": []}
    await store.save_plan(PLAN)
    await store.revisions.save(changed(), revision(document=document), after=0)
    document["nodes"].clear()
    kept = await store.revisions.get("p1", 1)
    assert kept is not None
    assert kept.document == {"nodes": [{"id": "a"}], "edges": [], "diagnostics": []}


@pytest.mark.parametrize("value", [float("nan"), object(), b"x"])
async def test_invalid_json_is_rejected(store: Store, value: Any) -> None:
    await store.save_plan(PLAN)
    broken = revision(document={"nodes": [value]})
    for plan, superseded in ((changed(), broken), (changed(), None)):
        document = {"nodes": [value]} if superseded is None else plan.document
        with pytest.raises(StoreError) as refused:
            await store.revisions.save(replace(plan, document=document), superseded, after=0)
        assert refused.value.code == "not-json"
    assert await store.plan("p1") == PLAN


async def test_invalid_unicode_in_texts_is_replaced(store: Store) -> None:
    await store.save_plan(PLAN)
    noted = replace(changed(title="a\ud800b"), note="c\ud800d")
    await store.revisions.save(noted, revision(title="e\ud800f", note="g\ud800h"), after=0)
    plan, kept = await store.plan("p1"), await store.revisions.get("p1", 1)
    assert plan is not None
    assert kept is not None
    assert (plan.title, plan.note) == ("a\ufffdb", "c\ufffdd")
    assert (kept.title, kept.note) == ("e\ufffdf", "g\ufffdh")


async def test_closed_store_rejects_changes(store: Store) -> None:
    await store.save_plan(PLAN)
    await store.close()
    with pytest.raises(StoreError) as refused:
        await store.revisions.save(changed(), revision(), after=0)
    assert refused.value.code == "store-closed"


async def test_revisions_are_there_after_reopening(tmp_path: Path) -> None:
    before = SqliteStore.open(tmp_path)
    await before.save_plan(PLAN)
    await before.revisions.save(changed(), revision(), after=0)
    await before.close()
    again = SqliteStore.open(tmp_path, read_only=True)
    assert (await again.plan("p1"), await again.revisions.get("p1", 1)) == (changed(), revision())
    with pytest.raises(StoreError) as refused:
        await again.revisions.save(changed(3), revision(2), after=1)
    assert refused.value.code == "store-read-only"
    await again.close()
