"""Opening a database of PostgreSQL, for writing or for reading."""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg import conninfo
from sqlalchemy import Connection, Engine, StaticPool, create_engine

from planwave.errors import StoreError
from planwave.storage.sql.errors import cause_of

_CONNECT_TIMEOUT_S: Final = 5
_WRITER_OPTIONS: Final = (
    # A process that is frozen inside a transaction would hold its locks until it is thawed.
    "-c idle_in_transaction_session_timeout=2000 -c lock_timeout=5000 -c synchronous_commit=on"
)
_DEAD_PEER: Final = {
    "keepalives_idle": 2,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 6_000,
}
"""Parameters of libpq, s and ms: when a server that no longer answers, as after a broken network, is given up."""
_PREPARE_AFTER: Final = 2
"""Uses after which a statement is prepared."""
_SERVER_VERSION: Final = 15_00_00
"""The oldest server that is supported, in the form in which libpq gives a version."""


def connect(url: str) -> Connection:
    """Open a connection for writing; transactions are explicit."""
    raw = psycopg.connect(
        conninfo.make_conninfo(url, options=_WRITER_OPTIONS, **_DEAD_PEER),
        autocommit=True,
        prepare_threshold=_PREPARE_AFTER,
        connect_timeout=_CONNECT_TIMEOUT_S,
    )
    try:
        _require_usable(url, raw)
    except StoreError:
        raw.close()
        raise
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: raw,
        poolclass=StaticPool,
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
    )
    return engine.connect()


def reading_engine(url: str) -> Engine:
    """Return an engine for reading from several threads."""
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(
            conninfo.make_conninfo(url, **_DEAD_PEER),
            autocommit=True,
            prepare_threshold=_PREPARE_AFTER,
            connect_timeout=_CONNECT_TIMEOUT_S,
        ),
        isolation_level="AUTOCOMMIT",
        pool_pre_ping=True,
        pool_reset_on_return=None,  # logs a traceback for each connection that was lost
    )


def _require_usable(url: str, raw: psycopg.Connection[Any]) -> None:
    """Check version and encoding of a database.

    Raises:
        StoreError: ``store-unusable``.
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
    reason = str(cause_of(error)).strip().splitlines()[0]
    return _cannot_use(url, reason, "check database_url, and that the server runs")


def _cannot_use(url: str, reason: str, hint: str) -> StoreError:
    where = conninfo.conninfo_to_dict(url)
    named = f"{where.get('dbname', '')!r} on {where.get('host', 'the local socket')}"
    return StoreError(
        f"the database {named} cannot be used: {reason}", code="store-unusable", hint=hint
    )
