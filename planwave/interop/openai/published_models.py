"""The models that a client sees, and the executions that its requests start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import Conflict, NotFound, ShuttingDown
from planwave.interop.openai.errors import InvalidParameter, ModelNotFound
from planwave.service.flows.chat_entries import ChatTurn, chat_entry, chat_inputs
from planwave.service.flows.flow_queries import Flow
from planwave.service.service import Service

if TYPE_CHECKING:
    from planwave.shapes.openai import ModelResponse
    from planwave.storage.records import PlanRecord

PLANNER: Final = "planwave/planner"
"""The model that plans a goal and runs the plan."""
_OWNER: Final = "planwave"


class PublishedModel(NamedTuple):
    """A model; ``flow`` is None for the planner."""

    id: str
    created: int = 0
    flow: PlanRecord | None = None

    def as_json(self) -> ModelResponse:
        """Return the model in the form of the OpenAI API."""
        return {"id": self.id, "object": "model", "created": self.created, "owned_by": _OWNER}


class PublishedModels:
    """The flows that are published as models, of which a client sees some.

    Args:
        service: Where the flows are.
        is_visible: Whether the client may use a flow, by its id; with None, the planner.
    """

    def __init__(self, service: Service, is_visible: Callable[[str | None], bool]) -> None:
        self._service = service
        self._is_visible = is_visible

    async def all(self) -> Sequence[PublishedModel]:
        """Return the models, sorted by name; a flow with the name of the planner is named by its id."""
        flows = await self._service.flows.published("model")
        models = [_model_of(flow) for flow in flows if self._is_visible(flow.plan_id)]
        planner = [PublishedModel(PLANNER)] if self._is_visible(None) else []
        return [*planner, *sorted(models, key=attrgetter("id"))]

    async def get(self, name: str) -> PublishedModel:
        """Return a model by its name, or by the id of its flow.

        Raises:
            ModelNotFound: The client has none of this name.
        """
        if name == PLANNER:
            if self._is_visible(None):
                return PublishedModel(PLANNER)
            raise ModelNotFound(name)
        with suppress(NotFound):
            flow = await self._service.flows.find(name)
            if self._is_model(flow, name):
                return _model_of(flow)
            for named in await self._service.flows.list(name=name, limit=1):  # also that of an id
                if self._is_model(named, name):
                    return _model_of(named)
        raise ModelNotFound(name)

    def _is_model(self, flow: PlanRecord, name: str) -> bool:
        is_published = "model" in flow.published and self._is_visible(flow.plan_id)
        return is_published and name in (_model_of(flow).id, flow.plan_id)

    async def start(self, model: PublishedModel, turn: ChatTurn, execution_id: str) -> bool:
        """Start the execution that answers, unless there is one of this id; the planner plans before.

        Returns:
            Whether it is cancelled when its client leaves, as the entry node says.

        Raises:
            InputError: The flow cannot take the message, or cannot run here.
            QueueFull, ShuttingDown, StoreError: Nothing was started.
            ProviderError, PlanInvalid: The goal could not be planned.
        """
        if model.flow is None:
            await self._run_goal(_goal_of(turn), execution_id)
            return False
        flow = await self._service.flows.startable(model.flow)
        inputs = chat_inputs(flow.graph, flow.name, turn)
        await self._service.executions.execute(flow, inputs=inputs, execution_id=execution_id)
        return _cancels_on_disconnect(flow)

    async def _run_goal(self, goal: str, execution_id: str) -> None:
        with suppress(NotFound):
            await self._service.executions.get(execution_id)
            return
        plan = await self._service.plans.create(goal)
        await self._service.executions.execute(plan.plan_id, execution_id=execution_id)

    async def cancel(self, execution_id: str) -> None:
        """Cancel an execution, unless it has ended, or the service goes down."""
        with suppress(Conflict, ShuttingDown):
            await self._service.executions.cancel(execution_id, "the client left")


def _model_of(flow: PlanRecord) -> PublishedModel:
    name = flow.name if flow.name not in (None, PLANNER) else flow.plan_id
    return PublishedModel(name, _seconds(flow.created_at), flow)


def _cancels_on_disconnect(flow: Flow) -> bool:
    return chat_entry(flow.graph, flow.name).on_disconnect == "cancel"


def _goal_of(turn: ChatTurn) -> str:
    """Return the goal in a message.

    Raises:
        InvalidParameter: There is none.
    """
    if turn.images or not turn.message:
        raise InvalidParameter("messages", "the planner takes a goal: end with a text")
    if {"tools", "outputSchema"} & set(turn.options):
        raise InvalidParameter("tools", "the planner takes a goal, and no tools or schema")
    return turn.message


def _seconds(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp())
