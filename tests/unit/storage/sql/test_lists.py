from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from planwave.storage.records import ExecutionRecord, PageCursor
from planwave.storage.sql.lists import EXECUTIONS, PLANS, ListQuery
from planwave.storage.sql.queries import select_newest_statuses
from planwave.storage.sqlite.store import SqliteStore

CHOICES = {
    "status": "completed",
    "text": "report",
    "since": "2026-01-01T00:02",
    "plan_id": "p1",
    "as_flow": True,
}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    created = SqliteStore.open(tmp_path)
    for n in range(24):
        record = ExecutionRecord(
            f"x{n}",
            f"p{n % 2}",
            "a report" if n % 3 else "a poem",
            "goal",
            "completed" if n % 4 else "failed",
            f"2026-01-01T00:{n // 4:02}",
            flow="F" if n % 5 else None,
        )
        await created.create_execution(record, [])
    yield created
    await created.close()


@pytest.mark.parametrize(
    "names", [names for size in range(6) for names in combinations(CHOICES, size)], ids="+".join
)
async def test_combined_filters_match_all(store: SqliteStore, names: tuple[str, ...]) -> None:
    tests: dict[str, Any] = {
        "status": lambda x: x.status == "completed",
        "text": lambda x: "report" in x.title,
        "since": lambda x: x.created_at >= "2026-01-01T00:02",
        "plan_id": lambda x: x.plan_id == "p1",
        "as_flow": lambda x: x.flow is not None,
    }
    every = await store.executions(limit=100)
    expected = [x for x in every if all(tests[name](x) for name in names)]
    chosen: dict[str, Any] = {name: CHOICES[name] for name in names}
    assert await store.executions(**chosen, limit=100) == expected
    pages: list[ExecutionRecord] = []
    before: str | PageCursor | None = None
    while page := await store.executions(**chosen, before=before, limit=3):
        pages += page
        last = page[-1]
        before = (
            last.execution_id if len(pages) % 2 else PageCursor(last.created_at, last.execution_id)
        )
    assert pages == expected


async def test_invalid_unicode_matches_nothing(store: SqliteStore) -> None:
    odd = "\ud800"
    assert await store.execution(odd) is None
    assert await store.plan(odd) is None
    assert await store.events(odd) == []
    assert await store.executions(status=odd) == await store.executions(plan_id=odd) == []


@pytest.mark.parametrize(
    ("chosen", "index"),
    [
        ({}, "executions_by_age"),
        ({"since": "2026"}, "executions_by_age"),
        ({"status": "failed"}, "executions_by_status"),
        ({"status": "failed", "since": "2026"}, "executions_by_status"),
        ({"plan_id": "p1"}, "executions_by_plan"),
        ({"plan_id": "p1", "as_flow": "flow"}, "executions_by_plan"),
        ({"text": "report"}, "executions_by_age"),
    ],
)
@pytest.mark.parametrize("before", [None, PageCursor("2026", "x")])
async def test_execution_pages_use_an_index(
    store: SqliteStore, chosen: dict[str, str], index: str, before: PageCursor | None
) -> None:
    await is_read_off(store, EXECUTIONS, chosen, index, before)


@pytest.mark.parametrize("before", [None, PageCursor("2026", "x")])
async def test_plan_pages_use_an_index(store: SqliteStore, before: PageCursor | None) -> None:
    await is_read_off(store, PLANS, {"named": "named"}, "flows_by_age", before)
    await is_read_off(store, PLANS, {"unnamed": "unnamed"}, "plans_by_age", before)
    await is_read_off(store, PLANS, {}, "plans_by_age", before)


async def is_read_off(
    store: SqliteStore,
    rows: ListQuery,
    chosen: dict[str, str],
    index: str,
    before: PageCursor | None,
) -> None:
    def plan_of(connection: Connection) -> list[str]:
        ran: list[str] = []
        raw: Any = connection.connection.driver_connection
        raw.set_trace_callback(ran.append)
        rows.page(connection, chosen, before, 50)
        raw.set_trace_callback(None)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {ran[-1]}")
        return [row.detail for row in plan]

    steps = await store._read(plan_of)
    assert index in steps[0]
    assert not any("TEMP B-TREE" in step for step in steps)


async def test_plan_statuses_use_an_index(store: SqliteStore) -> None:
    def plan_of(connection: Connection) -> list[str]:
        sql = str(
            select_newest_statuses(["p0"]).compile(
                connection, compile_kwargs={"literal_binds": True}
            )
        )
        return [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]

    steps = await store._read(plan_of)
    assert any("executions_by_plan (plan_id=?)" in step for step in steps)
    assert not any("TEMP B-TREE" in step for step in steps)
