"""Deleting plans, flows and executions, in the writer thread.

An execution is deleted in two steps. The first hides it, the second removes its rows in small parts, so
that other writes wait for one part only. Rows that remain after a crash stay hidden, and the next
deletion removes them.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from sqlalchemy import Column, Connection, bindparam, delete, func, select, update

from planwave.storage.errors import (
    execution_not_ended,
    in_use,
    not_found,
)
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.sqlite.schema import (
    DELETED,
    answered_requests,
    artifact_uses,
    batches,
    calls,
    deliveries,
    execution_texts,
    executions,
    flow_versions,
    flows,
    notification_targets,
    notifications,
    plan_revisions,
    plans,
    triggers,
)

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


def delete_plan(connection: Connection, plan_id: str) -> None:
    """Delete a plan with its revisions; all its executions must have ended.

    Raises:
        NotFound, Conflict: See ``Store.delete_plan``.
    """
    _require_unused(connection, "plan", executions.c.plan_id, plan_id)
    connection.execute(delete(plan_revisions).where(plan_revisions.c.plan_id == plan_id))
    if not connection.execute(delete(plans).where(plans.c.plan_id == plan_id)).rowcount:
        raise not_found("plan", plan_id)


def delete_flow(connection: Connection, flow_id: str) -> None:
    """Delete a flow with its versions, triggers and targets of notifications; all its executions must have ended.

    Raises:
        NotFound, Conflict: See ``SqliteFlows.delete``.
    """
    _require_unused(connection, "flow", executions.c.flow_id, flow_id)
    _delete_triggers(connection, flow_id)
    _delete_notification_targets(connection, flow_id)
    connection.execute(delete(flow_versions).where(flow_versions.c.flow_id == flow_id))
    if not connection.execute(delete(flows).where(flows.c.flow_id == flow_id)).rowcount:
        raise not_found("flow", flow_id)


def _delete_triggers(connection: Connection, flow_id: str) -> None:
    own = select(triggers.c.trigger_id).where(triggers.c.flow_id == flow_id)
    connection.execute(delete(deliveries).where(deliveries.c.trigger_id.in_(own)))
    connection.execute(delete(triggers).where(triggers.c.flow_id == flow_id))


def _delete_notification_targets(connection: Connection, flow_id: str) -> None:
    of_flow = notification_targets.c.flow_id == flow_id
    own = select(notification_targets.c.target_id).where(of_flow)
    connection.execute(delete(notifications).where(notifications.c.target_id.in_(own)))
    connection.execute(delete(notification_targets).where(of_flow))


def _require_unused(connection: Connection, kind: str, column: Column[str], own_id: str) -> None:
    """Raise if an execution of a plan or flow has not ended."""
    running = connection.execute(
        select(executions.c.execution_id)
        .where(column == own_id, executions.c.status.not_in(ENDED_STATUSES))
        .limit(1)
    ).scalar()
    if running is not None:
        raise in_use(kind, own_id, running)


def soft_delete_execution(connection: Connection, execution_id: str) -> None:
    """Hide an execution that has ended.

    Raises:
        NotFound, Conflict: See ``Store.delete_execution``.
    """
    row = connection.execute(
        select(executions.c.key, executions.c.status).where(
            executions.c.execution_id == execution_id
        )
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
            flow_id=None,
            execution_id=func.printf("deleted %d", executions.c.key),
        ),
        delete(execution_texts).where(execution_texts.c.execution == bindparam("hidden")),
        delete(answered_requests).where(answered_requests.c.execution == bindparam("hidden")),
        delete(calls).where(calls.c.execution_id == bindparam("name")),
    ):  # fmt: skip
        connection.execute(statement, rows)


def purge(connection: Connection) -> PurgeResult:
    """Remove some rows of hidden executions."""
    remaining, digests = _ROWS, set[str]()
    while remaining > 0:
        key = connection.execute(
            select(executions.c.key).where(executions.c.status == DELETED).limit(1)
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
