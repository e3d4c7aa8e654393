"""The executions of a trigger that have not ended."""

from __future__ import annotations

from typing import Final

from planwave.errors import NotFound
from planwave.service.service import Service
from planwave.triggers.adapter import STARTED, TEST_PREFIX

_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


async def running_executions(service: Service, trigger_id: str) -> list[str]:
    """Return those among the last deliveries of a trigger that still run, but for tests, newest first."""
    found = await service.deliveries([trigger_id])
    running: list[str] = []
    for each in found.get(trigger_id, ()):
        if each.outcome != STARTED or each.key.startswith(TEST_PREFIX):
            continue
        try:
            record = await service.execution(each.execution_id)
        except NotFound:  # it was deleted, so it had ended
            continue
        if record.status not in _ENDED:
            running.append(each.execution_id)
    return running
