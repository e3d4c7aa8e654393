"""The dependencies of the service and their ports; ``bootstrap`` builds them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from planwave.events import Event, ExecutionState
from planwave.graph.model import Graph
from planwave.graph.plan import Plan
from planwave.graph.protocols import NodeTypes
from planwave.nodes.secrets import Secret
from planwave.outbound.client import OutboundClient
from planwave.providers.protocols import CallReport, Providers
from planwave.redaction import NOTHING_SECRET, Redactor
from planwave.setting_tables import NotificationSettings
from planwave.settings import Limits

if TYPE_CHECKING:
    from planwave.planner.revised_plan import RevisedPlan, Revision
    from planwave.prompts.render import PlanExample
    from planwave.service.carriers.carrier import Carrier
    from planwave.service.executions.parent_results import ParentCallRecorder
    from planwave.service.triggers.trigger_service import Trigger
    from planwave.storage.audit import AuditLog
    from planwave.storage.notifications import NotificationRecord
    from planwave.storage.records import ExecutionRecord
    from planwave.storage.sql.store import Store


class PlannerPort(Protocol):
    """Port: goal → plan. ``planner/`` satisfies it."""

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
        answers: Mapping[str, str] = ...,
        examples: Sequence[PlanExample] = (),
    ) -> Plan: ...
    async def revise(
        self,
        plan: RevisedPlan,
        words: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[Any], None] | None = None,
    ) -> Revision: ...
    def require_reviser(self, provider: str | None, model: str | None) -> object: ...


class Observer:
    """Base class of what observes a service; a method that is not overridden does nothing.

    Methods are called on the event loop. They must neither raise nor block.
    """

    def created(self, record: ExecutionRecord) -> None:
        """An execution was made that is not started yet."""

    def started(self, state: ExecutionState, waited_s: float) -> None:
        """An execution left the queue after so many seconds; ``state`` must not be changed."""

    def published(self, events: Sequence[Event]) -> None:
        """A batch of events of one execution is durable; streamed text was just published."""

    def execution_left(self, execution_id: str) -> None:
        """An execution ended or stopped running in this process."""

    def link_cache_used(self, hits: int, misses: int, fan_out: Mapping[int, int]) -> None:
        """The hits and misses of the link cache of one execution.

        ``fan_out`` is how many artefacts had how many users.
        """

    def delivered(self, lag_s: float) -> None:
        """All subscribers have the events that were published ``lag_s`` seconds ago."""

    def subscriber_dropped(self) -> None:
        """A subscriber was disconnected because it fell too far behind."""

    def model_called(self, call: CallReport) -> None:
        """An attempt at a model call ended, of a node or of the planner."""

    def trigger_delivered(
        self, trigger: Trigger, outcome: str, note: str, execution_id: str | None
    ) -> None:
        """Something came of what a trigger received.

        Args:
            trigger: The trigger.
            outcome: ``started``, ``duplicate``, ``rejected``, ``missed``, ``skipped``, or ``failed``:
                nothing could be started, and it may come again.
            note: Why, in a sentence; may be empty.
            execution_id: The execution that was started; None where none was.
        """

    def notification_attempted(self, notification: NotificationRecord) -> None:
        """A notification was sent, or could not be; its record says so, and when it is tried again."""

    def recovered(self, execution_id: str, outcome: str) -> None:
        """An execution of an earlier process was taken up.

        Args:
            execution_id: The execution.
            outcome: ``resumed``, or ``failed``: it cannot be taken up, and stays as it is stored.
        """


class Tracer(Protocol):
    """Port: makes spans of executions. ``service/tracing`` satisfies it; its methods must not raise."""

    def current_context(self) -> dict[str, str]:
        """Return the trace context of the caller as headers; empty without one."""
        ...

    def trace_id_of(self, execution_id: str, trace_context: Mapping[str, str]) -> str | None:
        """Return the id of the trace of all spans of an execution; None where it has none, or one a run.

        Args:
            execution_id: The execution.
            trace_context: That of the caller who created it.
        """
        ...

    def started(self, state: ExecutionState, trace_context: Mapping[str, str]) -> None:
        """An execution left the queue; ``trace_context`` is that of the caller who created it."""
        ...

    def published(self, events: Sequence[Event]) -> None:
        """As ``Observer.published``."""
        ...

    def execution_left(self, execution_id: str) -> None:
        """As ``Observer.execution_left``."""
        ...

    def span_ids(self, execution_id: str, path: str | None) -> dict[str, str]:
        """Return ``{"trace_id", "span_id"}`` of the span of a node, or of its execution; {} without one."""
        ...

    def planning(self, goal: str) -> AbstractContextManager[None]:
        """Return a block in which a plan is written outside of executions."""
        ...


class CallSource(Protocol):
    """Port: a source of model calls that reports their ends. ``providers/`` satisfies it."""

    on_call: Callable[[CallReport], None] | None
    hand_over: Callable[[str, str], Awaitable[None]] | None


class DescribedNodeTypes(NodeTypes, Protocol):
    """Port: the node types, which can also be shown to people. ``nodes/`` satisfies it."""

    def describe(self, node_type: str) -> dict[str, Any]: ...
    def socket_types(self) -> list[dict[str, Any]]: ...
    def describe_tools(self) -> list[dict[str, Any]]: ...
    def read_data(self, node_type: str, data: Mapping[str, Any]) -> tuple[Any, str | None]: ...
    def node_ports(self, graph: Graph) -> dict[str, dict[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class ServiceDependencies:
    """The parts that a service is built from.

    Attributes:
        planner: Writes plans.
        node_services: Makes what nodes find as ``context.services``, given the goal.
        renderer: Resolves expressions; None lets the executor do without.
        directory: Where JSON documents go; None writes none.
        calls: Reports the ends of model calls to an observer.
        parent_calls: Finds recorded calls of executions for their forks, where calls are recorded.
        close: Stops the render worker, the model server and the HTTP clients.
        now: UTC time.
        require_approval: Whether every execution waits for the approval of its plan.
        tracer: Makes spans of executions; None makes none.
        mcp_servers: How each MCP server is reached, by name.
        outbound: The client for URLs of triggers; None without.
        notifier: The client for notifications, which follows no redirects; None sends none.
        notification_tables: The URLs that the operator has notified, by name.
        secrets: The operator's secrets that have a value, by name.
        redactor: Withholds what is secret from all that comes from outside.
        audit: Where what people and programs do is logged; None logs nothing.
        observers: What observes the service; ``Service.observe`` adds more.
        carrier: Hands executions to any of several processes that share the store; None where this one is alone.
        drives: Whether this process drives executions.
        capabilities: What it can do for executions that others may not; see ``service/executions/capabilities.py``.
        spend_warn_usd: What may be spent on a day before there is a warning; None for any amount.
        public_url: The address under which people reach the service; None where nobody has said so.
        examples_from_history: Whether planners are shown earlier plans of the person who asks.
    """

    store: Store
    catalogue: DescribedNodeTypes
    providers: Providers
    planner: PlannerPort
    limits: Limits
    node_services: Callable[[str], Any] = lambda _: None
    renderer: Any = None
    directory: Path | None = None
    calls: CallSource | None = None
    parent_calls: ParentCallRecorder | None = None
    close: Callable[[], Awaitable[None]] | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    require_approval: bool = False
    tracer: Tracer | None = None
    mcp_servers: Mapping[str, str] = field(default_factory=dict[str, str])
    outbound: OutboundClient | None = None
    notifier: OutboundClient | None = None
    notification_tables: Mapping[str, NotificationSettings] = field(
        default_factory=dict[str, NotificationSettings]
    )
    secrets: Mapping[str, Secret] = field(default_factory=dict[str, Secret], repr=False)
    redactor: Redactor = field(default=NOTHING_SECRET, repr=False)
    audit: AuditLog | None = None
    observers: list[Observer] = field(default_factory=list[Observer])
    carrier: Carrier | None = None
    drives: bool = True
    capabilities: frozenset[str] = frozenset()
    spend_warn_usd: float | None = None
    public_url: str | None = None
    examples_from_history: bool = True

    def timestamp(self) -> str:
        """Return the present UTC time in the format of events."""
        return self.now().astimezone(UTC).isoformat(timespec="microseconds")
