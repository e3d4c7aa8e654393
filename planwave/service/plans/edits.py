"""Changing plans: edits and restores, each a new revision.

A caller names the hash that it has read. The change applies only if the plan still has this hash, so
no caller overwrites a revision that it has not seen. Each change is computed from one stored record
and saved only if that record was not changed meanwhile; otherwise it is computed again.

A revision with errors is a draft: it is stored with its diagnostics, and cannot be executed. A graph
that cannot be read is stored as it was given. Its hash is of another kind than that of a graph
(:func:`planwave.graph.plan.unreadable_hash`), so the two are never equal.

The hash leaves ``ui`` out. A change of nothing but ``ui`` makes no revision and leaves the hash as it
is. So several editors that move nodes do not refuse each other's changes, and each changes only
the fields of ``ui`` that it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from planwave.errors import LimitExceeded, PreconditionFailed
from planwave.graph.editing.editor import PlanContent, apply_operations, keep_ui
from planwave.graph.editing.forms import check_operations
from planwave.graph.model import Json
from planwave.graph.operations import Operation
from planwave.graph.plan import canonical_json, graph_hash, unreadable_hash
from planwave.jsonio import dumps_trusted
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.plans.documents import CheckReport, load_plan
from planwave.service.plans.planner_service import PlannerService
from planwave.service.plans.revisions import Editor, RevisionQueries, current_revision
from planwave.storage.records import PlanRecord, PlanRevision

_GRAPH_PARTS = ("nodes", "edges")


class _Change(NamedTuple):
    """A changed plan, and the revision that it replaces; None if only ``ui`` has changed."""

    plan: PlanRecord
    superseded: PlanRevision | None


class PlanEditor:
    """The use cases that change plans: edit them, and restore earlier revisions."""

    def __init__(
        self, dependencies: ServiceDependencies, plans: PlannerService, revisions: RevisionQueries
    ) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._plans = plans
        self._revisions = revisions

    async def edit_plan(
        self,
        plan_id: str,
        operations: Sequence[Operation],
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Apply operations to a plan, all or none; durable when this returns.

        Args:
            plan_id: The plan.
            operations: The changes, in order.
            expected: Hashes of which the plan must have one; None accepts any.
            author: The author of the new revision.
            note: The author's note on it.

        Returns:
            The plan: with a new revision, or without one if nothing but ``ui`` has changed.

        Raises:
            NotFound: No plan has this id.
            PreconditionFailed: ``plan-changed``: the plan has another hash.
            InvalidOperation: An operation has a wrong form, whatever the plan's hash, or cannot be
                applied.
            LimitExceeded: ``plan_operations``, ``plan_revisions``, ``plan_bytes``, ``nodes``,
                ``edges``.
        """
        most = self._dependencies.limits.plan_operations
        if len(operations) > most:
            raise LimitExceeded("plan_operations", most, len(operations))
        await asyncio.to_thread(check_operations, operations)

        def change(content: PlanContent) -> PlanContent:
            return apply_operations(content, operations, self._dependencies.catalogue)

        return await self._save(plan_id, change, expected, author, note)

    async def restore_revision(
        self,
        plan_id: str,
        revision: int,
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Restore the title and the graph of a revision of a plan; durable when this returns.

        Nodes that the plan has now keep their ``ui``. Without a difference, nothing is changed.

        Args:
            plan_id: The plan.
            revision: The number of the revision.
            expected: See :meth:`edit_plan`.
            author: See :meth:`edit_plan`.
            note: The author's note; by default it names the revision.

        Returns:
            The plan.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
            PreconditionFailed: ``plan-changed``: the plan has another hash.
            LimitExceeded: ``plan_revisions``.
        """
        found = await self._revisions.plan_revision(plan_id, revision)
        document: Mapping[str, Json] = found.document or {}

        def change(content: PlanContent) -> PlanContent:
            graph = {name: document[name] for name in _GRAPH_PARTS}
            bare = keep_ui(_without_shared_ui(graph, content.graph), content.graph)
            return PlanContent(found.title, bare)

        note = note or f"revision {revision} restored"
        return await self._save(plan_id, change, expected, author, note)

    async def _save(
        self,
        plan_id: str,
        change: Callable[[PlanContent], PlanContent],
        expected: Collection[str] | None,
        author: Editor,
        note: str,
    ) -> PlanRecord:
        """Save the change of a plan; compute it again as long as others save theirs meanwhile."""
        while True:
            plan = await load_plan(self._store, plan_id)
            if expected is not None and plan.hash not in expected:
                raise _changed_error(plan)
            made = await asyncio.to_thread(self._changed, plan, change, author, note)
            if made is None:
                return plan
            if await self._store.revisions.save(made.plan, made.superseded, after=plan.edits):
                return made.plan

    def _changed(
        self,
        plan: PlanRecord,
        change: Callable[[PlanContent], PlanContent],
        author: Editor,
        note: str,
    ) -> _Change | None:
        """Return a plan with a change; None if it stays as it is."""
        present = {name: plan.document[name] for name in _GRAPH_PARTS}
        content = change(PlanContent(plan.title, present))
        self._require_within_limits(content.graph)
        report = self._plans.check_document(content.graph)
        graph = report.graph_document() or dict(content.graph)
        digest = unreadable_hash(graph) if report.graph is None else graph_hash(report.graph)
        if (digest, content.title) == (plan.hash, plan.title):
            if canonical_json(graph) == canonical_json(present):
                return None
            document = {**plan.document, **graph}
            return _Change(replace(plan, document=document, edits=plan.edits + 1), None)
        report = replace(report, diagnostics=report.diagnostics + content.findings)
        return _Change(
            self._next_revision(plan, content.title, graph, digest, report, author, note),
            current_revision(plan),
        )

    def _next_revision(
        self,
        plan: PlanRecord,
        title: str,
        graph: dict[str, Json],
        digest: str,
        report: CheckReport,
        author: Editor,
        note: str,
    ) -> PlanRecord:
        number = plan.document.get("revision", 1) + 1
        most = self._dependencies.limits.plan_revisions
        if number > most:
            raise LimitExceeded("plan_revisions", most, number, what=f"plan {plan.plan_id}")
        document: dict[str, Any] = {
            **plan.document,
            **graph,
            "title": title,
            "revision": number,
            "hash": digest,
            "diagnostics": [found.as_json() for found in report.diagnostics],
            "forecast": self._plans.forecast_report(report) or {},
        }
        return PlanRecord(
            plan.plan_id,
            plan.created_at,
            plan.user_prompt,
            title,
            digest,
            document,
            edits=plan.edits + 1,
            author=author,
            note=note,
            updated_at=self._dependencies.timestamp(),
            edited_by=current_principal(),
        )

    def _require_within_limits(self, graph: Mapping[str, Json]) -> None:
        limits = self._dependencies.limits
        sizes = {name: len(graph[name]) for name in _GRAPH_PARTS}
        for name, size in {**sizes, "plan_bytes": len(dumps_trusted(graph))}.items():
            if size > getattr(limits, name):
                raise LimitExceeded(name, getattr(limits, name), size)


def _without_shared_ui(graph: Mapping[str, Json], present: Mapping[str, Json]) -> dict[str, Json]:
    """Return a graph without the ``ui`` of the nodes that are in the present one too."""
    shared = {node["id"] for node in present["nodes"]}
    nodes = [
        {name: value for name, value in node.items() if name != "ui" or node["id"] not in shared}
        for node in graph["nodes"]
    ]
    return {**graph, "nodes": nodes}


def _changed_error(plan: PlanRecord) -> PreconditionFailed:
    number = plan.document.get("revision", 1)
    return PreconditionFailed(
        f"plan {plan.plan_id} has changed: it is at revision {number} with the hash {plan.hash}",
        code="plan-changed",
        hint="read the plan again, and repeat the change with its present hash",
        current=plan.hash,
    )
