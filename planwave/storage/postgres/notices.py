"""Notes between processes by LISTEN and NOTIFY, each on a connection of its own.

A NOTIFY is never part of a transaction that stores something: a listener that stands still fills the queue of the
server, and a full queue fails the transaction that notifies.
"""

from __future__ import annotations

import asyncio
import logging
import random
import warnings
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, get_args

import psycopg

from planwave.storage.notices import MOST_BYTES, SEPARATOR, Channel
from planwave.storage.postgres.connection import connect_async

_log = logging.getLogger(__name__)

_CHANNELS: Final[Mapping[str, Channel]] = {f"planwave_{each}": each for each in get_args(Channel)}
"""By their names in the database. All are listened to: a note that nobody wants costs some microseconds."""
_LISTEN: Final = "; ".join(f"LISTEN {each}" for each in _CHANNELS)
_NOTIFY: Final = "SELECT pg_notify(n.channel, n.payload) FROM unnest(%b::text[], %b::text[]) AS n(channel, payload)"
"""In binary, as all arrays of JSON: psycopg would escape each quote of a text in Python."""
_PAYLOAD_BYTES: Final = 7_900
"""The server refuses 8,000."""
_PENDING_BYTES: Final = 4 * 1024 * 1024
"""The most that waits while the server does not answer; what comes then is lost."""
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_LAST_NOTES_S: Final = 1.0
_USAGE: Final = "SELECT pg_notification_queue_usage()"
_USAGE_EVERY_S: Final = 30.0
_HIGH_USAGE: Final = 0.5


