"""Plans: creation by the planner, import from JSON, checks, forecasts and edits.

Each edit of a graph is a new revision. A caller names the hash that it has read. The change applies
only if the plan still has this hash, so no caller overwrites a revision that it has not seen. Each
change is computed from one stored record and saved only if that record was not changed meanwhile;
otherwise it is computed again.

A revision with errors is a draft: it is stored with its diagnostics, and cannot be executed. A graph
that cannot be read is stored as it was given. Its hash is of another kind than that of a graph
(``planwave.graph.plan.unreadable_hash``), so the two are never equal.

Callers of a flow go on starting its live revision: the newest one without errors and, where the operator
requires approval, with an approved hash. An approval holds for whatever revision has this hash.

The hash leaves ``ui`` and the title out. A change of these makes no revision and leaves the hash as it
is. So several editors that move nodes do not refuse each other's changes, and each changes only
the fields of ``ui`` that it names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.errors import (
    GraphInvalid,
    LimitExceeded,
    NotFound,
    PlanInvalid,
    PreconditionFailed,
    ProviderError,
)
from planwave.events.usage import UsageTotal
from planwave.executor.inputs import goal_errors
from planwave.expressions import has_template
from planwave.graph.checking.checker import check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.editing.editor import PlanContent, apply_operations
from planwave.graph.editing.forms import check_operations
from planwave.graph.flow_inputs import flow_inputs_of
from planwave.graph.model import Graph, Json
from planwave.graph.operations import Operation
from planwave.graph.plan import Plan, canonical_json, graph_hash, unreadable_hash
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.jsonio import dumps_trusted
from planwave.planner.cost_estimate import forecast
from planwave.planner.plan_check import require_for_author
from planwave.planner.questions import NO_ANSWERS
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.plans.documents import (
    CheckedPlan,
    CheckReport,
    check_source,
    import_of,
    load_plan,
    plan_from_graph,
    plan_of,
    raise_for_graph,
    record_of,
    with_import,
)
from planwave.service.plans.examples import find_examples
from planwave.service.plans.proposals import without_proposal
from planwave.service.plans.revisions import Editor, PlanQueries, current_revision
from planwave.service.plans.spending import Spending
from planwave.storage.execution_facts import Spend, planning_spend
from planwave.storage.records import PlanRecord, PlanRevision

if TYPE_CHECKING:
    from planwave.shapes.graphs import ForecastResponse
    from planwave.shapes.imports import ImportRecord
    from planwave.storage.sql.store import Store

GRAPH_PARTS = ("nodes", "edges")


ContentChange = Callable[[PlanContent], PlanContent]
"""Returns the title and the graph of a plan after a change."""


DESCRIPTION_POINTER: Final = "/description"
"""Where the description of a flow is in a request; it is no part of the graph."""


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
        imported: The file that the graph comes from; None leaves what the plan says of one.
    """

    content: ContentChange | None = None
    name: str | None = None
    description: str | None = None
    takes_name: bool = False
    of_flow: bool | None = None
    takes_drafts: bool = True
    force: bool = False
    imported: ImportRecord | None = None


class EditedPlan(NamedTuple):
    """A plan after a change, with what was found of its graph and what the change could not follow."""

    plan: PlanRecord
    diagnostics: Sequence[Diagnostic] = ()


class _Saved(NamedTuple):
    """A changed plan, and the revision that it replaces; None if its graph is the same but for ``ui``."""

    plan: PlanRecord
    superseded: PlanRevision | None
    diagnostics: Sequence[Diagnostic] = ()


