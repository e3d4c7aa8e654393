"""Triggers and their deliveries in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from planwave.storage.errors import not_found
from planwave.storage.event_codec import storable_text
from planwave.storage.records import PageCursor
from planwave.storage.triggers import (
    DELIVERIES_SHOWN,
    DeliveryRecord,
    TriggerRecord,
    claimed,
)


class MemoryTriggers:
    """The ``TriggerStore`` port over dictionaries.

    Args:
        check_open: Raises if the store is closed.
        has_flow: Whether a flow exists.
    """

    def __init__(self, check_open: Callable[[], None], has_flow: Callable[[str], bool]) -> None:
        self._check_open = check_open
        self._has_flow = has_flow
        self._triggers: dict[str, TriggerRecord] = {}
        self._deliveries: dict[str, dict[str, DeliveryRecord]] = {}

    async def create(self, trigger: TriggerRecord) -> bool:
        self._check_open()
        if not self._has_flow(trigger.plan_id):
            raise not_found("flow", trigger.plan_id)
        entry = trigger.plan_id, trigger.node_id
        known = {(each.plan_id, each.node_id) for each in self._triggers.values()}
        if trigger.trigger_id in self._triggers or entry in known:
            return False
        self._triggers[trigger.trigger_id] = trigger
        self._deliveries[trigger.trigger_id] = {}
        return True

    async def get(self, trigger_id: str) -> TriggerRecord | None:
        return self._triggers.get(trigger_id)

    async def page(
        self, *, plan_id: str | None = None, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[TriggerRecord]:
        found = sorted(self._triggers.values(), key=_sort_key, reverse=True)
        return [
            each
            for each in found
            if (plan_id is None or each.plan_id == plan_id)
            and (before is None or _sort_key(each) < before)
        ][: max(limit, 0)]

    async def count(self) -> int:
        return len(self._triggers)

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> bool:
        self._check_open()
        kept = self._triggers.get(trigger_id)
        if kept is not None:
            self._triggers[trigger_id] = replace(kept, enabled=enabled)
        return kept is not None

    async def set_position(self, trigger_id: str, position: str) -> None:
        self._check_open()
        kept = self._triggers.get(trigger_id)
        if kept is not None:
            self._triggers[trigger_id] = replace(kept, position=storable_text(position))

    async def delete(self, trigger_id: str) -> bool:
        self._check_open()
        self._deliveries.pop(trigger_id, None)
        return self._triggers.pop(trigger_id, None) is not None

    def delete_of_flow(self, plan_id: str) -> None:
        """Delete the triggers of a flow."""
        for each in [each for each in self._triggers.values() if each.plan_id == plan_id]:
            del self._triggers[each.trigger_id], self._deliveries[each.trigger_id]

    async def claim(self, trigger_id: str, key: str, at: str, *, expired: str) -> DeliveryRecord:
        self._check_open()
        own, key = self._deliveries.get(trigger_id), storable_text(key)
        if own is None:
            raise not_found("trigger", trigger_id)
        found = own.get(key)
        if found is not None and not (found.outcome is not None and found.received_at < expired):
            return found
        own.pop(key, None)
        new = claimed(trigger_id, key, at, None)
        own[key] = replace(new, is_new=False)
        return new

    async def settle(
        self, trigger_id: str, key: str, outcome: str, *, note: str = "", reply: str | None = None
    ) -> None:
        self._check_open()
        own, key = self._deliveries.get(trigger_id, {}), storable_text(key)
        found = own.get(key)
        if found is not None and found.outcome is None:
            own[key] = replace(found, outcome=outcome, note=storable_text(note), reply=reply)

    async def release(self, trigger_id: str, key: str) -> None:
        self._check_open()
        own, key = self._deliveries.get(trigger_id, {}), storable_text(key)
        if key in own and own[key].outcome is None:
            del own[key]

    async def deliveries(
        self, trigger_ids: Sequence[str], limit: int = DELIVERIES_SHOWN
    ) -> Mapping[str, Sequence[DeliveryRecord]]:
        own = {each: self._newest(each)[: max(limit, 0)] for each in trigger_ids}
        return {trigger_id: found for trigger_id, found in own.items() if found}

    async def delete_expired(self, expired: str) -> int:
        self._check_open()
        old = [
            each
            for trigger_id in self._deliveries
            for each in self._newest(trigger_id)[DELIVERIES_SHOWN:]
            if each.outcome is not None and each.received_at < expired
        ]
        for each in old:
            del self._deliveries[each.trigger_id][each.key]
        return len(old)

    def _newest(self, trigger_id: str) -> list[DeliveryRecord]:
        own = list(self._deliveries.get(trigger_id, {}).values())
        return sorted(reversed(own), key=lambda each: each.received_at, reverse=True)


def _sort_key(trigger: TriggerRecord) -> tuple[str, str]:
    return trigger.created_at, trigger.trigger_id
