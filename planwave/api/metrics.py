"""The metrics of ``GET /metrics``: Prometheus counters, gauges and histograms.

Each application has its own registry. Every event of every execution is counted, so the children of labels that events use are
looked up once for each node type.
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from starlette.types import Scope

from planwave.errors import StoreError
from planwave.events import TERMINAL, Event
from planwave.events.request_text import field_of, is_budget_request
from planwave.events.types import TOOL_CALL_ENDS
from planwave.service.dependencies import Observer
from planwave.service.service import Backlog, Service, ServiceLoad
from planwave.storage.records import StoreStats

if TYPE_CHECKING:
    from planwave.events import ExecutionState
    from planwave.providers.protocols import CallReport
    from planwave.service.triggers.trigger_service import Trigger
    from planwave.shapes.common import GraphDocument
    from planwave.storage.notifications import NotificationRecord

VERSION: Final = version("planwave")
OTHER: Final = "other"
"""The label value of every name beyond the bound of its ``BoundedLabel``."""
_IDLE: Final = ServiceLoad(running=0, queued=0, is_draining=False, subscribers=0, places=0)
_MAX_TYPES: Final = 100
_MAX_MODELS: Final = 100
_MAX_FLOWS: Final = 100
_MAX_KINDS: Final = 20
_MAX_CODES: Final = 100
_ENDED_STATUSES: Final = ("completed", "failed", "skipped", "blocked", "cancelled")
_METHODS: Final = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET"}
)
_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bucket bounds in seconds for work of the process itself."""
_LONG: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Bucket bounds in seconds for work that waits for models."""
_USERS: Final = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Bucket bounds in nodes."""

disable_created_metrics()  # a series with the start time beside each counter: twice the series


