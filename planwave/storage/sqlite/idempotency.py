"""Requests under idempotency keys: changes for the writing thread, and the one look-up."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Update,
    delete,
    exists,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from planwave.ids import new_id
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.records import IdempotencyRecord
from planwave.storage.sqlite.queries import Rows
from planwave.storage.sqlite.schema import answers, executions

DELETE_BATCH_SIZE: Final = 500
"""Answers deleted in one transaction."""

_IS_OPEN = exists().where(
    executions.c.execution_id == answers.c.subject, executions.c.status.not_in(ENDED_STATUSES)
)


def select_record(key: str) -> Rows:
    """Select what is kept under a key."""
    columns = answers.c
    return select(
        columns.digest, columns.created_at, columns.subject, columns.status, columns.body
    ).where(columns.key == key)


def record_from_row(row: Any) -> IdempotencyRecord:
    """Give the answer of a row."""
    return IdempotencyRecord(*row)


def claim(
    connection: Connection, key: str, digest: str, at: str, expired: str, holder: str
) -> IdempotencyRecord:
    """Take a key or give what is kept under it; see ``Store.claim_idempotency_key``."""
    connection.execute(delete(answers).where(answers.c.key == key, *_has_expired(expired)))
    row = connection.execute(select_record(key).add_columns(answers.c.holder)).first()
    if row is not None:
        *kept, last_holder = row
        found = IdempotencyRecord(*kept)
        if found.status is not None or found.digest != digest or last_holder == holder:
            return found
    taken = IdempotencyRecord(digest, at, new_id() if row is None else row.subject, is_new=True)
    values = {
        "key": key,
        "digest": digest,
        "holder": holder,
        "subject": taken.subject,
        "created_at": at,
    }
    connection.execute(
        upsert(answers)
        .values(values)
        .on_conflict_do_update(index_elements=[answers.c.key], set_=values)
    )
    return taken


def set_response(key: str, status: int, body: str) -> Update:
    """Keep an answer."""
    return (
        update(answers)
        .where(answers.c.key == key, answers.c.status.is_(None))
        .values(status=status, body=body)
    )


def delete_unanswered(key: str) -> Delete:
    """Give a key back that was not answered."""
    return delete(answers).where(answers.c.key == key, answers.c.status.is_(None))


def delete_expired(connection: Connection, expired: str) -> int:
    """Delete some of what has expired; give how many."""
    some = select(answers.c.key).where(*_has_expired(expired)).limit(DELETE_BATCH_SIZE)
    return connection.execute(delete(answers).where(answers.c.key.in_(some))).rowcount


def _has_expired(expired: str) -> tuple[ColumnElement[bool], ...]:
    return answers.c.created_at < expired, ~_IS_OPEN