class PostgresNotices:
    """Satisfies ``Notices`` for one opening of a database.

    Args:
        url: The URL of the database.
        sender: The id of this opening, which receives none of its own notes.
    """

    def __init__(self, url: str, sender: str) -> None:
        self.on_reconnect: list[Callable[[], object]] = []
        self._url, self._sender = url, sender
        self._receivers: dict[Channel, list[Callable[[str], object]]] = defaultdict(list)
        self._pending: dict[Channel, list[str]] = defaultdict(list)
        self._pending_bytes = 0
        self._sent = 0
        self._wake = asyncio.Event()
        self._tasks: Sequence[asyncio.Task[None]] = ()
        self._sending: psycopg.AsyncConnection[Any] | None = None
        self._closing = False
        self._tried = asyncio.Event()
        self._has_listened = False
        self._usage_is_high = False

    async def open(self) -> None:
        """Begin to send and to receive; see ``Notices.open``."""
        loop = asyncio.get_running_loop()
        # Not a TaskGroup: they live until ``close``, which waits for them.
        self._tasks = [
            loop.create_task(self._keep("notify", self._send)),
            loop.create_task(self._keep("listen", self._listen)),
        ]
        await self._tried.wait()

    async def close(self) -> None:
        """Send what was published, for a second at most, then stop."""
        self._closing = True
        self._wake.set()
        if not self._tasks:
            return
        if self._sending is not None and not self._sending.closed:
            await asyncio.wait(self._tasks[:1], timeout=_LAST_NOTES_S)
            await _abort(self._sending)
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    def publish(self, channel: Channel, text: str) -> None:
        """Send a text to all other openings; see ``Notices.publish``."""
        size = len(text) if text.isascii() else len(text.encode(errors="replace"))
        if size > MOST_BYTES or SEPARATOR in text or "\0" in text:
            problem = f"a note of {size} bytes on {channel!r} is too long, or has a character that none has"
            warnings.warn(problem, RuntimeWarning, stacklevel=2)
        elif self._tasks and self._pending_bytes + size <= _PENDING_BYTES:
            self._pending[channel].append(text)
            self._pending_bytes += size
            self._wake.set()

    def subscribe(self, channel: Channel, receive: Callable[[str], object]) -> None:
        """Call ``receive`` with each text that another opening publishes."""
        self._receivers[channel].append(receive)

    async def _keep(
        self, name: str, use: Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]]
    ) -> None:
        """Use a connection, and another one after it was lost, until the use of one ends."""
        pause, is_lost = _FIRST_PAUSE_S, False
        while True:
            began = monotonic()
            try:
                connection = await connect_async(self._url, f"planwave {name}")
                try:
                    if is_lost:
                        _log.info("the connection to %s is back", name)
                    is_lost = False
                    await use(connection)
                    return
                finally:
                    await connection.close()
            except Exception as error:  # noqa: BLE001 - a task boundary: notes are lost, work goes on
                if not (is_lost or self._closing):
                    _log.warning("the connection to %s was lost: %s", name, error)
                is_lost = True
            self._tried.set()
            if monotonic() - began > _LONGEST_PAUSE_S:
                pause = _FIRST_PAUSE_S
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - not for secrets
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _send(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Send notes until all are sent and more are not wanted.

        Raises:
            psycopg.Error: The connection was lost, and what it was sending.
        """
        self._sending = connection
        # A note that is lost with the server is about something that is read again.
        await connection.execute("SET synchronous_commit = off")
        check_at = monotonic()
        while self._pending or not self._closing:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, check_at - monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            if payloads := list(self._take()):
                names, texts = zip(*payloads, strict=True)
                await connection.execute(_NOTIFY, ([*names], [*texts]))
            if monotonic() >= check_at:
                await self._check_usage(connection)
                check_at = monotonic() + _USAGE_EVERY_S

    def _take(self) -> Iterator[tuple[str, str]]:
        """Yield what is pending: the name of a channel, and as many notes as a payload takes."""
        pending, self._pending = self._pending, defaultdict(list)
        self._pending_bytes = 0
        for channel, notes in pending.items():
            head, room, some = self._head(), 0, list[str]()
            for note in notes:
                encoded = note.encode(errors="replace")
                size = len(encoded) + len(SEPARATOR)
                if some and size > room:
                    yield f"planwave_{channel}", SEPARATOR.join([head, *some])
                    head, some = self._head(), []
                if not some:
                    room = _PAYLOAD_BYTES - len(head)
                some.append(encoded.decode())
                room -= size
            yield f"planwave_{channel}", SEPARATOR.join([head, *some])

    def _head(self) -> str:
        """Return what a payload begins with: it is different each time, as the server drops repeated ones."""
        self._sent += 1
        return f"{self._sender} {self._sent}"

    async def _check_usage(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Log once that the queue of the server fills up."""
        row = await (await connection.execute(_USAGE)).fetchone()
        usage = 0.0 if row is None else float(row[0])
        if usage > _HIGH_USAGE and not self._usage_is_high:
            _log.warning(
                "the notification queue of PostgreSQL is %d%% full: end the connection that listens and "
                "takes nothing (the log of the server names it)",
                usage * 100,
            )
        self._usage_is_high = usage > _HIGH_USAGE

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Pass on what others publish, until the connection is lost.

        Raises:
            psycopg.OperationalError: It was lost.
        """
        await connection.execute(_LISTEN.encode())
        loop, ended = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

        def read() -> None:
            try:
                connection.pgconn.consume_input()
            except psycopg.Error as error:
                loop.remove_reader(file)
                ended.set_exception(error)
            while (note := connection.pgconn.notifies()) is not None:
                self._receive(note.relname.decode(), note.extra.decode())

        # The generator of psycopg wakes ten times a second; this sleeps until something comes.
        file = connection.fileno()
        loop.add_reader(file, read)
        try:
            self._tried.set()
            read()  # what came with the answer to LISTEN
            if self._has_listened:
                for call in self.on_reconnect:
                    self._call(call)
            self._has_listened = True
            await ended
        finally:
            loop.remove_reader(file)

    def _receive(self, name: str, payload: str) -> None:
        head, *notes = payload.split(SEPARATOR)
        channel = _CHANNELS.get(name)
        if channel is None or head.partition(" ")[0] == self._sender:
            return
        for note in notes:
            for receive in self._receivers[channel]:
                self._call(receive, note)

    def _call(self, call: Callable[..., object], *values: str) -> None:
        try:
            call(*values)
        except Exception:  # noqa: BLE001 - see ``_keep``; the others get it
            _log.exception("a note was not understood")


async def _abort(connection: psycopg.AsyncConnection[Any]) -> None:
    """Close a connection that a task may wait for: else psycopg asks the server to cancel, and waits for that."""
    if not connection.closed:
        loop, file = asyncio.get_running_loop(), connection.fileno()
        loop.remove_reader(
            file
        )  # no loop may watch a file that is closed: one that uses select() fails
        loop.remove_writer(file)
        await connection.close()
