"""The executions of a trigger that have not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planwave.service.service import Service
from planwave.service.triggers.trigger_service import Trigger
from planwave.triggers.adapter import TEST_PREFIX

if TYPE_CHECKING:
    from planwave.service.triggers.running import RunningDelivery


async def running_deliveries(service: Service, trigger: Trigger) -> list[RunningDelivery]:
    """Return the deliveries of a trigger whose executions still run, but for tests, newest first."""
    found = await service.triggers.running_deliveries(trigger)
    return [each for each in found if not each.key.startswith(TEST_PREFIX)]
