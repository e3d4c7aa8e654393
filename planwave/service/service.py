"""The service: the use cases of planwave, on the ports of ``ServiceDependencies``.

The service knows no terminal and no HTTP. The HTTP API, the command line and Python programs call
the same methods::

    async with open_service(settings) as service:
        plan = await service.create_plan("Compare …")
        execution = await service.execute(plan.plan_id)
        async for event in service.watch(execution.execution_id): ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from types import CoroutineType
from typing import Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

from planwave.graph.model import Graph
from planwave.graph.protocols import NodeTypes
from planwave.nodes.secrets import Secret
from planwave.nodes.tools.flow_inputs import declared_inputs
from planwave.providers.protocols import Providers
from planwave.service.access_tokens import AccessTokens
from planwave.service.chats.chat_service import ChatService
from planwave.service.dependencies import Observer, ServiceDependencies
from planwave.service.executions.commands import ExecutionCommands
from planwave.service.executions.document_writer import DocumentWriter
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.executions.plan_edits import PlanEdits
from planwave.service.flows.flow_queries import FlowQueries
from planwave.service.flows.flow_references import unknown_flows
from planwave.service.flows.flow_service import FlowService
from planwave.service.flows.flow_tools import FlowTools
from planwave.service.maintenance import Maintenance
from planwave.service.notifications.notification_service import NotificationService
from planwave.service.plans.documents import CheckReport
from planwave.service.plans.edits import PlanEditor
from planwave.service.plans.planner_service import PlannerService
from planwave.service.plans.revisions import RevisionQueries
from planwave.service.queries.history import QueryService
from planwave.service.streaming.subscriptions import StreamingService
from planwave.service.triggers.trigger_service import TriggerService
from planwave.settings import Limits
from planwave.storage.records import StoreStats

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


class ServiceLoad(NamedTuple):
    """The present load of a service.

    Attributes:
        running: Executions in memory, those included that only wait.
        places: The running places that executions hold; ``concurrent_executions`` limits them.
    """

    running: int
    queued: int
    is_draining: bool
    subscribers: int
    places: int


class Service:
    """The use cases of planwave, by feature; those of plans, flows and executions are its own.

    An async context manager; leaving it stops every execution that still runs. Each operation is
    the method of the class that implements it: see there for arguments and errors.

    Attributes:
        triggers: What starts flows without a person, and its deliveries.
        chats: Conversations whose replies are executions.
        notifications: Who is told of executions, and what was sent.
        access_tokens: What programs may use.
        maintenance: Deletion, and idempotency keys.
        audit: The audit log; None where none is kept.
        closing: Called when the service begins to shut down and ends its streams.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._store.requires_approval = dependencies.require_approval
        self.directory = dependencies.directory
        self.audit = dependencies.audit
        self._document_writer = DocumentWriter(dependencies.store, dependencies.directory)
        self._plans = PlannerService(dependencies)
        self._flows = FlowQueries(dependencies.store)
        self._streaming = StreamingService(dependencies, self._document_writer.wait_written)
        self._commands = ExecutionCommands(dependencies, self._streaming, self._document_writer)
        self.closing: list[Callable[[], object]] = []
        self._bind_plans_and_flows()
        self._bind_executions()
        self._bind_queries()
        self.notifications = NotificationService(dependencies, self._flows)
        self.access_tokens = AccessTokens(dependencies, self._flows)
        self._plans.releases.append(self.access_tokens.load)
        self.maintenance = Maintenance(dependencies, self._streaming.live_executions)
        self.publish_address = self._store.publish_address

    def _bind_plans_and_flows(self) -> None:
        plans = self._plans
        self.create_plan = plans.create_plan
        self.check_document = plans.check_document
        self.read_plan = plans.read_plan
        self.parse_and_check = plans.parse_and_check
        self.validate = plans.validate
        self.forecast = plans.forecast
        self.forecast_report = plans.forecast_report
        self.delete_plan = plans.delete_plan
        self._editor = PlanEditor(self._dependencies, plans, RevisionQueries(self._store))
        self.edit_plan = self._editor.edit_plan
        self.restore_revision = self._editor.restore_revision
        self.approve_revision = self._editor.approve_revision
        flows = FlowService(self._dependencies, plans, self._flows, self._editor)
        self.create_flow = flows.create_flow
        self.update_flow = flows.update_flow
        self.edit_flow = flows.edit_flow
        self.publish_flow = flows.publish_flow
        self.delete_flow = flows.delete_flow
        self.remove_name = flows.remove_name
        self.find_flow = flows.find_flow
        self.with_inputs = flows.with_inputs
        tools = FlowTools(self._dependencies, self._flows)
        self.flow_tools, self.flow_inputs = tools.flow_tools, tools.flow_inputs
        self.plan_changes = plans.changes

    def _bind_executions(self) -> None:
        commands, streaming = self._commands, self._streaming
        executions = ExecutionService(
            self._dependencies, self._plans, self._flows, streaming, commands
        )
        self.create_execution = executions.create_execution
        self.start = executions.start
        self.execute = executions.execute
        self.retry = executions.retry
        self.fork = executions.fork
        self.triggers = TriggerService(self._dependencies, self._flows, executions)
        self.chats = ChatService(
            self._dependencies, self._plans, self._flows, executions, streaming, commands
        )
        self.position = commands.runner.position
        self.wait_idle = commands.runner.wait_idle
        self.wait = commands.wait
        self.wait_end_written = commands.wait_end_written
        self.cancel = commands.cancel
        self.pause = commands.pause
        self.resume = commands.resume
        self.requests = self._after_document(commands.requests)
        edits = PlanEdits(
            self._dependencies, self._plans, self._editor, streaming, executions, commands
        )
        self.answer = edits.answer
        self.subscribe = streaming.subscribe
        self.watch = streaming.watch
        self.status_updates = streaming.status_updates
        self.state = self._after_document(streaming.state)

    def _bind_queries(self) -> None:
        live = self._streaming.live_executions
        queries = QueryService(self._store, self.directory, live.state_of)
        self.plan = queries.plan
        self.plans = queries.plans
        self.plan_status = queries.plan_status
        self.plan_statuses = queries.plan_statuses
        self.plan_revisions = queries.plan_revisions
        self.plan_revision = queries.plan_revision
        self.diff_revisions = queries.diff_revisions
        self.flow = queries.flow
        self.flow_to_start = queries.flow_to_start
        self.startable = queries.startable
        self.flows = queries.flows
        self.flow_summaries = queries.flow_summaries
        self.published_flows = queries.published_flows
        self.execution = self._after_document(queries.execution)
        self.executions = queries.executions
        self.count_executions = queries.count_executions
        self.digests = queries.digests
        self.pending_requests = queries.pending_requests
        self.answered_requests = queries.answered_requests
        self.events = self._after_document(queries.events)
        self.explain = self._after_document(queries.explain)
        self.diff = self._after_document(queries.diff)
        self.document = self._after_document(queries.document)
        self.document_file = queries.document_file
        self.document_pieces = self._after_document(queries.document_pieces)
        self.node_document = self._after_document(queries.node_document)
        self.document_path = queries.document_path
        self.backup = queries.backup

    def _after_document(
        self, read: Callable[Concatenate[str, _Args], Awaitable[_Result]]
    ) -> Callable[Concatenate[str, _Args], CoroutineType[Any, Any, _Result]]:
        """Return a read of one execution that gives an end only once its document is in place."""

        @wraps(read)
        async def read_after_document(
            execution_id: str, /, *args: _Args.args, **kwargs: _Args.kwargs
        ) -> _Result:
            result = await read(execution_id, *args, **kwargs)
            await self._commands.wait_end_written(execution_id)
            return result

        return read_after_document

    @property
    def catalogue(self) -> NodeTypes:
        """The node types of this service."""
        return self._dependencies.catalogue

    @property
    def providers(self) -> Providers:
        """The LLM providers of this service."""
        return self._dependencies.providers

    @property
    def mcp_servers(self) -> Mapping[str, str]:
        """How each MCP server is reached (``stdio``, ``http``), by name."""
        return self._dependencies.mcp_servers

    @property
    def secrets(self) -> Mapping[str, Secret]:
        """The operator's secrets that have a value, by name."""
        return self._dependencies.secrets

    def now(self) -> datetime:
        """Return the present UTC time."""
        return self._dependencies.now().astimezone(UTC)

    @property
    def limits(self) -> Limits:
        """The limits that this service enforces."""
        return self._dependencies.limits

    @property
    def load(self) -> ServiceLoad:
        """The number of running and queued executions and of subscribers."""
        runner = self._commands.runner
        return ServiceLoad(
            runner.running,
            runner.queued,
            runner.is_draining,
            self._streaming.live_executions.subscriber_count,
            runner.places,
        )

    @property
    def is_draining(self) -> bool:
        """Whether the service is shutting down and accepts nothing new."""
        return self._commands.runner.is_draining

    @property
    def store_stats(self) -> StoreStats:
        """The store's write counters, and whether the store can write."""
        return self._store.stats

    def node_types(self) -> list[dict[str, Any]]:
        """Return every node type as JSON, sorted by name: properties, ports, and data schema."""
        types = self._dependencies.catalogue
        return [types.describe(name) for name in types.names()]

    def node_ports(self, graph: Graph) -> dict[str, dict[str, Any]]:
        """Return the ports of the nodes that have other ports than their type, by node id."""
        return self._dependencies.catalogue.node_ports(graph)

    @property
    def requires_approval(self) -> bool:
        """Whether callers of a flow start approved revisions only."""
        return self._store.requires_approval

    def input_schema(self, document: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the JSON Schema of the inputs of a graph document; None where it cannot be read."""
        return declared_inputs(document, self._dependencies.catalogue)

    def socket_types(self) -> list[dict[str, Any]]:
        """Return how sockets of each type are drawn, and what they accept, as JSON."""
        return self._dependencies.catalogue.socket_types()

    def tools(self) -> list[dict[str, Any]]:
        """Return every registered tool as JSON, sorted by name."""
        return self._dependencies.catalogue.describe_tools()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            await opened.enter_async_context(self._document_writer)
            await self._document_writer.catch_up()
            await self.access_tokens.load()
            opened.pop_all()
        await self._commands.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            # The writer is closed after everything that may still end an execution.
            opened.push_async_exit(self._document_writer)
            await self.chats.close()
            await self._commands.__aexit__(None, None, None)

    async def close(self) -> None:
        """Close what the dependencies opened, and the store last; all writes are durable then."""
        try:
            if self._dependencies.close is not None:
                await self._dependencies.close()
        finally:
            await self.access_tokens.close()
            if self.audit is not None:
                await self.audit.close()
            await self._store.close()

    async def recover(self) -> int:
        """Recover the replies of chats, and the executions of an earlier process.

        See :meth:`ExecutionCommands.recover`; returns the number of executions.
        """
        await self.chats.recover_chats()
        return await self._commands.recover()

    def set_observer(self, observer: Observer) -> None:
        """Report everything that happens from now on to an observer."""
        self._commands.runner.observer = observer
        self._streaming.live_executions.set_observer(observer)
        if self._dependencies.calls is not None:
            self._dependencies.calls.on_call = observer.model_called

    async def drain(self, timeout_s: float | None = None) -> None:
        """Shut down gracefully: accept nothing new, end all streams, let running nodes finish.

        Executions that have not finished after ``timeout_s`` (by default the limit ``drain_s``) are
        interrupted. They and the queued ones stay as they are stored, for a later :meth:`recover`.
        """
        self.close_streams()
        await self._commands.runner.drain(self.limits.drain_s if timeout_s is None else timeout_s)

    def close_streams(self) -> None:
        """Accept nothing new and end all streams with ``ShuttingDown``."""
        self._commands.stop_recovery()
        self._commands.runner.close_queue()
        self._streaming.close_streams()
        self.chats.close_chat_streams()
        for call in self.closing:
            call()

    def abort(self) -> None:
        """End a running :meth:`drain` at once."""
        self._commands.runner.abort()

    async def check_flows(self, report: CheckReport) -> CheckReport:
        """Return a report with an error for each node whose stored flow does not exist."""
        if report.graph is None:
            return report
        found = await unknown_flows(report.graph, self._dependencies.catalogue, self._flows)
        return replace(report, diagnostics=(*report.diagnostics, *found)) if found else report

    def check_capacity(self) -> None:
        """Check that one more execution is accepted, before anything is paid or created for it.

        Raises:
            QueueFull, ShuttingDown: :meth:`execute` would be refused now.
        """
        self._commands.runner.check_capacity()
