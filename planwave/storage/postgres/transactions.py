"""The transactions of the connection by which one process writes a database of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import Connection as RawConnection
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from planwave.errors import StoreError
from planwave.storage.artifacts import Artifact
from planwave.storage.postgres.appends import LockedAppends, set_document_seqs
from planwave.storage.sql.appends import AppendOp

_ADD_ARTIFACT: Final = (
    "INSERT INTO artifacts (digest, content) VALUES (%s, %s) "
    "ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest"
)
"""Also locks a value that is there, so that ``_LOCK_ARTIFACTS`` waits for the use that follows."""
_ADD_USE: Final = (
    "INSERT INTO artifact_uses (digest, execution) "
    "SELECT %s, key FROM executions WHERE execution_id = %s ON CONFLICT DO NOTHING"
)
_LOCK_ARTIFACTS: Final = (
    "SELECT digest FROM artifacts WHERE digest = ANY(%s) ORDER BY digest FOR UPDATE"
)
_DELETE_UNUSED: Final = (
    "DELETE FROM artifacts a WHERE a.digest = ANY(%s) "
    "AND NOT EXISTS (SELECT 1 FROM artifact_uses u WHERE u.digest = a.digest)"
)
_PROBE: Final = "SELECT 1 FROM executions LIMIT 1 FOR UPDATE SKIP LOCKED"
"""Fails on a server that takes no writes, such as a standby."""


class PostgresTransactions:
    """Satisfies ``WriteTransactions``; a lost connection is opened again for the next transaction.

    Args:
        connect: Opens a connection for writing.
        is_carried: See ``LockedAppends``.
    """

    def __init__(self, connect: Callable[[], Connection], *, is_carried: bool = False) -> None:
        self._connect, self.is_carried = connect, is_carried
        self._open()
        self._appends = LockedAppends(is_carried=is_carried)
        self.outbox = self._appends.outbox

    def _open(self) -> None:
        self.connection = self._connect()
        # Kept: SQLAlchemy gives none of a connection that was lost or closed, and raises.
        raw: Any = self.connection.connection.driver_connection
        self._raw: RawConnection[Any] = raw

    def begin(self) -> None:
        if self.connection.closed or self.connection.invalidated or self._raw.closed:
            self.close()
            self._open()
        self._raw.execute("BEGIN")

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def roll_back(self) -> None:
        """Roll back if a transaction is open; a connection that was lost has none."""
        with suppress(psycopg.Error):
            if self._raw.info.transaction_status is not TransactionStatus.IDLE:
                self._raw.execute("ROLLBACK")

    def execute(self, sql: str) -> object:
        """Run a statement without parameters."""
        return self.connection.exec_driver_sql(sql)

    def roll_back_to(self, savepoint: str) -> None:
        """Roll back to a savepoint."""
        self.execute(f"ROLLBACK TO {savepoint}")

    def append(self, steps: Sequence[AppendOp]) -> None:
        """Insert the events of executions; see ``LockedAppends.append``."""
        self._appends.append(self.connection, steps)

    def forget_position(self, execution_id: str) -> None:
        """Do nothing: nothing is kept of an execution."""

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int:
        """Set the last event of documents on disk; return how many executions there are of these."""
        return set_document_seqs(self.connection, seqs)

    def prepare_artifacts(self, artifacts: Sequence[Artifact]) -> None:
        """Do nothing: large values are part of the transaction."""

    def add_artifacts(self, artifacts: Sequence[Artifact], execution_id: str) -> None:
        """Store large values, and that an execution uses them."""
        with self._raw.cursor() as cursor:
            cursor.executemany(_ADD_ARTIFACT, sorted(artifacts))
            cursor.executemany(_ADD_USE, [(digest, execution_id) for digest, _ in artifacts])

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Remove those of the large values that nothing uses."""
        released = sorted(digests)
        if released:
            self._raw.execute(_LOCK_ARTIFACTS, (released,))
            # A statement of its own: it sees the uses of the transactions that the one before waited for.
            self._raw.execute(_DELETE_UNUSED, (released,))

    def delete_documents(self, execution_ids: Iterable[str]) -> None:
        """Do nothing: documents are made from the events."""

    def probe(self) -> None:
        """Check that the server answers and takes writes.

        Raises:
            psycopg.Error: It does not.
        """
        self.begin()
        self._raw.execute(_PROBE)
        self._raw.execute("ROLLBACK")

    def is_still_full(self, error: StoreError) -> bool:
        """Only the server knows its disk: the next write says it."""
        return False

    def close(self) -> None:
        """Close the connection, whatever its state."""
        with suppress(psycopg.Error):
            self._raw.close()
        with suppress(psycopg.Error, SQLAlchemyError):
            self.connection.close()
        self.connection.engine.dispose()
