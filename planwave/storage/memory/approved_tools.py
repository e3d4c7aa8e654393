"""Approved tools of MCP servers in memory."""

from __future__ import annotations

from collections.abc import Callable

from planwave.storage.event_codec import storable_text


class MemoryApprovedTools:
    """The ``ApprovedToolStore`` port over a dictionary.

    Args:
        check_open: Raises if the store is closed.
    """

    def __init__(self, check_open: Callable[[], None]) -> None:
        self._check_open = check_open
        self._fingerprints: dict[tuple[str, str], str] = {}

    async def fingerprint(self, server: str, tool: str) -> str | None:
        return self._fingerprints.get((storable_text(server), storable_text(tool)))

    async def approve(self, server: str, tool: str, fingerprint: str) -> None:
        self._check_open()
        self._fingerprints[storable_text(server), storable_text(tool)] = fingerprint
