"""What a client keeps of an event stream over all its connections, with checks for gaps and repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planwave.events import TERMINAL, Event


class StreamChecker:
    """What a client keeps over all its connections: how far it is, and text by offset.

    Attributes:
        cursor: The last event it knows; every one before it came once and in its turn.
        last_type: The type of that event.
        texts: What was streamed, by node path.
        deltas: How many pieces it came in.
    """

    def __init__(self, after: int = 0) -> None:
        self.cursor = after
        self.last_type = ""
        self.texts: dict[str, str] = {}
        self.deltas = 0
        self._open_texts: set[str] = set()

    @property
    def is_done(self) -> bool:
        """Whether the end of the stream was received."""
        return self.last_type in TERMINAL

    def reconnected(self) -> None:
        """A new connection: each open text comes whole once more."""
        self._open_texts = set()

    def accept(self, event: Event | Mapping[str, Any]) -> None:
        """Keep one event, and insist that none is missing, doubled or out of place."""
        received = event.as_json() if isinstance(event, Event) else event
        data = received["data"]
        if received["type"] != "node.delta":
            assert received["seq"] == self.cursor + 1
            self.cursor, self.last_type = received["seq"], received["type"]
            if self.last_type == "node.completed" and (whole := self.texts.get(received["path"])):
                assert data["outputs"]["output"]["value"] == whole, "received after its node's end"
            return
        self.deltas += 1
        path, offset = received["path"], data["offset"]
        known = self.texts.get(path, "")
        assert offset == (len(known) if path in self._open_texts else 0)
        self._open_texts.add(path)
        assert data["text"].startswith(known[offset:])
        self.texts[path] = known[:offset] + data["text"]
