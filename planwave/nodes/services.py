"""What the library's nodes find in ``context.services``, and the limits that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from planwave.errors import InputError, PermanentError
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan
from planwave.graph.protocols import FlowContext
from planwave.mcp.servers import McpServers
from planwave.nodes.model_choice import with_default_model
from planwave.nodes.secrets import Secret
from planwave.outbound.client import OutboundClient
from planwave.providers.protocols import (
    UNSET,
    CallScope,
    CallSettings,
    ModelRequest,
    Models,
    Providers,
    Recorder,
)
from planwave.redaction import NOTHING_SECRET, Redactor

if TYPE_CHECKING:
    from planwave.settings import Limits

MAX_WAIT_S: Final = 366 * 86_400.0
"""No request of a node waits for longer."""


def utc_now() -> datetime:
    """Return the UTC time of this machine."""
    return datetime.now(UTC)


class FlowSource(Protocol):
    """Port: graphs that are kept under a name."""

    async def get(self, plan_id: str, revision: int | None) -> Graph:
        """Return a revision of a flow, or its live one, checked.

        Raises:
            PlanwaveError: There is no such revision, or it cannot run here.
        """
        ...

    async def find(self, name: str) -> str:
        """Return the id of the flow of a name.

        Raises:
            PlanwaveError: There is none.
        """
        ...

    def limited_to(self, flow_ids: Collection[str]) -> FlowSource:
        """Return a source that has these flows only."""
        ...


class Memory(Protocol):
    """Port: turns of conversations that are kept under a key over executions."""

    async def recall(
        self, key: str, execution_id: str, *, max_turns: int
    ) -> list[list[Mapping[str, Json]]]:
        """Return the messages of the last turns, oldest first, but those of one execution."""
        ...

    async def remember(
        self, key: str, execution_id: str, path: str, message: Mapping[str, Json]
    ) -> None:
        """Store the message of the user of a turn, once for each node of an execution."""
        ...


class PlanEvent(Protocol):
    """Progress of planning; ``planner.progress.PlanProgress`` satisfies it."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Json]: ...
    @property
    def usage(self) -> Mapping[str, Json] | None: ...


class GoalPlanner(Protocol):
    """Port: goal → plan, for nodes that plan while they run."""

    def request_for(
        self,
        prompt: str,
        provider: str,
        model: str,
        *,
        node_types: Sequence[str] | None = None,
        max_nodes: int | None = None,
    ) -> ModelRequest: ...

    async def create_plan(
        self,
        prompt: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Callable[[PlanEvent], None] | None = None,
        node_types: Sequence[str] | None = None,
        max_nodes: int | None = None,
        settings: CallSettings = UNSET,
        scope: CallScope | None = None,
        answers: Mapping[str, str] = ...,
    ) -> Plan:
        """Plan a goal.

        Args:
            prompt: The goal.
            provider: Provider for planning and for nodes that do not name one; None for the default.
            model: See ``provider``.
            on_progress: Called with the progress of planning; must not block.
            node_types: The only types the plan may use; None for all allowed types.
            max_nodes: Maximum number of nodes, if below the general limit.
            settings: Parameters of the planner's model calls.
            scope: The node attempt that the calls are recorded for.
            answers: Answers to the questions of an earlier plan of the goal, by question.

        Raises:
            PlanwaveError: There is no plan; see ``Planner.create_plan``.
        """
        ...


class ApprovedTools(Protocol):
    """Port: how the tools of servers were described when a person last approved a call, over executions."""

    async def fingerprint(self, server: str, tool: str) -> str | None:
        """Return the fingerprint of a tool's definition; None if no call of it was ever approved."""
        ...

    async def approve(self, server: str, tool: str, fingerprint: str) -> None:
        """Store the fingerprint of a tool that a person approves; durable when this returns."""
        ...


