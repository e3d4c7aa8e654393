"""The statements of the store, except those of appends and of its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    column,
    func,
    select,
    update,
    values,
)

from planwave.principals import principal_text
from planwave.providers.protocols import CallKey
from planwave.storage.errors import not_found
from planwave.storage.event_codec import (
    SETTLED_STATUSES,
    encode_document,
    search_key,
    storable_text,
)
from planwave.storage.records import PlanRecord
from planwave.storage.sql.dialects import upsert
from planwave.storage.sql.flow_names import name_key, require_free_name
from planwave.storage.sql.lists import LAST_SEQ, approvals_text
from planwave.storage.sql.locks import lock
from planwave.storage.sql.schema import batches, calls, executions, plans

Rows: TypeAlias = Select[*tuple[Any, ...]]


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
    lock(connection, "plan", row["plan_id"])
    require_free_name(connection, row["plan_id"], row["name"])
    new = upsert(connection, plans)
    replaced = {column.name: column for column in new.excluded if not column.primary_key}
    connection.execute(
        new.on_conflict_do_update(index_elements=[plans.c.plan_id], set_=replaced), row
    )


def select_newest_statuses(plan_ids: Sequence[str]) -> Rows:
    """Select ``plan_id, status`` of the newest execution of each of these plans, or a null."""
    asked = values(column("plan_id", Text)).data([(each,) for each in plan_ids]).cte("asked")
    newest = (
        select(executions.c.status)
        .where(executions.c.plan_id == asked.c.plan_id)
        .order_by(executions.c.created_at.desc(), executions.c.execution_id.desc())
        .limit(1)
        .correlate(asked)
        .scalar_subquery()
    )
    return select(asked.c.plan_id, newest)


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
_ALL: Final = (1 << 31) - 1
"""No limit."""


def batches_after(
    connection: Connection, execution_id: str, after: int, limit: int | None
) -> Sequence[Row[int, str]]:
    """Return the rows ``first, events`` of an execution's events, in order."""
    most = _ALL if limit is None else max(limit, 0) + 1
    parameters = {"of": storable_text(execution_id), "next": after + 1, "most": most}
    return connection.execute(_BATCHES_AFTER, parameters).all()


_RAISE_EPOCH: Final = (
    update(executions)
    .where(executions.c.execution_id == bindparam("of"))
    .values(epoch=executions.c.epoch + 1)
    .returning(executions.c.epoch)
)
_RAISE_AND_QUEUE: Final = _RAISE_EPOCH.values(queued=bindparam("is_queued"))


def raise_epoch(connection: Connection, execution_id: str, queued: bool | None = None) -> int:
    """Increment and return an epoch, which locks the execution's row; set ``queued`` unless None.

    Raises:
        NotFound: There is none of that id.
    """
    if queued is None:
        result = connection.execute(_RAISE_EPOCH, {"of": execution_id})
    else:
        row = {"of": execution_id, "is_queued": int(queued)}
        result = connection.execute(_RAISE_AND_QUEUE, row)
    epoch = result.scalar_one_or_none()
    if epoch is None:
        raise not_found("execution", execution_id)
    return epoch


def stored_executions(connection: Connection, execution_ids: Iterable[str]) -> set[str]:
    """Return those of some ids that executions have."""
    own = executions.c.execution_id
    return set(connection.execute(select(own).where(own.in_(execution_ids))).scalars())


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


def call_row(key: CallKey, reply: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a recorded reply.

    Raises:
        StoreError: The reply is not JSON.
    """
    return {**key._asdict(), "reply": encode_document(reply, "a recorded reply")}


def insert_call(connection: Connection, row: Mapping[str, Any]) -> None:
    """Insert a ``call_row``; an existing one is kept."""
    connection.execute(upsert(connection, calls).values(row).on_conflict_do_nothing())
