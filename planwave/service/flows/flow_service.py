"""Flows: saving, changing and deleting them, and how nodes get at them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.errors import GraphInvalid, InputError, LimitExceeded, NotFound
from planwave.expressions import has_template
from planwave.graph.checking.checker import check
from planwave.graph.editing.editor import PlanContent
from planwave.graph.reading.documents import read_graph
from planwave.ids import UUID_PATTERN, new_id
from planwave.nodes.tools.flow_inputs import declared_inputs
from planwave.service.dependencies import ServiceDependencies
from planwave.service.flows.chat_entries import chat_entry
from planwave.service.flows.flow_queries import (
    PUBLICATIONS,
    Flow,
    FlowQueries,
    FlowsOfToken,
)
from planwave.service.flows.flow_references import flow_named, unknown_flow, unknown_flows
from planwave.service.plans.documents import (
    IMPORTED_FROM,
    CheckReport,
    import_of,
    import_record,
    load_plan,
    plan_from_graph,
    raise_for_graph,
    raise_for_run,
    record_of,
    with_import,
)
from planwave.service.plans.plan_service import PlanChange, PlanService
from planwave.service.plans.revisions import Editor
from planwave.storage.records import PlanRecord
from planwave.storage.sql.flow_names import name_key

if TYPE_CHECKING:
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.model import Graph, Json
    from planwave.graph.operations import Operation
    from planwave.graph.protocols import NodeTypes
    from planwave.settings import Limits
    from planwave.shapes.common import Publication
    from planwave.storage.sql.store import Store

NAME_CHARS: Final = 200
"""Of a flow's name, at most."""
_READY: Final = 64
"""Graphs of flows that are kept ready to run."""


class EditedFlow(NamedTuple):
    """A flow after an edit, with what was found of it and what the edit could not follow."""

    flow: Flow
    diagnostics: Sequence[Diagnostic]


