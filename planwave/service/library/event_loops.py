"""The event loop of a Python program that runs graphs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def require_no_loop(function: str, instead: str) -> None:
    """Refuse to block a running event loop.

    Raises:
        RuntimeError: An event loop runs in this thread.
    """
    if running_loop() is not None:
        raise RuntimeError(
            f"{function} cannot wait inside a running event loop; write: await {instead}"
        )


def run_now(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run short work to its end, also where an event loop runs in this thread, which then waits."""
    if running_loop() is None:
        return asyncio.run(work())
    with ThreadPoolExecutor(1, "planwave-read") as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
