"""How a database gets its tables, and how one of an older schema version is brought up to date.

A database holds the number of its schema version (``PRAGMA user_version``) and the hash of the tables of
that version (``schema_hash``). Until the first release there is one version, whose tables change in place: a
database with another hash is refused and stays as it is. From the release on a change of the tables is a new
version, and a ``Migration`` from the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from planwave.errors import SchemaTooNew, StoreError
from planwave.storage.sql.schema import SCHEMA_HASH, create_tables


class Migration(NamedTuple):
    """A step from one schema version to the next.

    Attributes:
        schema_hash: ``SCHEMA_HASH`` of the version before.
        change: Changes the tables and what is in them.
    """

    schema_hash: str
    change: Callable[[Connection], None]


MIGRATIONS: Final[tuple[Migration, ...]] = ()
"""Step ``i`` takes a database from version ``i + 1`` to ``i + 2``."""

SCHEMA_VERSION: Final = len(MIGRATIONS) + 1


def version_of(connection: Connection) -> int:
    """Return the schema version of a database; 0 without tables.

    Raises:
        SchemaTooNew: A newer planwave wrote the database.
        StoreError: ``storage-of-another-build``.
    """
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    schema_hash = _stored_hash(connection)
    if version == 0 and schema_hash is None and _is_empty(connection):
        return 0
    if version > SCHEMA_VERSION and schema_hash is not None:
        raise SchemaTooNew(
            f"the database has schema {version}, this planwave knows up to {SCHEMA_VERSION}",
            hint="use the planwave that wrote it, or a newer one",
        )
    hashes = (*(each.schema_hash for each in MIGRATIONS), SCHEMA_HASH)
    if not 0 < version <= SCHEMA_VERSION or schema_hash != hashes[version - 1]:
        raise StoreError(
            "another build of planwave wrote the database, with other tables",
            code="storage-of-another-build",
            hint="keep a copy of its directory, which only that build can read, and start with an empty "
            "directory",
        )
    return version


def _stored_hash(connection: Connection) -> str | None:
    table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_hash'"
    if connection.exec_driver_sql(table).first() is None:
        return None
    return connection.exec_driver_sql("SELECT hash FROM schema_hash").scalar_one_or_none()


def _is_empty(connection: Connection) -> bool:
    return connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").first() is None


def migrate(connection: Connection) -> None:
    """Bring a database to the present schema in one transaction: wholly, or not at all.

    Raises:
        SchemaTooNew: A newer planwave wrote it.
        StoreError: ``storage-of-another-build``.
    """
    version = version_of(connection)
    if version == SCHEMA_VERSION:
        return
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        if version == 0:
            create_tables(connection)
        else:
            for step in MIGRATIONS[version - 1 :]:
                step.change(connection)
        connection.exec_driver_sql("DELETE FROM schema_hash")
        connection.exec_driver_sql("INSERT INTO schema_hash (hash) VALUES (?)", (SCHEMA_HASH,))
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(DBAPIError):  # a full disk may have undone it already
            connection.exec_driver_sql("ROLLBACK")
        raise
