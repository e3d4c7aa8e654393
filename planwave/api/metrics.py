"""What ``GET /metrics`` tells: counted while it happens, written down when somebody asks.

:class:`PrometheusObserver` satisfies ``service.rooms.Observer``. It is told every event of every execution, so
what it does with one is a look-up and an addition (``tallies.py``). Each application has its own.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from importlib.metadata import version
from time import perf_counter
from typing import Final, NamedTuple

from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from starlette.types import Scope

from planwave.api.measures import Measures
from planwave.api.tallies import OTHER, Counts, Names, Spreads, buckets_of, gauge
from planwave.events import TERMINAL, Event
from planwave.graph.model import Graph
from planwave.providers.protocols import CallReport
from planwave.service.service import Service, ServiceLoad
from planwave.storage.records import StoreStats

_IDLE: Final = ServiceLoad(running=0, queued=0, is_draining=False, watchers=0)
_MOST_TYPES: Final = 100
_MOST_MODELS: Final = 100
_ENDED_STATUSES: Final = ("completed", "failed", "skipped", "blocked", "cancelled")
_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"}
)


class _NodeTypeMetrics:
    """What is counted of nodes of one type; there from the first one on, at 0."""

    __slots__ = ("retried", "settled", "time")

    def __init__(self, name: str, measures: Measures) -> None:
        self.settled = {f"node.{s}": measures.nodes.of((name, s)) for s in _ENDED_STATUSES}
        self.retried = measures.node_retries.of((name,))
        self.time = measures.node_time.of((name,))


class _RunningExecution(NamedTuple):
    """An execution that runs: the kind of each node by its path, and when it started."""

    node_types: dict[str | None, _NodeTypeMetrics]
    started_at: float


class PrometheusObserver:
    """Counts what one service does, and what is asked of it over HTTP."""

    def __init__(self) -> None:
        self.measures = Measures()
        self._service: Service | None = None
        self._running: dict[str, _RunningExecution] = {}
        self._types, self._models = Names(_MOST_TYPES), Names(_MOST_MODELS)
        self._kinds: dict[str, _NodeTypeMetrics] = {}
        self._recorders: dict[str, Callable[[Event], None]] = {
            **dict.fromkeys(TERMINAL, self._execution_ended),
            "node.completed": self._node_ran,
            "node.failed": self._node_ran,
            "node.skipped": self._node_settled,
            "node.blocked": self._node_settled,
            "node.cancelled": self._node_settled,
            "node.retrying": self._node_retried,
        }

    def attach(self, service: Service) -> None:
        """Count what a service does from now on."""
        self._service = service
        service.set_observer(self)

    async def text(self, accept: str) -> tuple[bytes, str]:
        """Write everything down as it is now, in the format that an ``Accept`` header asks for.

        Returns:
            The text and its media type: Prometheus' own, or OpenMetrics.
        """
        encode, media_type = choose_encoder(accept)
        taken = _CollectedMetrics(tuple(self.collect()))
        # Some 10 ms for thousands of lines, which executions should not have to wait for.
        return await asyncio.to_thread(encode, taken), media_type

    # -- the observer ------------------------------------------------------------------------------

    def started(self, execution_id: str, graph: Graph, waited_s: float) -> None:
        self.measures.started.add()
        self.measures.queue_time.of().note(waited_s)
        kinds: dict[str | None, _NodeTypeMetrics] = {
            node.id: self._kind(node.type) for node in graph.nodes
        }
        self._running[execution_id] = _RunningExecution(kinds, perf_counter())

    def published(self, events: Sequence[Event]) -> None:
        takes = self._recorders
        for event in events:
            take = takes.get(event.type)
            if take is not None:
                take(event)

    def execution_left(self, execution_id: str) -> None:
        self._running.pop(execution_id, None)

    def link_cache_used(self, hits: int, misses: int) -> None:
        self.measures.link_hits.add(amount=hits)
        self.measures.link_misses.add(amount=misses)

    def delivered(self, lag_s: float) -> None:
        self.measures.lag.of().note(lag_s)

    def subscriber_dropped(self) -> None:
        self.measures.drops.add()

    def loop_lagged(self, lag_s: float) -> None:
        """Take in how late the event loop was; called in the watchdog's thread, by nobody else."""
        self.measures.loop_lag.of().note(lag_s)

    def model_called(self, call: CallReport) -> None:
        provider, model = call.provider, self._models.of(call.model)
        self.measures.calls.add((provider, model, call.outcome))
        if call.outcome != "recorded":
            self.measures.call_time.of((provider, model)).note(call.duration_s)
        if call.will_retry:
            self.measures.call_retries.add((provider, model))
        if call.usage is not None:
            self.measures.tokens.add((provider, model, "input"), call.usage.input_tokens)
            self.measures.tokens.add((provider, model, "output"), call.usage.output_tokens)
            self.measures.cost.add((provider, model), call.usage.cost_usd or 0.0)

    def _execution_ended(self, event: Event) -> None:
        status = event.type.removeprefix("execution.")
        self.measures.ended.add((status,))
        running = self._running.get(event.execution_id)
        if running is not None:
            self.measures.execution_time.of((status,)).note(perf_counter() - running.started_at)

    def _node_ran(self, event: Event) -> None:
        data = event.data
        if "given" not in data:  # else it was settled from outside
            kind = self._kind_of(event)
            kind.settled[event.type].amount += 1
            kind.time.note(data.get("duration_s", 0.0))

    def _node_settled(self, event: Event) -> None:
        if event.execution_id in self._running:  # else it was ended before any node could be
            self._kind_of(event).settled[event.type].amount += 1

    def _node_retried(self, event: Event) -> None:
        self._kind_of(event).retried.amount += 1

    def _kind_of(self, event: Event) -> _NodeTypeMetrics:
        """Give the kind of the node an event is about; nested nodes are not told apart."""
        running = self._running.get(event.execution_id)
        found = None if running is None else running.node_types.get(event.path)
        return self._kind(OTHER) if found is None else found

    def _kind(self, node_type: str) -> _NodeTypeMetrics:
        kind = self._kinds.get(node_type)
        if kind is None:
            name = self._types.of(node_type)
            kind = self._kinds.get(name) or _NodeTypeMetrics(name, self.measures)
            self._kinds[name] = kind
        return kind

    # -- requests ----------------------------------------------------------------------------------

    def request_answered(self, scope: Scope, status: int, took_s: float) -> None:
        """Count a request, by the template of its route: raw paths are endless."""
        route = getattr(scope.get("route"), "path_format", OTHER)
        method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
        if method not in _METHODS:
            method = OTHER
        self.measures.requests.add((route, method, str(status)))
        self.measures.request_time.of((route, method)).note(took_s)

    # -- telling -----------------------------------------------------------------------------------

    def collect(self) -> Iterator[Metric]:
        """Give everything that was counted, and how things are right now."""
        info = {"version": version("planwave"), "python": platform.python_version()}
        build = GaugeMetricFamily("planwave_build_info", "What runs; always 1.", labels=[*info])
        build.add_metric([*info.values()], 1)
        yield build
        yield from self._gauges()
        for each in fields(self.measures):
            counted: Counts | Spreads = getattr(self.measures, each.name)
            yield counted.family()

    def _gauges(self) -> Iterator[Metric]:
        service = self._service
        load = _IDLE if service is None else service.load
        use = StoreStats() if service is None else service.store_stats
        yield gauge("planwave_executions_running", "Executions that run.", load.running)
        yield gauge("planwave_executions_queued", "Executions that wait in the queue.", load.queued)
        yield gauge("planwave_watchers", "Watchers of executions.", load.watchers)
        bounds = [float(2**n) for n in range(len(use.commits) - 1)]
        commits = HistogramMetricFamily(
            "planwave_store_commit_writes",
            "Writes that shared a commit of the store; the count is the number of commits.",
        )
        commits.add_metric([], buckets_of(bounds, use.commits or (0,)), use.writes)
        yield commits


class _CollectedMetrics(NamedTuple):
    """What was collected at one moment; satisfies ``prometheus_client``'s ``Collector``."""

    families: tuple[Metric, ...]

    def collect(self) -> Iterable[Metric]:
        return self.families
