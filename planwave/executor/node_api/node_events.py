"""Events that nodes emit while they run: of generators, ``context.emit`` and ``context.record``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from planwave.executor.messages import NodeEmitted
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.own_work import OwnWork
from planwave.executor.state import DONE, Attempt
from planwave.graph.model import Json
from planwave.graph.protocols import NodeEvent

DELTA: Final = "delta"
"""``event_type`` of a piece of text, which is streamed and not stored."""


class NodeEvents:
    """The events of the nodes of one execution.

    Args:
        execution_id: Its id.
        mailbox: Gets the events that are stored.
        redact: Returns JSON without secrets.
        publish_delta: Publishes a piece of streamed text at once; it is not stored.
    """

    def __init__(
        self,
        execution_id: str,
        mailbox: Mailbox,
        redact: Callable[[Json], Json],
        publish_delta: Callable[[Attempt, Json], None],
    ) -> None:
        self._execution_id, self._mailbox = execution_id, mailbox
        self._redact, self._publish_delta = redact, publish_delta

    def add(self, attempt: Attempt, event: NodeEvent) -> None:
        """Emit an event; one of an attempt that has ended is dropped."""
        if attempt.phase is DONE:
            return
        data = self._redact(event.data)
        if data is not event.data:
            event = event._replace(data=data)
        if event.event_type == DELTA:
            self._publish_delta(attempt, event.data)
        else:
            self._mailbox.post(NodeEmitted(attempt, event))

    def emit(
        self, attempt: Attempt, loop: asyncio.AbstractEventLoop, kind: str, data: Json
    ) -> None:
        """Emit an event at once, from any thread; see ``FlowContext.emit``."""
        event = self._event(attempt, kind, data)
        if _running_loop() is loop:
            self.add(attempt, event)
        else:
            loop.call_soon_threadsafe(self.add, attempt, event)

    async def record(self, attempt: Attempt, kind: str, data: Json) -> None:
        """Emit an event and return once it is durable; see ``FlowContext.record``."""
        if attempt.phase is DONE:
            raise attempt.ended_error()
        reply, stored = self._mailbox.expect_reply()
        with OwnWork(attempt, self._mailbox):
            event = self._event(attempt, kind, self._redact(data))
            self._mailbox.post(NodeEmitted(attempt, event, reply))
            try:
                await stored
            finally:
                self._mailbox.forget(reply)

    def _event(self, attempt: Attempt, kind: str, data: Json) -> NodeEvent:
        node = attempt.graph_run.program.steps[attempt.node].node
        return NodeEvent(node.id, node.type, kind, self._execution_id, data)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # a thread without one
        return None
