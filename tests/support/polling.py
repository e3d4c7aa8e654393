"""Waiting for a condition that other tasks or the network bring about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], every_s: float = 0.0) -> None:
    """Let other tasks and the network run until something holds; look again each so many seconds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens inside other code
            await asyncio.sleep(every_s)
