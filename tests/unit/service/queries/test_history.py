from pathlib import Path
from typing import Any

import pytest

from planwave.errors import NotFound
from planwave.events import Event
from planwave.service.plans.revisions import status_of_plan
from planwave.service.queries.history import History
from planwave.service.service import Service
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.service.dependencies import dependencies

AT = "2026-01-01T00:00:00.000000+00:00"
PLAN = "01900000-0000-7000-8000-0000000000aa"
FIRST = "01911111-0000-7000-8000-000000000001"


async def history(*executions: str) -> History:
    store = MemoryStore()
    await store.save_plan(PlanRecord(PLAN, AT, "goal", "Title", "h", {"nodes": [], "edges": []}))
    for execution_id in executions:
        record = ExecutionRecord(execution_id, PLAN, "Title", "goal", "starting", AT)
        created = Event(execution_id, 1, AT, "execution.created", None, None, {"goal": "goal"})
        await store.create_execution(record, [created])
    return History(store, None)


async def test_plan_without_execution_is_a_draft() -> None:
    assert await (await history()).plans.status(PLAN) == "draft"
    assert await (await history(FIRST)).plans.status(PLAN) == "executing"


async def test_statuses_of_many_plans_are_read_together() -> None:
    stored = await history(FIRST)
    assert await stored.plans.statuses([PLAN, "other"]) == {PLAN: "executing", "other": "draft"}
    assert await stored.plans.statuses([]) == {}


@pytest.mark.parametrize(
    ("since", "found"),
    [
        ("2026-01-01", 1),
        ("2026-01-01T01:00:00+01:00", 1),
        ("2026-01-01T00:00:00.000000Z", 1),
        ("20260101T000000Z", 1),
        ("2026-01-01T00:00:01", 0),
        ("2025-12-31T23:59:59-00:01", 0),
    ],
)
async def test_time_formats_are_equivalent(since: str, found: int) -> None:
    assert len(await (await history(FIRST)).executions.list(since=since)) == found


class PausingStore(MemoryStore):
    """A store in which an execution begins to wait after those that execute were read."""

    async def executions(self, **filters: Any) -> list[ExecutionRecord]:
        page = list(await super().executions(**filters))
        if filters["status"] == "executing" and page:
            await self.append(FIRST, 1, [Event(FIRST, 4, AT, "execution.paused", None, None, {})])
        return page


async def test_request_of_an_execution_that_pauses_meanwhile_is_listed_once() -> None:
    store = PausingStore()
    request = {"request_id": "r3", "request": {"kind": "approval"}}
    events = [
        Event(FIRST, 1, AT, "execution.created", None, None, {"goal": "goal"}),
        Event(FIRST, 2, AT, "execution.started", None, None, {}),
        Event(FIRST, 3, AT, "node.waiting", "ask", 1, request),
    ]
    record = ExecutionRecord(FIRST, PLAN, "Title", "goal", "executing", AT)
    await store.create_execution(record, events)
    found = await History(store, None).executions.pending_requests()
    assert [each.request.request_id for each in found] == ["r3"]


async def test_state_is_folded_from_events() -> None:
    state = await (await history(FIRST)).executions.state(FIRST)
    assert (state.execution_id, state.goal, state.last_seq) == (FIRST, "goal", 1)


async def test_memory_store_cannot_be_backed_up(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nothing is kept in a directory"):
        await Service(dependencies()).backup(tmp_path / "b.tar")


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("starting", "executing"),
        ("executing", "executing"),
        ("paused", "executing"),
        ("completed", "completed"),
        ("failed", "failed"),
        ("cancelled", "failed"),
    ],
)
def test_plan_status_follows_its_newest_execution(status: str, shown: str) -> None:
    assert status_of_plan(status) == shown


async def test_document_is_built_from_events() -> None:
    document = await (await history(FIRST)).executions.document(FIRST)
    assert (document["execution_id"], document["status"]) == (FIRST, "starting")
