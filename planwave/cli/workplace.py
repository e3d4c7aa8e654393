"""Where the work of ``run``, ``plan`` and ``exec`` is done: in this process, or by a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planwave.cli.drafting import PlanUpdate
from planwave.cli.inputs import InputArgument, resolve_inputs
from planwave.errors import GraphInvalid

if TYPE_CHECKING:
    from planwave.cli.reading import Source
    from planwave.cli.remote import RemoteBackend
    from planwave.events import Event, OpenRequest
    from planwave.executor.options import RunOptions
    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.service.flow_history import Flow, FlowRef
    from planwave.service.forking import NodeChanges
    from planwave.service.service import Service


class Backend(Protocol):
    """What commands ask of whoever plans and runs.

    Attributes:
        runs_in_process: What it starts runs in this process, and stops with it.
    """

    runs_in_process: bool

    @property
    def service(self) -> Service | RemoteBackend:
        """Give who keeps plans and flows there."""
        ...

    def planner_name(self) -> str:
        """Name who is going to plan.

        Raises:
            UnknownProvider, UnavailableProvider, UnknownModel: Nobody can.
        """
        ...

    async def plan_goal(self, goal: str, on_progress: Callable[[PlanUpdate], None]) -> Plan:
        """Plan a goal and keep the plan."""
        ...

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """Read a plan or graph that was written already, for an execution with these inputs.

        It is kept when it is started.

        Raises:
            GraphInvalid: It has errors; the message names the source.
            InputError: The inputs do not fit.
        """
        ...

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """Take a version of a flow, for an execution with these inputs.

        Raises:
            GraphInvalid: It has errors (by now); the message names the flow.
            InputError: The inputs do not fit.
        """
        ...

    async def start(self, plan: Plan, inputs: Sequence[InputArgument], options: RunOptions | None) -> str:
        """Start a plan that this place gave; gives the id of its execution, which is kept."""
        ...

    def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Give the events of an execution above a number as they happen, to its end."""
        ...

    async def wait(self, execution_id: str) -> object:
        """Wait until an execution has come to rest and its document is written."""
        ...

    async def cancel(
        self, execution_id: str, cause: str = ..., *, node: str | None = None
    ) -> object:
        """Stop an execution, or the node of that path alone.

        Raises:
            Conflict: It has ended already.
        """
        ...

    async def pause(self, execution_id: str) -> object:
        """Have nothing more of an execution started.

        Raises:
            Conflict: It has ended, or was not started yet.
        """
        ...

    async def resume(self, execution_id: str) -> object:
        """Have an execution go on that was paused by request, or that nobody runs.

        Raises:
            Conflict: It has ended, runs, or waits for an answer.
        """
        ...

    async def requests(self, execution_id: str) -> list[OpenRequest]:
        """Give what an execution waits to be answered, oldest first."""
        ...

    async def answer(self, execution_id: str, request_id: str, answer: Json) -> object:
        """Answer a request.

        Raises:
            NotFound, Conflict, Gone: There is no such request (any more).
            InputError: It is no answer to it.
        """
        ...

    async def retry(self, execution_id: str) -> str:
        """Start what failed of an execution as a new one; gives its id."""
        ...

    async def fork(self, execution_id: str, rerun: Sequence[str], changes: NodeChanges) -> str:
        """Start a changed execution made out of one; gives its id."""
        ...

    async def document(self, execution_id: str) -> dict[str, Any]:
        """Give the document of an execution."""
        ...

    def document_path(self, execution_id: str) -> Path | None:
        """Give where it lies."""
        ...


class LocalBackend:
    """This process does the work; it owns the storage directory meanwhile."""

    runs_in_process = True

    def __init__(self, service: Service) -> None:
        self.service = self._service = service
        self._source: Plan | FlowRef | None = None
        self.watch = service.watch
        self.wait = service.wait
        self.cancel = service.cancel
        self.pause, self.resume = service.pause, service.resume
        self.requests, self.answer = service.requests, service.answer
        self.document = service.document
        self.document_path = service.document_path

    def planner_name(self) -> str:
        """See :meth:`Workplace.planner_name`."""
        return "/".join(self._service.providers.resolve(None, None))

    async def plan_goal(self, goal: str, on_progress: Callable[[PlanUpdate], None]) -> Plan:
        """See :meth:`Workplace.plan_goal`."""
        return await self._service.create_plan(goal, on_progress=on_progress)

    async def plan_source(self, source: Source, inputs: Sequence[InputArgument]) -> Plan:
        """See :meth:`Workplace.plan_source`."""
        try:
            plan = await self._service.read_plan(source.content)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{source.name}: {error.message}") from error
        resolve_inputs(inputs, plan.graph, self._service.catalogue)
        self._source = plan
        return plan

    async def plan_flow(self, flow: Flow, inputs: Sequence[InputArgument]) -> Plan:
        """See :meth:`Workplace.plan_flow`."""
        from planwave.service.documents import plan_of_flow
        from planwave.service.flow_history import FlowRef

        try:
            read = await self._service.read_plan(flow.graph)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"flow {flow.name!r}: {error.message}") from error
        plan = replace(plan_of_flow(flow), diagnostics=read.diagnostics, forecast=read.forecast)
        resolve_inputs(inputs, plan.graph, self._service.catalogue)
        self._source = FlowRef(flow.flow_id, flow.version)
        return plan

    async def start(self, plan: Plan, inputs: Sequence[InputArgument], options: RunOptions | None) -> str:
        """See :meth:`Workplace.start_command`."""
        given = resolve_inputs(inputs, plan.graph, self._service.catalogue)
        what = self._source or plan.plan_id
        record = await self._service.execute(what, inputs=given, options=options)
        return record.execution_id

    async def retry(self, execution_id: str) -> str:
        """See :meth:`Workplace.retry`."""
        return (await self._service.retry(execution_id)).execution_id

    async def fork(self, execution_id: str, rerun: Sequence[str], changes: NodeChanges) -> str:
        """See :meth:`Workplace.fork`."""
        made = await self._service.fork(execution_id, rerun=rerun, changes=changes or None)
        return made.execution_id
