"""Bringing the tables of a database up to date before its services start, or looking whether there is something to do."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from planwave.storage.postgres.connection import connect, database_unusable
from planwave.storage.postgres.migrations import (
    MIGRATIONS,
    contract,
    count_older,
    is_current,
    migrate,
    schema_state,
)


@dataclass(frozen=True)
class SchemaUpgrade:
    """What was done, or is to be done.

    Attributes:
        version_before: The schema version of the tables before; 0 without tables.
        version: That of this planwave, or a newer one of the tables.
        oldest_before: The oldest schema version whose processes might use the tables before.
        oldest: The oldest one now.
        older_processes: How many processes of older versions are alive.
    """

    version_before: int
    version: int
    oldest_before: int
    oldest: int
    older_processes: int

    @property
    def has_changed(self) -> bool:
        """Whether something was done, or is to be done."""
        return (self.version_before, self.oldest_before) != (self.version, self.oldest)


def upgrade(url: str, *, check_only: bool = False) -> SchemaUpgrade:
    """Bring the tables of a database up to date.

    Args:
        url: The URL of the database.
        check_only: Change nothing; the result is what would be done.

    Raises:
        SchemaTooNew: A newer planwave made the tables, and does without those that this one knows.
        StoreError: ``database-unusable``, ``storage-of-another-build``.
    """
    try:
        connection = connect(url)
        try:
            return _upgrade(connection, check_only)
        finally:
            connection.close()
            connection.engine.dispose()
    except (psycopg.Error, DBAPIError) as error:
        raise database_unusable(url, error) from error


def _upgrade(connection: Connection, check_only: bool) -> SchemaUpgrade:
    before, own = schema_state(connection), len(MIGRATIONS) + 1
    if not check_only:
        migrate(connection)
        contract(connection)
        after = schema_state(connection)
        return SchemaUpgrade(
            before.version, after.version, before.oldest, after.oldest, count_older(connection, own)
        )
    is_current(before)
    version = max(before.version, own)
    older = count_older(connection, own) if before.version else 0
    oldest = before.oldest if older else max(before.oldest, own)
    return SchemaUpgrade(before.version, version, before.oldest, oldest, older)
