"""The port through which commands plan and run: in this process, or through a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planwave.cli.inputs import InputArgument

if TYPE_CHECKING:
    from planwave.cli.backends.remote import RemoteBackend
    from planwave.cli.inputs import Source
    from planwave.events import Event, OpenRequest
    from planwave.executor.options import RunOptions
    from planwave.graph.model import Json
    from planwave.graph.plan import Plan
    from planwave.service.executions.fork import NodeChanges
    from planwave.service.flows.flow_queries import Flow
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

    async def start(
        self, plan: Plan, inputs: Sequence[InputArgument], options: RunOptions | None
    ) -> str:
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


class PlanUpdate(Protocol):
    """What the planner tells: ``PlanProgress`` fits."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...
