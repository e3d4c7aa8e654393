"""What the executor needs from outside; other rooms satisfy these by shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from planwave.errors import PlanwaveError
from planwave.events import Event
from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
from planwave.events.types import UsageData
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import Budget


@runtime_checkable
class Redacting(Protocol):
    """Services of nodes that know secrets: what a node gives, emits and raises is stored without them."""

    def redact(self, value: Json) -> Json:
        """Return JSON with the names of secrets in place of their values."""
        ...


class WrittenChange(NamedTuple):
    """What a model wrote to change the graph of an execution.

    Attributes:
        graph: The graph that it becomes, without errors; None where ``error`` says why there is none.
        data: What the event of the change says; the driver adds the waves.
        error: Why there is none.
        request: What a person is asked first, a ``plan-change``; None where the change is made at once.
    """

    graph: Graph | None = None
    data: PlanRevisedData | None = None
    error: PlanwaveError | None = None
    request: Json = None


class ChangeCalls(Protocol):
    """The calls of the model that writes a change: they belong to the execution, and so does what they use."""

    @property
    def budget(self) -> Budget | None:
        """The budget of the execution; a reservation that it cannot hold any more raises. None without one."""
        ...

    def ended(self, usage: UsageData) -> None:
        """Take note of what a call used, as a ``usage`` event has it."""
        ...

    def wrote(self, part: Json, /) -> None:
        """Show a part of the change to those who watch, once it is written."""
        ...


class ChangeWriter(Protocol):
    """Has a model write the change of its graph that an execution asks for."""

    async def __call__(
        self,
        asked: PlanRequestedData,
        number: int,
        events: Sequence[Event],
        calls: ChangeCalls,
    ) -> WrittenChange:
        """Return the change.

        Args:
            asked: What is asked for.
            number: Counts the requests of the execution, from 1; a repeated request has the same number.
            events: All events of the execution so far.
            calls: What the calls of the model reserve, and what they used.

        Raises:
            PlanwaveError: There is none.
        """
        ...


class Journal(Protocol):
    """Where events become durable."""

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Keep a batch, all or nothing; durable when this returns.

        Raises:
            StaleEpoch: ``epoch`` is older than the execution's owner.
            StoreError: The store cannot write now.
        """
        ...

    async def events(self, execution_id: str) -> Sequence[Event]:
        """Return all events of an execution that are durable, in order.

        Raises:
            StoreError: They cannot be read now.
        """
        ...
