"""Behaviors of generic nodes that many tests of the driver need."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from planwave.errors import NodeError
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import Suspension
from tests.support.engine.generic_nodes import Behavior, result_with


async def forever(*_: Any) -> Any:
    await asyncio.Event().wait()


def returns_after(seconds: float, value: Any = None) -> Behavior:
    """A node that works for some seconds, then returns a value; also when it is resumed."""

    async def act(*_: Any) -> Any:
        await asyncio.sleep(seconds)
        return result_with(value)

    return act


def fails_with(
    message: str = "boom", *, retryable: bool = False, after_s: float | None = None
) -> Behavior:
    """A node that fails in every attempt."""

    async def act(*_: Any) -> Any:
        if after_s is not None:
            await asyncio.sleep(after_s)
        raise NodeError(message, retryable=retryable)

    return act


def asks(
    state: Json = None, timeout_s: float | None = None, timeout_answer: Json = None
) -> Behavior:
    """A node that suspends with a request that names its path."""

    async def act(inputs: Any, context: Any) -> Any:
        return Suspension({"for": context.path}, state, timeout_s, timeout_answer)

    return act


def runs_graph(
    key: str, graph: Graph, inputs: Mapping[str, Mapping[str, Json]] | None = None, **variables: Any
) -> Behavior:
    """A node that runs a nested graph and returns the values of all its nodes."""

    async def act(_: Any, context: Any) -> Any:
        outputs = await context.runtime.run_graph(key, graph, inputs or {}, variables=variables)
        return result_with({n: {h: v.value for h, v in o.items()} for n, o in outputs.items()})

    return act
