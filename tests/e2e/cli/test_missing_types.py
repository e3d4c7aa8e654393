"""Executions of node types that are not loaded: refused once and shortly, and left as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave.errors import InputError
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph, Node
from planwave.graph.plan import graph_hash
from planwave.ids import new_id
from planwave.service.executions.run_spec import RunSpec, new_execution
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import dependencies

AT = "2026-01-01T00:00:00.000000+00:00"
GRAPH = Graph((Node("a", "slow", "A"), Node("b", "slow", "B"), Node("c", "text", "C")), ())
SENTENCE = "it uses the types slow, which no module here has"
STORIES: dict[str, Sequence[tuple[str, str | None, dict[str, Any]]]] = {
    "executing": [("execution.started", None, {"waves": 1}), ("node.started", "a", {"wave": 1})],
    "asking": [
        ("execution.started", None, {"waves": 1}),
        ("node.started", "a", {"wave": 1}),
        ("node.waiting", "a", {"request_id": "r4", "request": {"question": "Well?"}}),
        ("execution.paused", None, {"reason": "waiting"}),
    ],
    "failed": [
        ("execution.started", None, {"waves": 1}),
        ("node.started", "a", {"wave": 1}),
        ("node.failed", "a", {"error": {"code": "x", "message": "no"}}),
        ("execution.failed", None, {"error": {"code": "x", "message": "no"}, "failures": ["a"]}),
    ],
}
COMMANDS = [
    ("executing", ("resume", "last")),
    ("asking", ("answer", "last", "r4", "--value", '"x"')),
    ("asking", ("fork", "last", "--rerun", "c")),
    ("failed", ("retry", "last")),
    ("failed", ("fork", "last", "--set", "c.text=x")),
]


async def leave(store: Store, story: str) -> str:
    execution_id = new_id()
    spec = RunSpec(graph=GRAPH, inputs={}, options=RunOptions(), plan_hash=graph_hash(GRAPH))
    record, created = new_execution(spec, 1, execution_id, AT, queued=True)
    await store.create_execution(record, [created])
    events = [
        Event(execution_id, seq, AT, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(STORIES[story], start=2)
    ]
    await store.append(execution_id, await store.claim(execution_id), events)
    return execution_id


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


async def _leave_on_disk(story: str) -> str:
    async with SqliteStore.open(Path("storage")) as store:
        return await leave(store, story)


async def _record(execution_id: str) -> ExecutionRecord:
    async with SqliteStore.open(Path("storage"), read_only=True) as store:
        record = await store.execution(execution_id)
    assert record is not None
    # A document may be written beside it, and what lists show.
    return replace(record, document_seq=0, tokens=None, cost_usd=None, duration_s=None)


@pytest.mark.parametrize(("story", "command"), COMMANDS, ids=str)
def test_a_command_names_the_missing_types_once_and_changes_nothing(
    story: str, command: tuple[str, ...]
) -> None:
    execution_id = asyncio.run(_leave_on_disk(story))
    before = asyncio.run(_record(execution_id))
    done = invoke(*command)
    assert (done.exit_code, done.output.count("slow")) == (2, 1), done.output
    assert SENTENCE in done.output
    assert "(--import MODULE)" in " ".join(done.output.split())
    assert invoke_json(*command, code=2)["error"]["code"] == "unknown-node-type"
    assert asyncio.run(_record(execution_id)) == before


@pytest.mark.parametrize("story", ["executing", "asking", "failed"])
async def test_the_library_refuses_alike(story: str) -> None:
    execution_id = await _leave_on_disk(story)
    before = await _record(execution_id)
    run = planwave.open("storage", execution_id, check=False)
    await run
    begun = {
        "executing": lambda: run.resume(),
        "asking": lambda: run.answer("r4", "x"),
        "failed": lambda: run.retry(),
    }[story]()
    with pytest.raises(InputError, match=SENTENCE):
        await begun
    assert await _record(execution_id) == before


ROUTES: list[tuple[str, str, Any]] = [
    ("executing", "resume", None),
    ("asking", "requests/r4", {"value": "x"}),
    ("asking", "fork", {"rerun": ["c"]}),
    ("failed", "retry", {}),
]


@pytest.mark.parametrize(("story", "route", "body"), ROUTES, ids=str)
async def test_a_service_refuses_alike(story: str, route: str, body: Any) -> None:
    given = dependencies(GRAPH)
    async with in_process_client(given) as calls:
        execution_id = await leave(given.store, story)
        before = await given.store.execution(execution_id)
        more = {} if body is None else {"json": body}
        answer = await calls.post(f"/api/executions/{execution_id}/{route}", **more)
        assert (answer.status_code, answer.json()["code"]) == (422, "unknown-node-type")
        assert answer.json()["detail"] == SENTENCE
        assert await given.store.execution(execution_id) == before
