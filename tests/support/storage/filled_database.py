"""A directory in which very much is stored already, made in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planwave.events import Event
from planwave.ids import new_id
from planwave.storage.event_codec import encode_batch
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.appends import AppendOp
from planwave.storage.sqlite.appends import ExecutionPositions
from planwave.storage.sqlite.connection import DATABASE_NAME, close, open_for_writing

STEP_COUNT = 10
APPROVAL_STEP = STEP_COUNT // 2
OPEN_STATES = ("cut off", "cut off", "waits", "queued")
"""How those stand that are open, in turn."""
_FIRST_CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def fill_database(directory: Path, stored: int, open_count: int) -> None:
    """Keep so many executions of ten steps, of which some are open, spread over all."""
    directory.mkdir(parents=True, exist_ok=True)
    connection = open_for_writing(directory / DATABASE_NAME)
    places = ExecutionPositions(connection)
    every = stored // open_count
    connection.exec_driver_sql("BEGIN")
    for number in range(stored):
        stands = "ended" if number % every else OPEN_STATES[number // every % len(OPEN_STATES)]
        _store_execution(
            places, f"{_FIRST_CREATED + timedelta(seconds=number):%FT%T}.000000+00:00", stands
        )
    connection.exec_driver_sql("COMMIT")
    close(connection)


def _store_execution(places: ExecutionPositions, at: str, state: str) -> None:
    own = new_id()
    events = [
        Event(own, seq, at, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(_events(state), 1)
    ]
    batch = encode_batch(own, events)
    assert batch is not None
    progress = batch.status_change
    record = ExecutionRecord(
        own, None, "A title", "a goal", progress.status or "starting", at,
        progress.started_at, progress.completed_at,
        document_seq=batch.last if state in ("ended", "waits") else 0, queued=True,
    )  # fmt: skip
    places.append([AppendOp(own, record.epoch, batch, record)])


def _events(state: str) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    yield "execution.created", None, {"goal": "a goal", "title": "A title", "graph": _GRAPH}
    if state == "queued":
        return
    yield "execution.started", None, {"waves": STEP_COUNT}
    for number in range(STEP_COUNT):
        path, wave = f"n{number}", number + 1
        yield "wave.started", None, {"wave": wave, "nodes": [path]}
        yield "node.started", path, {"wave": wave}
        if number == APPROVAL_STEP and state == "cut off":
            return
        if number == APPROVAL_STEP:
            yield "node.waiting", path, {"request_id": "r1", "request": {"kind": "approval"}}
            if state == "waits":
                yield "execution.paused", None, {"reason": "waiting for an answer"}
                return
            yield "node.answered", path, {"request_id": "r1", "answer": {"decision": "approve"}}
        handle = "approve" if number == APPROVAL_STEP else "output"
        outputs = {handle: {"type": "text", "value": "x" * 2_000}}
        yield "node.completed", path, {"outputs": outputs, "duration_s": 0.1}
        yield "wave.completed", None, {"wave": wave}
    yield "execution.completed", None, {}


def _node(number: int) -> dict[str, Any]:
    if number == APPROVAL_STEP:
        return {"id": f"n{number}", "type": "approval", "data": {"prompt": "Shall it?"}}
    return {"id": f"n{number}", "type": "text", "data": {"text": "x" * 100}}


_GRAPH: dict[str, Any] = {
    "nodes": [_node(number) for number in range(STEP_COUNT)],
    "edges": [
        {
            "source": f"n{number}",
            "sourceHandle": "approve" if number == APPROVAL_STEP else "output",
            "target": f"n{number + 1}",
            "data": {"channel": "flow"},
        }
        for number in range(STEP_COUNT - 1)
    ],
}
