"""The statements of the SQLite store, except those of ``appends.py``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Update,
    bindparam,
    func,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import Insert
from sqlalchemy.dialects.sqlite import insert as upsert

from planwave.principals import principal_text
from planwave.providers.protocols import CallKey
from planwave.storage.event_codec import (
    SETTLED_STATUSES,
    encode_document,
    search_key,
    storable_text,
)
from planwave.storage.records import PlanRecord
from planwave.storage.sqlite.appends import MultiRowStatement
from planwave.storage.sqlite.flow_names import name_key, require_free_name
from planwave.storage.sqlite.lists import LAST_SEQ, approvals_text
from planwave.storage.sqlite.schema import batches, calls, executions, plans

Rows: TypeAlias = Select[*tuple[Any, ...]]


_NEW_PLAN: Final = upsert(plans)
UPSERT_PLAN: Final = _NEW_PLAN.on_conflict_do_update(
    index_elements=[plans.c.plan_id],
    set_={column.name: column for column in _NEW_PLAN.excluded if not column.primary_key},
)
"""Inserts a ``plan_row``, or replaces the one of the same id."""


def plan_row(plan: PlanRecord) -> dict[str, str | int | None]:
    """Return the columns of a plan, in the order of the table.

    Raises:
        StoreError: The document is not JSON.
    """
    return {
        "plan_id": plan.plan_id,
        "created_at": plan.created_at,
        "title": storable_text(plan.title),
        "user_prompt": storable_text(plan.user_prompt),
        "hash": plan.hash,
        "search": search_key(
            f"{plan.name or ''}\n{plan.title}", f"{plan.description}\n{plan.user_prompt}"
        ),
        "document": encode_document(plan.document, f"plan {plan.plan_id!r}", plain=plan.plain),
        "edits": plan.edits,
        "author": plan.author,
        "note": storable_text(plan.note),
        "updated_at": plan.updated_at,
        "edited_by": principal_text(plan.edited_by),
        "name": None if plan.name is None else storable_text(plan.name),
        "name_key": None if plan.name is None else name_key(plan.name),
        "description": storable_text(plan.description),
        "published": "".join(f" {each} " for each in plan.published),
        "sound_revision": plan.sound_revision,
        "approved_revision": plan.approved_revision,
        "approvals": approvals_text(plan.approvals),
    }


def save_plan(connection: Connection, row: Mapping[str, Any]) -> None:
    """Insert a ``plan_row``, or replace the one of the same id.

    Raises:
        Conflict: ``name-taken``: another plan has its name.
    """
    require_free_name(connection, row["plan_id"], row["name"])
    connection.execute(UPSERT_PLAN, row)


def select_newest_statuses(plan_ids: Sequence[str]) -> Rows:
    """Select ``plan_id, status`` of the newest execution of each of these plans, or a null."""
    ids = func.json_each(json.dumps(plan_ids)).table_valued("value", name="asked")
    newest = (
        select(executions.c.status)
        .where(executions.c.plan_id == ids.c.value)
        .order_by(executions.c.created_at.desc(), executions.c.execution_id.desc())
        .limit(1)
        .correlate(ids)
        .scalar_subquery()
    )
    return select(ids.c.value, newest)


def _batches_after() -> Rows:
    own = select(executions.c.key).where(executions.c.execution_id == bindparam("of"))
    key = own.scalar_subquery()
    begun = select(func.max(batches.c.first)).where(
        batches.c.execution == key, batches.c.first <= bindparam("next")
    )
    return (
        select(batches.c.first, batches.c.events)
        .where(
            batches.c.execution == key,
            batches.c.first >= func.coalesce(begun.scalar_subquery(), 0),
        )
        .order_by(batches.c.first)
        .limit(bindparam("most"))
    )


_BATCHES_AFTER: Final = _batches_after()
_ALL: Final = -1
"""No limit, for SQLite."""


def batches_after(
    connection: Connection, execution_id: str, after: int, limit: int | None
) -> Sequence[Row[int, str]]:
    """Return the rows ``first, events`` of an execution's events, in order."""
    most = _ALL if limit is None else max(limit, 0) + 1
    parameters = {"of": storable_text(execution_id), "next": after + 1, "most": most}
    return connection.execute(_BATCHES_AFTER, parameters).all()


def raise_epoch(execution_id: str, queued: bool | None) -> Update:
    """Return the update that increments and returns an epoch, and sets ``queued`` unless None."""
    changes = {} if queued is None else {"queued": int(queued)}
    return (
        update(executions)
        .where(executions.c.execution_id == execution_id)
        .values(epoch=executions.c.epoch + 1, **changes)
        .returning(executions.c.epoch)
    )


_UPDATE_DOCUMENT_SEQS: Final = MultiRowStatement(
    2,
    "UPDATE executions SET document_seq = max(document_seq, ?) WHERE execution_id = ?",
    "UPDATE executions SET document_seq = max(document_seq, column1) FROM (VALUES {}) "
    "WHERE execution_id = column2",
)


def update_document_seqs(connection: Connection, seqs: Mapping[str, int]) -> list[str]:
    """Set the last event of documents on disk; return the ids without an execution."""
    raw: Any = connection.connection.driver_connection
    rows = [value for execution_id, seq in seqs.items() for value in (seq, execution_id)]
    if _UPDATE_DOCUMENT_SEQS.run(raw, rows) == len(seqs):
        return []
    own = executions.c.execution_id
    stored_ids = set(connection.execute(select(own).where(own.in_(seqs))).scalars())
    return [execution_id for execution_id in seqs if execution_id not in stored_ids]


def select_lagging_documents() -> Rows:
    """Select ids of settled executions whose document is old, oldest first."""
    return (
        select(executions.c.execution_id)
        .where(executions.c.status.in_(SETTLED_STATUSES), executions.c.document_seq < LAST_SEQ)
        .order_by(executions.c.created_at, executions.c.execution_id)
    )


def select_call(key: CallKey) -> Rows:
    """Select a recorded reply."""
    return select(calls.c.reply).where(*_equal(key, 5))


def select_call_of_attempt(key: CallKey) -> Rows:
    """Select one of the calls that are recorded of the attempt of a call."""
    return select(calls.c.ordinal).where(*_equal(key, 3)).limit(1)


def select_other_call(key: CallKey) -> Rows:
    """Select one of the calls that are recorded under the number of a call, with another request."""
    other = ~calls.c.request_hash.startswith(key.request_hash, autoescape=True)
    return select(calls.c.ordinal).where(*_equal(key, 4), other).limit(1)


def _equal(key: CallKey, fields: int) -> list[ColumnElement[bool]]:
    """Return the conditions that so many fields of a key, from the first one, are the same."""
    return [calls.c[name] == value for name, value in list(key._asdict().items())[:fields]]


def select_calls(execution_ids: Sequence[str]) -> Rows:
    """Select what is recorded of the calls of some executions."""
    return (
        select(*(calls.c[name] for name in CallKey._fields), calls.c.reply)
        .where(calls.c.execution_id.in_(execution_ids))
        .order_by(*(calls.c[name] for name in CallKey._fields))
    )


def insert_call(key: CallKey, reply: dict[str, Any]) -> Insert:
    """Return the insertion of a reply; an existing one is kept."""
    row = {**key._asdict(), "reply": encode_document(reply, "a recorded reply")}
    return upsert(calls).values(row).on_conflict_do_nothing()
