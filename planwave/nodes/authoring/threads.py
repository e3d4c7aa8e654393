"""Daemon threads for functions without ``async``: one that never returns does not hold up the end of a process."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar

T = TypeVar("T")

_Call = tuple[Future[Any], Callable[[], Any]]


class DaemonThreads:
    """Up to a number of threads that wait for calls; further calls wait for one of them.

    A ``ThreadPoolExecutor`` would do, but Python waits for its threads before a process ends.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._starting = threading.Lock()
        self._started = 0

    async def run(self, call: Callable[[], T]) -> T:
        """Return the result of a call; if the caller is cancelled, it continues unheard."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        if not self._idle.acquire(blocking=False):
            self._start()
        return await asyncio.wrap_future(future)

    def _start(self) -> None:
        with self._starting:
            if self._started == self._most:
                return
            self._started += 1
            name = f"{self._name}_{self._started}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        while True:
            future, call = self._calls.get()
            settle = _perform(future, call)
            self._idle.release()  # first, so that the next call finds this thread
            settle()
            del future, call, settle  # a waiting thread holds no result


def _perform(future: Future[Any], call: Callable[[], Any]) -> Callable[[], None]:
    """Return what gives the outcome of a call to its future."""
    if not future.set_running_or_notify_cancel():
        return lambda: None
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001  (raised where the call is awaited)
        return partial(future.set_exception, error)
    return partial(future.set_result, result)


NODE_THREADS: Final = DaemonThreads(64, "planwave_node")
"""Runs functions of nodes. The event loop's own pool has few threads on small machines."""


async def call_in_thread(function: Callable[..., T], arguments: Mapping[str, Any]) -> T:
    """Call a function in a thread, with the context of this task."""
    context = contextvars.copy_context()
    return await NODE_THREADS.run(lambda: context.run(_call, function, arguments))


def _call(function: Callable[..., T], arguments: Mapping[str, Any]) -> T:
    try:
        return function(**arguments)
    except StopIteration as error:
        # A future cannot hold it, and would never be done. A coroutine raises the same instead.
        raise RuntimeError("function raised StopIteration") from error
