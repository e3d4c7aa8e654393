"""The transactions of the one connection that writes a database of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from planwave.errors import StoreError
from planwave.storage.artifacts import Artifact
from planwave.storage.files import (
    FileIdentity,
    delete_artifact,
    delete_document,
    free_bytes,
    write_artifact,
)
from planwave.storage.records import DISK_FULL
from planwave.storage.sql.appends import AppendOp
from planwave.storage.sqlite.appends import ExecutionPositions
from planwave.storage.sqlite.connection import DATABASE_NAME
from planwave.storage.sqlite.migrations import SCHEMA_VERSION

_IS_USED: Final = "SELECT 1 FROM artifact_uses WHERE digest = ? LIMIT 1"
_ADD_USE: Final = (
    "INSERT OR IGNORE INTO artifact_uses (digest, execution) "
    "SELECT ?, key FROM executions WHERE execution_id = ?"
)
_MIN_FREE_BYTES: Final = 1024 * 1024
"""Free bytes after which a full disk counts as writable again."""
_PROBE_SQL: Final = f"PRAGMA user_version = {SCHEMA_VERSION}"
"""Writes one page without a change."""


class SqliteTransactions:
    """Satisfies ``WriteTransactions``.

    Args:
        connection: The connection for writing.
        directory: Where large values and documents have files; None for a database in memory.

    Raises:
        OSError: The files of the database are not there.
    """

    def __init__(self, connection: Connection, directory: Path | None) -> None:
        self.connection = connection
        raw: Any = connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._directory = directory
        self._positions = ExecutionPositions(connection)
        self.outbox = self._positions.outbox
        self._files: FileIdentity | None = None
        if directory is not None:
            path = directory / DATABASE_NAME
            self._files = FileIdentity(path, path.with_name(f"{path.name}-wal"))
        self._deleted_executions: set[str] = set()
        self._released_digests: set[str] = set()

    def begin(self) -> None:
        self._raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit, and remove the files that the transaction left unused.

        Raises:
            OSError: The files of the database were deleted or replaced.
        """
        self._raw.execute("COMMIT")
        if self._files is not None:
            self._files.check()
        if self._deleted_executions or self._released_digests:
            self._delete_unreferenced_files()

    def roll_back(self) -> None:
        """Roll back if a transaction is open, and forget all that was cached of it."""
        self._positions.clear()  # they had run ahead of the database
        self._deleted_executions.clear()
        self._released_digests.clear()
        with suppress(sqlite3.Error):
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")

    def execute(self, sql: str) -> object:
        """Run a statement without parameters."""
        return self._raw.execute(sql)

    def roll_back_to(self, savepoint: str) -> None:
        """Roll back to a savepoint, and forget all that was cached since."""
        self._positions.clear()
        self._raw.execute(f"ROLLBACK TO {savepoint}")

    def append(self, steps: Sequence[AppendOp]) -> None:
        """Insert the events of executions; see ``ExecutionPositions.append``."""
        self._positions.append(steps)

    def forget_position(self, execution_id: str) -> None:
        """Drop what is cached of an execution."""
        self._positions.forget(execution_id)

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int:
        """Set the last event of documents on disk; return how many executions there are of these."""
        return self._positions.set_document_seqs(seqs)

    def prepare_artifacts(self, artifacts: Sequence[Artifact]) -> None:
        """Write large values to files of their own.

        Raises:
            OSError: One cannot be written.
        """
        if self._directory is not None:
            for artifact in artifacts:
                write_artifact(self._directory, artifact)

    def add_artifacts(self, artifacts: Sequence[Artifact], execution_id: str) -> None:
        """Note that an execution uses large values."""
        self._raw.executemany(_ADD_USE, [(digest, execution_id) for digest, _ in artifacts])

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Remove the files of those of the large values that nothing uses once this is committed."""
        self._released_digests.update(digests)

    def delete_documents(self, execution_ids: Iterable[str]) -> None:
        """Remove the documents of deleted executions once this is committed."""
        self._deleted_executions.update(execution_ids)

    def probe(self) -> None:
        """Check that something can be written, by a transaction that changes nothing.

        Raises:
            sqlite3.Error, OSError: Nothing can.
        """
        self.begin()
        self._raw.execute(_PROBE_SQL)
        self.commit()

    def is_still_full(self, error: StoreError) -> bool:
        """Whether the disk that filled up still is: a small write succeeds where a large one fails."""
        if error.code != DISK_FULL or self._directory is None:
            return False
        return free_bytes(self._directory) < _MIN_FREE_BYTES

    def _delete_unreferenced_files(self) -> None:
        directory = self._directory
        while self._deleted_executions:
            execution_id = self._deleted_executions.pop()
            if directory is not None:
                delete_document(directory, execution_id)
        while self._released_digests:
            digest = self._released_digests.pop()
            is_used = self._raw.execute(_IS_USED, (digest,)).fetchone() is not None
            if directory is not None and not is_used:
                delete_artifact(directory, digest)
