"""The ports of commands: ``Queries`` reads stored data, ``Backend`` plans and runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from planwave.cli.inputs import InputArgument, Source

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.events import Event, OpenRequest
    from planwave.executor.options import RunOptions
    from planwave.graph.diagnostics import Diagnostic
    from planwave.graph.model import Json
    from planwave.graph.operations import Operation
    from planwave.graph.plan import Plan
    from planwave.service.executions.fork import ForkChanges
    from planwave.service.flows.flow_queries import Flow
    from planwave.service.plans.revisions import Editor
    from planwave.service.service import Service
    from planwave.shapes.common import PlanStatus
    from planwave.shapes.executions import (
        DifferenceResponse,
        DocumentResponse,
        ExplainResponse,
        WaitsForResponse,
    )
    from planwave.shapes.graphs import ForkPreviewResponse
    from planwave.shapes.nodes import PlanChangeResponse, ReplanAccepted
    from planwave.shapes.plans import ReplanResponse, RevisionDiffResponse
    from planwave.storage.records import (
        ExecutionRecord,
        InputSet,
        PlanRecord,
        PlanRevision,
    )


_Feature = TypeVar("_Feature")


class StoredPlans(Protocol):
    """The plans, for reading."""

    async def get(self, plan_id: str) -> PlanRecord:
        """Return a stored plan.

        Raises:
            NotFound: No plan has this id.
        """
        ...

    async def status(self, plan_id: str) -> PlanStatus:
        """Return the status of a plan: that of its newest execution, ``draft`` without one."""
        ...

    async def list(self, *, before: str | None = None, limit: int = 50) -> Sequence[PlanRecord]:
        """Return plans."""
        ...


class StoredRevisions(Protocol):
    """The revisions of plans, for reading."""

    async def list(self, plan_id: str, *, limit: int = 50) -> Sequence[PlanRevision]:
        """Return the revisions of a plan, newest first, without their graphs.

        Raises:
            NotFound: No plan has this id.
        """
        ...

    async def diff(self, plan_id: str, a: int, b: int | None = None) -> RevisionDiffResponse:
        """Compare two revisions of a plan, ``b`` None for the current one.

        See ``planwave.service.plans.revisions.RevisionQueries.diff``.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
        """
        ...


class StoredFlows(Protocol):
    """The flows, for reading."""

    async def get(self, plan_id: str, revision: int | None = None) -> Flow:
        """Return a flow in one of its revisions, by default the one that callers start.

        Raises:
            NotFound: No flow has this id, or it has no such revision.
        """
        ...

    async def to_start(self, plan_id: str, revision: int | None = None) -> Flow:
        """Return a flow as ``get`` does, if callers may start the revision.

        Raises:
            NotFound: No flow has this id, or it has no such revision.
            InputError, Conflict: ``draft-revision``, ``not-approved``.
        """
        ...

    async def list(
        self, *, name: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[PlanRecord]:
        """Return flows, only the one with this name, whatever its case."""
        ...

    async def summaries(self, flows: Sequence[PlanRecord], /) -> Sequence[Mapping[str, Any]]:
        """Return flows that were listed in the JSON form of the API."""
        ...

    async def input_sets(self, plan_id: str) -> Sequence[InputSet]:
        """Return the inputs that are saved of a flow, by name."""
        ...


class StoredExecutions(Protocol):
    """The executions, for reading."""

    async def get(self, execution_id: str, /) -> ExecutionRecord:
        """Return an execution as lists show it.

        Raises:
            NotFound: No execution has this id.
        """
        ...

    async def list(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        tag: str | None = None,
        starred: bool | None = None,
        since: str | None = None,
        until: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[ExecutionRecord]:
        """Return executions, only those with this status and these filters.

        Raises:
            InputError: ``invalid-time``.
        """
        ...

    async def document(self, execution_id: str, /) -> DocumentResponse:
        """Return the JSON document of an execution."""
        ...

    async def interrupted(self, records: Sequence[ExecutionRecord], /) -> Collection[str]:
        """Return the ids of those that were cut off: their status says that they run, and nobody runs them."""
        ...

    async def waits_for(
        self, records: Sequence[ExecutionRecord], /
    ) -> Mapping[str, WaitsForResponse]:
        """Return what executions wait for that not every process can do, by id; others are left out."""
        ...

    def document_path(self, execution_id: str) -> Path | None:
        """Return the path of the JSON document of an execution."""
        ...

    async def diff(self, a: str, b: str, /) -> DifferenceResponse:
        """Compare two executions; see ``planwave.service.queries.diff.diff``."""
        ...

    async def explain(self, execution_id: str, /, path: str) -> ExplainResponse:
        """Explain a node; see ``planwave.service.queries.explain.explain``.

        Raises:
            NotFound: No execution has this id, or it has no node with this path.
        """
        ...


class Queries(Protocol):
    """Reads stored plans, flows and executions: from the database, or over HTTP.

    Lists are ordered newest first; ``before`` is the id of the last record of the page before.
    """

    @property
    def plans(self) -> StoredPlans: ...
    @property
    def revisions(self) -> StoredRevisions: ...
    @property
    def flows(self) -> StoredFlows: ...
    @property
    def executions(self) -> StoredExecutions: ...


class Plans(StoredPlans, Protocol):
    """The plans of a backend."""

    async def edit(
        self,
        plan_id: str,
        operations: Sequence[Operation],
        *,
        expected: Collection[str],
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Apply operations to a plan, all or none; return the plan with its new revision.

        Raises:
            NotFound: No plan has this id.
            PreconditionFailed: The plan has none of the expected hashes.
            GraphInvalid: An operation cannot be applied.
        """
        ...

    async def delete(self, plan_id: str) -> object:
        """Delete a plan; its executions stay.

        Raises:
            NotFound: No plan has this id.
            Conflict: An execution of the plan has not ended.
        """
        ...


