"""Node types that stream text or log lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent


def streaming_node(
    node_id: str, tokens: int = 20, pause_s: float | None = None, **more: Any
) -> Node:
    """A node that streams so many tokens, optionally so many seconds apart."""
    data = {"tokens": tokens} if pause_s is None else {"tokens": tokens, "pause_s": pause_s}
    return Node(node_id, "tells", node_id, data=data, **more)


def streamed_text(node_id: str, tokens: int = 20) -> str:
    """The whole text of such a node."""
    return "".join(f"{node_id}{n}é " for n in range(tokens))


class StreamingNode:
    """A node type that streams its tokens one by one, with a pause before each."""

    node_type = "tells"

    def __init__(self, pause: Callable[[], Awaitable[Any]] = lambda: asyncio.sleep(0)) -> None:
        self._pause = pause

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> AsyncIterator[NodeEvent | ExecutionResult]:
        for n in range(data["tokens"]):
            await (asyncio.sleep(data["pause_s"]) if "pause_s" in data else self._pause())
            delta = {"text": f"{context.node_id}{n}é "}
            yield NodeEvent(context.node_id, "tells", "delta", context.run_id, delta)
        text = streamed_text(context.node_id, data["tokens"])
        yield ExecutionResult({"output": DataValue("text", text)})


class LoggingNode:
    """A node type that logs so many long lines, ten of them every millisecond."""

    node_type = "chatty"

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> AsyncIterator[NodeEvent | ExecutionResult]:
        for n in range(data["logs"]):
            if n % 10 == 0:
                await asyncio.sleep(0.001)
            line = {"message": f"{n} " + "x" * data.get("length", 10_000)}
            yield NodeEvent(context.node_id, "chatty", "log", context.run_id, line)
        yield ExecutionResult({"output": DataValue("text", "done")})
