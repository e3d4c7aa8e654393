"""How a database of PostgreSQL gets its tables, and how those of an older version are brought up to date.

The table ``schema_version`` has one row: the version, and the hash of the tables of that version. Processes that
start together migrate one after the other, under a lock. From the first release on, old and new processes run
together while an installation is upgraded: a version only adds to the tables, and what it no longer needs is
removed by a later one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from planwave.errors import SchemaTooNew, StoreError
from planwave.storage.postgres.connection import LOCK_TIMEOUT_MS
from planwave.storage.sql.schema import metadata, shared_metadata

SCHEMA_VERSION: Final = 1
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('planwave schema', 0))"
_MAKE_VERSION: Final = (
    "CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL, hash text NOT NULL)"
)


def statements() -> list[str]:
    """Return the statements that make all tables and indexes."""
    dialect = postgresql.dialect()
    return [
        each
        for tables in (metadata, shared_metadata)
        for table in tables.sorted_tables
        if table.name != "schema_hash"
        for each in (str(CreateTable(table).compile(dialect=dialect)), *_indexes(table, dialect))
    ]


def _indexes(table: Table, dialect: Dialect) -> Iterator[str]:
    """Yield the statements that make the indexes of a table, in the order of their names.

    The tables state the conditions of partial indexes for SQLite, in SQL that PostgreSQL reads too: to state them
    twice would import its dialect for each user of a directory.
    """
    for index in sorted(table.indexes, key=lambda each: str(each.name)):
        condition = index.dialect_options["sqlite"]["where"]
        only = "" if condition is None else f" WHERE {condition}"
        yield f"{CreateIndex(index).compile(dialect=dialect)}{only}"


def schema_hash() -> str:
    """Return the hash of the statements that make the tables of this version."""
    return hashlib.sha256("\n".join(statements()).encode()).hexdigest()


def migrate(connection: Connection) -> None:
    """Bring a database to the present schema in one transaction: wholly, or not at all.

    Raises:
        SchemaTooNew: A newer planwave made the tables.
        StoreError: ``storage-of-another-build``.
    """
    connection.exec_driver_sql("BEGIN")
    try:
        # Two processes that make a table at a time fail, also with IF NOT EXISTS.
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")  # another process migrates first
        connection.exec_driver_sql(_LOCK)
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        connection.exec_driver_sql(_MAKE_VERSION)
        row = connection.exec_driver_sql("SELECT version, hash FROM schema_version").first()
        if row is None:
            for statement in statements():
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql(
                "INSERT INTO schema_version (version, hash) VALUES (%s, %s)",
                (SCHEMA_VERSION, schema_hash()),
            )
        else:
            _require_known(*row)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise


def require_current(connection: Connection) -> None:
    """Check that a database has the tables of this planwave, without a change.

    Raises:
        SchemaTooNew, StoreError: They are those of another one, or there are none.
    """
    if connection.exec_driver_sql("SELECT to_regclass('schema_version')").scalar() is None:
        raise StoreError(
            "the database has no tables of planwave yet",
            code="store-unusable",
            hint="start planwave serve with it once",
        )
    _require_known(*connection.exec_driver_sql("SELECT version, hash FROM schema_version").one())


def _require_known(version: int, of_version: str) -> None:
    """Check that the tables are those of this planwave.

    Raises:
        SchemaTooNew, StoreError: They are not.
    """
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"the database has schema {version}, this planwave knows up to {SCHEMA_VERSION}",
            hint="use the planwave that made it, or a newer one",
        )
    if of_version != schema_hash():
        raise StoreError(
            "another build of planwave made the tables of the database, and they differ",
            code="storage-of-another-build",
            hint="keep a dump of it, which only that build can read, and start with an empty database",
        )
