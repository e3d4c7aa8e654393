"""A recorder of external calls that needs no store."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.providers.protocols import CallKey


class Notebook:
    """A recorder in memory.

    Attributes:
        kept: What is recorded, in the order in which it was.
    """

    def __init__(self) -> None:
        self.kept: dict[CallKey, dict[str, Any]] = {}

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        return self.kept.get(key)

    async def has_calls(self, key: CallKey) -> bool:
        return any(each[:3] == key[:3] for each in self.kept)

    async def has_other(self, key: CallKey) -> bool:
        calls = (each for each in self.kept if each[:4] == key[:4])
        return any(not each.request_hash.startswith(key.request_hash) for each in calls)

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        await asyncio.sleep(0)
        self.kept.setdefault(key, reply)
