"""Browser sessions that were closed before their time, remembered over restarts.

A session's cookie is sealed, not stored, so what is stored is which ones count no more: one small
file in the storage directory, read at the start. A session leaves it when its time is over anyway.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any, Final, cast

from planwave.errors import StoreError
from planwave.storage.files import write_atomically

FILE_NAME: Final = "closed-sessions.json"

_log = logging.getLogger(__name__)


class ClosedSessions:
    """The claims of closed sessions, each with the time (seconds since the epoch) it ends at."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._path: Path | None = None
        self._writing = asyncio.Lock()

    def __contains__(self, claims: str) -> bool:
        return claims in self._until

    def add(self, claims: str, until: float, now: float) -> None:
        """Close a session; forget those whose time is over."""
        self._until = {each: end for each, end in self._until.items() if end > now}
        self._until[claims] = until

    def open(self, directory: Path | None) -> None:
        """Read what is stored in a directory, and store there from now on; None stores nothing.

        Raises:
            StoreError: ``store-unreadable``: the file is there and cannot be read.
        """
        self._path = None if directory is None else directory / FILE_NAME
        if self._path is None:
            return
        try:
            stored = _closed_in(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return
        except (OSError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self._path} cannot be read: {error}",
                code="store-unreadable",
                hint="remove it, and change the token: else sessions that were closed are open again",
            ) from error
        self._until = {**stored, **self._until}

    async def store(self) -> None:
        """Make what was added durable; where that fails it holds until a restart, and is logged."""
        if self._path is None:
            return
        async with self._writing:
            try:
                await asyncio.to_thread(
                    write_atomically, self._path, json.dumps(self._until).encode()
                )
            except OSError as error:
                _log.warning("closed sessions are only remembered until a restart: %s", error)


def _closed_in(stored: Any) -> dict[str, float]:
    """Return what a file holds.

    Raises:
        TypeError, ValueError: It holds something else than times by claims.
    """
    if not isinstance(stored, dict):
        raise ValueError("it holds no object")
    return {name: float(until) for name, until in cast("dict[str, Any]", stored).items()}
