"""Statements about idempotency keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Delete, Update, delete, exists, select, update

from planwave.ids import new_id
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.records import IdempotencyRecord
from planwave.storage.sql.dialects import upsert
from planwave.storage.sql.locks import is_alive, lock
from planwave.storage.sql.queries import Rows
from planwave.storage.sql.schema import answers, executions

DELETE_BATCH_SIZE: Final = 500
"""Keys deleted in one transaction."""

_IS_OPEN = exists().where(
    executions.c.execution_id == answers.c.subject, executions.c.status.not_in(ENDED_STATUSES)
)


def select_record(key: str) -> Rows:
    """Return the query of a key's record."""
    columns = answers.c
    return select(
        columns.digest, columns.created_at, columns.subject, columns.status, columns.body
    ).where(columns.key == key)


def record_from_row(row: Any) -> IdempotencyRecord:
    """Return the record of a row."""
    return IdempotencyRecord(*row)


def claim(
    connection: Connection,
    key: str,
    digest: str,
    at: str,
    expired: str,
    holder: str,
    *,
    is_lost: bool = False,
) -> IdempotencyRecord:
    """Claim a key or return its record; see ``Store.claim_idempotency_key``.

    ``is_lost``: Whether a claim of this holder counts for nothing.
    """
    lock(connection, "idempotency-key", key)
    connection.execute(delete(answers).where(answers.c.key == key, *_has_expired(expired)))
    row = connection.execute(select_record(key).add_columns(answers.c.holder)).first()
    if row is not None:
        *fields, last_holder = row
        record = IdempotencyRecord(*fields)
        is_settled = record.status is not None or record.digest != digest
        is_own = last_holder == holder
        if is_settled or (is_own and not is_lost):
            return record
        if not is_own and is_alive(connection, last_holder):
            return replace(record, is_held_elsewhere=True)
    claimed = IdempotencyRecord(digest, at, new_id() if row is None else row.subject, is_new=True)
    values = {
        "key": key,
        "digest": digest,
        "holder": holder,
        "subject": claimed.subject,
        "created_at": at,
    }
    connection.execute(
        upsert(connection, answers)
        .values(values)
        .on_conflict_do_update(index_elements=[answers.c.key], set_=values)
    )
    return claimed


def set_response(key: str, holder: str, status: int, body: str) -> Update:
    """Return the update that stores a response to a request whose key this holder has."""
    return update(answers).where(*_is_held(key, holder)).values(status=status, body=body)


def delete_unanswered(key: str, holder: str) -> Delete:
    """Return the deletion of a key without a response, if this holder has it."""
    return delete(answers).where(*_is_held(key, holder))


def leave(key: str, holder: str) -> Update:
    """Return the update that leaves a key without a response, if this holder has it, to any other one."""
    return update(answers).where(*_is_held(key, holder)).values(holder="")


def _is_held(key: str, holder: str) -> tuple[ColumnElement[bool], ...]:
    # A process that was frozen may have lost the key to another one.
    return answers.c.key == key, answers.c.holder == holder, answers.c.status.is_(None)


def delete_expired(connection: Connection, expired: str) -> int:
    """Delete a batch of expired keys; return their number."""
    batch = select(answers.c.key).where(*_has_expired(expired)).limit(DELETE_BATCH_SIZE)
    return connection.execute(delete(answers).where(answers.c.key.in_(batch))).rowcount


def _has_expired(expired: str) -> tuple[ColumnElement[bool], ...]:
    return answers.c.created_at < expired, ~_IS_OPEN
