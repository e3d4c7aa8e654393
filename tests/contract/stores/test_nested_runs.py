"""A stored database with nested runs is opened, and each of its executions goes on.

``golden/write_nested.py`` says how it came about.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planwave.service.service import Service
from planwave.storage.sqlite.connection import DATABASE_NAME
from tests.contract.stores.golden.write_nested import (
    ASKS,
    BROKEN,
    COMPLETED,
    CUT_OFF,
    FAILED,
    FILE,
    HELD,
    Step,
    opened,
)

NODES = {
    f"{run}/{node}"
    for run in ("each[0]", "each[1]", "again[0]", "inside[graph]", "plans[plan]")
    for node in ("first", "second")
}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.executescript(FILE.read_text("utf-8"))
    return tmp_path


async def stored(service: Service, goal: str) -> str:
    """Give the id of an execution of the database."""
    (found,) = await service.executions.list(text=goal)
    return found.execution_id


async def results(service: Service, execution_id: str) -> dict[str, Any]:
    """Give what the nodes of an execution that completes came to."""
    assert (await service.executions.wait(execution_id)).status == "completed"
    state = await service.executions.state(execution_id)
    return {
        path: node.outputs["output"]["value"]
        for path, node in state.nodes.items()
        if node.outputs is not None and "/" not in path
    }


async def reused(service: Service, execution_id: str) -> set[str]:
    """Give the nested nodes whose results were taken from another execution."""
    events = await service.executions.events(execution_id)
    return {e.path for e in events if "reused" in e.data and e.path and "/" in e.path}


STORED = [(ASKS, "paused"), (FAILED, "failed"), (COMPLETED, "completed"), (CUT_OFF, "executing")]


async def test_stored_nested_runs_are_read(directory: Path) -> None:
    async with opened(directory, Step()) as service:
        for goal, status in STORED:
            document = await service.executions.document(await stored(service, goal))
            paths = {node["path"] for node in document["nodes"]}
            assert (document["status"], bool(document["requests"])) == (status, goal == ASKS)
            assert paths >= {path for path in NODES if goal != ASKS or path.endswith("first")}


async def test_stored_nested_requests_are_answered(directory: Path) -> None:
    step = Step()
    async with opened(directory, step) as service:
        own = await stored(service, ASKS)
        for request in await service.executions.requests(own):
            await service.executions.answer(own, request.request_id, {"decision": "approve"})
        assert await results(service, own) == {
            "each": ["aa", "bb"], "again": {"goes": False}, "say": "d", "inside": ASKS * 2,
            "plans": ASKS * 2, "last": ["aa", "bb"],
        }  # fmt: skip
    assert set(step.runs) == {path for path in NODES if path.endswith("second")} | {"last"}


async def test_interrupted_nested_runs_are_recovered(directory: Path) -> None:
    step = Step()
    async with opened(directory, step) as service:
        own = await stored(service, CUT_OFF)
        await service.recover()
        async for _ in service.executions.watch(own):
            pass
        assert (await results(service, own))["each"] == ["aa", "bb"]
    assert set(step.runs) == {*HELD, "last"}


async def test_failed_nested_runs_are_retried(directory: Path) -> None:
    step = Step()
    async with opened(directory, step) as service:
        again = (await service.executions.retry(await stored(service, FAILED))).execution_id
        found = await results(service, again)
        assert (found["each"], found["plans"]) == (["aa", "bb"], FAILED * 2)
        assert await reused(service, again) == {
            f"{run}/first" for run in ("each[0]", "each[1]", "plans[plan]")
        } | {"each[0]/second"}
    assert set(step.runs) == {*BROKEN, "last"}


async def test_nested_runs_are_forked(directory: Path) -> None:
    step = Step()
    async with opened(directory, step) as service:
        changes: Any = {"each": {"data": {"items": ["a", "x"]}}}
        fork = await service.executions.fork(await stored(service, COMPLETED), changes=changes)
        assert (await results(service, fork.execution_id))["each"] == ["aa", "xx"]
        assert await reused(service, fork.execution_id) == {"each[0]/first", "each[0]/second"}
    assert set(step.runs) == {"each[1]/first", "each[1]/second", "last"}
