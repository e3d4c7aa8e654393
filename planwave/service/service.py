"""The service: the use cases of planwave, on the ports of ``ServiceDependencies``.

The service knows no terminal and no HTTP. The HTTP API, the command line and Python programs call
the same methods::

    async with open_service(settings) as service:
        plan = await service.plans.create("Compare …")
        execution = await service.executions.execute(plan.plan_id)
        async for event in service.executions.watch(execution.execution_id): ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from planwave.errors import NotFound
from planwave.graph.model import Graph
from planwave.graph.protocols import NodeTypes
from planwave.nodes.secrets import Secret
from planwave.nodes.tools.flow_inputs import declared_inputs
from planwave.providers.protocols import Providers
from planwave.service.access_tokens import AccessTokens
from planwave.service.chats.chat_service import ChatService
from planwave.service.dependencies import Observer, ServiceDependencies, Tracer
from planwave.service.executions.changes import ExecutionChanges
from planwave.service.executions.execution_service import ExecutionService
from planwave.service.executions.input_sets import InputSets
from planwave.service.flows.flow_service import FlowService
from planwave.service.flows.flow_tools import FlowTools
from planwave.service.following import Following
from planwave.service.leadership import Leader
from planwave.service.links import Links
from planwave.service.maintenance import Maintenance
from planwave.service.notifications.notification_service import NotificationService
from planwave.service.plans.plan_service import PlanService
from planwave.service.plans.revision_service import RevisionService
from planwave.service.streaming.followers import Followers
from planwave.service.triggers.trigger_service import TriggerService
from planwave.settings import Limits
from planwave.storage.backup import back_up
from planwave.storage.records import StoredLoad, StoreStats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planwave.events.node_state import OpenRequest
    from planwave.providers.protocols import CallReport
    from planwave.storage.backup import Backup
    from planwave.storage.notices import Channel
    from planwave.storage.postgres.sessions import SharedSessions


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


class Backlog(NamedTuple):
    """What waits to be done by others.

    Attributes:
        requests: The requests that people have not answered.
        notifications: Notifications that are to be sent, or sent again.
        stored: What the store holds for all its processes.
        waiting_for: How many executions wait for a process with a capability, by capability.
    """

    requests: Sequence[OpenRequest] = ()
    notifications: int = 0
    stored: StoredLoad = StoredLoad()
    waiting_for: Mapping[str, int] = MappingProxyType({})


class Service:
    """The use cases of planwave, by feature.

    An async context manager; leaving it stops every execution that still runs.

    Attributes:
        plans: Plans, with a name or without: created, checked, forecast, edited, deleted.
        revisions: What plans were before: read, compared, restored, approved.
        changes: Of the graphs of executions that run or wait.
        flows: The plans that have a name, which others call.
        flow_tools: The flows that are published as tools.
        input_sets: The inputs of flows that are saved under a name.
        executions: What runs or has run: started, commanded, watched, read.
        triggers: What starts flows without a person, and its deliveries.
        followers: The clients whose leaving cancels an execution.
        chats: Conversations whose replies are executions.
        notifications: Who is told of executions, and what was sent.
        access_tokens: What programs may use.
        links: What anybody may see or answer who has a key.
        spending: What was spent on calls of models.
        maintenance: Deletion, and idempotency keys.
        leader: What is done by one process at a time of those that share a database.
        audit: The audit log; None where none is kept.
        closing: Called when the service begins to shut down and ends its streams.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._store.requires_approval = dependencies.require_approval
        self.directory = dependencies.directory
        self.audit = dependencies.audit
        self.leader = Leader(self._store)
        self.closing: list[Callable[[], object]] = []
        self.plans = PlanService(dependencies)
        self.spending = self.plans.spending
        self.revisions = RevisionService(dependencies, self.plans)
        self.flows = FlowService(dependencies, self.plans)
        self.flow_tools = FlowTools(dependencies, self.flows)
        self.input_sets = InputSets(dependencies, self.flows)
        self.executions = ExecutionService(dependencies, self.plans, self.flows)
        self.changes = ExecutionChanges(dependencies, self.executions, self.plans, self.revisions)
        self.triggers = TriggerService(dependencies, self.flows, self.executions)
        self.followers = Followers(self._store, self.executions)
        self.chats = ChatService(
            dependencies, self.plans, self.flows, self.executions, self.followers
        )
        self.notifications = NotificationService(dependencies, self.flows)
        self.access_tokens = AccessTokens(dependencies, self.flows)
        self.links = Links(dependencies, self.executions)
        self.plans.releases.append(self.access_tokens.flow_released)
        if dependencies.calls is not None:
            dependencies.calls.on_call = self._model_called
            if self.executions.is_shared:
                dependencies.calls.hand_over = self.executions.driver.hand_over
        self.maintenance = Maintenance(dependencies, self.executions.live_executions)

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
    def shared_sessions(self) -> SharedSessions | None:
        """The closed sessions of browsers, where several processes share the store."""
        return self._store.sessions

    def following(self, channel: Channel, reload: Callable[[], Awaitable[object]]) -> Following:
        """Return what calls ``reload``, and within its block when another process has changed something."""
        return Following(self._store, channel, reload, self._dependencies.now)

    @property
    def is_shared(self) -> bool:
        """Whether other processes may change what is stored."""
        return self._store.is_shared

    @property
    def limits(self) -> Limits:
        """The limits that this service enforces."""
        return self._dependencies.limits

    @property
    def load(self) -> ServiceLoad:
        """The number of running and queued executions and of subscribers."""
        driver = self.executions.driver
        return ServiceLoad(
            driver.running,
            driver.queued,
            driver.is_draining,
            self.executions.live_executions.subscriber_count,
            driver.places,
        )

    @property
    def is_draining(self) -> bool:
        """Whether the service is shutting down and accepts nothing new."""
        return self.executions.driver.is_draining

    @property
    def lacks_carrier(self) -> bool:
        """Whether this process drives executions, and nothing can hand it any now."""
        return self._dependencies.drives and not self.executions.driver.carrier.is_ready

    @property
    def store_stats(self) -> StoreStats:
        """The store's write counters, and whether the store can write."""
        return self._store.stats

    async def backlog(self) -> Backlog:
        """Return what waits to be done by others, and what the store holds.

        Raises:
            StoreError: The store cannot be read.
        """
        executions = self.executions
        carried = executions.driver.carried
        return Backlog(
            await executions.open_requests(),
            await self._store.notifications.count_pending(),
            await self._store.load(),
            carried.waiting.by_capability if carried is not None else {},
        )

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
            self.leader.open()
            await self._store.notices.open()
            await opened.enter_async_context(self.access_tokens.following)
            await opened.enter_async_context(self.executions)
            opened.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._store.expect_close()
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            opened.push_async_exit(self.access_tokens.following)
            opened.push_async_exit(self.executions)
            await self.chats.close()

    async def close(self) -> None:
        """Close what the dependencies opened, and the store last; all writes are durable then."""
        try:
            if self._dependencies.close is not None:
                await self._dependencies.close()
        finally:
            await self.access_tokens.close()
            if self.audit is not None:
                await self.audit.close()
            await self._store.notices.close()
            await self._store.close()

    async def recover(self) -> int:
        """Recover the replies of chats, and the executions of an earlier process.

        See ``ExecutionCommands.recover``; returns the number of executions.
        """
        if not self.executions.is_shared:  # else the leader does
            await self.chats.recover_chats()
        return await self.executions.recover()

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        """Publish the address of the API of this process, for other processes; None withdraws it.

        See ``planwave.storage.sql.store.Store.publish_address``.
        """
        self._store.publish_address(url, token, is_service=is_service)

    async def backup(self, file: Path) -> Backup:
        """Write all that is kept into one tar file; see ``planwave.storage.backup.back_up``.

        Works while another process writes. Errors are those of ``back_up``.
        """
        if self.directory is None:
            raise NotFound(
                "nothing is kept in a directory here, so there is nothing to back up",
                hint="back up the database with pg_dump, where one is used",
            )
        return await asyncio.to_thread(back_up, self.directory, file)

    @property
    def tracer(self) -> Tracer | None:
        """What makes spans of its executions; None where nothing does."""
        return self._dependencies.tracer

    def observe(self, observer: Observer) -> None:
        """Report everything that happens from now on to an observer, besides those there are."""
        self._dependencies.observers.append(observer)

    def _model_called(self, call: CallReport) -> None:
        for observer in self._dependencies.observers:
            observer.model_called(call)

    async def drain(self, timeout_s: float | None = None) -> None:
        """Shut down gracefully: accept nothing new, end all streams, let running nodes finish.

        Executions that have not finished after ``timeout_s`` (by default the limit ``drain_s``) are
        interrupted. They and the queued ones stay as they are stored, for a later ``recover``.
        """
        self.close_streams()
        await self.executions.driver.drain(self.limits.drain_s if timeout_s is None else timeout_s)

    def close_streams(self) -> None:
        """Accept nothing new and end all streams with ``ShuttingDown``."""
        self.executions.stop_recovery()
        self.executions.driver.close_queue()
        self.executions.live_executions.close_streams()
        self.chats.close_chat_streams()
        for call in self.closing:
            call()

    def abort(self) -> None:
        """End a running ``drain`` at once."""
        self.executions.driver.abort()
