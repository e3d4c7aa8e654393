"""The contract of triggers: an entry node type that says what it gives, and an adapter for it.

The adapter receives something, settles its entry node with that value, starts the execution of a
stored flow, and may watch its events. Installed packages add adapters with the entry point group
``planwave.triggers``; their node types come with ``planwave.nodes``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from planwave.service.service import Service
from planwave.service.triggers.trigger_service import Trigger
from planwave.settings import Settings

if TYPE_CHECKING:
    from planwave.service.triggers.running import RunningDelivery
    from planwave.storage.records import ExecutionRecord

_log = logging.getLogger(__name__)

STARTED: Final = "started"
"""The outcome of a delivery whose execution was started."""
TEST_PREFIX: Final = "test "
"""How the keys of test deliveries begin."""


class TriggerAdapter:
    """Base class of adapters; one instance serves all triggers of its node type.

    Args:
        service: What it may use of planwave.
        settings: Those of the operator.

    Attributes:
        node_type: The entry node type that it serves.
        listens: Whether ``listen`` is to run for each enabled trigger.
    """

    node_type: str
    listens: bool = False

    def __init__(self, service: Service, settings: Settings) -> None:
        self.service = service
        self.settings = settings

    def problem(self, trigger: Trigger) -> str | None:
        """Return why a trigger cannot start anything, one sentence, or None."""
        return None

    def details(self, trigger: Trigger) -> dict[str, Any]:
        """Return what lists show of a trigger besides the common fields, as JSON."""
        return {}

    def test_values(self, trigger: Trigger, value: Any) -> Mapping[str, Any]:
        """Return the outputs of the node for a test delivery, by handle.

        Args:
            trigger: The trigger.
            value: What the caller chose; None for what the adapter finds typical.

        Raises:
            InputError: The value is not possible.
        """
        return {"output": value}

    async def listen(self, trigger: Trigger, deliveries: Deliveries) -> None:
        """Receive things for a trigger until cancelled, and start an execution for each.

        It is cancelled, and called again, when the trigger or its flow changes. After an error it
        is called again a little later. An adapter without ``listens`` has none.
        """


class Deliveries:
    """The deliveries of one trigger: each starts one execution, however often it comes.

    Args:
        service: Stores deliveries and starts executions.
        trigger: The trigger.
        spawn: Starts a task that outlives the listener.
    """

    def __init__(
        self,
        service: Service,
        trigger: Trigger,
        spawn: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
    ) -> None:
        self._service = service
        self._trigger = trigger
        self._spawn = spawn

    async def start(
        self, key: str, values: Mapping[str, Any], *, note: str = ""
    ) -> ExecutionRecord | None:
        """Start the execution of a delivery; durable when this returns.

        Args:
            key: What identifies the delivery within its trigger.
            values: The outputs of the node, by handle.
            note: A sentence for lists.

        Returns:
            The execution; None if this delivery was processed before.

        Raises:
            QueueFull, ShuttingDown, StoreError, InputError: Nothing was started; the delivery may
                come again.
        """
        # Shielded: a listener may be cancelled at any time, and half a start would be lost.
        outcome = await asyncio.shield(self._spawn(self._try_start(key, values, note)))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def record(self, key: str, outcome: str, note: str = "") -> bool:
        """Record a delivery that starts nothing; return whether it is the first of its key."""
        claim = await self._service.triggers.claim_delivery(self._trigger, key)
        if claim.is_new:
            await self._service.triggers.settle_delivery(self._trigger, key, outcome, note=note)
        return claim.is_new

    async def set_position(self, position: str) -> None:
        """Store where the listener continues after a restart: ``trigger.position``."""
        await self._service.triggers.set_position(self._trigger.trigger_id, position)

    async def _try_start(
        self, key: str, values: Mapping[str, Any], note: str
    ) -> ExecutionRecord | Exception | None:
        """Start an execution; return the error, as a task that raises would end those of others."""
        try:
            return await self._start(key, values, note)
        except Exception as error:  # noqa: BLE001 - a task boundary
            return error

    async def _start(
        self, key: str, values: Mapping[str, Any], note: str
    ) -> ExecutionRecord | None:
        trigger = self._trigger
        claim = await self._service.triggers.claim_delivery(trigger, key)
        if not claim.is_new:
            return None
        try:
            record = await self._service.triggers.start(trigger, values, claim)
        except Exception as error:
            _log.warning(
                "trigger %s: delivery %s started nothing: %s", trigger.trigger_id, key, error
            )
            await self._service.triggers.release_delivery(trigger, key, error)
            raise
        await self._service.triggers.settle_delivery(
            trigger, key, STARTED, note=note, execution_id=record.execution_id
        )
        return record


async def running_deliveries(service: Service, trigger: Trigger) -> list[RunningDelivery]:
    """Return the deliveries of a trigger whose executions still run, but for tests, newest first."""
    deliveries = await service.triggers.running_deliveries(trigger)
    return [each for each in deliveries if not each.key.startswith(TEST_PREFIX)]
