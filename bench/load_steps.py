"""The node module of the processes that ``several_processes.py`` starts: steps that wait, and steps that stream."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import planwave


@planwave.node("pause")
async def pause(inputs: planwave.Inputs, s: float = 0.0, spread: float = 0.0) -> str:
    """Wait some seconds, up to a share more or less."""
    await asyncio.sleep(s * random.uniform(1 - spread, 1 + spread))
    return "waited"


@planwave.node("speak")
async def speak(go: str = "", per_s: float = 20.0, s: float = 1.0) -> AsyncIterator[str]:
    """Stream the time, so many times a second, for some seconds once there is a file."""
    while not Path(go).exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
        await asyncio.sleep(0.1)
    began = time.time()
    for number in range(int(per_s * s)):
        await asyncio.sleep(began + number / per_s - time.time())
        yield f"{time.time():.6f} "
