"""Threads of functions without ``async``: bounded, used again, and never in the way of an end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from planwave.nodes.authoring.threads import DaemonThreads


async def test_a_call_gives_its_result_or_raises() -> None:
    threads = DaemonThreads(2, "t")
    assert await threads.run(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    with pytest.raises(SystemExit):
        await threads.run(sys.exit)
    assert await threads.run(lambda: 6) == 6


async def test_calls_run_at_the_same_time_up_to_the_number_of_threads() -> None:
    threads, both, names = DaemonThreads(2, "t"), threading.Barrier(2), set[str]()

    def call() -> None:
        both.wait(30)
        names.add(threading.current_thread().name)

    async with asyncio.TaskGroup() as group:
        for _ in range(6):
            group.create_task(threads.run(call))
    assert names == {"t_1", "t_2"}


async def test_a_call_that_waits_for_a_thread_can_be_cancelled() -> None:
    threads, may_end = DaemonThreads(1, "t"), threading.Event()
    called: list[str] = []
    async with asyncio.TaskGroup() as group:
        first = group.create_task(threads.run(lambda: may_end.wait(30)))
        waiting = group.create_task(threads.run(lambda: called.append("waiting")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        may_end.set()
        assert await first
    await threads.run(lambda: called.append("last"))
    assert called == ["last"]


def test_a_process_ends_although_a_function_of_a_node_never_does() -> None:
    code = (
        "import threading, planwave\n"
        "@planwave.node('never')\n"
        "def never() -> str:\n"
        "    threading.Event().wait()\n"
        "    return ''\n"
        "policy = {'timeoutS': 0.1}\n"
        "graph = {'nodes': [{'id': 'a', 'type': 'never', 'policy': policy}], 'edges': []}\n"
        "print(planwave.run_sync(graph, check=False).failures[0].code)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout == "node-timeout\n"
