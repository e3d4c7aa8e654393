"""Streamed text of executions that another process drives: sent to the processes that watch, and never stored.

A process says which executions its subscribers watch, at once and again at intervals. Whoever drives one sends its
text in batches, and to somebody new from the beginning. A piece that is lost is made up for by the result of the node.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from planwave.events import Event
from planwave.ids import new_id
from planwave.service.streaming.delta_coalescing import coalesce_text
from planwave.service.streaming.status_messages import open_texts

if TYPE_CHECKING:
    from planwave.service.streaming.live_execution import LiveExecution
    from planwave.service.streaming.subscriptions import LiveExecutions
    from planwave.storage.notices import Notices

BATCH_S: Final = 0.05
"""How long text gathers before it is sent."""
WATCH_S: Final = 10.0
"""How often a process says again what it watches; after twice that time it watches no more."""
_PIECE: Final = 1_200
"""Characters of text in one note: with their escapes in JSON, and the names around, they fit."""


class DeltaRelay:
    """Sends the text of executions that are driven here, and receives that of the others.

    Args:
        notices: Passes notes to the other processes.
        live_executions: Those of this process.
    """

    def __init__(self, notices: Notices, live_executions: LiveExecutions) -> None:
        self._notices, self._live_executions = notices, live_executions
        self._me = new_id()
        self._watchers: dict[str, dict[str, float]] = {}
        self._pending: dict[str, list[Event]] = {}
        self._flush: asyncio.TimerHandle | None = None
        notices.subscribe("watch", self._receive_watch)
        notices.subscribe("deltas", self._receive)
        live_executions.on_subscribe = self._announce
        live_executions.on_unsubscribe = self._withdraw

    # -- who watches -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Say at intervals what is watched here, until cancelled."""
        while True:
            await asyncio.sleep(WATCH_S)
            for live in self._live_executions:
                if live.subscriber_count:
                    self._announce(live)
            self._forget_gone()

    def _announce(self, live: LiveExecution) -> None:
        if not live.is_over:
            self._notices.publish("watch", f"+ {self._me} {live.execution_id}")

    def _withdraw(self, live: LiveExecution) -> None:
        if not live.is_over and not live.subscriber_count:
            self._notices.publish("watch", f"- {self._me} {live.execution_id}")

    def _receive_watch(self, note: str) -> None:
        sign, watcher, execution_id = note.split(" ")
        if sign == "-":
            self._watchers.get(execution_id, {}).pop(watcher, None)
            return
        watchers = self._watchers.setdefault(execution_id, {})
        is_new = watcher not in watchers
        watchers[watcher] = asyncio.get_running_loop().time() + 2 * WATCH_S
        live = self._live_executions.get(execution_id)
        if is_new and live is not None and live.execution is not None and live.has_streamed:
            self._add(execution_id, open_texts(live.state))

    def _forget_gone(self) -> None:
        now = asyncio.get_running_loop().time()
        for execution_id, watchers in list(self._watchers.items()):
            present = {who: until for who, until in watchers.items() if until > now}
            if present:
                self._watchers[execution_id] = present
            else:
                del self._watchers[execution_id]

    # -- send --------------------------------------------------------------------------------------

    def add(self, execution_id: str, events: Sequence[Event]) -> None:
        """Send streamed text of an execution that is driven here, if somebody watches it elsewhere."""
        if execution_id in self._watchers:
            self._add(execution_id, events)

    def _add(self, execution_id: str, events: Sequence[Event]) -> None:
        self._pending.setdefault(execution_id, []).extend(events)
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(BATCH_S, self._send)

    def _send(self) -> None:
        self._flush = None
        pending, self._pending = self._pending, {}
        for execution_id, events in pending.items():
            for event in coalesce_text(events):
                for note in _notes(execution_id, event):
                    self._notices.publish("deltas", note)

    # -- receive -----------------------------------------------------------------------------------

    def _receive(self, note: str) -> None:
        execution_id, at, path, attempt, data = json.loads(note)
        live = self._live_executions.get(execution_id)
        if live is not None and live.execution is None and live.subscriber_count:
            live.publish([Event(execution_id, 0, at, "node.delta", path, attempt, data)])


def _notes(execution_id: str, event: Event) -> Iterator[str]:
    """Yield the notes of one piece of text."""
    data: Mapping[str, Any] = event.data
    text: str = data["text"]
    for start in range(0, len(text), _PIECE):
        piece = {
            "kind": data["kind"],
            "text": text[start : start + _PIECE],
            "offset": data["offset"] + start,
        }
        yield json.dumps(
            [execution_id, event.at, event.path, event.attempt, piece], ensure_ascii=False
        )
