from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from planwave.api.app import create_app
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import ExecutionResult
from planwave.service.loop_monitor import PROBE_INTERVAL_S, STALL_THRESHOLD_S, EventLoopMonitor
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.graph.builders import make_graph
from tests.support.server.in_process_client import asgi_client
from tests.support.server.metrics_scrape import scrape_metrics
from tests.support.service.dependencies import dependencies


class Blocks:
    """A node type that keeps the event loop to itself."""

    node_type = "blocks"

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        until = time.monotonic() + 0.6
        while time.monotonic() < until:
            sum(range(100))
        return ExecutionResult({"output": DataValue("text", "done")})


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "planwave.service.loop_monitor"]


async def looked_at(lags: list[float], times: int = 3) -> None:
    """Wait until the watchdog has looked some more times."""
    many = len(lags) + times
    while len(lags) < many:  # noqa: ASYNC110 - what it waits for happens in a thread
        await asyncio.sleep(0.01)


async def test_blocking_node_is_logged_once_with_duration_and_location(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lags: list[float] = []
    received: list[str] = []
    service = Service(dependencies(make_graph(Node("cpu", "blocks", "CPU")), types=[Blocks()]))
    async with service:
        with EventLoopMonitor(lags.append):
            plan = await service.plans.create("do it")
            while not received:  # a busy machine may let its thread look too late
                lags.clear()
                execution_id = (await service.executions.execute(plan.plan_id)).execution_id
                await service.executions.wait(execution_id)
                await looked_at(lags)
                blocked = f"in node 'cpu' of execution {execution_id}, "
                received = [each for each in warnings_of(caplog) if blocked in each]
                received = (
                    received if max(lags) >= 0.4 else []
                )  # 0.6, less what passed before a look
    (received,) = received
    assert received.startswith("the event loop stood still for ")
    assert "tests.unit.service.test_loop_monitor.Blocks.execute:" in received
    assert "belongs into a thread or a process" in received
    seconds = float(received.removeprefix("the event loop stood still for ").split()[0])
    assert f"{seconds:.2f}" in {f"{lag:.2f}" for lag in lags}


async def test_responsive_loop_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    lags: list[float] = []
    with EventLoopMonitor(lags.append):
        await looked_at(lags)
        while min(lags) >= 0.1:  # a busy machine may take its time away
            await looked_at(lags)
    received = warnings_of(caplog)
    assert len(received) == sum(lag > STALL_THRESHOLD_S - PROBE_INTERVAL_S / 2 for lag in lags)


@pytest.mark.slow
async def test_endless_block_is_logged_before_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    lags: list[float] = []
    received: list[str] = []
    with EventLoopMonitor(lags.append, endless_s=0.2), caplog.at_level(logging.INFO):
        while not any("still does" in each for each in received):  # its thread may look too late
            caplog.clear()
            await asyncio.sleep(0)
            time.sleep(1.2)  # noqa: ASYNC251 - that is the point
            await looked_at(lags)
            received = warnings_of(caplog)
    ends = ["turns again, after" in each for each in received if "s; what blocks" not in each]
    assert ends[:2] == [False, True]
    assert all(before != after for before, after in pairwise(ends)), "a stop is told once"


async def test_monitor_stops_during_a_block() -> None:
    before = set(watchdogs())
    with EventLoopMonitor():
        assert set(watchdogs()) - before
        time.sleep(0.4)  # noqa: ASYNC251 - that is the point
    assert set(watchdogs()) <= before


async def test_monitor_stops_at_once_while_it_waits_for_the_loop() -> None:
    took_s: list[float] = []
    while not took_s or (min(took_s) > PROBE_INTERVAL_S / 2 and len(took_s) < 10):
        with EventLoopMonitor():
            time.sleep(1.5 * PROBE_INTERVAL_S)  # noqa: ASYNC251 - the loop does not answer
            began = time.monotonic()
        took_s.append(time.monotonic() - began)
    assert min(took_s) <= PROBE_INTERVAL_S / 2


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "watchdog"]


@pytest.mark.slow
async def test_monitor_is_cheap() -> None:
    before = set(watchdogs())
    with EventLoopMonitor():
        (own,) = set(watchdogs()) - before
        clock = time.pthread_getcpuclockid(own.ident or 0)
        began, began_at = time.clock_gettime(clock), time.monotonic()
        await asyncio.sleep(1)
        used_s, took_s = time.clock_gettime(clock) - began, time.monotonic() - began_at
    assert used_s < 0.05 * took_s  # 0.0007 on a machine with nothing else to do


async def test_application_measures_loop_lag() -> None:
    before = set(watchdogs())
    app = create_app(Settings(), lambda _: Service(dependencies(make_graph())))
    async with asgi_client(app) as client:
        looks = 0.0
        while not looks:
            await asyncio.sleep(0.05)
            looks = (await scrape_metrics(client)).value("planwave_event_loop_lag_seconds_count")
    assert set(watchdogs()) <= before


async def test_garbage_collection_is_enabled_again() -> None:
    with EventLoopMonitor(endless_s=0.2):
        await asyncio.sleep(0)
        time.sleep(0.6)  # noqa: ASYNC251 - that is the point
        await asyncio.sleep(0.1)
    assert gc.isenabled()
