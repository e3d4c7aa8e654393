"""The event loop of a Python program that runs graphs."""

from __future__ import annotations

import asyncio


def require_no_loop(function: str, instead: str) -> None:
    """Refuse to block a running event loop.

    Raises:
        RuntimeError: An event loop runs in this thread.
    """
    if running_loop() is not None:
        raise RuntimeError(
            f"{function} cannot wait inside a running event loop; write: await {instead}"
        )


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
