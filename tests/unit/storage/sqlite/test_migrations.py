from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from planwave.events import Event
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"

VERSION_2 = """
DROP TABLE flow_versions;
DROP TABLE flows;
DROP INDEX executions_by_flow;
ALTER TABLE executions DROP COLUMN flow_id;
ALTER TABLE executions DROP COLUMN flow_version;
ALTER TABLE executions DROP COLUMN queued;
DROP TABLE artifact_uses;
DROP TABLE answers;
DROP INDEX executions_by_plan;
DROP INDEX executions_by_status;
CREATE INDEX executions_by_status ON executions (status);
PRAGMA user_version = 2;
"""
"""Takes the present schema back to version 2."""

VERSION_1 = """
DROP TABLE batches;
CREATE TABLE events (id INTEGER PRIMARY KEY, execution INTEGER NOT NULL, seq INTEGER NOT NULL,
    at TEXT NOT NULL, type TEXT NOT NULL, path TEXT, attempt INTEGER, data TEXT NOT NULL);
CREATE UNIQUE INDEX events_in_order ON events (execution, seq);
INSERT INTO events (execution, seq, at, type, path, attempt, data) VALUES
    (1, 1, '2026-01-01T00:00:00.000000Z', 'execution.created', NULL, NULL, '{"goal":"\\u00fc"}'),
    (2, 1, 'a', 'node.log', 'ö"', 3, '{}'), (1, 2, 'b', 'node.log', 'a', 1, '{"message":"m"}');
PRAGMA user_version = 1;
"""
"""Takes version 2 back to version 1, with three events."""


def record(name: str) -> ExecutionRecord:
    return ExecutionRecord(name, "p", "t", "g", "starting", AT)


def log(seq: int) -> Event:
    return Event("x1", seq, AT, "node.log", "a", 1, {})


def result(name: str, seq: int, value: str) -> Event:
    outputs = {"output": {"type": "text", "value": value}, "json": {"type": "json", "value": 1}}
    return Event(name, seq, AT, "node.completed", "a", 1, {"outputs": outputs})


async def aged(directory: Path, script: str) -> None:
    """Make a database as an older planwave left it."""
    old = SqliteStore.open(directory)
    for name in ("x1", "x2"):
        await old.create_execution(record(name), [])
    await old.close()
    with sqlite3.connect(directory / "planwave.db") as raw:
        raw.executescript(script)
    raw.close()


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_database_of_an_older_planwave_is_brought_up_to_date(
    tmp_path: Path, read_only: bool
) -> None:
    await aged(tmp_path, VERSION_2 + VERSION_1)
    again = SqliteStore.open(tmp_path, read_only=read_only)
    assert await again.events("x1") == [
        Event("x1", 1, AT, "execution.created", None, None, {"goal": "ü"}),
        Event("x1", 2, "b", "node.log", "a", 1, {"message": "m"}),
    ]
    assert await again.events("x2") == [Event("x2", 1, "a", "node.log", 'ö"', 3, {})]
    if not read_only:
        await again.append("x1", 1, [log(3)])
        assert [e.seq for e in await again.events("x1", after=1)] == [2, 3]
    await again.close()


async def test_large_results_of_an_older_planwave_go_with_the_last_that_refers_to_them(
    tmp_path: Path,
) -> None:
    old = SqliteStore.open(tmp_path, artifact_bytes=100)
    large = {
        "x1": ["a" * 100, "b" * 100],
        "x2": ["b" * 100],
        "x3": ['says "artifact": ', "c" * 100],
    }
    for name, values in large.items():
        sent = [result(name, seq, value) for seq, value in enumerate(values, 1)]
        end = Event(name, len(sent) + 1, AT, "execution.completed", None, None, {})
        await old.create_execution(record(name), [*sent[:1]])
        await old.append(name, 1, [*sent[1:], end])
    await old.close()
    with sqlite3.connect(tmp_path / "planwave.db") as raw:
        raw.executescript(VERSION_2)
    raw.close()
    again = SqliteStore.open(tmp_path)
    left: list[int] = []
    for name in ("x1", "x3", "x2"):
        await again.delete_execution(name)
        left.append(len(list((tmp_path / "artifacts").iterdir())))
    await again.close()
    assert left == [2, 1, 0]
