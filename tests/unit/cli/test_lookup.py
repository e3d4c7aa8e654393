"""Executions, plans and flows by what people call them."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.cli.lookup import find, find_execution, find_flow, find_flow_id, find_plan
from planwave.errors import InputError, NotFound
from planwave.events import Event
from planwave.service.queries.history import QueryService
from planwave.service.service import Service
from planwave.storage.memory import MemoryStore
from planwave.storage.records import ExecutionRecord, PlanRecord
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

AT = "2026-01-01T00:00:00.000000+00:00"
PLAN = "01900000-0000-7000-8000-0000000000aa"
FIRST, SECOND = "01911111-0000-7000-8000-000000000001", "01922222-0000-7000-8000-000000000002"


async def history(*executions: str) -> QueryService:
    store = MemoryStore()
    await store.save_plan(PlanRecord(PLAN, AT, "goal", "Title", "h", {"nodes": [], "edges": []}))
    for execution_id in executions:
        record = ExecutionRecord(execution_id, PLAN, "Title", "goal", "starting", AT)
        created = Event(execution_id, 1, AT, "execution.created", None, None, {"goal": "goal"})
        await store.create_execution(record, [created])
    return QueryService(store, None)


async def test_last_is_the_newest_execution() -> None:
    assert (await find(await history(FIRST, SECOND), "last")).id == SECOND


async def test_last_of_nothing_says_how_to_start() -> None:
    with pytest.raises(NotFound, match="nothing has run") as caught:
        await find(await history(), "last")
    assert "planwave run" in (caught.value.hint or "")


@pytest.mark.parametrize("name", [FIRST, "01911", "01911111-0000", "01911111-0000-7000".upper()])
async def test_an_execution_is_found_by_its_id_or_the_start_of_it(name: str) -> None:
    found = await find(await history(FIRST, SECOND), name)
    assert (found.kind, found.id) == ("execution", FIRST)


async def test_a_plan_is_found_by_the_start_of_its_id() -> None:
    assert (await find(await history(FIRST), "01900000")).kind == "plan"


async def test_an_ambiguous_start_lists_what_fits() -> None:
    with pytest.raises(InputError) as caught:
        await find(await history(FIRST, SECOND), "019")
    assert caught.value.code == "ambiguous-id"
    assert FIRST in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", "fff", "%"])
async def test_a_name_that_fits_nothing_is_not_found(name: str) -> None:
    with pytest.raises(NotFound):
        await find(await history(FIRST), name)


async def test_a_plan_is_named_by_its_executions_too_and_is_no_execution_itself() -> None:
    queries = await history(FIRST)
    assert [await find_plan(queries, name) for name in (PLAN, FIRST, "last")] == [PLAN] * 3
    assert await find_execution(queries, "0191") == FIRST
    with pytest.raises(InputError, match="is a plan"):
        await find_execution(queries, PLAN)


def text(content: str) -> dict[str, Any]:
    return make_graph(text_node("a", content)).to_document()


async def test_a_flow_is_found_by_id_by_name_and_by_the_start_of_its_id() -> None:
    async with Service(dependencies()) as service:
        made = await service.create_flow("Täglich", graph=text("x"))
        await service.create_flow("täglich", graph=text("x"))
        for name in (made.flow_id, "Täglich", made.flow_id[:-1]):
            assert await find_flow_id(service, name) == made.flow_id
        with pytest.raises(NotFound):
            await find_flow_id(service, made.flow_id[:-1], by_prefix=False)
        for name in ("", "Tägli", "nobody"):
            with pytest.raises(NotFound):
                await find_flow_id(service, name)


async def test_a_name_that_several_have_is_refused_with_their_ids() -> None:
    async with Service(dependencies()) as service:
        made = [(await service.create_flow("Same", graph=text("x"))).flow_id for _ in range(6)]
        with pytest.raises(InputError, match="6 flows go by 'Same'") as refused:
            await find_flow_id(service, "Same")
        assert refused.value.code == "ambiguous-flow"
        assert refused.value.hint == f"name one of them: {', '.join(made[:1:-1])}, …"
        with pytest.raises(InputError):
            await find_flow_id(service, made[0][:3])


async def test_a_name_comes_before_the_start_of_an_id() -> None:
    async with Service(dependencies()) as service:
        first = await service.create_flow("x", graph=text("x"))
        named = await service.create_flow(first.flow_id[:6], graph=text("x"))
        assert await find_flow_id(service, first.flow_id[:6]) == named.flow_id


async def test_a_version_is_found_by_its_start() -> None:
    async with Service(dependencies()) as service:
        made = await service.create_flow("x", graph=text("0"))
        for number in range(1, 18):  # more than there are first digits
            await service.update_flow(made.flow_id, graph=text(str(number)))
        for start in (made.version, made.version[:20].upper()):
            assert (await find_flow(service, "x", start)).version == made.version
        with pytest.raises(InputError) as refused:
            await find_flow(service, "x", "")
        assert refused.value.code == "ambiguous-version"
        with pytest.raises(NotFound, match="has no version 'x'"):
            await find_flow(service, "x", "x")


async def test_more_flows_than_a_page_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planwave.cli.lookup._PAGE_SIZE", 2)
    async with Service(dependencies()) as service:
        made = [(await service.create_flow(f"flow {n}", graph=text("x"))) for n in range(5)]
        for each in made:
            assert await find_flow_id(service, each.name) == each.flow_id
            assert await find_flow_id(service, each.flow_id[:-1]) == each.flow_id