class Revisions(StoredRevisions, Protocol):
    """The revisions of the plans of a backend."""

    async def restore(
        self,
        plan_id: str,
        revision: int,
        *,
        expected: Collection[str],
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Restore a revision of a plan as a new one; return the plan.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
            PreconditionFailed: The plan has none of the expected hashes.
        """
        ...

    async def refine(self, plan_id: str, request: str, *, dry_run: bool = False) -> PlanRecord:
        """Have a model write a change of a plan; return the plan with its proposal.

        Raises:
            NotFound: No plan has this id.
            InputError: ``nothing-changed``: the words ask for nothing that can be done.
            PlanInvalid, ProviderError: No change came of it.
        """
        ...

    async def accept(
        self, plan_id: str, accepted: str, *, expected: Collection[str], author: Editor = "api"
    ) -> PlanRecord:
        """Make the proposal with this hash the newest revision of a plan; return the plan.

        Raises:
            NotFound, Conflict: The plan has no such proposal.
            PreconditionFailed: The plan has none of the expected hashes.
        """
        ...

    async def promote(
        self,
        execution_id: str,
        *,
        expected: Collection[str] | None,
        author: Editor = "api",
        note: str = "",
    ) -> PlanRecord:
        """Make the graph of an execution the newest revision of its plan; return the plan.

        Raises:
            PreconditionFailed: The plan has none of the expected hashes; with None, not that which was forked.
        """
        ...

    async def approve(
        self, plan_id: str, revision: int, *, expected: Collection[str] | None
    ) -> PlanRecord:
        """Approve a revision of a plan for all callers of the flow; return the plan.

        Raises:
            NotFound: No plan has this id, or it has no such revision.
            InputError: ``draft-revision``: the revision has errors.
        """
        ...


class Flows(StoredFlows, Protocol):
    """The flows of a backend."""

    async def create(
        self,
        name: str,
        *,
        graph: bytes | None = None,
        plan_id: str | None = None,
        description: str | None = None,
        draft: bool = False,
    ) -> Flow:
        """Make a flow of a graph, or give a stored plan a name."""
        ...

    async def update(
        self,
        plan_id: str,
        *,
        name: str | None = None,
        graph: bytes | None = None,
        graph_of: str | None = None,
        description: str | None = None,
        draft: bool = False,
        force: bool = False,
    ) -> Flow:
        """Save a graph, or that of a stored plan, as a new revision of a flow, or change its name."""
        ...

    async def delete(self, plan_id: str, *, force: bool = False) -> object:
        """Delete a flow with its revisions."""
        ...

    async def remove_name(self, plan_id: str, *, force: bool = False) -> object:
        """Take the name of a flow away; the plan stays."""
        ...


class Executions(StoredExecutions, Protocol):
    """The executions of a backend."""

    def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Yield the events of an execution with ``seq`` above ``after``, live, until its end."""
        ...

    async def wait(self, execution_id: str) -> object:
        """Wait until an execution has paused or ended and its document is written."""
        ...

    async def cancel(
        self, execution_id: str, cause: str = ..., *, node: str | None = None
    ) -> object:
        """Cancel an execution, or only the node with this path.

        Raises:
            Conflict: The execution has ended already.
        """
        ...

    async def pause(self, execution_id: str) -> object:
        """Pause an execution: no further node starts.

        Raises:
            Conflict: The execution has ended, or was not started yet.
        """
        ...

    async def requests(self, execution_id: str, /) -> Sequence[OpenRequest]:
        """Return the open requests of an execution, oldest first."""
        ...


class Backend(Queries, Protocol):
    """Plans and runs: the service in this process, or a running one over HTTP.

    Attributes:
        runs_in_process: Whether executions stop when this process ends.
    """

    runs_in_process: bool

    @property
    def plans(self) -> Plans: ...
    @property
    def revisions(self) -> Revisions: ...
    @property
    def flows(self) -> Flows: ...
    @property
    def executions(self) -> Executions: ...

    def choose(
        self, local: Callable[[Service], _Feature], remote: Callable[[AsyncClient], _Feature], /
    ) -> _Feature:
        """Return a feature of this backend: of its service, or of the client of a running one."""
        ...

    def planner_name(self) -> str:
        """Return the name of the model that is going to plan, or of the service that chooses it.

        Raises:
            UnknownProvider, UnavailableProvider, UnknownModel: No model can plan.
        """
        ...

    async def plan_goal(
        self, goal: str, on_progress: Callable[[PlanUpdate], None], answers: Mapping[str, str]
    ) -> Plan:
        """Plan a goal, with answers to what it leaves open, and store the plan."""
        ...

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """Parse a plan or graph file, for an execution with these inputs; it is stored at the start.

        Raises:
            GraphInvalid: The graph has errors; the message names the source.
            InputError: The inputs do not fit the graph.
        """
        ...

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """Return the plan of one revision of a flow, for an execution with these inputs.

        Raises:
            GraphInvalid: The graph has errors here; the message names the flow.
            InputError: The inputs do not fit the graph.
        """
        ...

    async def start(
        self,
        plan: Plan,
        inputs: Sequence[InputArgument],
        options: RunOptions | None,
        *,
        require_approval: bool = False,
    ) -> str:
        """Start a plan of this backend; return the id of its execution, which is stored by then."""
        ...

    async def resume(self, execution_id: str) -> object:
        """Resume a paused or interrupted execution.

        Raises:
            Conflict: The execution has ended, runs, or waits for an answer.
        """
        ...

    async def answer(self, execution_id: str, request_id: str, answer: Json) -> str:
        """Answer a request; return the id of the execution, or of that of an edited plan.

        Raises:
            NotFound, Conflict, Gone: The request does not exist, or is not open any more.
            InputError: The answer does not fit the request.
        """
        ...

    async def retry(self, execution_id: str) -> str:
        """Start the failed part of an execution as a new one; return the id of the new one."""
        ...

    async def fork(self, execution_id: str, changes: ForkChanges) -> str:
        """Start a changed copy of an execution; return the id of the new one."""
        ...

    async def preview_fork(self, execution_id: str, changes: ForkChanges) -> ForkPreviewResponse:
        """Return which nodes such a copy would reuse and which it would run; nothing starts."""
        ...

    async def revise(
        self,
        execution_id: str,
        graph: Mapping[str, Json],
        note: str,
        expected: str | None = None,
    ) -> PlanChangeResponse:
        """Let an execution that runs or waits go on with a changed graph; return the change."""
        ...

    async def replan(
        self, execution_id: str, request: str | None, expected: str | None = None
    ) -> ReplanAccepted:
        """Have the model of the command change the plan of an execution, which starts nothing meanwhile.

        Raises:
            PreconditionFailed: ``plan-changed``: it runs another graph than the one with the expected hash.
        """
        ...

    async def propose(self, execution_id: str, request: str | None) -> ReplanResponse:
        """Have the model of the command propose how an execution could go on; it goes on as it is meanwhile."""
        ...

    async def delete_execution(self, execution_id: str) -> object:
        """Delete an execution that has ended.

        Raises:
            NotFound: No execution has this id.
            Conflict: The execution has not ended.
        """
        ...

    async def models(self, graph: Mapping[str, Json]) -> Sequence[Mapping[str, Any]]:
        """Return the models that the steps of a graph call, as a forecast has them."""
        ...

    async def check(self, document: dict[str, Json]) -> Sequence[Diagnostic]:
        """Return every diagnostic of a graph document, parsed strictly."""
        ...


class PlanUpdate(Protocol):
    """One report of the planner's progress: ``PlanProgress`` fits."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...
