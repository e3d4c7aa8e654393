"""Changing plans, with a name or without: edits and restores, each a new revision.

A caller names the hash that it has read. The change applies only if the plan still has this hash, so
no caller overwrites a revision that it has not seen. Each change is computed from one stored record
and saved only if that record was not changed meanwhile; otherwise it is computed again.

A revision with errors is a draft: it is stored with its diagnostics, and cannot be executed. A graph
that cannot be read is stored as it was given. Its hash is of another kind than that of a graph
(:func:`planwave.graph.plan.unreadable_hash`), so the two are never equal.

Callers of a flow go on starting its live revision: the newest one without errors and, where the operator
requires approval, with an approved hash. An approval holds for whatever revision has this hash.

The hash leaves ``ui`` and the title out. A change of these makes no revision and leaves the hash as it
is. So several editors that move nodes do not refuse each other's changes, and each changes only
the fields of ``ui`` that it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from planwave.errors import LimitExceeded, NotFound, PreconditionFailed
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.editing.editor import PlanContent, apply_operations, keep_ui
from planwave.graph.editing.forms import check_operations
from planwave.graph.model import Json
from planwave.graph.operations import Operation
from planwave.graph.plan import canonical_json, graph_hash, unreadable_hash
from planwave.jsonio import dumps_trusted
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.plans.documents import CheckReport, load_plan, raise_for_graph
from planwave.service.plans.planner_service import PlannerService
from planwave.service.plans.revisions import (
    Editor,
    RevisionQueries,
    current_revision,
    require_sound,
)
from planwave.storage.records import Approval, PlanRecord, PlanRevision

_GRAPH_PARTS = ("nodes", "edges")


ContentChange = Callable[[PlanContent], PlanContent]
"""Returns the title and the graph of a plan after a change."""


class PlanChange(NamedTuple):
    """A change of a plan.

    Attributes:
        content: Changes the title and the graph; None leaves them.
        name: The new name; None leaves it.
        description: The new description; None leaves it.
        takes_name: Whether to take the name away, so that the plan is no flow any more.
        of_flow: True refuses a plan without a name; False leaves a plan that has one as it is.
        takes_drafts: Whether a graph with errors is stored, as a draft; otherwise it is refused.
        force: Whether to remove what leads to a name that is taken away.
    """

    content: ContentChange | None = None
    name: str | None = None
    description: str | None = None
    takes_name: bool = False
    of_flow: bool | None = None
    takes_drafts: bool = True
    force: bool = False


class EditedPlan(NamedTuple):
    """A plan after a change, with what was found of its graph and what the change could not follow."""

    plan: PlanRecord
    diagnostics: Sequence[Diagnostic] = ()


class _Saved(NamedTuple):
    """A changed plan, and the revision that it replaces; None if its graph is the same but for ``ui``."""

    plan: PlanRecord
    superseded: PlanRevision | None
    diagnostics: Sequence[Diagnostic] = ()


class PlanEditor:
    """The use cases that change plans: edit them, restore earlier revisions, approve revisions."""

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
            The plan: with a new revision, or without one if nothing but ``ui`` and the title changed.

        Raises:
            NotFound: No plan has this id.
            PreconditionFailed: ``plan-changed``: the plan has another hash.
            InvalidOperation: An operation has a wrong form, whatever the plan's hash, or cannot be
                applied.
            LimitExceeded: ``plan_operations``, ``plan_bytes``, ``nodes``, ``edges``.
        """
        change = PlanChange(await self.operations_change(operations))
        edited = await self.change_plan(
            plan_id, change, expected=expected, author=author, note=note
        )
        return edited.plan

    async def operations_change(self, operations: Sequence[Operation]) -> ContentChange:
        """Return the change that operations make.

        Raises:
            InvalidOperation: An operation has a wrong form.
            LimitExceeded: ``plan_operations``.
        """
        most = self._dependencies.limits.plan_operations
        if len(operations) > most:
            raise LimitExceeded("plan_operations", most, len(operations))
        await asyncio.to_thread(check_operations, operations)

        def change(content: PlanContent) -> PlanContent:
            return apply_operations(content, operations, self._dependencies.catalogue)

        return change

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
        """
        found = await self._revisions.plan_revision(plan_id, revision)
        document: Mapping[str, Json] = found.document or {}

        def change(content: PlanContent) -> PlanContent:
            graph = {name: document[name] for name in _GRAPH_PARTS}
            bare = keep_ui(_without_shared_ui(graph, content.graph), content.graph)
            return PlanContent(found.title, bare)

        note = note or f"revision {revision} restored"
        edited = await self.change_plan(
            plan_id, PlanChange(change), expected=expected, author=author, note=note
        )
        return edited.plan

    async def approve_revision(
        self, plan_id: str, revision: int, *, expected: Collection[str] | None
    ) -> PlanRecord:
        """Approve a revision of a plan, so that callers may start it; durable when this returns.

        The approval is of the hash of the revision: every revision with this hash has it.

        Args:
            plan_id: The plan.
            revision: The number of the revision.
            expected: Hashes of which the revision must have one; None accepts any.

        Returns:
            The plan.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
            PreconditionFailed: ``plan-changed``: the revision has another hash.
            InputError: ``draft-revision``: the revision has errors.
        """
        while True:
            plan = await load_plan(self._store, plan_id)
            found = await self._revisions.revision_of(plan, revision)
            if expected is not None and found.hash not in expected:
                raise _changed_error(found)
            require_sound(found)
            number = await self._newest_with(plan, found)
            if found.hash in plan.approvals and (plan.approved_revision or 0) >= number:
                return plan
            approval = Approval(self._dependencies.timestamp(), current_principal())
            approved = replace(
                plan,
                approvals={**plan.approvals, found.hash: approval},
                approved_revision=max(plan.approved_revision or 0, number),
                edits=plan.edits + 1,
            )
            if await self._store.revisions.save(approved, after=plan.edits):
                if plan.name is not None:
                    await self._plans.report_change(plan_id)
                return approved

    async def _newest_with(self, plan: PlanRecord, revision: PlanRevision) -> int:
        """Return the number of the newest revision without errors that has the hash of one."""
        if plan.hash == revision.hash and plan.sound_revision == plan.revision:
            return plan.revision
        newest = await self._store.revisions.newest_with(plan.plan_id, revision.hash)
        return max(revision.revision, newest or 0)

    async def change_plan(
        self,
        plan_id: str,
        change: PlanChange,
        *,
        expected: Collection[str] | None = None,
        author: Editor = "api",
        note: str = "",
    ) -> EditedPlan:
        """Save the change of a plan; compute it again as long as others save theirs meanwhile.

        The result is durable when this returns. Arguments are those of :meth:`edit_plan`.

        Raises:
            NotFound, PreconditionFailed, InvalidOperation, LimitExceeded: See :meth:`edit_plan`.
            GraphInvalid: The graph has errors, and the change takes no drafts.
            Conflict: ``name-taken``, ``flow-in-use``.
        """
        while True:
            plan = await load_plan(self._store, plan_id)
            if change.of_flow and plan.name is None:
                raise NotFound(
                    f"plan {plan_id} has no name, so it is no flow", hint="list the flows"
                )
            if change.of_flow is False and plan.name is not None:
                return EditedPlan(plan)
            if expected is not None and plan.hash not in expected:
                raise _changed_error(current_revision(plan))
            made = await asyncio.to_thread(self._changed, plan, change, author, note)
            if made.plan is plan:
                return EditedPlan(plan, made.diagnostics)
            if await self._store.revisions.save(
                made.plan,
                made.superseded,
                after=plan.edits,
                most=self._dependencies.limits.plan_revisions,
                force=change.force,
            ):
                if plan.name is not None or made.plan.name is not None:
                    await self._plans.report_change(plan_id, released=change.force)
                return EditedPlan(made.plan, made.diagnostics)

    def _changed(self, plan: PlanRecord, change: PlanChange, author: Editor, note: str) -> _Saved:
        """Return a plan with a change: the same object where it stays as it is."""
        made = _Saved(plan, None)
        if change.content is not None:
            made = self._with_content(plan, change, change.content, author, note)
        name = None if change.takes_name else change.name or plan.name
        description = plan.description if change.description is None else change.description
        if (name, description) == (plan.name, plan.description):
            return made
        renamed = replace(made.plan, name=name, description=description, edits=plan.edits + 1)
        return made._replace(plan=renamed)

    def _with_content(
        self,
        plan: PlanRecord,
        change: PlanChange,
        apply: ContentChange,
        author: Editor,
        note: str,
    ) -> _Saved:
        present = {name: plan.document[name] for name in _GRAPH_PARTS}
        content = apply(PlanContent(plan.title, present))
        self._require_within_limits(content.graph)
        report = self._plans.check_document(content.graph)
        if not change.takes_drafts:
            raise_for_graph(report.diagnostics)
        graph = report.graph_document() or dict(content.graph)
        digest = unreadable_hash(graph) if report.graph is None else graph_hash(report.graph)
        report = replace(report, diagnostics=(*report.diagnostics, *content.findings))
        if digest == plan.hash:
            is_same = canonical_json(graph) == canonical_json(present)
            if is_same and content.title == plan.title:
                return _Saved(plan, None, report.diagnostics)
            document = {**plan.document, **graph, "title": content.title}
            changed = replace(
                plan, title=content.title, document=document, edits=plan.edits + 1, plain=False
            )
            return _Saved(changed, None, report.diagnostics)
        made = self._next_revision(plan, content.title, graph, digest, report, author, note)
        return _Saved(made, current_revision(plan), report.diagnostics)

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
        number = plan.revision + 1
        is_approved = report.is_sound and digest in plan.approvals
        document: dict[str, Any] = {
            **plan.document,
            **graph,
            "title": title,
            "revision": number,
            "hash": digest,
            "diagnostics": [found.as_json() for found in report.diagnostics],
            "forecast": self._plans.forecast_report(report) or {},
        }
        return replace(
            plan,
            title=title,
            hash=digest,
            document=document,
            edits=plan.edits + 1,
            author=author,
            note=note,
            updated_at=self._dependencies.timestamp(),
            edited_by=current_principal(),
            sound_revision=number if report.is_sound else plan.sound_revision,
            approved_revision=number if is_approved else plan.approved_revision,
            plain=False,
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


def _changed_error(present: PlanRevision) -> PreconditionFailed:
    return PreconditionFailed(
        f"plan {present.plan_id} has changed: revision {present.revision} has the hash {present.hash}",
        code="plan-changed",
        hint="read the newest revision of the plan, which callers of a flow may not start yet, and "
        "repeat the change with its hash",
        current=present.hash,
    )
