"""What every store promises of flows, which are plans that have a name."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import Conflict, NotFound, StoreError
from planwave.events import Event
from planwave.principals import LOCAL
from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.chats import ChatRecord
from planwave.storage.notifications import NotificationTarget
from planwave.storage.records import (
    ExecutionRecord,
    InputSet,
    PageCursor,
    PlanRecord,
    PlanRevision,
)
from planwave.storage.sql.store import Store
from planwave.storage.triggers import TriggerRecord


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000000Z"


def flow(plan_id: str = "f1", second: int = 0, **changes: Any) -> PlanRecord:
    fields = {
        "plan_id": plan_id,
        "created_at": at(second),
        "user_prompt": "",
        "title": "T",
        "hash": "h1",
        "document": {"nodes": [{"id": "a"}], "edges": [], "revision": 1},
        "name": f"Flow {plan_id}",
        "description": f"what {plan_id} is for",
    }
    return PlanRecord(**{**fields, **changes})


def plan(plan_id: str = "p1", **changes: Any) -> PlanRecord:
    return flow(plan_id, **{"name": None, "description": "", **changes})


async def save(store: Store, *flows: PlanRecord) -> None:
    for each in flows:
        await store.save_plan(each)


async def change(store: Store, before: PlanRecord, *, force: bool = False, **changes: Any) -> bool:
    changed = replace(before, edits=before.edits + 1, **changes)
    return await store.revisions.save(changed, after=before.edits, force=force)


async def test_flow_round_trips_and_is_found_by_its_name(store: Store) -> None:
    await save(store, flow(name="Übersicht"), plan())
    assert await store.plan("f1") == flow(name="Übersicht")
    for name in ("Übersicht", "ÜBERSICHT", "U\u0308bersicht"):
        assert await store.plans(name=name) == [flow(name="Übersicht")]
    assert await store.plans(name="other") == []
    assert [each.plan_id for each in await store.plans(named=True)] == ["f1"]
    assert [each.plan_id for each in await store.plans(named=False)] == ["p1"]
    assert {each.plan_id for each in await store.plans()} == {"f1", "p1"}


async def test_name_is_unique_without_regard_to_case(store: Store) -> None:
    await save(store, flow(name="Straße"), plan())
    for taken in ("Straße", "STRASSE"):
        with pytest.raises(Conflict, match="f1") as refused:
            await store.save_plan(flow("f2", name=taken))
        assert refused.value.code == "name-taken"
        with pytest.raises(Conflict) as refused:
            await change(store, plan(), name=taken)
        assert refused.value.code == "name-taken"
    assert await store.plan("f2") is None
    assert await store.plan("p1") == plan()
    assert await change(store, flow(name="Straße"), name="STRASSE"), "its own, in other letters"
    await store.delete_plan("f1")
    await store.save_plan(flow("f2", name="straße"))


async def test_one_of_concurrent_owners_gets_a_name(store: Store) -> None:
    await save(store, *(plan(f"p{n}") for n in range(8)))

    async def take(n: int) -> bool:
        try:
            return await change(store, plan(f"p{n}"), name="One" if n % 2 else "ONE")
        except Conflict:
            return False

    async with asyncio.TaskGroup() as group:
        taken = [group.create_task(take(n)) for n in range(8)]
    assert sum(each.result() for each in taken) == 1


async def test_flows_are_listed_newest_first_in_stable_pages(store: Store) -> None:
    await save(store, flow("a", 1), flow("c", 2), plan("p"), flow("b", 2), flow("d", 0))
    pages: list[list[str]] = []
    before = None
    while page := [each.plan_id for each in await store.plans(named=True, before=before, limit=2)]:
        pages.append(page)
        before = page[-1]
    assert pages == [["c", "b"], ["a", "d"]]
    found = await store.plans(named=True, before=PageCursor(at(2), "bb"))
    assert [each.plan_id for each in found] == ["b", "a", "d"]


@pytest.mark.parametrize("text", ["ÜBERSICHT", "übersicht", "50%_off", "STRASSE"])
async def test_search_ignores_case_and_wildcards(store: Store, text: str) -> None:
    hit = flow("hit", name="Übersicht", description="50%_off in der Straße")
    await save(store, hit, flow("miss", name="Ubersicht", description="50 off Strase"))
    assert [each.plan_id for each in await store.plans(text=text, named=True)] == ["hit"]
    assert await change(store, hit, name="Other", description="")
    assert await store.plans(text=text, named=True) == []


async def test_published_flows_are_listed_by_what_they_are_published_as(store: Store) -> None:
    await save(store, flow("f1", 1), flow("f2", 2), flow("f3", 3))
    assert await change(store, flow("f1", 1), published=("model", "tool"))
    assert await change(store, flow("f2", 2), published=("tool",))

    async def listed(published: str) -> list[str]:
        return [each.plan_id for each in await store.plans(published=published)]

    assert await listed("model") == ["f1"]
    assert await listed("tool") == ["f2", "f1"]
    assert await listed("mod") == []
    await store.delete_plan("f1", force=True)
    assert await listed("model") == []


USES = ("published", "trigger", "token", "target", "graph")


async def use(store: Store, kind: str, plan_id: str = "f1") -> None:
    """Make something lead to a flow."""
    match kind:
        case "published":
            found = await store.plan(plan_id)
            assert found is not None
            assert await change(store, found, published=("tool",))
        case "trigger":
            await store.triggers.create(TriggerRecord("t1", plan_id, "hook", "webhook", at(1)))
        case "token":
            for name, flows in (("one", (plan_id,)), ("two", (plan_id, "f2"))):
                record = AccessTokenRecord(name, name, name, ("run",), flows, at(1))
                await store.access_tokens.create(record)
        case "target":
            target = NotificationTarget("n1", "https://a.example/", (), (), plan_id, at(1))
            await store.notifications.create_target(target)
        case _:
            inner = {"id": "deep", "data": {"flow": {"name": "FLOW F1"}}}
            node = {"id": "loop", "data": {"graph": {"nodes": [inner]}}}
            await store.save_plan(plan("p9", title="Outer", document={"nodes": [node]}))


@pytest.mark.parametrize("kind", USES)
@pytest.mark.parametrize("act", ["delete", "rename", "remove the name"])
async def test_what_leads_to_a_name_is_listed_or_goes_with_it(
    store: Store, kind: str, act: str
) -> None:
    await save(store, flow(), flow("f2"))
    await use(store, kind)

    async def take_away(*, force: bool) -> None:
        found = await store.plan("f1")
        assert found is not None
        if act == "delete":
            await store.delete_plan("f1", force=force)
        else:
            name = "New" if act == "rename" else None
            assert await change(store, found, name=name, force=force)

    before = await store.plan("f1")
    with pytest.raises(Conflict) as refused:
        await take_away(force=False)
    said = {
        "published": "published as a tool",
        "trigger": "webhook node 'hook'",
        "token": "'one'",
        "target": "a.example",
        "graph": "'Outer'",
    }
    assert refused.value.code == "flow-in-use"
    assert said[kind] in refused.value.message
    assert await store.plan("f1") == before
    await take_away(force=True)
    assert await store.plans(name="Flow f1") == []
    after = await store.plan("f1")
    assert (after is None) == (act == "delete")
    assert after is None or after.published == ()
    assert not await store.triggers.page()
    assert not await store.notifications.targets()
    tokens = {each.name: each.flows for each in await store.access_tokens.all()}
    assert tokens == ({"two": ("f2",)} if kind == "token" else {})
    assert kind != "graph" or await store.plan("p9") is not None


async def test_all_that_leads_to_a_name_is_listed(store: Store) -> None:
    await save(store, flow())
    for number in range(12):
        token = AccessTokenRecord(
            f"t{number}", f"n{number}", f"d{number}", ("run",), ("f1",), at(1)
        )
        await store.access_tokens.create(token)
    with pytest.raises(Conflict) as refused:
        await store.delete_plan("f1")
    assert all(f"'n{number}'" in refused.value.message for number in range(12))


async def test_a_graph_that_names_another_flow_is_no_use(store: Store) -> None:
    node = {"id": "f1", "data": {"flow": {"id": "f2"}, "text": "Flow f1 and f1"}}
    await save(store, flow(), flow("f2"), plan("p9", document={"nodes": [node]}))
    await store.delete_plan("f1")
    with pytest.raises(Conflict):
        await store.delete_plan("f2")


async def test_a_use_in_the_live_revision_counts_under_a_draft(store: Store) -> None:
    names = {"nodes": [{"id": "n", "data": {"flow": {"id": "f1", "revision": 2}}}]}
    outer = plan("p9", title="Outer", document={**names, "revision": 1})
    await save(store, flow(), outer)
    before = PlanRevision("p9", 1, "h1", "Outer", "api", "", at(1), 1, 0, names)
    draft = replace(outer, edits=1, hash="h2", document={"nodes": [], "revision": 2})
    assert await store.revisions.save(draft, before, after=0)
    with pytest.raises(Conflict, match="'Outer'"):
        await store.delete_plan("f1")


@pytest.mark.parametrize("odd", [[1], {"a": 1}, "2", True, None, 1.5])
async def test_an_odd_revision_in_another_graph_keeps_nothing_from_being_stored(
    store: Store, odd: Any
) -> None:
    names = {"nodes": [{"id": "n", "data": {"flow": {"id": "f1", "revision": odd}}}]}
    await save(store, flow(), plan("p9", document=names))
    newer = replace(flow(), edits=1, document={**flow().document, "revision": 2})
    assert await store.revisions.save(newer, revision(1), after=0, most=1)


async def test_other_letters_of_the_same_name_take_nothing_away(store: Store) -> None:
    await save(store, flow(), flow("f2"))
    await use(store, "token")
    await use(store, "published")
    found = await store.plan("f1")
    assert found is not None
    assert await change(store, found, name="FLOW F1", force=True)
    renamed = await store.plan("f1")
    assert renamed is not None
    assert (renamed.name, renamed.published) == ("FLOW F1", ("tool",))
    assert len(await store.access_tokens.all()) == 2


async def run_of(
    store: Store,
    name: str,
    plan_id: str | None,
    *kinds: str,
    as_flow: bool = True,
    revision: int = 1,
) -> None:
    record = ExecutionRecord(
        name,
        plan_id,
        "t",
        "g",
        "starting",
        at(0),
        revision=revision,
        flow="Flow" if as_flow and plan_id else None,
    )
    received = [
        Event(name, seq, at(seq), f"execution.{kind}", None, None, {})
        for seq, kind in enumerate(("created", *kinds), 1)
    ]
    await store.create_execution(record, received)


async def test_execution_has_its_flow_and_is_found_by_it(store: Store) -> None:
    for name, of in {"a": "f1", "b": "f2", "c": "f1", "d": None}.items():
        await run_of(store, name, of)
    await run_of(store, "e", "f1", as_flow=False, revision=2)
    record = await store.execution("a")
    assert record is not None
    assert (record.plan_id, record.revision, record.flow, record.flow_id) == ("f1", 1, "Flow", "f1")
    by_plan = await store.execution("e")
    assert by_plan is not None
    assert (by_plan.revision, by_plan.flow, by_plan.flow_id) == (2, None, None)
    assert [x.execution_id for x in await store.executions(plan_id="f1")] == ["e", "c", "a"]
    started = await store.executions(plan_id="f1", as_flow=True)
    assert [x.execution_id for x in started] == ["c", "a"]
    assert await store.count_executions(plan_id="f1", as_flow=True) == {"starting": 2}
    assert await store.executions(plan_id="f1", status="completed") == []


async def test_deleted_flow_is_gone_and_its_executions_stay(store: Store) -> None:
    await save(store, flow(), flow("f2"))
    await run_of(store, "x1", "f1", "completed")
    await store.delete_plan("f1")
    assert await store.plan("f1") is None
    assert [each.plan_id for each in await store.plans(named=True)] == ["f2"]
    assert [(x.plan_id, x.flow) for x in await store.executions()] == [("f1", "Flow")]
    with pytest.raises(NotFound, match="'f1'"):
        await store.delete_plan("f1")


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kinds", [(), ("started",), ("started", "paused")])
async def test_a_plan_with_an_execution_that_has_not_ended_is_not_deleted(
    store: Store, kinds: tuple[str, ...], force: bool
) -> None:
    await save(store, flow())
    await run_of(store, "done", "f1", "completed")
    await run_of(store, "x1", "f1", *kinds)
    with pytest.raises(Conflict, match="x1") as refused:
        await store.delete_plan("f1", force=force)
    assert (refused.value.code, await store.plan("f1")) == ("plan-in-use", flow())
    end = Event("x1", len(kinds) + 2, at(9), "execution.cancelled", None, None, {})
    await store.append("x1", 1, [end])
    await store.delete_plan("f1")


def revision(number: int) -> PlanRevision:
    document: dict[str, Any] = {"nodes": [], "edges": [], "diagnostics": []}
    return PlanRevision("f1", number, f"h{number}", "T", "api", "", at(number), 0, 0, document)


async def test_the_oldest_revision_that_nothing_refers_to_goes(store: Store) -> None:
    await save(store, flow())
    await run_of(store, "x", "f1", "completed", revision=2)
    await store.triggers.create(TriggerRecord("t", "f1", "n", "k", at(1), revision=3))
    await store.chats.create(ChatRecord("c", at(1), at(1), plan_id="f1", plan_revision=4))
    names = {"id": "n", "data": {"flow": {"name": "flow F1", "revision": 5}}}
    await store.save_plan(plan("p9", document={"nodes": [names]}))
    present = flow()
    for number in range(1, 12):
        newer = replace(
            present,
            edits=number,
            hash=f"h{number + 1}",
            sound_revision=number + 1 if number < 7 else 7,
            document={**present.document, "revision": number + 1},
        )
        assert await store.revisions.save(newer, revision(number), after=number - 1, most=8)
        present = newer
    kept = [each.revision for each in await store.revisions.page("f1")]
    assert kept == [11, 7, 5, 4, 3, 2, 1], "the first, the live one, and those that are pinned"
    assert await store.plan("f1") == present, "the newest is never refused"


async def test_invalid_unicode_in_names_is_replaced(store: Store) -> None:
    await save(store, flow(name="a\ud800b", description="\ud83c\udf0a"))
    stored = await store.plan("f1")
    assert stored is not None
    assert (stored.name, stored.description) == ("a\ufffdb", "\U0001f30a")


async def test_closed_store_rejects_flows(store: Store) -> None:
    await store.close()
    for refusing in (store.save_plan(flow()), store.delete_plan("f1")):
        with pytest.raises(StoreError) as refused:
            await refusing
        assert refused.value.code == "store-closed"


def saved(name: str = "weekend", plan_id: str = "f1", **changes: Any) -> InputSet:
    own = InputSet(plan_id, name, {"city": "Lisboa \u2603", "days": 2}, at(1), at(1), LOCAL)
    return replace(own, **changes)


async def test_inputs_are_saved_by_name_replaced_renamed_and_deleted(store: Store) -> None:
    await save(store, flow(), flow("f2"))
    sets = store.input_sets
    for each in (saved("b"), saved("a"), saved("a", "f2")):
        await sets.save(each, each.name, most=9)
    assert await sets.all("f1") == [saved("a"), saved("b")]
    again = saved("b", inputs={"city": None}, created_at=at(1), updated_at=at(2))
    await sets.save(again, "b", most=9)
    assert await sets.all("f1") == [saved("a"), again]
    await sets.save(replace(again, name="c"), "b", most=9)
    assert [each.name for each in await sets.all("f1")] == ["a", "c"]
    with pytest.raises(Conflict, match="saved as 'a'") as refused:
        await sets.save(saved("a"), "c", most=9)
    assert refused.value.code == "name-taken"
    with pytest.raises(NotFound):
        await sets.save(saved("new"), "unknown", most=9)
    with pytest.raises(Conflict) as refused:
        await sets.save(saved("d"), "d", most=2)
    assert refused.value.code == "too-many-input-sets"
    with pytest.raises(NotFound):
        await sets.save(saved(plan_id="p9"), "weekend", most=9)
    assert await sets.delete("f1", "c")
    assert not await sets.delete("f1", "c")
    await store.delete_plan("f1")
    assert await sets.all("f1") == []
    assert await sets.all("f2") == [saved("a", "f2")]


async def test_of_concurrent_savers_no_more_are_kept_than_may_be(store: Store) -> None:
    await save(store, flow())
    refused: list[str] = []

    async def save_one(number: int) -> None:
        try:
            await store.input_sets.save(saved(f"s{number}"), f"s{number}", most=2)
        except Conflict as error:
            refused.append(error.code)

    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(save_one(number))
    assert refused == ["too-many-input-sets"] * 4
    assert len(await store.input_sets.all("f1")) == 2
