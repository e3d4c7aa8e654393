"""What says that an opening of the store is alive: a row that it renews, and a lock that ends with its connection."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

import psycopg
from sqlalchemy.exc import DBAPIError

from planwave import __version__
from planwave.errors import StoreError
from planwave.storage.postgres.transactions import PostgresTransactions

LEASE_S: Final = 15.0
"""The lease of an opening, where its caller names none."""
_BEATS_A_LEASE: Final = 3
_SAY_ALIVE: Final = (
    "INSERT INTO holders (holder_id, expires_at, started_at, version) "
    "VALUES (%s, clock_timestamp() + make_interval(secs => %s), clock_timestamp(), %s) "
    "ON CONFLICT (holder_id) DO UPDATE SET expires_at = excluded.expires_at"
)
_WITHDRAW: Final = "DELETE FROM holders WHERE holder_id = %s OR expires_at < clock_timestamp()"
DRIVER: Final = "hashtextextended('planwave driver', 0)"
"""The lock of the one process that drives executions, in SQL."""
_DRIVE: Final = f"SELECT pg_try_advisory_lock({DRIVER})"


class Holder:
    """The row of one opening, renewed by a thread.

    Args:
        transactions: A connection of its own: the writer's may be busy for as long as a lease.
        holder_id: Its id, which stands in what it claims.
        lease_s: How long it counts as alive after it said so last, by the clock of the server.
    """

    def __init__(
        self, transactions: PostgresTransactions, holder_id: str, lease_s: float = LEASE_S
    ) -> None:
        self._transactions = transactions
        self._id = holder_id
        self._lease_s = lease_s
        self._drives = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="planwave-holder", daemon=True)

    def start(self, *, drives: bool) -> None:
        """Say that it is alive, and again and again from now on.

        Args:
            drives: Whether it drives executions, as one opening at a time does.

        Raises:
            StoreError: ``storage-locked``: another one drives them.
            psycopg.Error, sqlalchemy.exc.DBAPIError: The server does not answer.
        """
        self._drives = drives
        if drives and not self._drive():
            raise StoreError(
                "another process drives the executions of this database",
                code="storage-locked",
                hint="send commands to that process, or wait until it ends",
            )
        self._say_alive()
        self._thread.start()

    def stop(self) -> None:
        """Withdraw: what is still claimed is free at once."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
            with suppress(psycopg.Error, DBAPIError):
                self._commit(_WITHDRAW, (self._id,))
        self._transactions.close()

    def _run(self) -> None:
        while not self._ended.wait(self._lease_s / _BEATS_A_LEASE):
            # A server that does not answer is asked again by the next beat.
            with suppress(psycopg.Error, DBAPIError, StoreError):
                self._say_alive()
                if self._drives:
                    self._drive()  # the lock went with a connection that was lost

    def _say_alive(self) -> None:
        self._commit(_SAY_ALIVE, (self._id, self._lease_s, __version__))

    def _drive(self) -> bool:
        return bool(self._commit(_DRIVE, ()))

    def _commit(self, sql: str, values: tuple[object, ...]) -> object:
        """Run a statement in a transaction of its own; return its first value, if it has rows."""
        try:
            self._transactions.begin()
            result = self._transactions.connection.exec_driver_sql(sql, values)
            value = result.scalar() if result.returns_rows else None
            self._transactions.commit()
        except BaseException:
            self._transactions.roll_back()
            raise
        return value