class PlanService(PlanQueries):
    """The use cases of plans, with a name or without: create, read, check, forecast, edit and delete them.

    Attributes:
        spending: What was spent on calls of models.
        changes: Called with the id of a plan after one with a name was changed, or any was deleted, in
            whatever process; with an empty id where it may be any.
        releases: Called after what led to the name of a flow may have been removed.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(dependencies.store)
        self._dependencies = dependencies
        self.spending = Spending(dependencies.store, dependencies.now, dependencies.spend_warn_usd)
        self.changes: list[Callable[[str], object]] = []
        self.releases: list[Callable[[], Awaitable[object]]] = []
        dependencies.store.notices.subscribe("flows", self._on_change)
        dependencies.store.notices.on_reconnect.append(lambda: self._on_change(""))

    async def create(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
        plan_id: str | None = None,
        answers: Mapping[str, str] = NO_ANSWERS,
    ) -> Plan:
        """Plan a goal. The plan is durable when this returns.

        Args:
            prompt: The goal in the user's words.
            provider: Who plans, and runs the nodes the plan leaves open; None for the default.
            model: See ``provider``.
            on_progress: Called with each progress event while the plan is written; must not block.
            plan_id: The id of the plan, chosen by a caller that may repeat the request; if it
                exists already, it is returned.
            answers: Answers to the questions of an earlier plan of the goal, by question.

        Raises:
            InputError: The goal is empty or too long, or an answer is.
            UnknownProvider, UnavailableProvider, UnknownModel: No model was called.
            PlanInvalid: The model's plan could not be repaired; nothing is stored.
            ProviderError: The model could not be reached.
        """
        if plan_id is not None and (record := await self._store.plan(plan_id)):
            return plan_of(record)
        tracer = self._dependencies.tracer
        examples = await find_examples(self._dependencies, prompt, provider, model)
        create = partial(self._dependencies.planner.create_plan, examples=examples)
        try:
            with nullcontext() if tracer is None else tracer.planning(prompt):
                plan = await create(
                    prompt, provider, model, on_progress=on_progress, answers=answers
                )
        except (PlanInvalid, ProviderError) as error:
            caller = self._dependencies.providers.resolve(provider, model)
            await self.add_planning(new_id(), *caller, error.attempts)  # it was paid all the same
            raise
        if plan_id is not None:
            plan = replace(plan, plan_id=plan_id)
        spent = self._planning_spend(
            plan.plan_id, plan.provider or "", plan.model or "", plan.attempts
        )
        await self._store.save_plan(record_of(plan), spent)
        await self.spending.warn()
        return plan

    async def add_planning(
        self, plan_id: str, provider: str, model: str, attempts: Sequence[Mapping[str, Any]]
    ) -> None:
        """Store what the calls of a planner used that made no new plan."""
        spent = self._planning_spend(plan_id, provider, model, attempts)
        if spent:
            # The subject is not the plan: what was spent on that the same day would be replaced.
            await self._store.spend.add([each._replace(subject=new_id()) for each in spent])
            await self.spending.warn()

    def _planning_spend(
        self, subject: str, provider: str, model: str, attempts: Sequence[Mapping[str, Any]]
    ) -> list[Spend]:
        now = self._dependencies.timestamp()
        usages = (each["usage"] for each in attempts if "usage" in each)
        spent = planning_spend(subject, now, provider, model, usages)
        return [] if spent is None else [spent]

    async def planning(self, plan_ids: Iterable[str | None]) -> dict[str, UsageTotal]:
        """Return what the calls used that wrote some plans, by plan; plans that no model wrote are left out."""
        return await self._store.spend.planning({each for each in plan_ids if each is not None})

    def check(self, source: str | bytes | Mapping[str, Json]) -> CheckReport:
        """Return every diagnostic of a graph or plan; nothing is stored.

        Args:
            source: JSON or YAML text, or such as was read strictly.
        """
        return check_source(source, self._dependencies.catalogue, self._dependencies.limits)

    async def read(self, source: str | bytes | Mapping[str, Json]) -> Plan:
        """Make a plan of a graph or a plan written by hand; nothing is stored.

        A plan that is already stored and was not changed keeps its id.

        Raises:
            GraphInvalid: It has errors; all diagnostics are attached.
        """
        return (await self.parse_and_check(source)).plan

    async def parse_and_check(self, source: str | bytes | Mapping[str, Json]) -> CheckedPlan:
        """Make a plan as ``read`` does, to be executed at once.

        Arguments and errors are those of ``check`` and ``read``.
        """
        report = self.check(source)
        plan = plan_from_graph(
            report,
            plan_id=new_id(),
            created_at=self._dependencies.timestamp(),
            forecast=self.forecast_graph,
        )
        named = report.envelope.get("plan_id")
        stored = await self._store.plan(named) if isinstance(named, str) else None
        if stored is not None and stored.hash == plan.hash:
            plan = plan_of(stored)
        return CheckedPlan(plan, report, self)

    async def validate(self, plan_id: str) -> CheckReport:
        """Check a stored plan against the node types, providers and limits there are now.

        Raises:
            NotFound: There is none of that id.
        """
        record = await load_plan(self._store, plan_id)
        return await asyncio.to_thread(
            check_source,
            canonical_json(record.document),
            self._dependencies.catalogue,
            self._dependencies.limits,
        )

    def readable_plan(self, record: PlanRecord) -> Plan:
        """Return the plan of a record.

        Raises:
            GraphInvalid: Its graph cannot be read; with everything that the check finds.
        """
        try:
            return plan_of(record, self._dependencies.limits)
        except GraphInvalid as error:
            document = canonical_json(record.document)
            raise GraphInvalid(self.check(document).diagnostics) from error

    async def forecast(self, plan_id: str) -> ForecastResponse:
        """Forecast a stored plan with the providers and prices there are now.

        The result has waves, critical path, calls, tokens and cost range, as ``Plan.forecast``.

        Raises:
            NotFound: There is none of that id.
            GraphInvalid: The stored graph has errors.
        """
        record = await load_plan(self._store, plan_id)
        return await asyncio.to_thread(self._forecast_record, record)

    def _forecast_record(self, record: PlanRecord) -> ForecastResponse:
        graph = self.readable_plan(record).graph
        raise_for_graph(self.check_graph(graph))
        return self.forecast_graph(graph, record.user_prompt)

    async def delete(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a plan with its revisions. Its executions stay: they carry their graph.

        Args:
            plan_id: Which.
            force: Whether to remove what leads to its name, if it has one.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``plan-in-use``: an execution of it has not ended; ``flow-in-use``: something
                leads to its name, and ``force`` is not set.
        """
        await self._store.delete_plan(plan_id, force=force)
        await self.report_change(plan_id, released=force)

    async def edit(
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
        edited = await self.change(plan_id, change, expected=expected, author=author, note=note)
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

    async def change(
        self,
        plan_id: str,
        change: PlanChange,
        *,
        expected: Collection[str] | None = None,
        author: Editor = "api",
        note: str = "",
    ) -> EditedPlan:
        """Save the change of a plan; compute it again as long as others save theirs meanwhile.

        The result is durable when this returns. Arguments are those of ``edit``.

        Raises:
            NotFound, PreconditionFailed, InvalidOperation, LimitExceeded: See ``edit``.
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
                raise changed_error(current_revision(plan))
            saved = await asyncio.to_thread(self._changed, plan, change, author, note)
            if saved.plan is plan:
                return EditedPlan(plan, saved.diagnostics)
            if await self._store.revisions.save(
                saved.plan,
                saved.superseded,
                after=plan.edits,
                most=self._dependencies.limits.plan_revisions,
                force=change.force,
            ):
                if plan.name is not None or saved.plan.name is not None:
                    await self.report_change(plan_id, released=change.force)
                return EditedPlan(saved.plan, saved.diagnostics)

    def _changed(self, plan: PlanRecord, change: PlanChange, author: Editor, note: str) -> _Saved:
        """Return a plan with a change: the same object where it stays as it is."""
        saved = _Saved(plan, None)
        if change.content is not None:
            saved = self._with_content(plan, change, change.content, author, note)
        if change.imported not in (None, import_of(saved.plan)):
            record = replace(with_import(saved.plan, change.imported), edits=plan.edits + 1)
            saved = saved._replace(plan=record)
        name = None if change.takes_name else change.name or plan.name
        present = saved.plan.description
        description = present if change.description is None else change.description
        if (name, description) != (plan.name, present):
            renamed = replace(saved.plan, name=name, description=description, edits=plan.edits + 1)
            saved = saved._replace(plan=renamed)
        has_changed = change.content is not None or description != plan.description
        if name is not None and has_changed and not change.takes_drafts:
            self.check_description(saved.plan)
        return saved

    def check_description(self, plan: PlanRecord) -> None:
        """Check the description of a flow: as the goal of its executions it is a template over the inputs of the graph.

        Raises:
            GraphInvalid: It has braces around anything else, or its graph has errors; pointers are ``DESCRIPTION_POINTER``.
        """
        if not has_template(plan.description):
            return
        inputs = flow_inputs_of(self.readable_plan(plan).graph, self._dependencies.catalogue)
        raise_for_graph(goal_errors(plan.description, inputs, DESCRIPTION_POINTER))

    def _with_content(
        self,
        plan: PlanRecord,
        change: PlanChange,
        apply: ContentChange,
        author: Editor,
        note: str,
    ) -> _Saved:
        present = {name: plan.document[name] for name in GRAPH_PARTS}
        content = apply(PlanContent(plan.title, present))
        self._require_within_limits(content.graph, content.goal or "")
        planned = _with_goal(plan, content.goal)
        report = self.check({**content.graph, "user_prompt": planned.user_prompt})
        if not change.takes_drafts:
            raise_for_graph(report.diagnostics)
        graph = report.graph_document() or dict(content.graph)
        digest = unreadable_hash(graph) if report.graph is None else graph_hash(report.graph)
        report = replace(report, diagnostics=(*report.diagnostics, *content.findings))
        if digest == plan.hash:
            is_renamed = content.title != plan.title or planned is not plan
            if not is_renamed and canonical_json(graph) == canonical_json(present):
                return _Saved(plan, None, report.diagnostics)
            before = without_proposal(planned.document) if is_renamed else planned.document
            document = {**before, **graph, "title": content.title}
            changed = replace(
                planned, title=content.title, document=document, edits=plan.edits + 1, plain=False
            )
            return _Saved(changed, None, report.diagnostics)
        next_plan = self._next_revision(planned, content.title, graph, digest, report, author, note)
        return _Saved(next_plan, current_revision(plan), report.diagnostics)

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
            **without_proposal(plan.document),
            **graph,
            "title": title,
            "revision": number,
            "hash": digest,
            "diagnostics": [finding.as_json() for finding in report.diagnostics],
            "forecast": self.forecast_report(report) or {},
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

    def _require_within_limits(self, graph: Mapping[str, Json], goal: str = "") -> None:
        limits = self._dependencies.limits
        sizes = {name: len(graph[name]) for name in GRAPH_PARTS} | {"goal_chars": len(goal)}
        for name, size in {**sizes, "plan_bytes": len(dumps_trusted(graph))}.items():
            if size > getattr(limits, name):
                raise LimitExceeded(name, getattr(limits, name), size)

    async def report_change(self, plan_id: str, *, released: bool = False) -> None:
        """Tell those who follow the changes of plans that one was changed or deleted.

        Args:
            plan_id: Which.
            released: Whether what led to its name may have been removed.
        """
        self._on_change(plan_id)
        self.announce(plan_id)
        if released:
            for reload in self.releases:
                await reload()

    def announce(self, plan_id: str = "") -> None:
        """Tell other processes that a plan, or what starts it, was changed; by default any."""
        self._store.notices.publish("flows", plan_id)

    def _on_change(self, plan_id: str) -> None:
        for call in self.changes:
            call(plan_id)

    def forecast_graph(
        self, graph: Graph, goal: str = "", inputs: Mapping[str, Mapping[str, Json]] | None = None
    ) -> ForecastResponse:
        """Return the forecast of a graph without errors, for a goal and the inputs of an execution."""
        catalogue, providers = self._dependencies.catalogue, self._dependencies.providers
        return forecast(graph, catalogue, providers, goal=goal, inputs=inputs)

    def forecast_report(self, report: CheckReport) -> ForecastResponse | None:
        """Return the forecast of a checked graph, or None if it can run nowhere."""
        if report.graph is None or not report.is_sound:
            return None
        return self.forecast_graph(report.graph)

    def check_graph(self, graph: Graph) -> list[Diagnostic]:
        """Return the diagnostics of a graph that is about to run."""
        return check(graph, self._dependencies.catalogue, self._dependencies.limits)


def _with_goal(plan: PlanRecord, goal: str | None) -> PlanRecord:
    """Return a plan with another goal: the same object where it stays.

    The description of a flow is the goal of its executions, so it follows where it is that goal, and
    where inputs are named in either.
    """
    if goal is None or goal == plan.user_prompt:
        return plan
    is_goal = plan.description == plan.user_prompt or has_template(goal + plan.description)
    description = goal if plan.name is not None and is_goal else plan.description
    document = {**plan.document, "user_prompt": goal}
    return replace(plan, user_prompt=goal, description=description, document=document, plain=False)


async def require_stored_plan(
    dependencies: ServiceDependencies, graph: Graph, author: str | None, plan_id: str | None
) -> None:
    """Judge a stored plan that a model wrote; see ``planwave.planner.plan_check.require_for_author``."""
    if author is None:
        return
    first = await _first_graph(dependencies.store, plan_id) if plan_id else None
    require_for_author(dependencies.catalogue, dependencies.planner, graph, first)


async def _first_graph(store: Store, plan_id: str) -> Graph | None:
    """Return the graph that the model wrote; None if the plan was deleted."""
    plan = await store.plan(plan_id)
    if plan is None:
        return None
    document: Mapping[str, Json] | None = plan.document
    if plan.document.get("revision", 1) > 1:
        first = await store.revisions.get(plan_id, 1)
        document = None if first is None else first.document
    if document is None:
        return None
    return read_graph({name: document.get(name) for name in ("nodes", "edges")})[0]


def changed_error(present: PlanRevision) -> PreconditionFailed:
    """Return the error for a revision that has none of the hashes that a caller expects."""
    return PreconditionFailed(
        f"plan {present.plan_id} has changed: revision {present.revision} has the hash {present.hash}",
        code="plan-changed",
        hint="read the newest revision of the plan, which callers of a flow may not start yet, and "
        "repeat the change with its hash",
        current=present.hash,
    )
