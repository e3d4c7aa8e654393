"""The changes of plans and their revisions in the store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, tuple_, update

from planwave.principals import Principal, principal_text
from planwave.storage.event_codec import encode_document, storable_text
from planwave.storage.records import PlanRecord, PlanRevision
from planwave.storage.sql import queries
from planwave.storage.sql.flow_names import graphs_that_name, release_name, require_free_name
from planwave.storage.sql.locks import lock
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import chats, executions, plans, revisions, triggers

_SUMMARY: Final = (
    revisions.c.plan_id,
    revisions.c.revision,
    revisions.c.hash,
    revisions.c.title,
    revisions.c.author,
    revisions.c.note,
    revisions.c.created_at,
    revisions.c.node_count,
    revisions.c.error_count,
)


class CompletedRun(NamedTuple):
    """An execution that completed, and the goal of its plan.

    ``revision`` is that of the plan which it ran; None where it ran another graph.
    """

    plan_id: str
    revision: int | None
    created_by: Principal | None
    goal: str


class SqlRevisions:
    """Changes of plans, and the revisions before the newest one; writes are durable on return.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def completed(self, most: int) -> list[CompletedRun]:
        """Return the executions of plans that are still there and completed, the newest first."""
        statement = (
            select(
                executions.c.plan_id,
                executions.c.revision,
                executions.c.created_by,
                plans.c.user_prompt,
            )
            .join(plans, plans.c.plan_id == executions.c.plan_id)
            .where(executions.c.status == "completed")
            .order_by(executions.c.created_at.desc(), executions.c.execution_id.desc())
            .limit(most)
        )
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return [
            CompletedRun(plan_id, revision, Principal.from_text(created_by), goal)
            for plan_id, revision, created_by, goal in rows
        ]

    async def save(
        self,
        plan: PlanRecord,
        superseded: PlanRevision | None = None,
        *,
        after: int,
        most: int | None = None,
        force: bool = False,
    ) -> bool:
        """Save a changed plan and, if it has a new revision, the one before.

        Args:
            plan: The new record; its ``edits`` is ``after + 1``.
            superseded: The revision that is no longer the newest one, with its document.
            after: The ``edits`` of the record that the change was made from.
            most: The number of revisions that are kept; above it the oldest goes that nothing refers
                to. None keeps all.
            force: Whether to remove what leads to a name that the change takes away.

        Returns:
            Whether the plan was saved; False if it was changed or deleted meanwhile.

        Raises:
            Conflict: ``name-taken``; ``flow-in-use``: the change takes away a name that others lead to.
        """
        values = queries.plan_row(plan)
        revision = None if superseded is None else _row(superseded)

        def change(connection: Connection) -> bool:
            if not _save(connection, values, after, force=force):
                return False
            if revision is not None:
                connection.execute(insert(revisions).values(revision))
                if most is not None:
                    _prune(connection, plan, most)
            return True

        return await self._write(change)

    async def get(self, plan_id: str, revision: int) -> PlanRevision | None:
        """Return a revision before the current one, with its document."""
        statement = select(*_SUMMARY, revisions.c.created_by, revisions.c.document).where(
            revisions.c.plan_id == storable_text(plan_id),
            revisions.c.revision == revision,
        )
        row = await self._read(lambda connection: connection.execute(statement).first())
        if row is None:
            return None
        *facts, created_by, document = row
        by = Principal.from_text(created_by)
        return PlanRevision(*facts, document=json.loads(document), created_by=by)

    async def newest_with(self, plan_id: str, digest: str) -> int | None:
        """Return the number of the newest revision before the current one with a hash; None without one."""
        statement = select(func.max(revisions.c.revision)).where(
            revisions.c.plan_id == storable_text(plan_id), revisions.c.hash == digest
        )
        return await self._read(lambda connection: connection.execute(statement).scalar())

    async def summaries(self, numbers: Mapping[str, int]) -> dict[str, PlanRevision]:
        """Return one revision each of some plans, by plan, without documents; the current ones are not here."""
        pairs = [(storable_text(plan_id), number) for plan_id, number in numbers.items()]
        statement = select(*_SUMMARY, revisions.c.created_by).where(
            tuple_(revisions.c.plan_id, revisions.c.revision).in_(pairs)
        )
        rows = await self._read(lambda c: c.execute(statement).all()) if pairs else ()
        return {row.plan_id: _from_summary(row) for row in rows}

    async def page(
        self, plan_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[PlanRevision]:
        """Return revisions before the current one, newest first, without their documents.

        ``before``: only those with a lower number.
        """
        statement = (
            select(*_SUMMARY, revisions.c.created_by)
            .where(revisions.c.plan_id == storable_text(plan_id))
            .order_by(revisions.c.revision.desc())
            .limit(max(limit, 0))
        )
        if before is not None:
            statement = statement.where(revisions.c.revision < before)
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return [_from_summary(row) for row in rows]


def _from_summary(row: Any) -> PlanRevision:
    *facts, created_by = row
    return PlanRevision(*facts, created_by=Principal.from_text(created_by))


def _row(revision: PlanRevision) -> dict[str, Any]:
    """Return the columns of a revision.

    Raises:
        StoreError: The document is not JSON.
    """
    facts = {column.name: getattr(revision, column.name) for column in _SUMMARY}
    what = f"revision {revision.revision} of plan {revision.plan_id!r}"
    return {
        **facts,
        "title": storable_text(revision.title),
        "note": storable_text(revision.note),
        "document": encode_document(revision.document or {}, what),
        "created_by": principal_text(revision.created_by),
    }


def _save(connection: Connection, values: Mapping[str, Any], after: int, *, force: bool) -> bool:
    plan_id = values["plan_id"]
    lock(connection, "plan", plan_id)
    own = plans.c.plan_id == plan_id
    before = connection.execute(select(plans.c.name_key, plans.c.edits).where(own)).first()
    if before is None or before.edits != after:
        return False
    if before.name_key != values["name_key"]:
        release_name(connection, plan_id, force=force)
        require_free_name(connection, plan_id, values["name"])
        if force:
            values = {**values, "published": ""}
    connection.execute(update(plans).where(own).values(values))
    return True


def _prune(connection: Connection, plan: PlanRecord, most: int) -> None:
    """Remove the oldest revisions above a number; one that something refers to stays, and so does the first."""
    own = revisions.c.plan_id == plan.plan_id
    count = select(func.count()).select_from(revisions).where(own)
    excess = connection.execute(count).scalar_one() + 1 - most
    if excess <= 0:
        return
    pinned = {1, plan.sound_revision}
    for column, of_plan in (
        (executions.c.revision, executions.c.plan_id),
        (triggers.c.revision, triggers.c.plan_id),
        (chats.c.plan_revision, chats.c.plan_id),
    ):
        pinned |= set(
            connection.execute(select(column).distinct().where(of_plan == plan.plan_id)).scalars()
        )
    approved = own, revisions.c.hash.in_(plan.approvals)
    pinned |= set(connection.execute(select(revisions.c.revision).where(*approved)).scalars())
    named = graphs_that_name(connection, plan.plan_id, plan.name)
    pinned |= {number for _, flow in named if type(number := flow.get("revision")) is int}
    numbers = connection.execute(select(revisions.c.revision).where(own)).scalars()
    oldest = sorted(set(numbers) - pinned)[:excess]
    connection.execute(delete(revisions).where(own, revisions.c.revision.in_(oldest)))