@dataclass(frozen=True)
class NodeServices:
    """Services of one execution.

    Attributes:
        models: The client for model calls.
        providers: The registry of providers and models.
        goal: The goal of the plan, "" without one.
        default_provider: Provider of nodes that do not name one; None for the registry's default.
        default_model: Model of nodes that use the default provider and do not name a model.
        flows: The stored flows; None without a store.
        planner: The planner; None if goals cannot be planned.
        limits: The limits of nodes; None for no limits.
        outbound: The client for URLs; None if nodes may not send requests.
        mcp: The MCP servers; None if nodes may use none.
        providers_fetch_images: Whether providers get the URLs of images; else they get the images.
        secrets: The secrets of the operator that nodes may name.
        redactor: Withholds what is secret from all that comes from outside.
        recorder: Stores the external calls of nodes; None where none is stored.
        memory: Keeps turns of conversations over executions; None without a store.
        approved_tools: What people have approved of the tools of servers; None without a store.
        now: UTC time.
    """

    models: Models
    providers: Providers
    goal: str = ""
    default_provider: str | None = None
    default_model: str | None = None
    flows: FlowSource | None = None
    planner: GoalPlanner | None = None
    limits: Limits | None = None
    outbound: OutboundClient | None = None
    mcp: McpServers | None = None
    providers_fetch_images: bool = False
    secrets: Mapping[str, Secret] = field(default_factory=dict[str, Secret], repr=False)
    redactor: Redactor = field(default=NOTHING_SECRET, repr=False)
    recorder: Recorder | None = None
    memory: Memory | None = None
    approved_tools: ApprovedTools | None = None
    now: Callable[[], datetime] = utc_now

    def redact(self, value: Json) -> Json:
        """Return JSON without secrets; satisfies ``executor.ports.Redacting``."""
        return self.redactor.value(value)

    def model_for(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Return the provider and model for a node's data.

        Raises:
            NodeError: The provider or model is unknown or unavailable; see the code.
        """
        choice = with_default_model(provider, model, self.default_provider, self.default_model)
        try:
            return self.providers.resolve(*choice)
        except InputError as error:
            raise PermanentError(error.message, code=error.code, hint=error.hint) from error


def with_recorder(services: object, recorder: Recorder) -> object:
    """Return the services of a run; node services that have no recorder get this one."""
    if isinstance(services, NodeServices) and services.recorder is None:
        return replace(services, recorder=recorder)
    return services


def approved_tools_of(context: FlowContext) -> ApprovedTools | None:
    """Return what people have approved of the tools of servers; None where nothing is kept."""
    services = context.services
    return services.approved_tools if isinstance(services, NodeServices) else None


def with_flows(services: object, flow_ids: Collection[str] | None) -> object:
    """Return the services of a run that may run these stored flows only; None for any."""
    if flow_ids is None or not isinstance(services, NodeServices) or services.flows is None:
        return services
    return replace(services, flows=services.flows.limited_to(flow_ids))


def limits_of(context: FlowContext) -> Limits | None:
    """Return the limits of a run; None if it has none."""
    services = context.services
    return services.limits if isinstance(services, NodeServices) else None


def outbound_of(context: FlowContext) -> OutboundClient:
    """Return the client for URLs that users and models choose.

    Raises:
        NodeError: The run was started without one (code ``no-outbound``).
    """
    services = context.services
    if isinstance(services, NodeServices) and services.outbound is not None:
        return services.outbound
    raise PermanentError(
        "this run sends no requests to other services",
        code="no-outbound",
        hint="start it through the service, or pass services=NodeServices(…, outbound=…)",
    )


def memory_of(context: FlowContext) -> Memory:
    """Return what keeps turns of conversations over executions.

    Raises:
        NodeError: The run was started without it (code ``no-memory``).
    """
    services = context.services
    if isinstance(services, NodeServices) and services.memory is not None:
        return services.memory
    raise PermanentError(
        "this run keeps no conversations",
        code="no-memory",
        hint="start it through the service, or leave out data.memory",
    )


def mcp_servers_of(context: FlowContext) -> McpServers:
    """Return the MCP servers that the operator has set up.

    Raises:
        NodeError: The run was started without them (code ``no-mcp``).
    """
    services = context.services
    if isinstance(services, NodeServices) and services.mcp is not None:
        return services.mcp
    raise PermanentError(
        "this run uses no MCP servers",
        code="no-mcp",
        hint="start it through the service, or pass services=NodeServices(…, mcp=…)",
    )


def secrets_of(context: FlowContext) -> Mapping[str, Secret]:
    """Return the secrets that nodes may name; none without node services."""
    services = context.services
    return services.secrets if isinstance(services, NodeServices) else {}


def goal_of(context: FlowContext) -> str:
    """Return the goal of the plan that the node belongs to; the plan may be nested."""
    goal = context.runtime.variables.get("goal")
    return goal if isinstance(goal, str) and goal else services_of(context).goal


def services_of(context: FlowContext) -> NodeServices:
    """Return the node services of a run.

    Raises:
        NodeError: The run was started without node services (code ``no-models``).
    """
    services = context.services
    if isinstance(services, NodeServices):
        return services
    raise PermanentError(
        "this run has no access to language models",
        code="no-models",
        hint="start it through the service, or pass services=NodeServices(models, providers)",
    )
