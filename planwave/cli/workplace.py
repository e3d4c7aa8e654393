"""Where the work of ``run``, ``plan`` and ``exec`` is done: in this process, or by a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planwave.cli.drafting import Told
from planwave.cli.inputs import Written, inputs_of
from planwave.errors import GraphInvalid

if TYPE_CHECKING:
    from planwave.cli.reading import Source
    from planwave.cli.remote import Remote
    from planwave.events import Event, OpenRequest
    from planwave.executor.options import RunOptions
    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.service.flow_history import Flow, FlowChoice
    from planwave.service.forking import Changes
    from planwave.service.service import Service


class Workplace(Protocol):
    """What commands ask of whoever plans and runs.

    Attributes:
        runs_here: What it starts runs in this process, and stops with it.
    """

    runs_here: bool

    @property
    def keeper(self) -> Service | Remote:
        """Give who keeps plans and flows there."""
        ...

    def author(self) -> str:
        """Name who is going to plan.

        Raises:
            UnknownProvider, UnavailableProvider, UnknownModel: Nobody can.
        """
        ...

    async def plan_goal(self, goal: str, tell: Callable[[Told], None]) -> Plan:
        """Plan a goal and keep the plan."""
        ...

    async def plan_source(self, source: Source, inputs: Sequence[Written]) -> Plan:
        """Read a plan or graph that was written already, for an execution with these inputs.

        It is kept when it is started.

        Raises:
            GraphInvalid: It has errors; the message names the source.
            InputError: The inputs do not fit.
        """
        ...

    async def plan_flow(self, flow: Flow, inputs: Sequence[Written]) -> Plan:
        """Take a version of a flow, for an execution with these inputs.

        Raises:
            GraphInvalid: It has errors (by now); the message names the flow.
            InputError: The inputs do not fit.
        """
        ...

    async def start(self, plan: Plan, inputs: Sequence[Written], options: RunOptions | None) -> str:
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

    async def fork(self, execution_id: str, rerun: Sequence[str], changes: Changes) -> str:
        """Start a changed execution made out of one; gives its id."""
        ...

    async def document(self, execution_id: str) -> dict[str, Any]:
        """Give the document of an execution."""
        ...

    def document_path(self, execution_id: str) -> Path | None:
        """Give where it lies."""
        ...


class Here:
    """This process does the work; it owns the storage directory meanwhile."""

    runs_here = True

    def __init__(self, service: Service) -> None:
        self.keeper = self._service = service
        self._written: Plan | FlowChoice | None = None
        self.watch = service.watch
        self.wait = service.wait
        self.cancel = service.cancel
        self.pause, self.resume = service.pause, service.resume
        self.requests, self.answer = service.requests, service.answer
        self.document = service.document
        self.document_path = service.document_path

    def author(self) -> str:
        """See :meth:`Workplace.author`."""
        return "/".join(self._service.providers.resolve(None, None))

    async def plan_goal(self, goal: str, tell: Callable[[Told], None]) -> Plan:
        """See :meth:`Workplace.plan_goal`."""
        return await self._service.create_plan(goal, on_progress=tell)

    async def plan_source(self, source: Source, inputs: Sequence[Written]) -> Plan:
        """See :meth:`Workplace.plan_source`."""
        try:
            plan = await self._service.read_plan(source.content)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"{source.name}: {error.message}") from error
        inputs_of(inputs, plan.graph, self._service.catalogue)
        self._written = plan
        return plan

    async def plan_flow(self, flow: Flow, inputs: Sequence[Written]) -> Plan:
        """See :meth:`Workplace.plan_flow`."""
        from planwave.service.documents import plan_of_flow
        from planwave.service.flow_history import FlowChoice

        try:
            read = await self._service.read_plan(flow.graph)
        except GraphInvalid as error:
            raise GraphInvalid(error.diagnostics, f"flow {flow.name!r}: {error.message}") from error
        plan = replace(plan_of_flow(flow), diagnostics=read.diagnostics, forecast=read.forecast)
        inputs_of(inputs, plan.graph, self._service.catalogue)
        self._written = FlowChoice(flow.flow_id, flow.version)
        return plan

    async def start(self, plan: Plan, inputs: Sequence[Written], options: RunOptions | None) -> str:
        """See :meth:`Workplace.start`."""
        given = inputs_of(inputs, plan.graph, self._service.catalogue)
        what = self._written or plan.plan_id
        record = await self._service.execute(what, inputs=given, options=options)
        return record.execution_id

    async def retry(self, execution_id: str) -> str:
        """See :meth:`Workplace.retry`."""
        return (await self._service.retry(execution_id)).execution_id

    async def fork(self, execution_id: str, rerun: Sequence[str], changes: Changes) -> str:
        """See :meth:`Workplace.fork`."""
        made = await self._service.fork(execution_id, rerun=rerun, changes=changes or None)
        return made.execution_id
