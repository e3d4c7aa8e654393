from __future__ import annotations

import sqlite3
from pathlib import Path

from planwave.events import Event
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"

VERSION_2 = """
DROP TABLE deliveries;
DROP TABLE notifications;
DROP TABLE notification_targets;
DROP TABLE triggers;
DROP TABLE answered_requests;
DROP TABLE plan_revisions;
ALTER TABLE plans DROP COLUMN edits;
ALTER TABLE plans DROP COLUMN author;
ALTER TABLE plans DROP COLUMN note;
ALTER TABLE plans DROP COLUMN updated_at;
DROP TABLE access_tokens;
DROP TABLE chat_turns;
DROP TABLE chat_messages;
DROP TABLE chats;
DROP TABLE flow_versions;
DROP TABLE flows;
DROP INDEX executions_by_flow;
ALTER TABLE executions DROP COLUMN plan_id;
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


def record(name: str) -> ExecutionRecord:
    return ExecutionRecord(name, "p", "t", "g", "starting", AT)


def log(seq: int) -> Event:
    return Event("x1", seq, AT, "node.log", "a", 1, {})


def result(name: str, seq: int, value: str) -> Event:
    outputs = {"output": {"type": "text", "value": value}, "json": {"type": "json", "value": 1}}
    return Event(name, seq, AT, "node.completed", "a", 1, {"outputs": outputs})


async def test_artifacts_of_old_schema_are_removed_with_their_last_execution(
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
