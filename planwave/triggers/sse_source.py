"""Streams of server-sent events of other services: an execution for each event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from hashlib import sha256
from typing import Any, Final

from planwave.errors import InputError, PlanwaveError
from planwave.ids import new_id
from planwave.service.triggers.event_streams import EventStreamEnded, StreamEvent
from planwave.service.triggers.payloads import read_payload
from planwave.service.triggers.trigger_service import Trigger
from planwave.triggers.adapter import TEST_PREFIX, Deliveries, TriggerAdapter, running_deliveries

_log = logging.getLogger(__name__)
SSE: Final = "sse"
_FIRST_BACKOFF_S: Final = 1.0
_LONGEST_BACKOFF_S: Final = 300.0
_LONGEST_KEY: Final = 255


class SseSources(TriggerAdapter):
    """The adapter of ``sse`` nodes; ``trigger.position`` is the id of the last event."""

    node_type = SSE
    listens = True

    def details(self, trigger: Trigger) -> dict[str, Any]:
        return {"url": trigger.data.url.partition("?")[0]}

    def test_values(self, trigger: Trigger, value: Any) -> Mapping[str, Any]:
        return {"output": {"event": "message", "id": "", "data": value}}

    def problem(self, trigger: Trigger) -> str | None:
        return self.service.triggers.problem_of_secrets(
            trigger.data.url, trigger.data.secret_headers
        )

    async def listen(self, trigger: Trigger, deliveries: Deliveries) -> None:
        last_id, backoff_s = trigger.position, _FIRST_BACKOFF_S
        while True:
            try:
                data = trigger.data
                events = self.service.triggers.read_event_stream(
                    data.url, data.headers, data.secret_headers, last_id
                )
                async with aclosing(events) as stream:
                    async for event in stream:
                        backoff_s = _FIRST_BACKOFF_S
                        await self._process(trigger, deliveries, event)
                        if event.id != last_id:
                            last_id = event.id
                            await deliveries.set_position(last_id)
            except EventStreamEnded:
                _log.info("trigger %s: the stream has ended", trigger.trigger_id)
                await asyncio.get_running_loop().create_future()  # until the flow changes
            except PlanwaveError as error:
                _log.warning("trigger %s: %s", trigger.trigger_id, error)
            await asyncio.sleep(backoff_s)
            backoff_s = min(backoff_s * 2, _LONGEST_BACKOFF_S)

    async def _process(self, trigger: Trigger, deliveries: Deliveries, event: StreamEvent) -> None:
        if trigger.data.events and event.event not in trigger.data.events:
            return
        while (
            len(running := await running_deliveries(self.service, trigger))
            >= trigger.data.max_parallel
        ):
            async for _ in self.service.executions.watch(running[-1].execution_id):
                pass
        value = {"event": event.event, "id": event.id, "data": self._parsed(event.data)}
        await deliveries.start(_key(event), {"output": value})

    def _parsed(self, data: str) -> Any:
        try:
            depth = self.service.limits.json_depth
            return read_payload("application/json", data.encode(), depth)
        except InputError:
            return data.replace("\0", "")


def _key(event: StreamEvent) -> str:
    """Return what identifies an event; one without an id of its own is a new one."""
    if not event.has_own_id:
        return new_id()
    if len(event.id) > _LONGEST_KEY or event.id.startswith(TEST_PREFIX):
        return sha256(event.id.encode(errors="replace")).hexdigest()
    return event.id or new_id()
