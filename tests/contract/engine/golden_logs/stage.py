"""Where the executions of the golden logs are run: a service over memory whose time is virtual.

Only what a user of planwave may rely on is used: the service, graph documents, node types. So the
logs stay the same however the executor is built inside.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from planwave.errors import NodeError
from planwave.events import TERMINAL, Event, execution_logs, fold
from planwave.events.logs.typed_log import execution_log_entries
from planwave.graph.model import DataValue, Port
from planwave.graph.protocols import ExecutionResult, NodeEvent, Suspension
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.planner.progress import ProgressListener
from planwave.planner.revised_plan import RevisedPlan, Revision, RevisionReading
from planwave.providers.protocols import CallScope
from planwave.service.service import Service
from planwave.storage.sql.store import Store
from tests.support.graph.builders import make_plan
from tests.support.nodes.nested_graphs import graph_document
from tests.support.service.dependencies import dependencies

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z| UTC)?")
_TOOK = re.compile(r"\(took \d+\.\d+s\)")
_CALL_TOOK = re.compile(r"^(call .*? in) [0-9.,]+ s\b")
"""How long a call took, at the end of its entry."""
_DURATIONS = frozenset({"duration_s", "own_time_s", "execution_time"})
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def act(node_id: str, kind: str = "act", policy: Any = None, **data: Any) -> dict[str, Any]:
    """Return a node of a graph document."""
    node = {"id": node_id, "type": kind, "data": data}
    return node if policy is None else {**node, "policy": policy}


class Act:
    """Behaves as its data say.

    ``fails`` so many times, takes ``seconds``, ``says`` events, ``spends`` tokens, computes a value with
    ``once``, ``runs`` nested graphs, suspends with the request ``asks``, returns ``value`` on ``handle``; without a value what
    arrived, after its own id.
    """

    node_type = "act"
    template_fields = ("value",)
    inputs = (Port("{name}", multiple=True),)
    outputs = (Port("{name}"),)

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    async def execute(self, data: Mapping[str, Any], inputs: Any, context: Any) -> Any:
        if "seconds" in data:
            await asyncio.sleep(data["seconds"])
        if context.attempt <= data.get("fails", 0):
            raise NodeError("it broke", code="broken", retryable=data.get("retryable", True))
        values: list[Any] = []
        if "spends" in data:
            reservation = await context.budget.reserve({"tokens": data["spends"]})
            context.emit("usage", {"model": "m", "input_tokens": data["spends"]})
            reservation.release()
        if "once" in data:
            values.append(
                await context.runtime.once(data["once"], lambda: self._compute_once(data["once"]))
            )
        for key, graph in data.get("runs", {}).items():
            outputs = await context.runtime.run_graph(key, read_graph(graph)[0], {})
            values.append({name: handles["output"].value for name, handles in outputs.items()})
        if "asks" in data:
            return Suspension(
                data["asks"], ["left", *values], data.get("waits_s"), data.get("else")
            )
        return self._result(data, inputs, context, values)

    async def resume(
        self, data: Mapping[str, Any], inputs: Any, context: Any, state: Any, answer: Any
    ) -> Any:
        return self._result(data, inputs, context, [state, answer])

    async def _compute_once(self, key: str) -> str:
        self.calls[key] += 1
        return f"{key} {self.calls[key]}"

    def _result(self, data: Any, inputs: Any, context: Any, values: list[Any]) -> ExecutionResult:
        events = [
            NodeEvent(context.node_id, self.node_type, kind, context.run_id, what)
            for kind, what in data.get("says", ())
        ]
        arrived = [each.value.value for each in inputs.arrivals]
        value = data.get("value", [context.node_id, *arrived, *values])
        outputs = {data.get("handle", "output"): DataValue("any", value)}
        return ExecutionResult({} if data.get("gives_nothing") else outputs, events)


class ActOnce(Act):
    """The same, with an effect on the world that must not happen twice."""

    node_type = "act_once"
    effect = "once"


class Odd:
    """Returns an invalid result."""

    node_type = "odd"

    async def execute(self, data: Mapping[str, Any], inputs: Any, context: Any) -> Any:
        if data["gives"] == "nothing":
            return None
        handle = "other" if data["gives"] == "handle" else "output"
        value = {1, 2} if data["gives"] == "a set" else (1, "\0")
        return ExecutionResult({handle: DataValue("any", value)})


class Talks:
    """Streams text, then returns it."""

    node_type = "talks"

    async def execute(
        self, data: Mapping[str, Any], inputs: Any, context: Any
    ) -> AsyncGenerator[NodeEvent | ExecutionResult]:
        for text in ("Hello", ", ", "world"):
            await asyncio.sleep(1)
            yield NodeEvent(context.node_id, "talks", "delta", context.run_id, {"text": text})
        yield ExecutionResult({"output": DataValue("text", "Hello, world")})


def outliving(store: Store) -> Store:
    """Have a store outlive the services over it, as a directory does; return it."""

    async def stay_open() -> None:
        return None

    store.close = stay_open  # pyright: ignore[reportAttributeAccessIssue]
    return store


@dataclass
class Stage:
    """One store, the services that use it one after the other, and the executions to compare."""

    store: Store
    types: tuple[Any, ...] = field(default_factory=lambda: (Act(), ActOnce(), Odd(), Talks()))
    execution_ids: list[str] = field(default_factory=list[str])
    away_s: float = 0.0
    node_services: Callable[[str], Any] = lambda _: None
    planner: Any = None
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @asynccontextmanager
    async def service(self) -> AsyncGenerator[Service]:
        """Open a service; leaving it cuts off what runs, as the end of its process does."""
        parts = dependencies(
            types=self.types, store=self.store, now=self._now, node_services=self.node_services,
            **({} if self.planner is None else {"planner": self.planner}),
        )  # fmt: skip
        async with Service(parts) as service:
            try:
                yield service
            finally:
                await service.drain(0)

    async def begin(self, service: Service, graph: Mapping[str, Any], **how: Any) -> str:
        """Execute a graph and compare its execution."""
        plan = make_plan(read_graph(graph)[0], new_id())
        self.execution_ids.append((await service.executions.execute(plan, **how)).execution_id)
        return self.execution_ids[-1]

    def _now(self) -> datetime:
        return _BEGAN + timedelta(seconds=self.loop.time() + self.away_s)


class Rewrites:
    """A planner that changes running plans to these graphs, one a request, and then no more."""

    def __init__(self, *graphs: Mapping[str, Any]) -> None:
        self._graphs = graphs

    def require_reviser(self, provider: str | None, model: str | None) -> None:
        """Any model can."""

    async def revise(
        self,
        plan: RevisedPlan,
        words: str,
        provider: str,
        model: str,
        *,
        on_progress: ProgressListener,
        scope: CallScope,
    ) -> Revision:
        graph, answer = None, "nothing can help"
        if scope.attempt <= len(self._graphs):
            graph, answer = read_graph(self._graphs[scope.attempt - 1])[0], "goes another way"
        reading = RevisionReading("", answer, (), graph and plan.content, graph)
        usage = {"input_tokens": 30, "output_tokens": 12, "cost_usd": 0.5}
        return Revision(reading, provider, model, [{"usage": usage}])


async def seen(
    service: Service, execution_id: str, kind: str, path: str | None = None, count: int = 1
) -> Event:
    """Wait for an event."""
    async for event in service.executions.watch(execution_id):
        if event.type == kind and path in (None, event.path):
            count -= 1
            if not count:
                return event
    raise AssertionError(f"{kind} of {path} never came")


async def ended(service: Service, execution_id: str) -> None:
    """Wait for the end of an execution."""
    async for event in service.executions.watch(execution_id):
        if event.type in TERMINAL:
            return
    raise AssertionError("it never ended")


async def answer(service: Service, execution_id: str, path: str | None, value: Any) -> str:
    """Answer what a node asks, or without a path the execution; return the id of the execution."""
    (request,) = [r for r in await service.executions.requests(execution_id) if r.path == path]
    return (await service.executions.answer(execution_id, request.request_id, value)).execution_id


def written(events: list[Event], known: dict[str, str]) -> dict[str, Any]:
    """Return events, logs and state of an execution without times, durations and ids."""
    document = {
        "events": [[e.type, e.path, e.attempt, e.data] for e in events],
        "text_log": execution_logs(events),
        "typed_log": [
            each._replace(content=_CALL_TOOK.sub(r"\1 <seconds>", each.content)).as_json()
            for each in execution_log_entries(events)
        ],
        "state": fold(events).as_json(),
    }
    return _plain(json.loads(json.dumps(document)), known)


def _plain(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            _plain(name, known): "<seconds>"
            if name in _DURATIONS and isinstance(each, int | float)
            else _plain(each, known)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_plain(each, known) for each in value]
    if not isinstance(value, str):
        return value

    def name(found: re.Match[str]) -> str:
        return known.setdefault(found[0], f"<id {len(known) + 1}>")

    return _TOOK.sub("(took <seconds>)", _TIME.sub("<time>", _UUID.sub(name, value)))


__all__ = ["Stage", "act", "answer", "ended", "graph_document", "seen", "written"]
