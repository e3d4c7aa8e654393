"""What is counted: the name, the meaning and the labels of every counter and histogram."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from planwave.api.tallies import Counts, Spreads

_BRIEF: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds in seconds for what the machine does by itself."""
_LONG: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Bounds in seconds for what waits for models."""


@dataclass(frozen=True)
class Measures:
    """Everything that is counted."""

    started: Counts = field(
        default_factory=lambda: Counts(
            "planwave_executions_started_total", "Executions that left the queue and began to run."
        )
    )
    ended: Counts = field(
        default_factory=lambda: Counts(
            "planwave_executions_ended_total",
            "Executions that ended: completed, failed or cancelled, also before they ran.",
            "status",
        )
    )
    queue_time: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_execution_queue_seconds",
            "Time executions waited in the queue before they began to run.",
            _LONG,
        )
    )
    execution_time: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_execution_duration_seconds",
            "Time from the start of executions to their end.",
            _LONG,
            "status",
        )
    )
    nodes: Counts = field(
        default_factory=lambda: Counts(
            "planwave_nodes_total",
            "Nodes that were settled: completed, failed, skipped, blocked or cancelled.",
            "type",
            "status",
        )
    )
    node_time: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_node_duration_seconds",
            "Time of the last attempt of nodes that completed or failed.",
            _LONG,
            "type",
        )
    )
    node_retries: Counts = field(
        default_factory=lambda: Counts(
            "planwave_node_retries_total",
            "Attempts of nodes that failed and were followed by another one.",
            "type",
        )
    )
    calls: Counts = field(
        default_factory=lambda: Counts(
            "planwave_provider_calls_total",
            "Attempts at model calls, by how they ended: completed, recorded (answered from the store, "
            "nothing paid), cancelled, or the code of the error.",
            "provider",
            "model",
            "outcome",
        )
    )
    call_time: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_provider_call_duration_seconds",
            "Time of attempts at model calls, without the wait for the provider's turn.",
            _LONG,
            "provider",
            "model",
        )
    )
    call_retries: Counts = field(
        default_factory=lambda: Counts(
            "planwave_provider_retries_total",
            "Attempts at model calls that failed and were followed by another one.",
            "provider",
            "model",
        )
    )
    tokens: Counts = field(
        default_factory=lambda: Counts(
            "planwave_provider_tokens_total",
            "Tokens of completed model calls: input or output.",
            "provider",
            "model",
            "direction",
        )
    )
    cost: Counts = field(
        default_factory=lambda: Counts(
            "planwave_provider_cost_usd_total",
            "Price of completed model calls in US dollars; calls of unknown price count nothing.",
            "provider",
            "model",
        )
    )
    link_hits: Counts = field(
        default_factory=lambda: Counts(
            "planwave_link_cache_hits_total",
            "Links served with what had been made before; counted when their execution ends.",
        )
    )
    link_misses: Counts = field(
        default_factory=lambda: Counts(
            "planwave_link_cache_misses_total",
            "Links for which something was made; counted when their execution ends.",
        )
    )
    lag: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_event_lag_seconds",
            "Time from the moment events were durable until the last watcher had them.",
            _BRIEF,
        )
    )
    loop_lag: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_event_loop_lag_seconds",
            "Time until the event loop came to something new, looked at some times a second; "
            "what blocks it holds up everything.",
            _BRIEF,
        )
    )
    drops: Counts = field(
        default_factory=lambda: Counts(
            "planwave_watchers_dropped_total", "Watchers dropped because they fell too far behind."
        )
    )
    requests: Counts = field(
        default_factory=lambda: Counts(
            "planwave_http_requests_total",
            "HTTP requests by route; WebSockets as method WEBSOCKET, status 101 where accepted.",
            "route",
            "method",
            "status",
        )
    )
    request_time: Spreads = field(
        default_factory=lambda: Spreads(
            "planwave_http_request_duration_seconds",
            "Time until the answer to a request began; streams go on after that.",
            _BRIEF,
            "route",
            "method",
        )
    )
