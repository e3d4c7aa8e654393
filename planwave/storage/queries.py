"""The statements of the SQLite store, apart from the one hot path in ``writer.py``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Table,
    Update,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy import Insert as StandardInsert
from sqlalchemy.dialects.sqlite import Insert, dialect
from sqlalchemy.dialects.sqlite import insert as upsert

from planwave.providers.api import CallKey
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.rows import SETTLED, encode_json, no_page, search_key, storable
from planwave.storage.schema import calls, events, execution_texts, executions, plans

_T = TypeVar("_T")

Rows: TypeAlias = Select[*tuple[Any, ...]]

_LAST_SEQ: Final[ColumnElement[int]] = func.coalesce(
    select(func.max(events.c.seq))
    .where(events.c.execution == executions.c.key)
    .correlate(executions)
    .scalar_subquery(),
    0,
)
_PLAN_COLUMNS: Final = (
    plans.c.plan_id,
    plans.c.created_at,
    plans.c.user_prompt,
    plans.c.title,
    plans.c.hash,
    plans.c.document,
)
_EXECUTION_COLUMNS: Final = (
    executions.c.execution_id,
    executions.c.plan_id,
    execution_texts.c.title,
    execution_texts.c.user_prompt,
    executions.c.status,
    executions.c.created_at,
    executions.c.started_at,
    executions.c.completed_at,
    _LAST_SEQ,
    executions.c.document_seq,
    executions.c.epoch,
)
_EVENT_COLUMNS: Final = (
    events.c.seq,
    events.c.at,
    events.c.type,
    events.c.path,
    events.c.attempt,
    events.c.data,
)
_WITH_TEXTS: Final[FromClause] = executions.join(
    execution_texts, execution_texts.c.execution == executions.c.key
)


def _text_of(statement: StandardInsert, columns: str) -> str:
    """Give an insert of these columns as SQL, so that running it costs no compiling."""
    return str(statement.compile(dialect=dialect(), column_keys=columns.split()))


def keeping_plan(plan: PlanRecord) -> Insert:
    """Insert a plan, or replace the one of the same id."""
    row = {
        "plan_id": plan.plan_id,
        "created_at": plan.created_at,
        "title": storable(plan.title),
        "user_prompt": storable(plan.user_prompt),
        "hash": plan.hash,
        "search": search_key(plan.title, plan.user_prompt),
        "document": encode_json(plan.document, f"plan {plan.plan_id!r}"),
    }
    new = {name: value for name, value in row.items() if name != "plan_id"}
    return (
        upsert(plans).values(row).on_conflict_do_update(index_elements=[plans.c.plan_id], set_=new)
    )


def plans_like(text: str | None = None) -> Rows:
    """Select plans that hold a text."""
    statement: Rows = select(*_PLAN_COLUMNS)
    return statement.where(_contains(plans.c.search, text)) if text else statement


def executions_like(
    status: str | None = None, text: str | None = None, since: str | None = None
) -> Rows:
    """Select executions by status, text and age."""
    statement: Rows = select(*_EXECUTION_COLUMNS).select_from(_WITH_TEXTS)
    if status is not None:
        statement = statement.where(executions.c.status == status)
    if since is not None:
        statement = statement.where(executions.c.created_at >= since)
    if text:
        statement = statement.where(_contains(execution_texts.c.search, text))
    return statement


def events_after(execution_id: str, after: int, limit: int | None) -> Rows:
    """Select an execution's events in order."""
    key = select(executions.c.key).where(executions.c.execution_id == execution_id)
    return (
        select(*_EVENT_COLUMNS)
        .where(events.c.execution == key.scalar_subquery(), events.c.seq > after)
        .order_by(events.c.seq)
        .limit(None if limit is None else max(limit, 0))
    )


def claiming(execution_id: str) -> Update:
    """Raise an execution's epoch, and give it."""
    return (
        update(executions)
        .where(executions.c.execution_id == execution_id)
        .values(epoch=executions.c.epoch + 1)
        .returning(executions.c.epoch)
    )


def noting_document(execution_id: str, seq: int) -> Update:
    """Note that the document on disk shows events up to ``seq``."""
    return (
        update(executions)
        .where(executions.c.execution_id == execution_id)
        .values(document_seq=func.max(executions.c.document_seq, seq))
    )


def behind_their_events() -> Rows:
    """Select ids of settled executions whose document is old, oldest first."""
    return (
        select(executions.c.execution_id)
        .where(executions.c.status.in_(SETTLED), executions.c.document_seq < _LAST_SEQ)
        .order_by(executions.c.created_at, executions.c.execution_id)
    )


def call_of(key: CallKey) -> Rows:
    """Select a recorded reply."""
    same = [calls.c[name] == value for name, value in key._asdict().items()]
    return select(calls.c.reply).where(*same)


def keeping_call(key: CallKey, reply: dict[str, Any]) -> Insert:
    """Insert a reply; the first one of a key stays."""
    row = {**key._asdict(), "reply": encode_json(reply, "a recorded reply")}
    return upsert(calls).values(row).on_conflict_do_nothing()


_ADD_EXECUTION: Final = _text_of(
    insert(executions),
    "execution_id plan_id status created_at started_at completed_at document_seq epoch",
)
_ADD_TEXTS: Final = _text_of(insert(execution_texts), "execution title user_prompt search")


def insert_execution(connection: Connection, record: ExecutionRecord) -> None:
    """Insert an execution that has no events yet.

    Raises:
        DBAPIError: There is one of that id.
    """
    added = connection.exec_driver_sql(
        _ADD_EXECUTION,
        (
            record.execution_id,
            record.plan_id,
            record.status,
            record.created_at,
            record.started_at,
            record.completed_at,
            record.document_seq,
            record.epoch,
        ),
    )
    connection.exec_driver_sql(
        _ADD_TEXTS,
        (
            added.lastrowid,
            storable(record.title),
            storable(record.user_prompt),
            search_key(record.title, record.user_prompt),
        ),
    )


def page_of(
    connection: Connection,
    statement: Rows,
    table: Table,
    before: str | None,
    limit: int,
    record_of: Callable[[Any], _T],
) -> list[_T]:
    """Give one page of a list, newest first.

    Raises:
        NotFound: ``before`` is nobody's id.
    """
    own_id = plans.c.plan_id if table is plans else executions.c.execution_id
    created = table.c.created_at
    if before is not None:
        seen = connection.execute(select(created).where(own_id == before)).first()
        if seen is None:
            raise no_page(before)
        statement = statement.where(tuple_(created, own_id) < tuple_(seen[0], before))
    statement = statement.order_by(created.desc(), own_id.desc()).limit(max(limit, 0))
    return [record_of(row) for row in connection.execute(statement)]


def plan_of(row: Any) -> PlanRecord:
    """Give the plan of a row."""
    plan_id, created_at, user_prompt, title, digest, document = row
    return PlanRecord(plan_id, created_at, user_prompt, title, digest, json.loads(document))


def execution_of(row: Any) -> ExecutionRecord:
    """Give the execution of a row."""
    return ExecutionRecord(*row)


def _contains(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    return func.instr(column, storable(text).casefold()) > 0
