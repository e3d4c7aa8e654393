"""Appending the events of executions: what every database does alike.

A database looks up where each execution is, ``collect`` checks that the events follow, and the database
inserts the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select

from planwave.principals import principal_text
from planwave.storage.errors import stale_epoch, unexpected_seq
from planwave.storage.event_codec import (
    NO_CHANGE,
    BatchAnswer,
    BatchNotice,
    EncodedBatch,
    StatusChange,
    asks_person,
    search_key,
    storable_text,
)
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.schema import answered_requests, batches


class AppendOp(NamedTuple):
    """Events that take one execution from ``batch.first - 1`` to ``batch.last``.

    With ``record`` the execution is new; ``plan`` is the row of a plan to insert with it.
    """

    execution_id: str
    epoch: int
    batch: EncodedBatch | None
    record: ExecutionRecord | None = None
    plan: Mapping[str, str | int | None] | None = None


class Position:
    """The position of an execution: the key of its row, the epoch, and the last ``seq``."""

    __slots__ = ("epoch", "key", "last")

    def __init__(self, key: int, epoch: int, last: int) -> None:
        self.key = key
        self.epoch = epoch
        self.last = last


class AppendedRows(NamedTuple):
    """The rows that some appends become.

    Attributes:
        batches: ``key, first, last, events`` of each, in one flat list.
        changes: Changes of status by key.
        answers: The answers to people's requests, with the key of the execution.
        notices: What people may be notified of, with key and id of the execution.
    """

    batches: list[Any]
    changes: dict[int, StatusChange]
    answers: list[tuple[int, Sequence[BatchAnswer]]]
    notices: list[tuple[int, str, Sequence[BatchNotice]]]


def collect(
    steps: Sequence[AppendOp],
    positions: Sequence[Position],
    is_stored: Callable[[Position, EncodedBatch], bool] = lambda _position, _batch: False,
) -> AppendedRows:
    """Return the rows of some appends, whose positions move on.

    Args:
        steps: The appends.
        positions: Where each execution is.
        is_stored: Whether a batch that does not follow is stored already, by a commit whose answer was lost.

    Raises:
        StoreError, StaleEpoch: Events do not follow those of their execution.
    """
    rows = AppendedRows([], {}, [], [])
    for position, (execution_id, epoch, batch, record, _) in zip(positions, steps, strict=True):
        if batch is None:
            continue
        first, last, text, change, answers, notices = batch
        if epoch < position.epoch:
            raise stale_epoch(execution_id, epoch, position.epoch)
        if first != position.last + 1:
            if first <= position.last and is_stored(position, batch):
                continue
            raise unexpected_seq(execution_id, first, position.last)
        position.last = last
        rows.batches.extend((position.key, first, last, text))
        if record is None and change is not NO_CHANGE:
            before = rows.changes.get(position.key, NO_CHANGE)
            rows.changes[position.key] = merge_changes(before, change)
        if answers:
            rows.answers.append((position.key, answers))
        if notices:
            rows.notices.append((position.key, execution_id, notices))
    return rows


_BATCH_OF: Final = (
    select(batches.c.first, batches.c.events)
    .where(batches.c.execution == bindparam("of"), batches.c.first <= bindparam("seq"))
    .order_by(batches.c.first.desc())
    .limit(1)
)


def add_answers(connection: Connection, key: int, answers: Sequence[BatchAnswer]) -> None:
    """Insert the answers to people's requests of an execution whose events are stored."""
    for request, answer, at in answers:
        row = connection.execute(_BATCH_OF, {"of": key, "seq": request}).first()
        if row is not None and asks_person(row.events, row.first, request):
            values = {"execution": key, "answer": answer, "request": request, "at": at}
            connection.execute(insert(answered_requests), values)


def merge_changes(before: StatusChange, after: StatusChange) -> StatusChange:
    """Return the combination of two changes in order; the statements of the databases do the same."""
    return StatusChange(
        after.status or before.status,
        before.started_at or after.started_at,
        after.completed_at or before.completed_at,
    )


EXECUTION_COLUMNS: Final = (
    "key, execution_id, plan_id, status, created_at, started_at, completed_at, document_seq, "
    "epoch, queued, revision, flow, created_by, parent_id, needs"
)
TEXT_COLUMNS: Final = "execution, title, user_prompt, search"


def execution_row(key: int, op: AppendOp, record: ExecutionRecord) -> tuple[Any, ...]:
    """Return the ``EXECUTION_COLUMNS`` of a new execution after its first events."""
    change = NO_CHANGE if op.batch is None else op.batch.status_change
    before = StatusChange(record.status, record.started_at, record.completed_at)
    status, started_at, completed_at = merge_changes(before, change)
    return (
        key,
        record.execution_id,
        record.plan_id,
        status,
        record.created_at,
        started_at,
        completed_at,
        record.document_seq,
        record.epoch,
        int(record.queued),
        record.revision,
        None if record.flow is None else storable_text(record.flow),
        principal_text(record.created_by),
        record.parent_id,
        record.needs,
    )


def text_row(key: int, record: ExecutionRecord) -> tuple[Any, ...]:
    """Return the ``TEXT_COLUMNS`` of a new execution."""
    return (
        key,
        storable_text(record.title),
        storable_text(record.user_prompt),
        search_key(record.title, record.user_prompt),
    )
