"""Node types that a test controls: one that runs until it is released, one that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, FlowContext


class HeldNode:
    """A node type that signals its start and waits until the test releases it."""

    node_type = "held"

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        self.started.set()
        await self.release.wait()
        return ExecutionResult({"output": DataValue("text", f"{context.node_id} let go")})


class FailingNode:
    """A node type that fails."""

    node_type = "broken"

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        raise ValueError("it broke")
