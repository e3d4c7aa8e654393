"""The lock of the one process that leads: an advisory lock, which ends with the session that has it.

A leader that is cut off from the server stops before the server gives the lock to another one: it counts as leading for
``_LEASE_S`` after it asked the server last and was answered; the server ends a session that asks nothing for a second
longer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import psycopg

from planwave.errors import StoreError

_log = logging.getLogger(__name__)

LEADER_KEY: Final = "hashtextextended('planwave leader', 0)"
"""The key of the lock, in SQL."""
_TAKE: Final = f"SELECT pg_try_advisory_lock({LEADER_KEY})"
_ASK: Final = "SELECT true"
_BEAT_S: Final = 1.0
_LEASE_S: Final = 3.0
"""A beat, and two seconds for its answer."""
_SESSION_S: Final = 4.0
_SETTINGS: Final = f"SET idle_session_timeout = {_SESSION_S * 1000:.0f}"
_OWN_SESSION_GONE_S: Final = _SESSION_S + 1
"""A lock that is refused for longer is not held by a lost connection of this process."""
_GRACE_S: Final = 1.0
"""How long a new leader waits: the server noticed the end of the one before sooner than that one did."""


class LeaderLock:
    """Satisfies ``Leadership`` by a thread with a connection of its own.

    Args:
        connect: Opens a connection.
        drives: Whether this process drives executions that no other one may drive: it has to have the lock.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], *, drives: bool) -> None:
        self.on_displaced: list[Callable[[], object]] = []
        self._connect, self._drives = connect, drives
        self._raw: psycopg.Connection[Any] | None = None
        self._has_lock = False
        self._leads_from = self._leads_until = 0.0
        self._refused_since: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turned_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._gained, self._lost = asyncio.Event(), asyncio.Event()
        self._lost.set()

    @property
    def leads(self) -> bool:
        """Whether this opening leads now."""
        return self._leads_from <= monotonic() < self._leads_until

    def require(self) -> None:
        """Take the lock, and keep it until ``close``, if this process drives; blocking.

        Raises:
            StoreError: ``storage-locked``: another process has it.
            psycopg.Error: The server does not answer.
        """
        if not self._drives:
            return
        self._beat()
        if not self._has_lock:
            raise StoreError(
                "another process drives the executions of this database",
                code="storage-locked",
                hint='send commands to that process, or wait until it ends; with carrier = "temporal" several '
                "processes drive executions",
            )
        self._start()

    def open(self) -> None:
        """Begin to try to lead."""
        self._loop, self._turned_at = asyncio.get_running_loop(), monotonic()
        self._update()
        self._start()

    async def gained(self) -> None:
        """Wait until this opening leads."""
        await self._gained.wait()

    async def lost(self) -> None:
        """Wait until this opening may lead no more."""
        await self._lost.wait()

    def close(self) -> None:
        """Let the lock go; blocking."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._drop()
        self._leads_until = 0.0

    def _start(self) -> None:
        if self._thread is None and not self._ended.is_set():
            self._thread = threading.Thread(target=self._run, name="planwave-leader", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                if self._is_stuck():
                    self._drop()
                else:
                    self._beat()
            except (psycopg.Error, StoreError) as error:
                if self._has_lock:
                    _log.warning("the connection of the leader was lost: %s", error)
                self._drop()
            if self._loop is not None:
                with suppress(RuntimeError):  # the loop was closed
                    self._loop.call_soon_threadsafe(self._update)
            if self._ended.wait(_BEAT_S):
                return

    def _is_stuck(self) -> bool:
        """Return whether the event loop stands still, so that another process has to lead.

        One that drives alone stays: nobody is to take its place.
        """
        return (
            not self._drives and self._loop is not None and monotonic() - self._turned_at > _LEASE_S
        )

    def _beat(self) -> None:
        """Ask the server, for the lock if it is not held.

        Raises:
            psycopg.Error: It does not answer.
        """
        began = monotonic()
        if self._raw is None or self._raw.closed:
            self._has_lock = False
            self._raw = self._connect()
            self._raw.execute(_SETTINGS.encode())
        had_lock = self._has_lock
        row = self._raw.execute(_ASK if had_lock else _TAKE).fetchone()
        self._has_lock = row is not None and bool(row[0])
        if not self._has_lock:
            self._refused_since = self._refused_since or began
            return
        self._refused_since = None
        if not had_lock:
            self._leads_from = began if self._drives else monotonic() + _GRACE_S
        self._leads_until = began + _LEASE_S

    def _drop(self) -> None:
        """Close the connection, and with it the lock."""
        self._has_lock, self._leads_until = False, 0.0
        if self._raw is not None:
            with suppress(psycopg.Error):
                self._raw.close()

    def _update(self) -> None:
        """Tell those who wait, on the event loop; and again when that changes without an answer of the server."""
        loop, now = asyncio.get_running_loop(), monotonic()
        self._turned_at = now
        if self._timer is not None:
            self._timer.cancel()
        if self.leads:
            self._lost.clear()
            self._gained.set()
            self._timer = loop.call_later(self._leads_until - now, self._update)
            return
        self._gained.clear()
        self._lost.set()
        if now < self._leads_from and now < self._leads_until:
            self._timer = loop.call_later(self._leads_from - now, self._update)
        refused_since = self._refused_since
        is_displaced = refused_since is not None and now - refused_since > _OWN_SESSION_GONE_S
        if self._drives and is_displaced and not self._ended.is_set():
            self._drives = False  # it is told once
            for call in self.on_displaced:
                call()
