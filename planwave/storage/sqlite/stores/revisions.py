"""The revisions of plans in the store, and their statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from planwave.principals import Principal, principal_text
from planwave.storage.event_codec import encode_document, storable_text
from planwave.storage.records import PlanRecord, PlanRevision
from planwave.storage.sqlite import queries
from planwave.storage.sqlite.readers import Read
from planwave.storage.sqlite.schema import plan_revisions, plans

_SUMMARY: Final = (
    plan_revisions.c.plan_id,
    plan_revisions.c.revision,
    plan_revisions.c.hash,
    plan_revisions.c.title,
    plan_revisions.c.author,
    plan_revisions.c.note,
    plan_revisions.c.created_at,
    plan_revisions.c.node_count,
    plan_revisions.c.error_count,
)


class SqliteRevisions:
    """Changes of plans and the revisions before the current one, in ``plans`` and ``plan_revisions``.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(
        self,
        read: Read,
        write: Callable[[Callable[[Connection], Any]], Coroutine[Any, Any, Any]],
    ) -> None:
        self._read = read
        self._write = write

    async def save(
        self, plan: PlanRecord, superseded: PlanRevision | None = None, *, after: int
    ) -> bool:
        """Save a changed plan and, if it has a new revision, the one before.

        Args:
            plan: The new record; its ``edits`` is ``after + 1``.
            superseded: The revision that is no longer the current one, with its document.
            after: The ``edits`` of the record that the change was made from.

        Returns:
            Whether the plan was saved; False if it was changed or deleted meanwhile.
        """
        values = {
            **queries.plan_row(plan),
            "edits": plan.edits,
            "author": plan.author,
            "note": storable_text(plan.note),
            "updated_at": plan.updated_at,
        }
        revision = None if superseded is None else _row(superseded)
        return await self._write(lambda connection: _save(connection, values, revision, after))

    async def get(self, plan_id: str, revision: int) -> PlanRevision | None:
        """Return a revision before the current one, with its document."""
        statement = select(*_SUMMARY, plan_revisions.c.created_by, plan_revisions.c.document).where(
            plan_revisions.c.plan_id == storable_text(plan_id),
            plan_revisions.c.revision == revision,
        )
        row = await self._read(lambda connection: connection.execute(statement).first())
        if row is None:
            return None
        *facts, created_by, document = row
        by = Principal.from_text(created_by)
        return PlanRevision(*facts, document=json.loads(document), created_by=by)

    async def page(
        self, plan_id: str, *, before: int | None = None, limit: int = 50
    ) -> list[PlanRevision]:
        """Return revisions before the current one, newest first, without their documents.

        ``before``: only those with a lower number.
        """
        statement = (
            select(*_SUMMARY, plan_revisions.c.created_by)
            .where(plan_revisions.c.plan_id == storable_text(plan_id))
            .order_by(plan_revisions.c.revision.desc())
            .limit(max(limit, 0))
        )
        if before is not None:
            statement = statement.where(plan_revisions.c.revision < before)
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return [
            PlanRevision(*facts, created_by=Principal.from_text(created_by))
            for *facts, created_by in rows
        ]


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


def _save(
    connection: Connection, values: dict[str, Any], revision: dict[str, Any] | None, after: int
) -> bool:
    same = (plans.c.plan_id == values["plan_id"]) & (plans.c.edits == after)
    if not connection.execute(update(plans).where(same).values(values)).rowcount:
        return False
    if revision is not None:
        connection.execute(insert(plan_revisions).values(revision))
    return True
