"""The events of an execution that the sender of a webhook may watch.

They say what every node does and gives, and its text while it is streamed; nothing of the graph, of
prompts, and of what went wrong.
"""

from __future__ import annotations

from typing import Any, Final

from planwave.api.streaming.sse import format_event
from planwave.events import Event
from planwave.events.types import MESSAGE
from planwave.jsonio import dumps_trusted
from planwave.service.streaming.subscriber_queue import EventBatch

_WITH_DATA: Final = frozenset({"node.completed", "node.delta"})
_WITHOUT_DATA: Final = frozenset(
    {
        "execution.started",
        "execution.paused",
        "execution.resumed",
        "execution.completed",
        "execution.failed",
        "execution.cancelled",
        "node.started",
        "node.retrying",
        "node.failed",
        "node.skipped",
        "node.blocked",
        "node.waiting",
        "node.answered",
        "node.cancelled",
    }
)


def format_public_batch(batch: EventBatch) -> bytes:
    """Return a batch as server-sent events, without what is not for senders."""
    return b"".join(filter(None, map(_format, batch.events)))


def _format(event: Event) -> bytes | None:
    shown: dict[str, Any] = {**event.as_json(), "data": {}}
    data: Any = event.data
    if event.type in _WITH_DATA:
        shown["data"] = {
            name: data[name] for name in ("outputs", "kind", "text", "offset") if name in data
        }
    elif event.type == "node.event" and data.get("event_type") == MESSAGE:
        shown["data"] = data
    elif event.type not in _WITHOUT_DATA:
        return None
    return format_event(event.type, dumps_trusted(shown), event.seq)
