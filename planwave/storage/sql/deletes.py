"""Deleting plans and executions, in the writer thread.

An execution is deleted in two steps. The first hides it, the second removes its rows in small parts, so
that other writes wait for one part only. Rows that remain after a crash stay hidden, and the next
deletion removes them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Text, bindparam, cast, delete, literal, select, update

from planwave.storage.errors import (
    execution_not_ended,
    not_found,
    plan_in_use,
)
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.sql.flow_names import release_name
from planwave.storage.sql.locks import lock
from planwave.storage.sql.schema import (
    DELETED,
    answered_requests,
    artifact_uses,
    batches,
    calls,
    execution_labels,
    execution_search,
    execution_texts,
    executions,
    input_sets,
    links,
    plans,
    revisions,
    search_signatures,
)

_HIDDEN_TABLES: Final = (
    execution_texts, execution_labels, execution_search, search_signatures, answered_requests,
)  # fmt: skip
"""Tables whose rows of an execution go when it is hidden."""
_ROWS: Final = 200
"""Rows of events removed in one part: about 10 ms."""


class PurgeResult(NamedTuple):
    """The result of one part of the second step.

    Attributes:
        digests: Hashes of large values that may be unused now.
        is_done: Whether all hidden rows are removed.
    """

    digests: set[str]
    is_done: bool


def delete_plan(connection: Connection, plan_id: str, *, force: bool = False) -> None:
    """Delete a plan with its revisions and all that its name leads to; all its executions must have ended.

    Raises:
        NotFound, Conflict: See ``Store.delete_plan``.
    """
    lock(connection, "plan", plan_id)
    _require_ended(connection, plan_id)
    release_name(connection, plan_id, force=force)
    for table in (input_sets, revisions):
        connection.execute(delete(table).where(table.c.plan_id == plan_id))
    if not connection.execute(delete(plans).where(plans.c.plan_id == plan_id)).rowcount:
        raise not_found("plan", plan_id)


def _require_ended(connection: Connection, plan_id: str) -> None:
    """Raise if an execution of a plan has not ended."""
    running = connection.execute(
        select(executions.c.execution_id)
        .where(executions.c.plan_id == plan_id, executions.c.status.not_in(ENDED_STATUSES))
        .limit(1)
    ).scalar()
    if running is not None:
        raise plan_in_use(plan_id, running)


def soft_delete_execution(connection: Connection, execution_id: str) -> None:
    """Hide an execution that has ended.

    Raises:
        NotFound, Conflict: See ``Store.delete_execution``.
    """
    row = connection.execute(
        select(executions.c.key, executions.c.status)
        .where(executions.c.execution_id == execution_id)
        .with_for_update()
    ).first()
    if row is None:
        raise not_found("execution", execution_id)
    key, status = row
    if status not in ENDED_STATUSES:
        raise execution_not_ended(execution_id, status)
    soft_delete(connection, [(key, execution_id)])


def soft_delete_ended(connection: Connection, before: str, limit: int) -> list[str]:
    """Hide executions that ended before a time, oldest first; return their ids."""
    ended = connection.execute(
        select(executions.c.key, executions.c.execution_id)
        .where(
            executions.c.created_at < before,  # has an index, and is before completed_at
            executions.c.completed_at < before,
            executions.c.status.in_(ENDED_STATUSES),
        )
        .order_by(executions.c.created_at, executions.c.execution_id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    ).all()
    soft_delete(connection, [(row.key, row.execution_id) for row in ended])
    return [row.execution_id for row in ended]


def soft_delete(connection: Connection, keys: list[tuple[int, str]]) -> None:
    """Hide executions of any status, by key and id."""
    if not keys:
        return
    rows = [{"hidden": key, "name": execution_id} for key, execution_id in keys]
    for statement in (
        update(executions)
        .where(executions.c.key == bindparam("hidden"))
        .values(
            status=DELETED,
            plan_id=None,
            execution_id=literal("deleted ") + cast(executions.c.key, Text),
        ),
        *(delete(each).where(each.c.execution == bindparam("hidden")) for each in _HIDDEN_TABLES),
        delete(calls).where(calls.c.execution_id == bindparam("name")),
        update(links)
        .where(links.c.execution_id == bindparam("name"), links.c.ended.is_(None))
        .values(ended="deleted"),
    ):  # fmt: skip
        connection.execute(statement, rows)


def purge(connection: Connection) -> PurgeResult:
    """Remove some rows of hidden executions."""
    remaining, digests = _ROWS, set[str]()
    while remaining > 0:
        key = connection.execute(
            select(executions.c.key)
            .where(executions.c.status == DELETED)
            .limit(1)
            .with_for_update(skip_locked=True)
        ).scalar()
        if key is None:
            return PurgeResult(digests, is_done=True)
        part = select(batches.c.id).where(batches.c.execution == key).limit(remaining)
        removed = connection.execute(delete(batches).where(batches.c.id.in_(part))).rowcount
        if removed < remaining:
            digests |= _remove_execution(connection, key)
        remaining -= max(removed, 1)
    return PurgeResult(digests, is_done=False)


def _remove_execution(connection: Connection, key: Any) -> set[str]:
    used = artifact_uses.c.execution == key
    digests = connection.execute(select(artifact_uses.c.digest).where(used)).scalars().all()
    connection.execute(delete(artifact_uses).where(used))
    connection.execute(delete(executions).where(executions.c.key == key))
    return set(digests)
