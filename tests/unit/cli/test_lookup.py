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
from planwave.storage.sqlite.sql_store import MemoryStore
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


@pytest.mark.parametrize("name", ["00000001", "…000001", "..000001", "01911111"])
async def test_execution_is_found_by_any_unique_part_of_its_id(name: str) -> None:
    assert await find(await history(FIRST, SECOND), name) == ("execution", FIRST)


async def test_execution_is_preferred_to_its_own_plan() -> None:
    assert await find(await history(FIRST), "0000-7000") == ("execution", FIRST)
    with pytest.raises(InputError) as caught:
        await find(await history(FIRST, SECOND), "-7000-")
    message = "2 executions and plans have an id that contains '-7000-'"
    assert caught.value.message == message
    assert caught.value.hint == f"write more of the id: {SECOND}, {FIRST}"


async def test_unknown_part_of_an_id_is_named() -> None:
    with pytest.raises(NotFound) as caught:
        await find(await history(FIRST), "fff")
    assert caught.value.message == "no execution or plan has an id that contains 'fff'"


async def test_ambiguous_prefix_lists_matches() -> None:
    with pytest.raises(InputError) as caught:
        await find(await history(FIRST, SECOND), "019")
    assert caught.value.code == "ambiguous-id"
    assert FIRST in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "fff", "%"])
async def test_unmatched_name_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        await find(await history(FIRST), name)


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
        with pytest.raises(InputError, match="6 flows have an id") as refused:
            await find_flow_id(service, built[0][:3])
        assert refused.value.code == "ambiguous-id"
        assert refused.value.hint == f"write more of the id: {', '.join(built[:1:-1])}, …"


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
