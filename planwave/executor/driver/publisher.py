"""Make a batch of events durable, then publish it to every listener."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, cast

from planwave.errors import PermanentError
from planwave.events import Event
from planwave.executor.driver.subscription import Subscription
from planwave.executor.ports import Journal
from planwave.executor.state import Attempt
from planwave.graph.model import Json

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half a surrogate pair, which UTF-8 cannot hold."""


class Publisher:
    """The journal and the listeners of one execution; see ``Execution`` for the arguments."""

    __slots__ = (
        "_epoch", "_execution_id", "_journal", "_now", "_on_events", "_subscribers", "durable"
    )  # fmt: skip

    def __init__(
        self,
        execution_id: str,
        journal: Journal | None,
        epoch: int,
        on_events: Callable[[list[Event]], None] | None,
        now: Callable[[], str],
    ) -> None:
        self._execution_id, self._epoch = execution_id, epoch
        self._journal, self.durable = journal, journal is not None
        self._on_events, self._now = on_events, now
        self._subscribers: list[Subscription] = []

    def subscribe(self) -> Subscription:
        """Return a listener that gets every event published from now on."""
        subscription = Subscription(self._forget)
        self._subscribers.append(subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._subscribers:
            self._subscribers.remove(subscription)

    async def append(self, events: list[Event]) -> None:
        """Make a batch durable."""
        if self._journal is not None:
            await self._journal.append(self._execution_id, self._epoch, events)

    def publish(self, events: list[Event]) -> None:
        """Publish a batch that is durable, or that is not to be stored."""
        if self._on_events is not None:
            self._on_events(events)
        for subscription in self._subscribers:
            subscription.extend(events)

    def publish_delta(self, attempt: Attempt, payload: Json) -> None:
        """Publish a piece of text at once: transient, unnumbered, never stored.

        Raises:
            NodeError: ``invalid-delta``, even without subscribers.
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
            self._execution_id, 0, self._now(), "node.delta", attempt.path, attempt.number, data
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


def _delta_fields(payload: Json, attempt: Attempt) -> tuple[str, str]:
    """Return the text and kind of unusual streamed data, or raise what is wrong with it."""
    text = kind = None
    if not isinstance(payload, Mapping):
        fault = f"a {type(payload).__name__} instead of an object"
    else:
        given = cast("Mapping[str, Json]", payload)
        text, kind = given.get("text"), given.get("kind", "text")
        fault = f"a kind that is a {type(kind).__name__}"
        if "text" not in given:
            fault = "no text"
        elif not isinstance(text, str):
            fault = f"text that is a {type(text).__name__}"
    if isinstance(text, str) and isinstance(kind, str):
        return text, kind
    raise PermanentError(
        f"node {attempt.path!r} streamed {fault}",
        code="invalid-delta",
        hint='the data of a delta event are {"text": "…", "kind"?: "…"}',
    )
