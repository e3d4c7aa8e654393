"""Numbers events, makes a batch durable, then tells everyone who listens."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from planwave.errors import NodeError
from planwave.events import Event
from planwave.executor.driver.subscription import Subscription
from planwave.executor.ports import Journal
from planwave.executor.state import Attempt

_new_event: Callable[[type[Event], tuple[Any, ...]], Event] = tuple[Any, ...].__new__
"""Makes an event of its fields in order without the named tuple's own constructor, which costs as
much again; there are several events for each node."""


_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half a surrogate pair, which UTF-8 cannot hold."""


class Publisher:
    """The only place that assigns ``seq``; see ``run.py`` for the arguments."""

    __slots__ = (
        "_at", "_journal", "_now", "_on_events", "_subscribers",
        "durable", "epoch", "execution_id", "pending", "seq",
    )  # fmt: skip

    def __init__(
        self,
        execution_id: str,
        last_seq: int,
        journal: Journal | None,
        epoch: int,
        on_events: Callable[[list[Event]], None] | None,
        now: Callable[[], str],
    ) -> None:
        self.execution_id = execution_id
        self.seq = last_seq
        self.pending: list[Event] = []
        self._journal, self.epoch = journal, epoch
        self.durable = journal is not None
        self._on_events = on_events
        self._now = now
        self._at = now()
        self._subscribers: list[Subscription] = []

    def time(self) -> str:
        """Give the UTC time now, as events carry it."""
        return self._now()

    def subscribe(self) -> Subscription:
        """Give a listener that gets every event published from now on."""
        subscription = Subscription(self._forget)
        self._subscribers.append(subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._subscribers:
            self._subscribers.remove(subscription)

    def emit(
        self,
        event_type: str,
        data: dict[str, Any],
        path: str | None = None,
        attempt: int | None = None,
    ) -> None:
        """Add an event to this turn's batch; all events of a batch share one time."""
        pending = self.pending
        if not pending:
            self._at = self._now()
        self.seq = seq = self.seq + 1
        pending.append(
            _new_event(Event, (self.execution_id, seq, self._at, event_type, path, attempt, data))
        )

    def drain(self) -> list[Event]:
        """Give this turn's batch and begin a new one."""
        events, self.pending = self.pending, []
        return events

    async def append(self, events: list[Event]) -> None:
        """Make a batch durable."""
        if self._journal is not None:
            await self._journal.append(self.execution_id, self.epoch, events)

    def publish(self, events: list[Event]) -> None:
        """Tell everyone who listens; the batch is durable by now, or has nowhere to be."""
        if self._on_events is not None:
            self._on_events(events)
        for subscription in self._subscribers:
            subscription.extend(events)

    def publish_delta(self, attempt: Attempt, payload: Any) -> None:
        """Publish a piece of text at once: transient, unnumbered, never stored.

        Raises:
            NodeError: ``invalid-delta``, whether or not anybody listens.
        """
        try:
            text, kind = payload["text"], payload.get("kind", "text")
        except (AttributeError, LookupError, TypeError):
            text = kind = None
        if type(text) is not str or type(kind) is not str:
            text, kind = _delta_fields(payload, attempt)
        if not self._subscribers and self._on_events is None:
            return
        if not (text.isascii() and kind.isascii()):
            text, kind = _LONE_SURROGATE.sub("\ufffd", text), _LONE_SURROGATE.sub("\ufffd", kind)
        offsets = attempt.stream_offsets
        if offsets is None:
            offsets = attempt.stream_offsets = {}
        offset = offsets.get(kind, 0)
        offsets[kind] = offset + len(text)
        data = {"kind": kind, "text": text, "offset": offset}
        event = Event(
            self.execution_id, 0, self._now(), "node.delta", attempt.path, attempt.number, data
        )
        if self._on_events is not None:
            self._on_events([event])
        for subscription in self._subscribers:
            subscription.put_batched(event)

    def close(self) -> None:
        """End every listener's iteration once it has read all there is."""
        for subscription in self._subscribers:
            subscription.close()
        self._subscribers.clear()


def _delta_fields(payload: Any, attempt: Attempt) -> tuple[str, str]:
    """Give the text and kind of odd streamed data, or say what is wrong with it."""
    text = kind = None
    if not isinstance(payload, Mapping):
        fault = f"a {type(payload).__name__} instead of an object"
    else:
        given = cast("Mapping[str, Any]", payload)
        text, kind = given.get("text"), given.get("kind", "text")
        fault = f"a kind that is a {type(kind).__name__}"
        if "text" not in given:
            fault = "no text"
        elif not isinstance(text, str):
            fault = f"text that is a {type(text).__name__}"
    if isinstance(text, str) and isinstance(kind, str):
        return text, kind
    raise NodeError(
        f"node {attempt.path!r} streamed {fault}",
        code="invalid-delta",
        hint='the data of a delta event are {"text": "…", "kind"?: "…"}',
    )