class BoundedLabel:
    """A label with at most ``limit`` distinct values; all later names become ``other``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._names: set[str] = set()

    def value(self, name: str) -> str:
        """Return the label value for a name."""
        if name in self._names:
            return name
        if len(self._names) >= self._limit:
            return OTHER
        self._names.add(name)
        return name


class _NodeTypeMetrics:
    """The counters of one node type; all exist, at 0, from its first node on."""

    __slots__ = ("duration", "retries", "settled")

    def __init__(self, name: str, metrics: PrometheusObserver) -> None:
        self.settled = {f"node.{s}": metrics.nodes.labels(name, s) for s in _ENDED_STATUSES}
        self.retries = metrics.node_retries.labels(name)
        self.duration = metrics.node_duration.labels(name)


class _RunningExecution(NamedTuple):
    """A running execution: the metrics of each node by its path, the start time, and its flow."""

    node_types: dict[str | None, _NodeTypeMetrics]
    started_at: float
    flow: str


class PrometheusObserver(Observer):
    """The metrics of one service and of the HTTP requests to it.

    Attributes:
        label_names: The labels of each metric.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.label_names: dict[str, tuple[str, ...]] = {}
        self._service: Service | None = None
        self._backlog = Backlog()
        self._running: dict[str, _RunningExecution] = {}
        self._types, self._models = BoundedLabel(_MAX_TYPES), BoundedLabel(_MAX_MODELS)
        self._flows, self._requests_of = BoundedLabel(_MAX_FLOWS), BoundedLabel(_MAX_KINDS)
        self._triggers, self._tool_kinds = BoundedLabel(_MAX_KINDS), BoundedLabel(_MAX_KINDS)
        self._tool_outcomes = BoundedLabel(_MAX_CODES)
        self._node_types: dict[str, _NodeTypeMetrics] = {}
        self._recorders: dict[str, Callable[[Event], None]] = {
            **dict.fromkeys(TERMINAL, self._execution_ended),
            "plan.revised": self._plan_revised,
            "node.completed": self._node_ran,
            "node.failed": self._node_ran,
            "node.skipped": self._node_settled,
            "node.blocked": self._node_settled,
            "node.cancelled": self._node_settled,
            "node.retrying": self._node_retried,
            "node.event": self._node_emitted,
            "execution.paused": self._execution_paused,
        }
        self._add_gauges()
        self._add_execution_metrics()
        self._add_node_metrics()
        self._add_provider_metrics()
        self._add_server_metrics()

    def _add_gauges(self) -> None:
        info = {"version": VERSION, "python": platform.python_version()}
        build = self._gauge("build_info", "Version of planwave and of Python; always 1.", *info)
        build.labels(**info).set(1)
        running = self._gauge("executions_running", "Running executions.")
        running.set_function(lambda: self._load.running)
        queued = self._gauge("executions_queued", "Executions in the queue of this process.")
        queued.set_function(lambda: self._load.queued)
        subscribers = self._gauge("subscribers", "Clients that receive the events of executions.")
        subscribers.set_function(lambda: self._load.subscribers)
        store = self._gauge("store_bytes", "Size of the database, without its write-ahead log.")
        store.set_function(lambda: self._backlog.stored.size)
        waiting = self._gauge(
            "executions_waiting",
            "Executions of the database that were accepted and have not begun, whichever process takes them.",
        )
        waiting.set_function(lambda: self._backlog.stored.waiting)
        self._waiting_for = self._gauge(
            "executions_waiting_for",
            "Executions that only processes with a capability can drive, and that none drives; local is the embedded model.",
            "capability",
        )
        self._waiting_age = self._gauge(
            "executions_waiting_age_seconds",
            "Time since the oldest of these was created; 0 without one.",
        )
        notifications = self._gauge(
            "notifications_queued", "Notifications that are to be sent, or sent again."
        )
        notifications.set_function(lambda: self._backlog.notifications)
        self._open_requests = self._gauge(
            "requests_open",
            "Requests that people have not answered: approval, plan-approval, plan-change, budget, interrupted …",
            "kind",
        )
        self._request_age = self._gauge(
            "request_age_seconds", "Time since the oldest of the open requests; 0 without one."
        )
        self.registry.register(_StoreCommits(self))

    def _add_execution_metrics(self) -> None:
        self._started = self._counter(
            "executions_started_total", "Executions that left the queue and began to run."
        )
        self._ended = self._counter(
            "executions_ended_total",
            "Executions that ended: completed, failed or cancelled, also before they ran.",
            "status",
            "flow",
        )
        self._queue_time = self._histogram(
            "execution_queue_seconds",
            "Time executions waited in the queue before they began to run.",
            _LONG,
        )
        self._execution_duration = self._histogram(
            "execution_duration_seconds",
            "Time from the start of executions to their end.",
            _LONG,
            "status",
            "flow",
        )
        self._budget_pauses = self._counter(
            "budget_pauses_total", "Executions that asked for a higher budget."
        )
        self._recoveries = self._counter(
            "recoveries_total",
            "Executions of an earlier process: resumed, or failed where they cannot be taken up.",
            "outcome",
        )

    def _add_node_metrics(self) -> None:
        self.nodes = self._counter(
            "nodes_total",
            "Nodes that ended: completed, failed, skipped, blocked or cancelled.",
            "type",
            "status",
        )
        self.node_duration = self._histogram(
            "node_duration_seconds",
            "Time of the last attempt of nodes that completed or failed.",
            _LONG,
            "type",
        )
        self.node_retries = self._counter(
            "node_retries_total", "Failed attempts of nodes that were followed by another.", "type"
        )

        self._tool_calls = self._counter(
            "tool_calls_total",
            "Calls of tools by agents: completed, or the code of the error.",
            "kind",
            "outcome",
        )
        self._tool_duration = self._histogram(
            "tool_call_duration_seconds",
            "Time of calls of tools, with the wait for their approval.",
            _LONG,
            "kind",
        )

    def _add_provider_metrics(self) -> None:
        model = ("provider", "model")
        self._calls = self._counter(
            "provider_calls_total",
            "Attempts at model calls by outcome: completed, recorded (answered from the store at "
            "no cost), cancelled, or the code of the error.",
            *model,
            "outcome",
        )
        self._call_duration = self._histogram(
            "provider_call_duration_seconds",
            "Time of attempts at model calls, without the wait for a free slot of the provider.",
            _LONG,
            *model,
        )
        self._first_token = self._histogram(
            "provider_first_token_seconds",
            "Time from the beginning of a model call to the first of its reply.",
            _LONG,
            *model,
        )
        self._call_retries = self._counter(
            "provider_retries_total",
            "Failed attempts at model calls that were followed by another.",
            *model,
        )
        self._tokens = self._counter(
            "provider_tokens_total",
            "Tokens of completed model calls: input or output; of the input, cache_read and cache_write.",
            *model,
            "direction",
        )
        self._cost = self._counter(
            "provider_cost_usd_total",
            "Price of completed model calls in US dollars; calls of unknown price add 0.",
            *model,
        )
        self._link_hits = self._counter(
            "link_cache_hits_total",
            "Links served from the cache; counted when their execution ends.",
        )
        self._link_misses = self._counter(
            "link_cache_misses_total",
            "Links that had to be built; counted when their execution ends.",
        )
        self._link_fan_out = self._histogram(
            "link_fan_out",
            "Nodes that used one object over links; counted when their execution ends.",
            _USERS,
        )

    def _add_server_metrics(self) -> None:
        self._event_lag = self._histogram(
            "event_lag_seconds",
            "Time from the moment events were durable until the last subscriber had them.",
            _SHORT,
        )
        self._loop_lag = self._histogram(
            "event_loop_lag_seconds",
            "Delay of a new callback on the event loop, sampled some times a second; while the loop "
            "is blocked, everything waits.",
            _SHORT,
        )
        self._dropped = self._counter(
            "subscribers_dropped_total", "Subscribers dropped because they fell too far behind."
        )
        self._deliveries = self._counter(
            "trigger_deliveries_total",
            "What triggers received: started, duplicate, rejected, missed, skipped or failed.",
            "kind",
            "outcome",
        )
        self._notifications = self._counter(
            "notifications_total",
            "Attempts to send notifications: delivered, pending (tried again later) or dead.",
            "outcome",
        )
        self._requests = self._counter(
            "http_requests_total",
            "HTTP requests by route; WebSockets as method WEBSOCKET, status 101 when accepted.",
            "route",
            "method",
            "status",
        )
        self._request_time = self._histogram(
            "http_request_duration_seconds",
            "Time until the response to a request began; streams continue after that.",
            _SHORT,
            "route",
            "method",
        )

    def _named(self, name: str, labels: tuple[str, ...]) -> str:
        full = f"planwave_{name}"
        self.label_names[full] = labels
        return full

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(self._named(name, labels), meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(self._named(name, labels), meaning, labels, registry=self.registry)

    def _histogram(
        self, name: str, meaning: str, buckets: Sequence[float], *labels: str
    ) -> Histogram:
        full = self._named(name, labels)
        return Histogram(full, meaning, labels, buckets=buckets, registry=self.registry)

    def attach(self, service: Service) -> None:
        """Observe a service."""
        self._service = service
        service.observe(self)

    def collect(self) -> Iterable[Metric]:
        """Return all metrics with their current values."""
        return self.registry.collect()

    async def text(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics as text in the format of an ``Accept`` header.

        Returns:
            The text and its media type: Prometheus' own, or OpenMetrics.
        """
        await self._read_backlog()
        encode, media_type = choose_encoder(accept)
        collected = _CollectedMetrics(tuple(self.collect()))
        # Encoding thousands of lines takes some 10 ms, which must not block the event loop.
        return await asyncio.to_thread(encode, collected), media_type

    async def _read_backlog(self) -> None:
        """Read what only the store knows; where it cannot be read, the last values stay."""
        if self._service is None:
            return
        with suppress(StoreError):
            self._backlog = await self._service.backlog()
        self._open_requests.clear()
        for request in self._backlog.requests:
            label = self._requests_of.value(_text(field_of(request.request, "kind")))
            self._open_requests.labels(label).inc()
        self._waiting_for.clear()
        for capability, count in self._backlog.waiting_for.items():
            self._waiting_for.labels(capability).set(count)
        oldest = min((request.since for request in self._backlog.requests), default=None)
        self._request_age.set(self._age_s(oldest))
        self._waiting_age.set(self._age_s(self._backlog.stored.oldest))

    def _age_s(self, since: str | None) -> float:
        if self._service is None or since is None:
            return 0.0
        age = self._service.now() - datetime.fromisoformat(since)
        return max(age.total_seconds(), 0.0)

    @property
    def _load(self) -> ServiceLoad:
        return _IDLE if self._service is None else self._service.load

    @property
    def store_stats(self) -> StoreStats:
        """The statistics of the service's store."""
        return StoreStats() if self._service is None else self._service.store_stats

    # -- the observer ------------------------------------------------------------------------------

    def started(self, state: ExecutionState, waited_s: float) -> None:
        self._started.inc()
        self._queue_time.observe(waited_s)
        graph: GraphDocument = state.graph or {"nodes": [], "edges": []}
        node_types: dict[str | None, _NodeTypeMetrics] = {
            node["id"]: self._node_type(node["type"]) for node in graph["nodes"]
        }
        flow = self._flows.value(state.flow or "")
        self._running[state.execution_id] = _RunningExecution(node_types, perf_counter(), flow)

    def published(self, events: Sequence[Event]) -> None:
        recorders = self._recorders
        for event in events:
            record = recorders.get(event.type)
            if record is not None:
                record(event)

    def execution_left(self, execution_id: str) -> None:
        self._running.pop(execution_id, None)

    def link_cache_used(self, hits: int, misses: int, fan_out: Mapping[int, int]) -> None:
        self._link_hits.inc(hits)
        self._link_misses.inc(misses)
        for users, artefacts in fan_out.items():
            for _ in range(artefacts):
                self._link_fan_out.observe(users)

    def delivered(self, lag_s: float) -> None:
        self._event_lag.observe(lag_s)

    def subscriber_dropped(self) -> None:
        self._dropped.inc()

    def loop_lagged(self, lag_s: float) -> None:
        """Record how late the event loop was; called in the thread of the event loop monitor."""
        self._loop_lag.observe(lag_s)

    def model_called(self, call: CallReport) -> None:
        provider, model = call.provider, self._models.value(call.model)
        self._calls.labels(provider, model, call.outcome).inc()
        if call.outcome != "recorded":
            self._call_duration.labels(provider, model).observe(call.duration_s)
        if call.first_token_s is not None:
            self._first_token.labels(provider, model).observe(call.first_token_s)
        if call.will_retry:
            self._call_retries.labels(provider, model).inc()
        if call.reply is not None:
            usage = call.reply.usage
            for direction, tokens in (
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
                ("cache_read", usage.cache_read_tokens),
                ("cache_write", usage.cache_write_tokens),
            ):
                self._tokens.labels(provider, model, direction).inc(tokens)
            self._cost.labels(provider, model).inc(usage.cost_usd or 0.0)

    def _execution_ended(self, event: Event) -> None:
        status = event.type.removeprefix("execution.")
        running = self._running.get(event.execution_id)
        flow = "" if running is None else running.flow
        self._ended.labels(status, flow).inc()
        if running is not None:
            duration_s = perf_counter() - running.started_at
            self._execution_duration.labels(status, flow).observe(duration_s)

    def _execution_paused(self, event: Event) -> None:
        if is_budget_request(event.data.get("request")):
            self._budget_pauses.inc()

    def _node_emitted(self, event: Event) -> None:
        if event.data.get("event_type") not in TOOL_CALL_ENDS:
            return
        call = event.data.get("data")
        error, duration_s = field_of(call, "error"), field_of(call, "duration_s")
        kind = self._tool_kinds.value(_text(field_of(call, "kind")))
        outcome = "completed" if error is None else _text(field_of(error, "code"))
        self._tool_calls.labels(kind, self._tool_outcomes.value(outcome)).inc()
        if isinstance(duration_s, float | int):
            self._tool_duration.labels(kind).observe(duration_s)

    def _node_ran(self, event: Event) -> None:
        data = event.data
        if "given" not in data:  # else the result came with the request and the node did not run
            node_type = self._node_type_of(event)
            node_type.settled[event.type].inc()
            node_type.duration.observe(data.get("duration_s", 0.0))

    def _node_settled(self, event: Event) -> None:
        if event.execution_id in self._running:  # else the execution ended before it ran
            self._node_type_of(event).settled[event.type].inc()

    def _plan_revised(self, event: Event) -> None:
        running = self._running.get(event.execution_id)
        if running is not None:
            nodes = event.data["graph_change"]["nodes"]
            running.node_types.update({each["id"]: self._node_type(each["type"]) for each in nodes})

    def _node_retried(self, event: Event) -> None:
        self._node_type_of(event).retries.inc()

    def _node_type_of(self, event: Event) -> _NodeTypeMetrics:
        """Return the metrics of an event's node type; all nested nodes count as ``other``."""
        running = self._running.get(event.execution_id)
        metrics = None if running is None else running.node_types.get(event.path)
        return self._node_type(OTHER) if metrics is None else metrics

    def _node_type(self, name: str) -> _NodeTypeMetrics:
        metrics = self._node_types.get(name)
        if metrics is None:
            label = self._types.value(name)
            metrics = self._node_types.get(label) or _NodeTypeMetrics(label, self)
            self._node_types[label] = metrics
        return metrics

    def trigger_delivered(
        self, trigger: Trigger, outcome: str, note: str, execution_id: str | None
    ) -> None:
        self._deliveries.labels(self._triggers.value(trigger.kind), outcome).inc()

    def notification_attempted(self, notification: NotificationRecord) -> None:
        self._notifications.labels(notification.status).inc()

    def recovered(self, execution_id: str, outcome: str) -> None:
        self._recoveries.labels(outcome).inc()

    # -- requests ----------------------------------------------------------------------------------

    def request_answered(self, scope: Scope, status: int, took_s: float) -> None:
        """Count a request by the template of its route: there is no bound on raw paths."""
        route = getattr(scope.get("route"), "path_format", OTHER)
        method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
        if method not in _METHODS:
            method = OTHER
        self._requests.labels(route, method, str(status)).inc()
        self._request_time.labels(route, method).observe(took_s)


def _text(value: object) -> str:
    """Return a label that a node chose, who may have chosen no text."""
    return value if isinstance(value, str) else OTHER


class _StoreCommits:
    """The histogram that the store keeps itself; satisfies prometheus_client's ``Collector``."""

    def __init__(self, metrics: PrometheusObserver) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        stats = self._metrics.store_stats
        sizes = stats.commits or (0,)
        bounds = [str(float(2**n)) for n in range(len(sizes) - 1)]
        commits = HistogramMetricFamily(
            "planwave_store_commit_writes",
            "Writes that shared a commit of the store; the count is the number of commits.",
        )
        buckets = list(zip([*bounds, "+Inf"], accumulate(sizes), strict=True))
        commits.add_metric([], buckets, stats.writes)
        yield commits


class _CollectedMetrics(NamedTuple):
    """The values of one moment; satisfies prometheus_client's ``Collector``."""

    families: tuple[Metric, ...]

    def collect(self) -> Iterable[Metric]:
        return self.families
