"""What says that an opening of the store is alive: a row that it renews."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from time import monotonic
from typing import Final

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from planwave import __version__
from planwave.errors import SchemaTooNew, StoreError
from planwave.storage.postgres.clock import ServerClock
from planwave.storage.postgres.migrations import (
    KEEP_OLDEST,
    MIGRATIONS,
    Migration,
    contract,
    schema_state,
    schema_too_new,
)
from planwave.storage.postgres.transactions import PostgresTransactions

LEASE_S: Final = 15.0
"""The lease of an opening, where its caller names none."""
_BEATS_A_LEASE: Final = 3
_RENEW: Final = (
    "UPDATE holders SET expires_at = clock_timestamp() + make_interval(secs => %s) "
    "WHERE holder_id = %s AND expires_at > clock_timestamp() RETURNING clock_timestamp()"
)
_SAY_ALIVE: Final = (
    "INSERT INTO holders (holder_id, expires_at, started_at, version, schema_version, capabilities) "
    "VALUES (%s, clock_timestamp() + make_interval(secs => %s), clock_timestamp(), %s, %s, %s) "
    "ON CONFLICT (holder_id) DO UPDATE SET expires_at = excluded.expires_at RETURNING clock_timestamp()"
)
_WITHDRAW: Final = (
    "WITH own AS (DELETE FROM followers WHERE holder_id = %s) "
    "DELETE FROM holders WHERE holder_id = %s OR expires_at < clock_timestamp()"
)
"""Clients of a process that goes down are to come back elsewhere: they have not left."""


class Holder:
    """The row of one opening, renewed by a thread.

    Args:
        transactions: A connection of its own: the writer's may be busy for as long as a lease.
        holder_id: Its id, which stands in what it claims.
        lease_s: How long it counts as alive after it said so last, by the clock of the server.
        migrations: The steps to the schema version that it knows.
        capabilities: What its process can do that others may not.
        on_too_old: Called by the thread, at most once: it was frozen for longer than its lease, and newer processes do
            without the tables that it knows. It is not alive any more.

    Attributes:
        oldest: The oldest schema version whose processes may use the database.
        clock: The time of the server, as of each beat.
    """

    def __init__(
        self,
        transactions: PostgresTransactions,
        holder_id: str,
        lease_s: float = LEASE_S,
        *,
        migrations: Sequence[Migration] = MIGRATIONS,
        capabilities: Collection[str] = (),
        on_too_old: Callable[[SchemaTooNew], None],
    ) -> None:
        self._transactions = transactions
        self._id = holder_id
        self._lease_s = lease_s
        self._migrations = migrations
        self._capabilities = ",".join(sorted(capabilities))
        self._on_too_old = on_too_old
        self.oldest = 0
        self.clock = ServerClock()
        self._asked_at: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="planwave-holder", daemon=True)

    def start(self) -> None:
        """Say that it is alive, and again and again from now on.

        Raises:
            SchemaTooNew: The tables are not for this version any more.
            psycopg.Error, sqlalchemy.exc.DBAPIError: The server does not answer.
        """
        self._say_alive()
        self._thread.start()

    def stop(self) -> None:
        """Withdraw: what is still claimed is free at once."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
            with suppress(psycopg.Error, DBAPIError):
                self._commit(_WITHDRAW, (self._id, self._id))
        self._transactions.close()

    def _run(self) -> None:
        while not self._ended.wait(self._lease_s / _BEATS_A_LEASE):
            try:
                self._say_alive()
            except SchemaTooNew as error:
                self._on_too_old(error)
                return
            except (psycopg.Error, DBAPIError, StoreError):
                continue  # a server that does not answer is asked again by the next beat

    @property
    def silent_s(self) -> float:
        """How long the server has not answered that it is told so; 0 while it answers."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else monotonic() - asked_at

    def _say_alive(self) -> None:
        self._asked_at = self._asked_at or monotonic()
        began = monotonic()
        at = self._commit(_RENEW, (self._lease_s, self._id))
        if at is None:
            at = self._begin_to_live()
        self.clock.set(at, began, monotonic())
        self._asked_at = None
        # Tables that are in use cannot be changed at once: the next beat tries again.
        with suppress(psycopg.Error, DBAPIError):
            if self.oldest <= len(self._migrations):
                self.oldest = contract(self._transactions.connection, self._migrations)

    def _begin_to_live(self) -> datetime:
        """Say that it is alive for the first time, or after its lease was over; return the time of the server.

        Raises:
            SchemaTooNew: The tables are not for this version any more.
        """
        version = len(self._migrations) + 1
        with self._transaction() as connection:
            connection.exec_driver_sql(KEEP_OLDEST)
            state = schema_state(connection)
            if state.oldest > version:
                raise schema_too_new(state, version)
            values = (self._id, self._lease_s, __version__, version, self._capabilities)
            at = connection.exec_driver_sql(_SAY_ALIVE, values).scalar_one()
        self.oldest = state.oldest
        return at

    def _commit(self, sql: str, values: tuple[object, ...]) -> datetime | None:
        """Run a statement in a transaction of its own; return its first value, if it has rows."""
        with self._transaction() as connection:
            result = connection.exec_driver_sql(sql, values)
            return result.scalar() if result.returns_rows else None

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        try:
            self._transactions.begin()
            yield self._transactions.connection
            self._transactions.commit()
        except BaseException:
            self._transactions.roll_back()
            raise
