"""A directory in which very much is stored already, made in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from planwave.events import Event
from planwave.storage.ids import new_id
from planwave.storage.jobs import Step
from planwave.storage.opening import part_with, present_schema
from planwave.storage.places import Places
from planwave.storage.records import ExecutionRecord
from planwave.storage.rows import batch_of
from planwave.storage.schema import DATABASE_NAME

STEPS = 10
ASKS = STEPS // 2
OPEN = ("cut off", "cut off", "waits", "queued")
"""How those stand that are open, in turn."""
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def fill(directory: Path, stored: int, open_: int) -> None:
    """Keep so many executions of ten steps, of which some are open, spread over all."""
    directory.mkdir(parents=True, exist_ok=True)
    raw, connection = present_schema(directory / DATABASE_NAME)
    places = Places(raw)
    every = stored // open_
    raw.execute("BEGIN")
    for number in range(stored):
        stands = "ended" if number % every else OPEN[number // every % len(OPEN)]
        _keep(places, f"{_BEGAN + timedelta(seconds=number):%FT%T}.000000+00:00", stands)
    raw.execute("COMMIT")
    part_with(connection)


def _keep(places: Places, at: str, stands: str) -> None:
    own = new_id()
    events = [
        Event(own, seq, at, kind, path, 1 if path else None, data)
        for seq, (kind, path, data) in enumerate(_events(stands), 1)
    ]
    batch = batch_of(own, events)
    assert batch is not None
    progress = batch.progress
    record = ExecutionRecord(
        own, None, "A title", "a goal", progress.status or "starting", at,
        progress.started_at, progress.completed_at,
        document_seq=batch.last if stands in ("ended", "waits") else 0, queued=True,
    )  # fmt: skip
    places.append([Step(own, record.epoch, batch, record)])


def _events(stands: str) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    yield "execution.created", None, {"goal": "a goal", "title": "A title", "graph": _GRAPH}
    if stands == "queued":
        return
    yield "execution.started", None, {"waves": STEPS}
    for number in range(STEPS):
        path, wave = f"n{number}", number + 1
        yield "wave.started", None, {"wave": wave, "nodes": [path]}
        yield "node.started", path, {"wave": wave}
        if number == ASKS and stands == "cut off":
            return
        if number == ASKS:
            yield "node.waiting", path, {"request_id": "r1", "request": {"kind": "approval"}}
            if stands == "waits":
                yield "execution.paused", None, {"reason": "waiting for an answer"}
                return
            yield "node.answered", path, {"request_id": "r1", "answer": {"decision": "approve"}}
        handle = "approve" if number == ASKS else "output"
        outputs = {handle: {"type": "text", "value": "x" * 2_000}}
        yield "node.completed", path, {"outputs": outputs, "duration_s": 0.1}
        yield "wave.completed", None, {"wave": wave}
    yield "execution.completed", None, {}


def _node(number: int) -> dict[str, Any]:
    if number == ASKS:
        return {"id": f"n{number}", "type": "approval", "data": {"prompt": "Shall it?"}}
    return {"id": f"n{number}", "type": "text", "data": {"text": "x" * 100}}


_GRAPH: dict[str, Any] = {
    "nodes": [_node(number) for number in range(STEPS)],
    "edges": [
        {
            "source": f"n{number}",
            "sourceHandle": "approve" if number == ASKS else "output",
            "target": f"n{number + 1}",
            "data": {"channel": "flow"},
        }
        for number in range(STEPS - 1)
    ],
}