class FlowService(FlowQueries):
    """What a name adds to plans: flows are created, changed, published and deleted here."""

    def __init__(self, dependencies: ServiceDependencies, plans: PlanService) -> None:
        super().__init__(dependencies.store)
        self._dependencies = dependencies
        self._plans = plans

    async def create(
        self,
        name: str,
        *,
        graph: str | bytes | Mapping[str, Json] | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        draft: bool = False,
        preassigned_id: str | None = None,
    ) -> Flow:
        """Make a flow of a graph, or give a stored plan a name; durable when this returns.

        A plan that has another name already is copied in its live revision.

        Args:
            name: What people call it, unique without regard to case.
            graph: A graph or a plan document: JSON or YAML text, or read strictly.
            plan_id: A stored plan, in place of a graph.
            description: The purpose of the flow, which callers read; by default the title of a plan
                that was made for a goal. The goal itself stays with the operator.
            draft: Whether a graph with errors is saved, too, as a draft that nothing may start.
            preassigned_id: The id of a new plan, chosen by a caller that may repeat the request; if it
                exists already, it is returned.

        Raises:
            GraphInvalid: The graph can run nowhere, or as a draft cannot be read; all diagnostics are attached.
            InputError: ``invalid-name``; not exactly one of graph and plan.
            LimitExceeded: The description is longer than a goal may be.
            NotFound: There is no such plan.
            Conflict: ``name-taken``; ``not-approved``: the plan has a name, and nothing that callers may start.
        """
        if preassigned_id is not None and await self._store.plan(preassigned_id) is not None:
            return await self._newest(preassigned_id)
        name = _validate_name(name)
        if (graph is None) == (plan_id is None):
            raise InputError("a flow is made of a graph or of a plan", hint="give one of both")
        own_id = preassigned_id or new_id()
        if graph is not None:
            record = await self._record_of_graph(own_id, name, graph, draft=draft)
        else:
            plan = await load_plan(self._store, str(plan_id))
            if plan.name is None:
                plan = await self._name_plan(plan, name, description, draft=draft)
            if plan.name is not None and name_key(plan.name) == name_key(name):
                return await self._newest(plan.plan_id)
            record = self._copy(own_id, await self.startable(plan), plan)
        record = await self._described(replace(record, name=name), description, draft=draft)
        await self._store.save_plan(record)
        return await self._newest(own_id)

    async def update(
        self,
        plan_id: str,
        *,
        name: str | None = None,
        graph: str | bytes | Mapping[str, Json] | None = None,
        graph_of: str | None = None,
        description: str | None = None,
        draft: bool = False,
        expected: Collection[str] | None = None,
        author: Editor = "api",
        note: str = "",
        force: bool = False,
    ) -> Flow:
        """Change a flow; arguments that are None change nothing. Durable when this returns.

        Args:
            plan_id: Which.
            name: As in ``create``.
            graph: As in ``create``; another graph than the present one is a new revision.
            graph_of: A stored plan whose graph is taken, in place of one.
            description: As in ``create``.
            draft: As in ``create``; callers go on starting the live revision.
            expected: Hashes of which it has to have one at present.
            author: The author of the new revision.
            note: The author's note on it.
            force: Whether to remove what leads to a name that is changed.

        Raises:
            NotFound, PreconditionFailed: There is no such flow or plan; it has another hash.
            Conflict: ``name-taken``; ``flow-in-use``: something leads to its name.
            GraphInvalid, InputError, LimitExceeded: As in ``create``.
        """
        await self.record(plan_id)
        if graph is not None and graph_of is not None:
            raise InputError("a flow has one graph", hint="give either a graph or a plan")
        if graph_of is not None:
            graph = self._graph_of(await load_plan(self._store, graph_of))
        if description is not None:
            self._validate_description(description)
        change = PlanChange() if graph is None else self._change_to(graph, draft=draft)
        change = change._replace(
            name=None if name is None else _validate_name(name),
            description=description,
            takes_drafts=draft,
            of_flow=True,
            force=force,
        )
        await self._plans.change(plan_id, change, expected=expected, author=author, note=note)
        return await self._newest(plan_id)

    async def edit(
        self,
        plan_id: str,
        operations: Sequence[Operation],
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
        note: str = "",
    ) -> EditedFlow:
        """Apply operations to a flow as to a plan, but refuse a graph with errors.

        Args:
            plan_id: The flow.
            operations: The changes, in order.
            expected: Hashes of which it has to have one at present; None accepts any.
            author: The author of the new revision.
            note: The author's note on it.

        Raises:
            NotFound: There is no such flow.
            PreconditionFailed, InvalidOperation, LimitExceeded: See ``PlanService.edit``.
            GraphInvalid: The changed graph can run nowhere.
        """
        await self.record(plan_id)
        change = PlanChange(
            await self._plans.operations_change(operations), takes_drafts=False, of_flow=True
        )
        edited = await self._plans.change(
            plan_id, change, expected=expected, author=author, note=note
        )
        return EditedFlow(await self._newest(plan_id), edited.diagnostics)

    async def publish(self, plan_id: str, changes: Mapping[Publication, bool]) -> None:
        """Publish a flow, or unpublish it; durable when this returns.

        Args:
            plan_id: Which.
            changes: Whether it is published as each of these; as others it stays as it is.

        Raises:
            NotFound: There is none of that id.
            InputError: ``not-a-model``: it has no node that takes a message, or several.
            Conflict: ``not-approved``: it has no revision that callers may start.
        """
        while True:
            record = await self.record(plan_id)
            if changes.get("model"):
                chat_entry((await self.startable(record)).graph, record.name or "")
            publications = {each: each in record.published for each in PUBLICATIONS} | dict(changes)
            published = tuple(each for each in PUBLICATIONS if publications[each])
            if published == record.published:
                return
            changed = replace(record, published=published, edits=record.edits + 1)
            if await self._store.revisions.save(changed, after=record.edits):
                await self._plans.report_change(plan_id)
                return

    async def remove_name(self, plan_id: str, *, force: bool = False) -> None:
        """Take the name of a flow away; the plan stays, with its revisions.

        Raises:
            NotFound: There is no such flow.
            Conflict: ``flow-in-use``: something leads to its name, and ``force`` is not set.
        """
        await self.record(plan_id)
        change = PlanChange(takes_name=True, description="", of_flow=True, force=force)
        await self._plans.change(plan_id, change)

    async def delete(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a flow: the plan, with its revisions. Its executions stay: they carry their graph.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``plan-in-use``: an execution of it has not ended; ``flow-in-use``: something
                leads to its name, and ``force`` is not set.
        """
        await self.record(plan_id)
        await self._plans.delete(plan_id, force=force)

    async def find(self, name: str) -> PlanRecord:
        """Return a flow by its id or its name.

        Raises:
            NotFound: ``unknown-flow``: there is none; the hint has the nearest name.
        """
        if UUID_PATTERN.fullmatch(name):
            record = await self._store.plan(name)
            if record is not None and record.name is not None:
                return record
        return await flow_named(self, name)

    async def check_references(self, report: CheckReport) -> CheckReport:
        """Return a report with an error for each node whose stored flow does not exist."""
        if report.graph is None:
            return report
        findings = await unknown_flows(report.graph, self._dependencies.catalogue, self)
        return replace(report, diagnostics=(*report.diagnostics, *findings)) if findings else report

    async def _newest(self, plan_id: str) -> Flow:
        """Return a flow in its newest revision, which changes are made from."""
        record = await self.record(plan_id)
        return await self.with_inputs(await self.of(record, record.revision))

    async def with_inputs(self, flow: Flow) -> Flow:
        """Return a flow with the schema of its inputs."""
        catalogue = self._dependencies.catalogue
        return replace(flow, inputs=await asyncio.to_thread(declared_inputs, flow.graph, catalogue))

    async def _record_of_graph(
        self, plan_id: str, name: str, source: str | bytes | Mapping[str, Json], *, draft: bool
    ) -> PlanRecord:
        report = await asyncio.to_thread(self._plans.check, source)
        plan = plan_from_graph(
            report,
            plan_id=plan_id,
            created_at=self._dependencies.timestamp(),
            forecast=self._plans.forecast_graph,
            takes_drafts=draft,
        )
        titled = plan if report.envelope.get("title") else replace(plan, title=name)
        imported = import_record(report, plan.created_at, self._dependencies.limits)
        return replace(with_import(record_of(titled), imported), author="api")

    async def _name_plan(
        self, plan: PlanRecord, name: str, description: str | None, *, draft: bool
    ) -> PlanRecord:
        """Return a plan with a name: this one, or the one that it got meanwhile."""
        graph = self._plans.readable_plan(plan).graph
        if not draft:
            raise_for_graph(self._plans.check_graph(graph))
        text = (await self._described(plan, description, draft=draft)).description
        change = PlanChange(name=name, description=text, of_flow=False, takes_drafts=draft)
        return (await self._plans.change(plan.plan_id, change)).plan

    def _copy(self, plan_id: str, flow: Flow, original: PlanRecord) -> PlanRecord:
        """Return a new plan with the graph of a flow, which it names as its origin."""
        report = self._plans.check(flow.graph)
        now = self._dependencies.timestamp()
        plan = plan_from_graph(
            report, plan_id=plan_id, created_at=now, forecast=self._plans.forecast_graph
        )
        record = record_of(replace(plan, title=flow.title, user_prompt=flow.description))
        origin = {"plan_id": flow.plan_id, "revision": flow.revision}
        copied = replace(record, document={**record.document, "origin": origin}, author="api")
        return with_import(copied, import_of(original))

    def _graph_of(self, plan: PlanRecord) -> dict[str, Json]:
        """Return the graph of a stored plan, with what the plan says of an import."""
        graph = self._plans.readable_plan(plan).graph.document
        return {**graph, IMPORTED_FROM: cast("Json", import_of(plan))}

    def _change_to(self, source: str | bytes | Mapping[str, Json], *, draft: bool) -> PlanChange:
        """Return the change to a graph, with what its document says of an import."""
        report = self._plans.check(source)
        if not draft:
            raise_for_graph(report.diagnostics)
        graph = report.graph_document()
        if graph is None:
            raise GraphInvalid(report.diagnostics)

        def content(present: PlanContent) -> PlanContent:
            return PlanContent(present.title, graph)

        now, limits = self._dependencies.timestamp(), self._dependencies.limits
        return PlanChange(content, imported=import_record(report, now, limits))

    async def _described(
        self, plan: PlanRecord, description: str | None, *, draft: bool
    ) -> PlanRecord:
        text = _default_description(plan) if description is None else description
        described = replace(plan, description=self._validate_description(text))
        if not draft:
            await asyncio.to_thread(self._plans.check_description, described)
        return described

    def _validate_description(self, description: str) -> str:
        most = self._dependencies.limits.goal_chars
        if len(description) > most:
            raise LimitExceeded("goal_chars", most, len(description), what="a description")
        return description


class FlowResolver:
    """Flows as nodes run them: the port ``NodeServices.flows`` over a store.

    A revision is read and checked once; all runs share the same ``Graph``.
    """

    def __init__(self, store: Store, catalogue: NodeTypes, limits: Limits) -> None:
        self._store = store
        self._queries = FlowQueries(store)
        self._catalogue = catalogue
        self._limits = limits
        self._ready: OrderedDict[tuple[str, int], Graph] = OrderedDict()

    def limited_to(self, flow_ids: Collection[str]) -> FlowResolver:
        """Return one that finds these flows only; what was checked is shared."""
        other = copy(self)
        other._queries = FlowsOfToken(self._store, flow_ids)
        return other

    async def get(self, plan_id: str, revision: int | None = None) -> Graph:
        """Return the graph of a flow in its live revision, or in another one.

        Raises:
            NotFound: There is none of that id, or it has no such revision.
            InputError, Conflict: ``draft-revision``, ``not-approved``: it is not for callers.
            GraphInvalid: It cannot run here (any more).
            UnknownProvider, UnavailableProvider, UnknownModel: Only that stands in the way.
        """
        try:
            record = await self._queries.record(plan_id)
        except NotFound as error:
            raise await unknown_flow(self._queries, plan_id) from error
        key = plan_id, revision or record.live_revision or 0
        graph = self._ready.get(key)
        if graph is None:
            flow = await self._queries.startable(record, revision)
            checked = await asyncio.to_thread(self._read_and_check, flow)
            graph = self._ready.setdefault(key, checked)  # another task may have been faster
            if len(self._ready) > _READY:
                self._ready.popitem(last=False)
        self._ready.move_to_end(key)
        return graph

    async def find(self, name: str) -> str:
        """Return the id of the flow of a name.

        Raises:
            NotFound: There is none.
        """
        return (await flow_named(self._queries, name)).plan_id

    def _read_and_check(self, flow: Flow) -> Graph:
        try:
            graph, _ = read_graph(flow.graph, limits=self._limits)
            raise_for_run(check(graph, self._catalogue, self._limits))
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"flow {flow.name!r}: {error.message}") from error
        return graph


def _default_description(plan: PlanRecord) -> str:
    if has_template(plan.user_prompt):
        return plan.user_prompt  # it names inputs, which the title does not
    return plan.title if plan.user_prompt else ""


def _validate_name(name: str) -> str:
    """Return a name without surrounding space.

    Raises:
        InputError: ``invalid-name``.
    """
    name = name.strip()
    if not name or len(name) > NAME_CHARS or not name.isprintable():
        raise InputError(
            "a flow's name is one line of text",
            code="invalid-name",
            hint=f"write 1 to {NAME_CHARS} characters without line breaks",
        )
    return name
