"""The revisions of plans: restored, made of what ran, and approved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import (
    Conflict,
    NotFound,
    PlanInvalid,
    ProviderError,
)
from planwave.events import fold
from planwave.events.plan_changes import NO_GRAPH
from planwave.graph.editing.editor import PlanContent, keep_ui
from planwave.graph.model import Json
from planwave.planner.revised_plan import RevisedPlan, Revision
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.plans.documents import load_plan
from planwave.service.plans.plan_service import GRAPH_PARTS, PlanChange, PlanService, changed_error
from planwave.service.plans.proposals import (
    PROPOSAL,
    accepted_operations,
    nothing_changed,
    proposal_of,
    require_words,
)
from planwave.service.plans.revisions import (
    Editor,
    RevisionQueries,
    current_revision,
    require_sound,
)
from planwave.storage.errors import not_found
from planwave.storage.records import Approval, ExecutionRecord, PlanRecord, PlanRevision

if TYPE_CHECKING:
    from planwave.shapes.plans import ProposalDocument

_NOTE_CHARS: Final = 1_000


class RevisionService(RevisionQueries):
    """The use cases of revisions: read, compare, restore and approve them, and make one of what ran."""

    def __init__(self, dependencies: ServiceDependencies, plans: PlanService) -> None:
        super().__init__(dependencies.store)
        self._dependencies = dependencies
        self._plans = plans

    async def restore(
        self,
        plan_id: str,
        revision: int,
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Restore the title, the goal and the graph of a revision of a plan; durable when this returns.

        Nodes that the plan has now keep their ``ui``. Without a difference, nothing is changed.

        Args:
            plan_id: The plan.
            revision: The number of the revision.
            expected: See ``PlanService.edit``.
            author: See ``PlanService.edit``.
            note: The author's note; by default it names the revision.

        Returns:
            The plan.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
            PreconditionFailed: ``plan-changed``: the plan has another hash.
        """
        source = await self.get(plan_id, revision)
        document: Mapping[str, Json] = source.document or {}

        def change(content: PlanContent) -> PlanContent:
            graph = {name: document[name] for name in GRAPH_PARTS}
            bare = keep_ui(_without_shared_ui(graph, content.graph), content.graph)
            return PlanContent(source.title, bare, goal=document.get("user_prompt"))

        note = note or f"revision {revision} restored"
        edited = await self._plans.change(
            plan_id, PlanChange(change), expected=expected, author=author, note=note
        )
        return edited.plan

    async def refine(
        self,
        plan_id: str,
        request: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        dry_run: bool = False,
        on_progress: Callable[[Any], None] | None = None,
    ) -> PlanRecord:
        """Have a model write the change of a plan; it is a proposal, and the plan stays as it is.

        Args:
            plan_id: The plan.
            request: What is to be different, in the words of a person.
            provider: Who writes it; None for the default.
            model: See ``provider``.
            dry_run: Whether the proposal is not stored.
            on_progress: Called with each progress event; must not block.

        Returns:
            The plan with its proposal, which is durable but in a dry run.

        Raises:
            NotFound: No plan has this id.
            GraphInvalid: The plan is a draft that cannot be read.
            InputError: ``nothing-changed``: the words ask for nothing that can be done; and those of
                ``Planner.revise``, as all its other errors.
            PreconditionFailed: ``plan-changed``: it was changed meanwhile.
        """
        plan = await load_plan(self._store, plan_id)
        content = PlanContent(plan.title, {name: plan.document[name] for name in GRAPH_PARTS})
        graph = self._plans.readable_plan(plan).graph
        require_words(request, self._dependencies.limits.goal_chars)
        revised = RevisedPlan(plan.user_prompt, content, graph)
        revision = await self.write_revision(
            plan_id, revised, request, (provider, model), on_progress
        )
        dependencies = self._dependencies
        at, providers = dependencies.timestamp(), dependencies.providers
        catalogue = dependencies.catalogue
        proposal = await asyncio.to_thread(
            proposal_of, revised, request, revision, catalogue, providers, at
        )
        if proposal is None:
            raise nothing_changed("the plan stays as it is", revision.reading.answer)
        if dry_run:
            return replace(plan, document={**plan.document, PROPOSAL: proposal})
        return await self._with_proposal(plan, proposal)

    async def write_revision(
        self,
        plan_id: str,
        plan: RevisedPlan,
        request: str,
        chosen: tuple[str | None, str | None],
        on_progress: Callable[[Any], None] | None = None,
    ) -> Revision:
        """Have a model write a change, and store what that used, whatever comes of it.

        Args:
            plan_id: The plan whose planning it is.
            plan: What is to be changed.
            request: What is to be different, in the words of a person.
            chosen: The provider and the model; None for the default.
            on_progress: Called with each progress event; must not block.

        Raises:
            PlanwaveError: Those of ``Planner.revise``.
        """
        planner, add = self._dependencies.planner, self._plans.add_planning
        try:
            revision = await planner.revise(plan, request, *chosen, on_progress=on_progress)
        except (PlanInvalid, ProviderError) as error:
            await add(plan_id, *self._dependencies.providers.resolve(*chosen), error.attempts)
            raise
        await add(plan_id, revision.provider, revision.model, revision.attempts)
        return revision

    async def _with_proposal(self, plan: PlanRecord, proposal: ProposalDocument) -> PlanRecord:
        """Store a proposal with its plan, in place of one before.

        Raises:
            NotFound, PreconditionFailed: The plan was deleted or changed meanwhile.
        """
        while True:
            present = await load_plan(self._store, plan.plan_id)
            if _proposed_for(present) != _proposed_for(plan):
                raise changed_error(current_revision(present))
            document = {**present.document, PROPOSAL: proposal}
            changed = replace(present, document=document, edits=present.edits + 1, plain=False)
            if await self._store.revisions.save(changed, after=present.edits):
                return changed

    async def accept(
        self,
        plan_id: str,
        accepted: str,
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
    ) -> PlanRecord:
        """Make the proposal of a plan its newest revision; durable when this returns.

        Args:
            plan_id: The plan.
            accepted: The hash of the graph that was proposed.
            expected: See ``PlanService.edit``.
            author: See ``PlanService.edit``.

        Raises:
            NotFound: No plan has this id.
            Conflict: ``no-proposal``: it has no such proposal.
            PreconditionFailed: ``plan-changed``: the plan has another hash.
        """
        plan = await load_plan(self._store, plan_id)
        if expected is not None and plan.hash not in expected:
            raise changed_error(current_revision(plan))
        operations, request = accepted_operations(plan, accepted)
        note = f"in words: {request}"[:_NOTE_CHARS]
        return await self._plans.edit(
            plan_id, operations, expected={plan.hash}, author=author, note=note
        )

    async def promote(
        self,
        execution_id: str,
        *,
        expected: Collection[str] | None = None,
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Make the graph of an execution, such as a fork, the newest revision of its plan; durable when this returns.

        The title and the goal stay, and nodes that the plan has now keep their ``ui``. Without a difference,
        nothing is changed.

        Args:
            execution_id: The execution.
            expected: Hashes of which the plan must have one; None: that of the revision from which the execution, or
                the one that it is a fork of, was started.
            author: See ``PlanService.edit``.
            note: The author's note; by default it names the execution.

        Returns:
            The plan.

        Raises:
            NotFound: There is no such execution, or its plan was deleted.
            Conflict: ``no-plan``: it was started from a graph that is not stored.
            PreconditionFailed: ``plan-changed``: the plan has another hash, so that a change of others would be lost.
        """
        record = await self._store.execution(execution_id)
        if record is None:
            raise not_found("execution", execution_id)
        if record.plan_id is None:
            raise Conflict(f"execution {execution_id} has no plan", code="no-plan")
        plan = await load_plan(self._store, record.plan_id)
        if expected is None:
            expected = await self._hash_below(record, plan)
        ran: Mapping[str, Any] = fold(await self._store.events(execution_id)).graph or NO_GRAPH

        def change(content: PlanContent) -> PlanContent:
            bare = keep_ui(_without_shared_ui(ran, content.graph), content.graph)
            return PlanContent(content.title, bare)

        note = note or f"from execution {execution_id}"
        edited = await self._plans.change(
            plan.plan_id, PlanChange(change), expected=expected, author=author, note=note
        )
        return edited.plan

    async def _hash_below(self, record: ExecutionRecord, plan: PlanRecord) -> tuple[str, ...]:
        """Return the hash of the revision that an execution was made of, by its forks; none where that is gone."""
        ancestor: ExecutionRecord | None = record
        while ancestor is not None and ancestor.revision is None:
            parent_id = ancestor.parent_id
            ancestor = None if parent_id is None else await self._store.execution(parent_id)
        if ancestor is None or ancestor.revision is None or ancestor.plan_id != plan.plan_id:
            return ()
        try:
            return ((await self.of(plan, ancestor.revision)).hash,)
        except NotFound:
            return ()

    async def approve(
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
            candidate = await self.of(plan, revision)
            if expected is not None and candidate.hash not in expected:
                raise changed_error(candidate)
            require_sound(candidate)
            number = await self._newest_with(plan, candidate)
            if candidate.hash in plan.approvals and (plan.approved_revision or 0) >= number:
                return plan
            approval = Approval(self._dependencies.timestamp(), current_principal())
            approved = replace(
                plan,
                approvals={**plan.approvals, candidate.hash: approval},
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


def _without_shared_ui(graph: Mapping[str, Json], present: Mapping[str, Json]) -> dict[str, Json]:
    """Return a graph without the ``ui`` of the nodes that are in the present one too."""
    shared = {node["id"] for node in present["nodes"]}
    nodes = [
        {name: value for name, value in node.items() if name != "ui" or node["id"] not in shared}
        for node in graph["nodes"]
    ]
    return {**graph, "nodes": nodes}


def _proposed_for(plan: PlanRecord) -> tuple[str, str, str]:
    """Return what a proposal is made for: it is gone once one of these is different."""
    return plan.hash, plan.title, plan.user_prompt
