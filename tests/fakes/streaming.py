"""A node that streams text, and a client that keeps what it is told as a client should."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from planwave.events import TERMINAL, Event
from planwave.graph.capabilities import ExecutionResult, FlowContext, NodeEvent
from planwave.graph.model import Node
from planwave.graph.values import DataValue, Inputs


def streaming_node(node_id: str, tokens: int = 20, pause_s: float | None = None, **more: Any) -> Node:
    """A node that streams so many tokens, so many seconds apart where that is said."""
    data = {"tokens": tokens} if pause_s is None else {"tokens": tokens, "pause_s": pause_s}
    return Node(node_id, "tells", node_id, data=data, **more)


def streamed_text(node_id: str, tokens: int = 20) -> str:
    """The whole of what such a node says."""
    return "".join(f"{node_id}{n}é " for n in range(tokens))


class StreamingNode:
    """A node type that says its tokens one by one, pausing before each."""

    node_type = "tells"

    def __init__(self, pause: Callable[[], Awaitable[Any]] = lambda: asyncio.sleep(0)) -> None:
        self._pause = pause

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> AsyncIterator[NodeEvent | ExecutionResult]:
        for n in range(data["tokens"]):
            await (asyncio.sleep(data["pause_s"]) if "pause_s" in data else self._pause())
            said = {"text": f"{context.node_id}{n}é "}
            yield NodeEvent(context.node_id, "tells", "delta", context.run_id, said)
        told = streamed_text(context.node_id, data["tokens"])
        yield ExecutionResult({"output": DataValue("text", told)})


class LoggingNode:
    """A node type that logs so many long lines, ten of them every millisecond."""

    node_type = "chatty"

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> AsyncIterator[NodeEvent | ExecutionResult]:
        for n in range(data["logs"]):
            if n % 10 == 0:
                await asyncio.sleep(0.001)
            said = {"message": f"{n} " + "x" * data.get("length", 10_000)}
            yield NodeEvent(context.node_id, "chatty", "log", context.run_id, said)
        yield ExecutionResult({"output": DataValue("text", "done")})


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
        """Whether it was told the end."""
        return self.last_type in TERMINAL

    def reconnected(self) -> None:
        """A new connection: each open text comes whole once more."""
        self._open_texts = set()

    def accept(self, event: Event | Mapping[str, Any]) -> None:
        """Keep one event, and insist that none is missing, doubled or out of place."""
        told = event.as_json() if isinstance(event, Event) else event
        data = told["data"]
        if told["type"] != "node.delta":
            assert told["seq"] == self.cursor + 1
            self.cursor, self.last_type = told["seq"], told["type"]
            if self.last_type == "node.completed" and (whole := self.texts.get(told["path"])):
                assert data["outputs"]["output"]["value"] == whole, "told after its node's end"
            return
        self.deltas += 1
        path, offset = told["path"], data["offset"]
        known = self.texts.get(path, "")
        assert offset == (len(known) if path in self._open_texts else 0)
        self._open_texts.add(path)
        assert data["text"].startswith(known[offset:])
        self.texts[path] = known[:offset] + data["text"]
