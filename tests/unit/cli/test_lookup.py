"""Executions, plans and flows by what people call them."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.cli.lookup import find, find_execution, find_flow, find_flow_id, find_plan
from planwave.errors import InputError, NotFound
from planwave.events import Event
from planwave.graph.operations import ReplaceGraph
from planwave.service.queries.history import History
from planwave.service.service import Service
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

AT = "2026-01-01T00:00:00.000000+00:00"
PLAN = "01900000-0000-7000-8000-0000000000aa"
FIRST, SECOND = "01911111-0000-7000-8000-000000000001", "01922222-0000-7000-8000-000000000002"


async def history(*executions: str, newer_plan: str | None = None) -> History:
    """Return queries over executions of ``PLAN``, and a plan that was not executed."""
    store = MemoryStore()
    for plan_id in filter(None, (PLAN, newer_plan)):
        graph = {"nodes": [], "edges": []}
        await store.save_plan(PlanRecord(plan_id, AT, "goal", "Title", "h", graph))
    for execution_id in executions:
        record = ExecutionRecord(execution_id, PLAN, "Title", "goal", "starting", AT)
        created = Event(execution_id, 1, AT, "execution.created", None, None, {"goal": "goal"})
        await store.create_execution(record, [created])
    return History(store, None)


async def test_last_is_the_newest_execution() -> None:
    assert (await find(await history(FIRST, SECOND), "last")).id == SECOND


async def test_last_without_executions_suggests_run() -> None:
    with pytest.raises(NotFound, match="nothing has run") as caught:
        await find(await history(), "last")
    assert "planwave run" in (caught.value.hint or "")


async def test_last_plan_may_be_one_that_did_not_run() -> None:
    assert await find_plan(await history(), "last") == PLAN
    newer = "01999999-0000-7000-8000-0000000000aa"
    assert await find_plan(await history(FIRST, newer_plan=newer), "last") == newer


@pytest.mark.parametrize("name", [FIRST, "01911", "01911111-0000", "01911111-0000-7000".upper()])
async def test_execution_is_found_by_id_prefix(name: str) -> None:
    found = await find(await history(FIRST, SECOND), name)
    assert (found.kind, found.id) == ("execution", FIRST)


async def test_plan_is_found_by_id_prefix() -> None:
    assert (await find(await history(FIRST), "01900000")).kind == "plan"


@pytest.mark.parametrize("name", ["00000001", "…000001", "..000001", "0001", "01911111"])
async def test_execution_is_found_by_the_unique_start_or_end_of_its_id(name: str) -> None:
    assert await find(await history(FIRST, SECOND), name) == ("execution", FIRST)


async def test_execution_is_preferred_to_its_own_plan() -> None:
    own = f"{FIRST[:8]}-0000-7000-8000-0000000000aa"
    store = MemoryStore()
    await store.save_plan(PlanRecord(own, AT, "", "Title", "h", {"nodes": [], "edges": []}))
    record = ExecutionRecord(FIRST, own, "Title", "goal", "starting", AT)
    created = Event(FIRST, 1, AT, "execution.created", None, None, {"goal": "goal"})
    await store.create_execution(record, [created])
    assert await find(History(store, None), FIRST[:8]) == ("execution", FIRST)


async def test_ambiguous_start_lists_matches() -> None:
    third = "01911111-0000-7000-8000-000000000003"
    with pytest.raises(InputError) as caught:
        await find(await history(FIRST, third), "01911")
    assert caught.value.code == "ambiguous-id"
    message = "2 ids begin or end with '01911'"
    assert caught.value.message == message
    assert caught.value.hint == f"write more of the id: {third}, {FIRST}"


@pytest.mark.parametrize("name", ["ffff", "%%%%", "0000-7000", "1111-0000", FIRST[1:-1]])
async def test_a_part_that_neither_begins_nor_ends_an_id_is_not_found(name: str) -> None:
    with pytest.raises(NotFound, match="begins or ends with"):
        await find(await history(FIRST), name)


@pytest.mark.parametrize(
    ("name", "destroys", "least"),
    [("", False, 4), (" ", False, 4), ("…", False, 4), ("1", False, 4), (FIRST[:3], False, 4),
     ("", True, 6), (FIRST[-5:], True, 6), (FIRST[:5], True, 6)],
)  # fmt: skip
async def test_too_short_a_part_says_how_much_is_needed(
    name: str, destroys: bool, least: int
) -> None:
    queries = await history(FIRST)
    with pytest.raises(InputError) as caught:
        await find(queries, name, destroys=destroys)
    empty = not name.strip(" …")
    assert caught.value.message == (
        "the id is empty" if empty else f"{name!r} is too short for an id"
    )
    assert f"at least {least} characters" in (caught.value.hint or "")
    assert caught.value.code == "usage"


@pytest.mark.parametrize("name", [FIRST, FIRST[:6], FIRST[-6:], "last"])
async def test_what_destroys_takes_an_id_or_six_characters_of_it(name: str) -> None:
    assert await find(await history(FIRST), name, destroys=True) == ("execution", FIRST)


async def test_plan_is_found_by_its_execution() -> None:
    queries = await history(FIRST)
    assert [await find_plan(queries, name) for name in (PLAN, FIRST, "last")] == [PLAN] * 3
    assert await find_execution(queries, "0191") == FIRST
    with pytest.raises(InputError, match="is a plan"):
        await find_execution(queries, PLAN)


def text(content: str) -> dict[str, Any]:
    return make_graph(text_node("a", content)).to_document()


async def test_flow_is_found_by_id_name_and_id_prefix() -> None:
    async with Service(dependencies()) as service:
        built = await service.flows.create("Täglich", graph=text("x"))
        for name in (built.plan_id, "Täglich", "TÄGLICH", built.plan_id[:-1]):
            assert await find_flow_id(service, name) == built.plan_id
        with pytest.raises(NotFound):
            await find_flow_id(service, built.plan_id[:-1], by_part=False)
        for name, near in (("", False), ("Tägli", True), ("nobody", False)):
            with pytest.raises(NotFound) as unknown:
                await find_flow_id(service, name)
            assert ("did you mean 'Täglich'?" in str(unknown.value.hint)) == near


async def test_ambiguous_part_of_flow_ids_lists_them() -> None:
    async with Service(dependencies()) as service:
        built = [
            (await service.flows.create(f"Flow {n}", graph=text("x"))).plan_id for n in range(6)
        ]
        with pytest.raises(InputError, match="6 ids begin or end") as refused:
            await find_flow_id(service, built[0][:4])
        assert refused.value.code == "ambiguous-id"
        assert refused.value.hint == f"write more of the id: {', '.join(built[:1:-1])}, …"


async def test_a_flow_that_is_destroyed_is_named_by_six_characters() -> None:
    async with Service(dependencies()) as service:
        flow_id = (await service.flows.create("F", graph=text("x"))).plan_id
        for part in (flow_id[:3], flow_id[1:-1]):
            with pytest.raises(NotFound):
                await find_flow_id(service, part)
        assert await find_flow_id(service, flow_id[-4:]) == flow_id
        with pytest.raises(NotFound):
            await find_flow_id(service, flow_id[-5:], destroys=True)
        assert await find_flow_id(service, flow_id[-6:], destroys=True) == flow_id


async def test_plan_without_a_name_is_no_flow() -> None:
    async with Service(dependencies()) as service:
        plan = await service.plans.read(text("x"))
        await service.executions.execute(plan)
        for name in (plan.plan_id, plan.plan_id[:-1], plan.title):
            with pytest.raises(NotFound):
                await find_flow_id(service, name)


async def test_flow_name_is_preferred_to_id_prefix() -> None:
    async with Service(dependencies()) as service:
        first = await service.flows.create("x", graph=text("x"))
        named = await service.flows.create(first.plan_id[:6], graph=text("x"))
        assert await find_flow_id(service, first.plan_id[:6]) == named.plan_id


async def test_flow_is_found_in_its_live_revision_or_another_one() -> None:
    async with Service(dependencies()) as service:
        built = await service.flows.create("x", graph=text("0"))
        await service.flows.update(built.plan_id, graph=text("1"))
        await service.plans.edit(  # a draft
            built.plan_id,
            [ReplaceGraph({**text("2"), "nodes": [{"id": "a", "type": "gone"}]})],
            expected=None,
        )
        found = [(await find_flow(service, "x", number)).revision for number in (None, 1, 2, 3)]
        assert found == [2, 1, 2, 3]
        with pytest.raises(NotFound, match="has no revision 4"):
            await find_flow(service, "x", 4)


async def test_flow_lookup_reads_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planwave.cli.lookup._PAGE_SIZE", 2)
    async with Service(dependencies()) as service:
        built = [(await service.flows.create(f"flow {n}", graph=text("x"))) for n in range(5)]
        for each in built:
            assert await find_flow_id(service, each.name) == each.plan_id
            assert await find_flow_id(service, each.plan_id[:-1]) == each.plan_id
