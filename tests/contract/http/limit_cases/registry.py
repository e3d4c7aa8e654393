"""The registry of limit cases, and what several cases share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import httpx2

from planwave.api.app import create_app
from planwave.errors import PlanwaveError
from planwave.events import Event
from planwave.graph.model import DataValue, Graph, Node
from planwave.graph.protocols import ExecutionResult
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from tests.support.graph.builders import make_graph, make_plan
from tests.support.server.in_process_client import asgi_client
from tests.support.service.dependencies import dependencies


class Refusal(NamedTuple):
    """How an attempt was refused: the code and the whole message."""

    code: str
    text: str = ""


Attempt = Callable[[Limits, Any], Awaitable[Refusal | None]]


@dataclass(frozen=True)
class Case:
    """How a limit is tested.

    Attributes:
        attempt: Uses an amount under these limits; returns the refusal, or None.
        value: The value of the limit.
        at: The largest amount that is allowed.
        past: An amount over the limit.
        code: The code of the refusal.
        mentions: Texts in the message of the refusal.
        more: Other limits that the attempt needs.
        virtual: Whether the attempt runs in virtual time.
    """

    attempt: Attempt
    value: Any
    at: Any
    past: Any
    code: str
    mentions: tuple[str, ...]
    more: dict[str, Any]
    virtual: bool


CASES: Final[dict[str, Case]] = {}


def case(
    name: str,
    value: Any,
    *,
    at: Any = None,
    past: Any = None,
    code: str = "limit-exceeded",
    mentions: Sequence[str] | None = None,
    virtual: bool = False,
    **more: Any,
) -> Callable[[Attempt], Attempt]:
    """Register a function as the case of a limit.

    By default its refusal mentions the limit, its value and the amount.
    """
    most, over = value if at is None else at, value + 1 if past is None else past

    def register(attempt: Attempt) -> Attempt:
        assert name not in CASES
        texts = (name, f"{value:.12g}", f"{over:.12g}") if mentions is None else tuple(mentions)
        CASES[name] = Case(attempt, value, most, over, code, texts, more, virtual)
        return attempt

    return register


def refusal_of(error: PlanwaveError) -> Refusal:
    return Refusal(error.code, f"{error.message} {error.hint}")


def refusal_in_diagnostics(found: Sequence[Any]) -> Refusal | None:
    first = next((each for each in found if each.severity == "error"), None)
    return None if first is None else Refusal(first.code, f"{first.message} {first.hint}")


class SlowNode:
    """A node type that takes some seconds and counts how many run at once."""

    node_type = "takes"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = self.most = 0
        self.started = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.started.set()
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1
        return ExecutionResult({"output": DataValue("text", "done")})


class SizedNode:
    """A node type whose result has a number of bytes of JSON."""

    node_type = "gives"

    def __init__(self, size: int) -> None:
        self.size = size

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        return ExecutionResult({"output": DataValue("text", "x" * (self.size - 2))})


class TellingNode:
    """A node type that emits an event with a number of bytes of JSON."""

    node_type = "tells"

    def __init__(self, size: int) -> None:
        self.size = size

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        await context.record("told", "x" * (self.size - 2))
        return ExecutionResult({"output": DataValue("text", "")})


def graph_of(kind: str, *ids: str) -> Graph:
    return make_graph(*(Node(each, kind, each) for each in ids))


async def run_graph(
    limits: Limits, graph: Graph, *types: Any, inputs: Any = None, **more: Any
) -> list[Event]:
    """Run a graph to its end; give its events."""
    parts = dependencies(types=types, limits=limits, **more)
    async with Service(parts) as service:
        record = await service.executions.execute(make_plan(graph), inputs=inputs)
        await service.executions.wait(record.execution_id)
        return list(await service.executions.events(record.execution_id))


def refusal_in_events(events: Sequence[Event], kind: str) -> Refusal | None:
    for event in events:
        if event.type == kind:
            error = event.data["error"]
            return Refusal(error["code"], f"{error['message']} {error.get('hint')}")
    return None


@asynccontextmanager
async def limited_client(limits: Limits) -> AsyncIterator[httpx2.AsyncClient]:
    app = create_app(Settings(limits=limits), lambda _: Service(dependencies(limits=limits)))
    async with asgi_client(app) as client:
        yield client


def refusal_in_response(answer: httpx2.Response) -> Refusal | None:
    if answer.is_success:
        return None
    problem = answer.json()
    if problem["code"] == "limit-exceeded":
        assert {"limit", "value", "met"} <= set(problem)
    return Refusal(problem["code"], json.dumps(problem))
