"""Plans and their revisions, for reading.

The store holds the current revision as the plan, and those before it beside the plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from planwave.errors import InputError, NotFound
from planwave.graph.editing.difference import graph_difference
from planwave.principals import principal_json
from planwave.service.plans.documents import is_graph_error, load_plan
from planwave.storage.records import PageCursor, PlanRecord, PlanRevision

if TYPE_CHECKING:
    from planwave.shapes.common import PlanStatus
    from planwave.shapes.plans import RevisionDiffResponse, RevisionResponse, RevisionSummary
    from planwave.storage.sql.store import Store

Editor: TypeAlias = Literal["person", "api"]
"""The authors of changes: the planner writes first revisions only."""
REVISION_PARTS: Final = ("nodes", "edges", "diagnostics")
"""The parts of a plan's document that each revision has."""


class PlanQueries:
    """The plans of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, plan_id: str) -> PlanRecord:
        """Return a stored plan.

        Raises:
            NotFound: There is none of that id.
        """
        return await load_plan(self._store, plan_id)

    async def list(
        self,
        *,
        text: str | None = None,
        name: str | None = None,
        named: bool | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[PlanRecord]:
        """Return plans, newest first, each in its newest revision.

        Args:
            text: Only those with this in name, title, description or goal.
            name: Only the one with this name, whatever its case.
            named: Only flows; False: only those without a name.
            before: The last one already seen: its id, or its place.
            limit: How many at most.
        """
        return await self._store.plans(
            text=text, name=name, named=named, before=before, limit=limit
        )

    async def status(self, plan_id: str) -> PlanStatus:
        """Return the status of a plan: that of its newest execution, ``draft`` without one."""
        return (await self.statuses([plan_id]))[plan_id]

    async def statuses(self, plan_ids: Sequence[str]) -> dict[str, PlanStatus]:
        """Return the status of each plan, with one query for all."""
        newest = await self._store.plan_statuses(plan_ids)
        return {
            plan_id: status_of_plan(newest[plan_id]) if plan_id in newest else "draft"
            for plan_id in plan_ids
        }


class RevisionQueries:
    """The revisions of the plans of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self, plan_id: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[PlanRevision]:
        """Return the revisions of a plan, newest first, without their documents.

        Args:
            plan_id: The plan.
            before: Only those with a lower number.
            limit: How many at most.

        Raises:
            NotFound: No plan has this id.
        """
        plan = await load_plan(self._store, plan_id)
        current = current_revision(plan)
        newest: list[PlanRevision] = []
        if limit > 0 and (before is None or current.revision < before):
            newest.append(replace(current, document=None))
        before = current.revision if before is None else min(before, current.revision)
        older = await self._store.revisions.page(
            plan_id, before=before, limit=max(limit - len(newest), 0)
        )
        approvals = plan.approvals
        return [*newest, *(replace(each, approval=approvals.get(each.hash)) for each in older)]

    async def get(self, plan_id: str, revision: int) -> PlanRevision:
        """Return one revision of a plan, with its document.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
        """
        return await self.of(await load_plan(self._store, plan_id), revision)

    async def of(self, plan: PlanRecord, revision: int) -> PlanRevision:
        """Return one revision of a plan that was read, with its document.

        Raises:
            NotFound: It has no such revision.
        """
        current = current_revision(plan)
        if revision == current.revision:
            return current
        is_earlier = revision < current.revision  # one that was made up may not fit the database
        record = await self._store.revisions.get(plan.plan_id, revision) if is_earlier else None
        if record is None:
            raise NotFound(
                f"plan {plan.plan_id} has no revision {revision}",
                hint=f"its newest revision is {current.revision}",
            )
        return replace(record, approval=plan.approvals.get(record.hash))

    async def diff(self, plan_id: str, a: int, b: int | None = None) -> RevisionDiffResponse:
        """Return what distinguishes two revisions of a plan.

        Args:
            plan_id: The plan.
            a: The number of a revision.
            b: The number of another one; None for the current one.

        Returns:
            ``{"plan_id", "a", "b", "hash": [of a, of b], "title": [of a, of b] | None}`` and the
            fields of ``planwave.graph.editing.difference.graph_difference``.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
        """
        if b is None:
            b = current_revision(await load_plan(self._store, plan_id)).revision
        first, second = await self.get(plan_id, a), await self.get(plan_id, b)
        titles = [first.title, second.title]
        return {
            "plan_id": plan_id,
            "a": a,
            "b": b,
            "hash": [first.hash, second.hash],
            "title": None if first.title == second.title else titles,
            **await asyncio.to_thread(
                graph_difference, first.document or {}, second.document or {}
            ),
        }


def status_of_plan(execution_status: str) -> PlanStatus:
    """Return the plan status for an execution status."""
    if execution_status in ("starting", "executing", "paused"):
        return "executing"
    return "completed" if execution_status == "completed" else "failed"


def current_revision(plan: PlanRecord) -> PlanRevision:
    """Return the current revision of a plan; its document shares values with the plan's."""
    document = plan.document
    diagnostics = document.get("diagnostics") or ()
    return PlanRevision(
        plan_id=plan.plan_id,
        revision=plan.revision,
        hash=plan.hash,
        title=plan.title,
        author=plan.author or ("planner" if document.get("provider") else "api"),
        note=plan.note,
        created_at=plan.updated_at or plan.created_at,
        node_count=len(document.get("nodes") or ()),
        error_count=sum(finding.get("severity") == "error" for finding in diagnostics),
        document={name: document.get(name) or [] for name in REVISION_PARTS},
        created_by=plan.edited_by,
        approval=plan.approvals.get(plan.hash),
    )


def require_sound(revision: PlanRevision) -> None:
    """Check that a revision, read with its document, has no errors.

    Raises:
        InputError: ``draft-revision``.
    """
    if any(map(is_graph_error, (revision.document or {}).get("diagnostics") or ())):
        raise InputError(
            f"revision {revision.revision} of plan {revision.plan_id} is a draft with errors",
            code="draft-revision",
            hint="choose a revision without errors",
        )


def plan_at(plan: PlanRecord, revision: PlanRevision) -> PlanRecord:
    """Return a plan as it was in one of its revisions."""
    document = {**plan.document, **(revision.document or {}), "revision": revision.revision}
    return replace(plan, title=revision.title, hash=revision.hash, document=document)


def revision_summary(revision: PlanRevision) -> RevisionSummary:
    """Return a revision as lists show it, in the JSON form of the API."""
    return {
        "plan_id": revision.plan_id,
        "revision": revision.revision,
        "hash": revision.hash,
        "title": revision.title,
        "author": revision.author,
        "note": revision.note,
        "created_at": revision.created_at,
        "node_count": revision.node_count,
        "error_count": revision.error_count,
        "created_by": principal_json(revision.created_by),
        "approval": None if revision.approval is None else revision.approval.as_json(),
    }


def revision_json(revision: PlanRevision) -> RevisionResponse:
    """Return a revision that was read with its document, in the JSON form of the API."""
    return cast("RevisionResponse", {**revision_summary(revision), **(revision.document or {})})
