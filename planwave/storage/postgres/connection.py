"""Opening a database of PostgreSQL, for writing or for reading."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import conninfo
from psycopg.abc import Buffer
from psycopg.types.string import StrDumperUnknown
from sqlalchemy import Connection, Engine, StaticPool, create_engine

from planwave.errors import StoreError
from planwave.storage.event_codec import storable_text
from planwave.storage.sql.errors import cause_of, no_privilege_hint

LOCK_TIMEOUT_MS: Final = 5_000
_FOR_WRITING: Final = (
    # A process that is frozen inside a transaction would hold its locks until it is thawed.
    "SET idle_in_transaction_session_timeout = 2000; "
    # Statements see what those saw that held their locks before.
    "SET default_transaction_isolation = 'read committed'; "
    # What the server, or the role, has beyond that stays, such as remote_apply.
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')"
)
"""Statements, not the parameter ``options``: the URL may have one, and PgBouncer takes none."""
_DEAD_PEER: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 2,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 6_000,
}
"""Parameters of libpq, s and ms, where the URL has no others: when a server that does not answer is given up."""
_PREPARE_AFTER: Final = 2
"""Uses after which a statement is prepared."""
_SERVER_VERSION: Final = 15_00_00
"""The oldest server that is supported, in the form in which libpq gives a version."""


class Interruption:
    """Ends the waits of all threads for the answers of a server, once and for all.

    A server that is frozen, or behind a relay that is, answers nothing and breaks no connection: a thread that
    waits for it cannot be ended otherwise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._sockets: dict[psycopg.Connection[Any], socket.socket] = {}

    def watch(self, raw: _WatchedConnection) -> None:
        """Have the waits of a connection ended too.

        Raises:
            psycopg.OperationalError: They are ended already.
        """
        with self._lock:
            if not self._is_over:
                # A descriptor of its own: libpq closes the other one by itself, and its number is used again.
                self._sockets[raw] = socket.socket(fileno=os.dup(raw.fileno()))
                raw.interruption = self
                return
        raw.close()
        self.require_waits()

    def forget(self, raw: psycopg.Connection[Any]) -> None:
        """Watch a connection no longer, which was closed."""
        with self._lock:
            watched = self._sockets.pop(raw, None)
            if watched is not None:
                watched.close()

    def require_waits(self) -> None:
        """Check that waits are not ended.

        Raises:
            psycopg.OperationalError: They are.
        """
        if self._is_over:
            raise psycopg.OperationalError("the store was closed, and the server gave no answer")

    def end_waits(self) -> None:
        """Break all connections; no other one is opened."""
        with self._lock:
            self._is_over = True
            for each in self._sockets.values():
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


class _StorableText(StrDumperUnknown):
    """Sends text as ``storable_text`` gives it: what nobody could have stored is not found, and nothing fails."""

    def dump(self, obj: str) -> Buffer | None:
        try:
            return super().dump(obj)
        except (psycopg.DataError, UnicodeEncodeError):
            return super().dump(storable_text(obj))


class _WatchedConnection(psycopg.Connection[Any]):
    """A connection that leaves its interruption when it is closed."""

    interruption: Interruption | None = None

    def close(self) -> None:
        super().close()
        if self.interruption is not None:
            self.interruption.forget(self)


def connect(
    url: str,
    interruption: Interruption | None = None,
    lock_timeout_ms: int = LOCK_TIMEOUT_MS,
) -> Connection:
    """Open a connection for writing; transactions are explicit.

    Args:
        url: The URL of the database.
        interruption: What can end its waits.
        lock_timeout_ms: How long a statement waits for a lock that another transaction holds.

    Raises:
        StoreError: ``database-unusable``.
        psycopg.Error, sqlalchemy.exc.DBAPIError: The server does not answer.
    """
    raw = connect_raw(url, interruption)
    try:
        _require_usable(url, raw)
        raw.execute(_FOR_WRITING)
        raw.execute("SELECT set_config('lock_timeout', %s, false)", (str(lock_timeout_ms),))
        return _engine_of(raw).connect()
    except BaseException:
        raw.close()
        raise


def _engine_of(raw: psycopg.Connection[Any]) -> Engine:
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: raw,
        poolclass=StaticPool,
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
    )


def reading_engine(url: str, interruption: Interruption | None = None) -> Engine:
    """Return an engine for reading from several threads, whose waits an interruption can end."""
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: connect_raw(url, interruption),
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,  # logs a traceback for each connection that was lost
    )


async def connect_async(url: str, name: str) -> psycopg.AsyncConnection[Any]:
    """Open a connection of the event loop, each statement a transaction.

    Args:
        url: The URL of the database.
        name: what the connection is for, as the server lists it.

    Raises:
        psycopg.Error: The server does not answer.
    """
    parameters: dict[str, Any] = {
        **_DEAD_PEER,
        "fallback_application_name": name,
        **_parameters(url),
    }
    return await psycopg.AsyncConnection.connect(**parameters, autocommit=True)


def connect_raw(url: str, interruption: Interruption | None) -> psycopg.Connection[Any]:
    """Open a connection without settings, each statement a transaction.

    Raises:
        psycopg.Error: The server does not answer.
    """
    parameters: dict[str, Any] = {**_DEAD_PEER, **_parameters(url)}
    if interruption is not None:
        interruption.require_waits()
    raw = _WatchedConnection.connect(
        **parameters, autocommit=True, prepare_threshold=_PREPARE_AFTER
    )
    raw.adapters.register_dumper(str, _StorableText)
    if interruption is not None:
        interruption.watch(raw)
    return raw


def _parameters(url: str) -> dict[str, Any]:
    """Return the parameters of libpq in a URL.

    Raises:
        StoreError: ``database-unusable``: it is none.
    """
    try:
        return conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        reason = str(error)
    if "invalid URI query parameter" not in reason:
        reason = "its form"  # the text of libpq shows the password
    raise StoreError(
        f"database_url cannot be read: {reason}",
        code="database-unusable",
        hint="write postgresql://user:password@host:port/database, and % in a password as %25",
    )


def _require_usable(url: str, raw: psycopg.Connection[Any]) -> None:
    """Check version and encoding of a database.

    Raises:
        StoreError: ``database-unusable``.
    """
    version, encoding = raw.info.server_version, raw.info.parameter_status("server_encoding")
    if version < _SERVER_VERSION:
        what = f"its version is {version // 10_000}, and 15 or newer is needed"
        raise _cannot_use(url, what, "upgrade the server")
    if encoding != "UTF8":
        what = f"its encoding is {encoding}"
        raise _cannot_use(url, what, "create the database with ENCODING 'UTF8'")


def database_unusable(url: str, error: Exception) -> StoreError:
    """Return the error for a database that cannot be reached."""
    cause = cause_of(error)
    hint = no_privilege_hint(cause) or "check database_url, and that the server runs"
    return _cannot_use(url, str(cause).strip().splitlines()[0], hint)


def _cannot_use(url: str, reason: str, hint: str) -> StoreError:
    where = _parameters(url)
    named = f"{where.get('dbname', '')!r} on {where.get('host', 'the local socket')}"
    return StoreError(
        f"the database {named} cannot be used: {reason}", code="database-unusable", hint=hint
    )
