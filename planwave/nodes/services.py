"""What the library's nodes find in ``context.services``, and the limits that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from planwave.errors import InputError, NodeError
from planwave.graph.model import Graph, Json
from planwave.graph.plan import Plan
from planwave.graph.protocols import FlowContext
from planwave.nodes.model_choice import with_default_model
from planwave.providers.protocols import UNSET, CallScope, CallSettings, Models, Providers

if TYPE_CHECKING:
    from planwave.settings import Limits

MAX_WAIT_S: Final = 366 * 86_400.0
"""No request of a node waits for longer."""


class FlowSource(Protocol):
    """Port: graphs that are kept under a name."""

    async def get(self, flow_id: str, version: str | None) -> Graph:
        """Give a version of a flow, or its newest, checked.

        Raises:
            PlanwaveError: There is none, or it cannot run here.
        """
        ...


class PlanEvent(Protocol):
    """What happened while a plan was made; ``PlanProgress`` of the planner fits."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Json]: ...


class GoalPlanner(Protocol):
    """Port: goal → plan, for nodes that plan while they run."""

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
    ) -> Plan:
        """Plan a goal.

        Args:
            prompt: The goal.
            provider: Who plans, and runs the nodes the plan leaves open; None for the default.
            model: See ``provider``.
            on_progress: Told what happens while the plan is written; it must not block.
            node_types: The only types the plan may use; None for all that plans may.
            max_nodes: The most nodes it may have, below what plans may anyway.
            settings: How the planner's model is asked.
            scope: Whose calls these are, so that they are recorded and served again.

        Raises:
            PlanwaveError: There is no plan; see ``Planner.create_plan``.
        """
        ...


@dataclass(frozen=True)
class NodeServices:
    """Services of one execution.

    Attributes:
        models: Calls language models.
        providers: Knows which there are.
        goal: The goal of the plan, "" without one.
        default_provider: Provider of nodes that name none; None for the catalogue's default.
        default_model: Model of nodes that name none and use the default provider.
        flows: The stored flows, where there are any.
        planner: Plans goals, where that can be done.
        limits: What nodes may not pass; None for no limits.
    """

    models: Models
    providers: Providers
    goal: str = ""
    default_provider: str | None = None
    default_model: str | None = None
    flows: FlowSource | None = None
    planner: GoalPlanner | None = None
    limits: Limits | None = None

    def model_for(self, provider: str | None, model: str | None) -> tuple[str, str]:
        """Give the provider and model that a node's data mean.

        Raises:
            NodeError: No such provider or model here; the code says which.
        """
        wanted = with_default_model(provider, model, self.default_provider, self.default_model)
        try:
            return self.providers.resolve(*wanted)
        except InputError as error:
            raise NodeError(error.message, code=error.code, hint=error.hint) from error


def limits_of(context: FlowContext) -> Limits | None:
    """Give what a node may not pass; None where the run has no limits."""
    services = context.services
    return services.limits if isinstance(services, NodeServices) else None


def goal_of(context: FlowContext) -> str:
    """Give what a node works towards: the goal of the plan it is part of, which may be a nested one."""
    goal = context.runtime.variables.get("goal")
    return goal if isinstance(goal, str) and goal else services_of(context).goal


def services_of(context: FlowContext) -> NodeServices:
    """Give the node services of a run.

    Raises:
        NodeError: The run was started without them (code ``no-models``).
    """
    services = context.services
    if isinstance(services, NodeServices):
        return services
    raise NodeError(
        "this run has no access to language models",
        code="no-models",
        hint="start it through the service, or pass services=NodeServices(models, providers)",
    )
