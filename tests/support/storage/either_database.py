"""The place of what one process stores that drives alone: a directory, or a database of PostgreSQL."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore


class Place(NamedTuple):
    """Where a process stores.

    Attributes:
        directory: What it owns.
        database_url: Its database, where that is not in the directory.
    """

    directory: Path
    database_url: str | None = None

    @property
    def documents(self) -> Path | None:
        """Where the documents of executions are written, if they are."""
        return self.directory if self.database_url is None else None

    def open(self) -> Store:
        """Open the store as the process that drives."""
        if self.database_url is None:
            return SqliteStore.open(self.directory)
        from planwave.storage.postgres.store import PostgresStore

        return PostgresStore.open(self.database_url, directory=self.directory)

    def open_to_read(self) -> Store:
        """Open the store beside that process."""
        if self.database_url is None:
            return SqliteStore.open(self.directory, read_only=True)
        from planwave.storage.postgres.store import PostgresStore

        return PostgresStore.open(self.database_url, read_only=True)

    def wait_until_left(self) -> None:
        """Wait until the server has noticed that the processes of the database have ended; blocking."""
        if self.database_url is None:
            return
        import psycopg

        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        with closing(psycopg.connect(self.database_url, autocommit=True)) as connection:
            while connection.execute(others).fetchone() != (0,):
                time.sleep(0.005)
