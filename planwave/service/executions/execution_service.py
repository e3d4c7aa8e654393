"""What is done with executions; their record and their first event are durable before a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from typing_extensions import Unpack

from planwave.errors import Conflict, ShuttingDown
from planwave.events import Event, ExecutionState
from planwave.events.request_text import EDIT, field_of, is_plan_approval
from planwave.executor.inputs import validate_inputs
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan, graph_hash
from planwave.ids import new_id
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.answers import validate_answer
from planwave.service.executions.commands import ExecutionCommands
from planwave.service.executions.fork import (
    ForkChanges,
    ForkRequest,
    failed_nodes,
    fork_spec,
    new_graph_of,
    require_owned,
)
from planwave.service.executions.labels import checked_changes
from planwave.service.executions.option_limits import lowered_options, require_within
from planwave.service.executions.parent_results import preview_reuse
from planwave.service.executions.plan_edits import PlanEdits
from planwave.service.executions.run_spec import (
    ReplacedExecution,
    RunSpec,
    new_execution,
    rendered_spec,
    run_spec_from_events,
)
from planwave.service.executions.session import ExecutionSession
from planwave.service.flows.flow_queries import (
    Flow,
    FlowQueries,
    FlowRef,
    FlowsOfToken,
    flows_of_caller,
    plan_of_flow,
)  # fmt: skip
from planwave.service.flows.flow_references import unknown_flows
from planwave.service.plans.documents import (
    CheckedPlan,
    CheckReport,
    load_plan,
    raise_for_run,
    record_of,
)
from planwave.service.plans.plan_service import PlanService, require_stored_plan
from planwave.service.plans.policies import Policies, apply_policies
from planwave.service.plans.revisions import RevisionQueries, plan_at
from planwave.service.quotas import Quotas
from planwave.service.streaming.live_execution import require_not_started
from planwave.service.streaming.stored_execution import load_record
from planwave.storage.records import ExecutionLabels, ExecutionRecord, PlanRecord

if TYPE_CHECKING:
    from planwave.events.types import ApprovalDocument
    from planwave.executor.reuse.preview import ReusePreview

_log = logging.getLogger(__name__)


class UnstoredPlan(NamedTuple):
    """A plan that is executed without being stored; its execution has the graph."""

    plan: Plan


class PlanRef(NamedTuple):
    """One revision of a stored plan."""

    plan_id: str
    revision: int


Executable: TypeAlias = (
    str | PlanRef | PlanRecord | Plan | CheckedPlan | UnstoredPlan | FlowRef | Flow
)
"""The id of a stored plan, a revision of one, a flow; or one that was read."""


class CreatedExecution(NamedTuple):
    """A new execution."""

    record: ExecutionRecord
    created: Event
    spec: RunSpec
    program: Program


class ResolvedPlan(NamedTuple):
    """A plan that is ready to be executed.

    Attributes:
        plan: The graph with its goal and title.
        plan_to_store: The plan, where it is to be stored with the execution.
        flow: The name of the flow, where it is started as one.
        report: What this service has found of ``plan.graph`` just now.
    """

    plan: Plan
    plan_to_store: Plan | None = None
    flow: str | None = None
    report: CheckReport | None = None


class ExecutionService(ExecutionCommands):
    """The use cases of executions: create, start, retry and fork them, command them, read and watch them."""

    def __init__(
        self, dependencies: ServiceDependencies, plans: PlanService, flows: FlowQueries
    ) -> None:
        super().__init__(dependencies)
        self._plans = plans
        self._flows = flows
        self._document_writer.on_spent = plans.spending.warn
        self._plan_edits = PlanEdits(dependencies, plans, self)
        self._quotas = Quotas(self._store, dependencies.limits, self.driver.running_of)
        # An edit makes an execution before it answers. Of several at once only one may do so.
        self._answering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create(
        self,
        plan: Executable,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
        policies: Policies | None = None,
        trigger: Json = None,
        execution_id: str | None = None,
        require_approval: bool = False,
        replaces: ReplacedExecution | None = None,
        queued: bool = False,
    ) -> ExecutionRecord:
        """Create an execution of a plan; it is durable when this returns, and not yet queued.

        Args:
            plan: The id of a stored plan, or its record, which binds the execution to that revision;
                one that was just read, which is stored too; a flow, or one of its revisions.
            inputs: ``{node_id: {handle: value}}``, or ``{handle: value}`` where there is one entry
                node; these nodes are settled with these values.
            options: How to run; the limits of the service apply in any case.
            policies: Node policies of this execution, over those of the plan; see
                ``planwave.service.plans.policies.apply_policies``.
            trigger: What expressions see as ``trigger``.
            execution_id: An id chosen by a caller that may repeat the request; one that exists is returned.
            require_approval: Ask before the first node starts; also done where the operator requires it.
            replaces: The execution of the plan before, whose request for approval this plan answers.
            queued: Whether to queue it in the same commit; after a crash, the next process starts it.

        Raises:
            NotFound: No such plan, flow or revision.
            UnavailableProvider, UnknownProvider, UnknownModel, ShuttingDown: Nothing was created.
            GraphInvalid: The graph cannot run here (any more); nothing was created.
            InputError: ``unknown-input-node``, ``invalid-inputs``; nothing was created.
        """
        self.driver.check_open()
        if execution_id is not None and (record := await self._store.execution(execution_id)):
            return record
        created = await self._create(
            plan,
            inputs,
            options,
            policies,
            trigger,
            execution_id,
            queued=queued,
            require_approval=require_approval,
            replaces=replaces,
        )
        return created.record

    async def label(self, execution_id: str, changes: Mapping[str, Any]) -> ExecutionLabels:
        """Change some of what people call an execution: ``name``, ``tags``, ``note``, ``starred``; return all of it.

        Raises:
            NotFound: There is none of that id.
            InputError: ``invalid-labels``.
        """
        await self._store.label_execution(execution_id, checked_changes(changes))
        return (await load_record(self._store, execution_id)).labels

    async def start(self, execution_id: str) -> ExecutionRecord:
        """Queue an execution that was created before, perhaps by an earlier process.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``already-started``: it is queued, runs or has ended.
            QueueFull, ShuttingDown: It stays as it is.
            GraphInvalid: The stored graph cannot be read.
        """
        record = await load_record(self._store, execution_id)
        async with self.live_executions.acquire(execution_id) as live, live.commands:
            require_not_started(live, is_queued=record.queued and self.driver.carried is not None)
            with self.driver.reserve_slot():
                created = await self._store.events(execution_id, limit=1)
                spec = run_spec_from_events(execution_id, created, self._dependencies.limits)
                epoch = await self._store.claim(execution_id, queued=True)
                session = ExecutionSession(self._dependencies, execution_id, spec=spec, epoch=epoch)
                await self.driver.submit(live, session)
        return record

    async def execute(
        self,
        plan: Executable,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
        policies: Policies | None = None,
        trigger: Json = None,
        execution_id: str | None = None,
        require_approval: bool = False,
    ) -> ExecutionRecord:
        """Create an execution and queue it; it is accepted (durable) when this returns.

        Arguments and errors are those of ``create``, and

        Raises:
            QueueFull, ShuttingDown: Nothing was created.
        """
        if execution_id is not None and await self._store.execution(execution_id):
            with suppress(Conflict):  # an earlier request started it
                await self.start(execution_id)
            return await load_record(self._store, execution_id)
        with self.driver.reserve_slot():
            created = await self._create(
                plan,
                inputs,
                options,
                policies,
                trigger,
                execution_id,
                queued=True,
                require_approval=require_approval,
            )
            return await self._submit(created)

    async def retry(
        self, execution_id: str, *, start: bool = True, new_id: str | None = None
    ) -> ExecutionRecord:
        """Create a fork that runs the failed, blocked and cancelled nodes; see ``fork``.

        Raises:
            Conflict: ``nothing-to-retry``, ``still-running``, ``execution-interrupted``; nothing was
                created.
        """
        state = await self.live_executions.state(execution_id)
        self._require_owned(state)
        again = failed_nodes(state)
        return await self._fork(execution_id, ForkRequest(again, is_retry=True), start, new_id)

    async def fork(
        self,
        execution_id: str,
        *,
        start: bool = True,
        new_id: str | None = None,
        **changes: Unpack[ForkChanges],
    ) -> ExecutionRecord:
        """Create an execution of the same graph, or of a new one, that reuses every result that is still valid.

        A node's result is reused if nothing it depends on changed: type, data, inputs,
        links, and the goal if it is read (``executor/reuse/result_key.py``); so are results inside
        nodes that run again.

        Args:
            execution_id: One that has ended or is paused.
            start: Queue it; else it is made only.
            new_id: The id of the fork, chosen by a caller that may repeat the request; if it
                exists already, it is returned.
            changes: What is to be different.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``still-running``, ``execution-interrupted``; nothing was created.
            GraphInvalid: ``invalid-changes``, or the changed graph cannot run; nothing was created.
            InputError, UnavailableProvider, UnknownProvider, UnknownModel, QueueFull, ShuttingDown:
                Nothing was created.
        """
        request = await self._fork_request(**changes)
        return await self._fork(execution_id, request, start, new_id)

    async def preview_fork(self, execution_id: str, **changes: Unpack[ForkChanges]) -> ReusePreview:
        """Return which nodes a fork would reuse and which it would run; nothing is created.

        Arguments and errors are those of ``fork``.
        """
        request = await self._fork_request(**changes)
        spec, program = await self._spec_of_fork(execution_id, request)
        return await preview_reuse(self._dependencies, rendered_spec(spec, program)[0], program)

    async def _fork_request(self, **changes: Unpack[ForkChanges]) -> ForkRequest:
        graph = changes.get("graph")
        new = None if graph is None else new_graph_of(await self._plans.parse_and_check(graph))
        rerun, nodes = changes.get("rerun", ()), changes.get("changes")
        return ForkRequest(rerun, nodes, changes.get("options"), new=new)

    async def answer(self, execution_id: str, request_id: str, answer: Json) -> ExecutionRecord:
        """Answer a request, once; the answer is durable when this returns.

        Args:
            execution_id: Which execution.
            request_id: One of ``requests``.
            answer: ``{decision, note?, value?, form?}`` for requests with actions.

        Returns:
            The execution; of an edited plan the new execution, which needs an approval again.

        Raises:
            NotFound, Conflict, Gone, InputError, StoreError, ShuttingDown: See ``store_answer``.
            GraphInvalid, InputError: The edited plan cannot run; nothing is stored and the request
                stays open.
        """
        async with self._answering.setdefault(execution_id, asyncio.Lock()):
            if field_of(answer, "decision") == EDIT:
                state = await self.live_executions.state(execution_id)
                request = state.requests.get(request_id)
                if request is not None and is_plan_approval(request.request):
                    valid = validate_answer(request.request, answer)
                    return await self._plan_edits.edit(state, request_id, valid)
            return await self.store_answer(execution_id, request_id, answer)

    async def _fork(
        self, execution_id: str, request: ForkRequest, start: bool, new_id: str | None
    ) -> ExecutionRecord:
        if new_id is not None and (record := await self._store.execution(new_id)):
            return record
        if not start:
            self.driver.check_open()
            return (await self._create_fork(execution_id, request, new_id)).record
        with self.driver.reserve_slot():
            created = await self._create_fork(execution_id, request, new_id, queued=True)
            return await self._submit(created)

    def _require_owned(self, state: ExecutionState) -> None:
        live = self.live_executions.get(state.execution_id)
        is_here = live is not None and live.session is not None
        require_owned(state, is_owned=is_here or self.is_shared)

    async def _create_fork(
        self, execution_id: str, request: ForkRequest, new_id: str | None, *, queued: bool = False
    ) -> CreatedExecution:
        spec, program = await self._spec_of_fork(execution_id, request)
        return await self._persist(spec, program, new_id, queued=queued)

    async def _spec_of_fork(
        self, execution_id: str, request: ForkRequest
    ) -> tuple[RunSpec, Program]:
        state = await self.live_executions.state(execution_id)
        self._require_owned(state)
        events = await self._store.events(execution_id)
        before = run_spec_from_events(execution_id, events, self._dependencies.limits)
        limits, dependencies = self._dependencies.limits, self._dependencies
        spec, program = fork_spec(
            before,
            state,
            request,
            dependencies.catalogue,
            limits=limits,
            require_approval=dependencies.require_approval,
        )
        flow_ids = await flows_of_caller(self._store, before.flows)
        if request.new is not None:
            await self.require_flows(spec.graph, flow_ids)
        await require_stored_plan(dependencies, spec.graph, spec.written_by, spec.judged_plan_id)
        if request.options is not None:
            require_within(request.options, limits)
        return replace(spec, options=lowered_options(spec.options, limits), flows=flow_ids), program

    async def require_flows(self, graph: Graph, flow_ids: Sequence[str] | None) -> None:
        """Refuse a graph with a flow that there is not, or that its caller may not run."""
        lookup = self._flows if flow_ids is None else FlowsOfToken(self._store, flow_ids)
        raise_for_run(await unknown_flows(graph, self._dependencies.catalogue, lookup))

    async def _create(
        self,
        plan: Executable,
        inputs: Mapping[str, Any] | None,
        options: RunOptions | None,
        policies: Policies | None,
        trigger: Json,
        execution_id: str | None,
        *,
        queued: bool = False,
        require_approval: bool = False,
        replaces: ReplacedExecution | None = None,
    ) -> CreatedExecution:
        resolved = await self._resolve(plan)
        plan = resolved.plan
        author, judged = plan.author, plan.plan_id or None
        flow_ids = await flows_of_caller(self._store, replaces.spec.flows if replaces else None)
        if replaces is not None and replaces.spec.written_by:
            author, judged = replaces.spec.written_by, replaces.spec.judged_plan_id or judged
        dependencies, limits = self._dependencies, self._dependencies.limits
        graph = apply_policies(plan.graph, policies, limits)
        raise_for_run(self._diagnostics_of(graph, resolved.report))
        await require_stored_plan(dependencies, graph, author, judged)
        await self.require_flows(graph, flow_ids)
        run_options = options or RunOptions()
        require_within(run_options, limits)
        program = Program(graph, dependencies.catalogue)
        spec = RunSpec(
            graph=graph,
            inputs=validate_inputs(program, inputs),
            options=lowered_options(run_options, limits),
            goal=plan.user_prompt,
            title=plan.title,
            plan_id=plan.plan_id or None,
            revision=(plan.revision or None) if plan.plan_id else None,
            plan_hash=plan.hash,
            flow=resolved.flow,
            trigger=trigger,
            approval=self._approval_of(graph, resolved, required=require_approval),
            policies=policies,
            supersedes=replaces.request if replaces else None,
            written_by=author,
            model_plan_id=None if author is None or judged == plan.plan_id else judged,
            flows=flow_ids,
        )
        return await self._persist(
            spec, program, execution_id, queued=queued, plan_to_store=resolved.plan_to_store
        )

    def _approval_of(
        self, graph: Graph, resolved: ResolvedPlan, *, required: bool
    ) -> ApprovalDocument | None:
        """Return what a new execution stores about its approval; None if it needs none.

        Where the operator requires approval, only approved revisions are started as a flow.
        """
        if not (required or self._dependencies.require_approval):
            return None
        approval: ApprovalDocument = {"plan_hash": graph_hash(graph)}
        is_approved = resolved.flow is not None and approval["plan_hash"] == resolved.plan.hash
        if required or not is_approved:
            return approval
        return {**approval, "approved_revision": resolved.plan.revision}

    async def _resolve(self, source: Executable) -> ResolvedPlan:
        """Return the plan to be executed; a plan that is not stored yet is stored with it."""
        match source:
            case FlowRef() | Flow():
                flow = await self._flow_to_start(source)
                return ResolvedPlan(plan_of_flow(flow, self._dependencies.limits), flow=flow.name)
            case CheckedPlan(plan, report, checked_by):
                return ResolvedPlan(
                    plan, plan_to_store=plan, report=report if checked_by is self._plans else None
                )
            case UnstoredPlan(plan):
                return ResolvedPlan(plan)
            case Plan():
                return ResolvedPlan(source, plan_to_store=source)
            case PlanRecord():
                return ResolvedPlan(self._plans.readable_plan(source))
            case PlanRef(plan_id, revision):
                record = await load_plan(self._store, plan_id)
                stored_revision = await RevisionQueries(self._store).of(record, revision)
                return ResolvedPlan(self._plans.readable_plan(plan_at(record, stored_revision)))
            case _:
                record = await load_plan(self._store, source)
                return ResolvedPlan(self._plans.readable_plan(record))

    async def _flow_to_start(self, source: FlowRef | Flow) -> Flow:
        """Return a flow that callers may start; one that was read in its live revision is not read again."""
        if isinstance(source, Flow) and source.revision == source.live_revision:
            return source
        return await self._flows.to_start(source.plan_id, source.revision)

    def _diagnostics_of(self, graph: Graph, report: CheckReport | None) -> Sequence[Diagnostic]:
        """Return the diagnostics of a graph; reuse a report of this very graph."""
        if report is not None and report.graph is graph:
            return report.diagnostics
        return self._plans.check_graph(graph)

    async def _persist(
        self,
        spec: RunSpec,
        program: Program,
        execution_id: str | None,
        *,
        queued: bool,
        plan_to_store: Plan | None = None,
    ) -> CreatedExecution:
        """Store a new execution, and ``plan_to_store`` in the same commit."""
        plan_record = None if plan_to_store is None else record_of(plan_to_store)
        execution_id = execution_id or new_id()
        if (tracer := self._dependencies.tracer) is not None:
            caller = tracer.current_context()
            trace_id = tracer.trace_id_of(execution_id, caller)
            spec = replace(spec, trace_context=caller, trace_id=trace_id)
        spec, waves = rendered_spec(spec, program)
        at = self._dependencies.timestamp()
        needs = None if self.driver.carried is None else await self._needed_capability(spec)
        record, created = new_execution(spec, waves, execution_id, at, queued=queued, needs=needs)
        await self._store_created(record, created, plan_record)
        for observer in () if queued else self._dependencies.observers:
            observer.created(record)
        return CreatedExecution(record, created, spec, program)

    async def _needed_capability(self, spec: RunSpec) -> str | None:
        """Return the capability that a new execution needs; see ``needed_capability``."""
        # Lazy: test_a_directory_needs_nothing_of_temporal
        from planwave.service.executions.capabilities import needed_capability

        catalogue, providers = self._dependencies.catalogue, self._dependencies.providers
        return await needed_capability(spec.graph, catalogue, providers, self._flows)

    async def _submit(self, creation: CreatedExecution) -> ExecutionRecord:
        session = ExecutionSession(
            self._dependencies,
            creation.record.execution_id,
            spec=creation.spec,
            program=creation.program,
            epoch=creation.record.epoch,
        )
        try:
            await self.driver.submit(self.live_executions.create(creation.created), session)
        except ShuttingDown:
            await self._abandon(creation.record.execution_id, "the service went down first")
            raise
        return creation.record

    async def _store_created(
        self, record: ExecutionRecord, created: Event, plan: PlanRecord | None
    ) -> None:
        async with self._quotas.admit(record):
            try:
                await self._store.create_execution(record, [created], plan)
            except asyncio.CancelledError:
                why = "the caller left before it started"
                self.tasks.create_task(self._abandon(record.execution_id, why))
                raise

    async def _abandon(self, execution_id: str, cause: str) -> None:
        """Cancel a stored execution, or one being stored, that will never be started."""
        try:
            await self._store.claim(execution_id)  # queued behind its creation
            await self.cancel(execution_id, cause)
        except Exception as error:  # noqa: BLE001 - a task boundary: no caller is left
            _log.warning("execution %s was abandoned: %s", execution_id, error)
