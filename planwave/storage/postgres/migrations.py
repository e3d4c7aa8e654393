"""How a database of PostgreSQL gets its tables, and how those of an older version are brought up to date.

Old and new processes run together while an installation is upgraded, so a version comes in two steps. *Expand*
adds to the tables, when a process of the new version starts; older processes go on. *Contract* removes what only
older versions use, once none of their processes is alive; from then on they are refused.

The table ``schema_version`` has one row: the version, the hash of the tables of that version, and ``oldest``, the oldest
version whose processes may use the database. A form of events that older versions cannot read is written from the version
``oldest`` on (``PostgresStore.common_schema``). Two locks keep this true: one for those who change the tables, and one
that a process shares while it says for the first time that it is alive, and that is taken alone to raise ``oldest``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from sqlalchemy import Connection, Dialect, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from planwave.errors import SchemaTooNew, StoreError
from planwave.storage.postgres.connection import LOCK_TIMEOUT_MS
from planwave.storage.sql.schema import metadata, shared_metadata

_IDLE_MS: Final = 60_000


class Migration(NamedTuple):
    """A step from one schema version to the next.

    Attributes:
        schema_hash: ``schema_hash()`` of the version before.
        expand: Statements that add to the tables. Processes of the version before insert rows meanwhile, so a new column
            may be null or has a default.
        contract: Statements that remove what only the versions before use.
    """

    schema_hash: str
    expand: tuple[str, ...] = ()
    contract: tuple[str, ...] = ()


MIGRATIONS: Final[tuple[Migration, ...]] = ()
"""Step ``i`` takes a database from version ``i + 1`` to ``i + 2``. Until the first release there is none: the tables
of the one version change in place."""


class SchemaState(NamedTuple):
    """The tables of a database.

    Attributes:
        version: 0 where there are none.
        schema_hash: The hash of the tables of that version.
        oldest: The oldest version whose processes may use the database.
    """

    version: int = 0
    schema_hash: str = ""
    oldest: int = 0


_CHANGE_TABLES: Final = "SELECT pg_advisory_xact_lock(hashtextextended('planwave schema', 0))"
_RAISE_OLDEST: Final = "SELECT pg_advisory_xact_lock(hashtextextended('planwave oldest', 0))"
KEEP_OLDEST: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended('planwave oldest', 0))"
"""Waits until ``oldest`` is not raised, and keeps it to the end of the transaction."""
_MAKE_VERSION: Final = "CREATE TABLE schema_version (version integer NOT NULL, hash text NOT NULL, oldest integer NOT NULL)"
_ADD_VERSION: Final = "INSERT INTO schema_version (version, hash, oldest) VALUES (%s, %s, %s)"
_ALIVE: Final = (
    "SELECT count(*) FROM holders WHERE schema_version < %s AND expires_at > clock_timestamp()"
)
_LOCK_HOLDERS: Final = "SELECT 1 FROM holders WHERE schema_version < %s FOR SHARE"


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


def schema_state(connection: Connection) -> SchemaState:
    """Return which tables a database has."""
    if connection.exec_driver_sql("SELECT to_regclass('schema_version')").scalar() is None:
        return SchemaState()
    row = connection.exec_driver_sql("SELECT * FROM schema_version").mappings().one()
    return SchemaState(row["version"], row["hash"], row.get("oldest", row["version"]))


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Make the tables of this version, or add what they lack, in one transaction; return the version before.

    Raises:
        SchemaTooNew: A newer planwave made the tables, and does without the older ones.
        StoreError: ``storage-of-another-build``.
    """
    with _changing(connection):
        state = schema_state(connection)
        if not state.version:
            for statement in statements():
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql(_MAKE_VERSION)
            version = len(migrations) + 1
            connection.exec_driver_sql(_ADD_VERSION, (version, schema_hash(), version))
        elif not is_current(state, migrations):
            for step in migrations[state.version - 1 :]:
                for statement in step.expand:
                    connection.exec_driver_sql(statement)
            connection.exec_driver_sql(
                "UPDATE schema_version SET version = %s, hash = %s",
                (len(migrations) + 1, schema_hash()),
            )
    return state.version


def contract(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Remove what only older versions use, unless a process of one is alive; return ``oldest``."""
    version = len(migrations) + 1
    oldest = schema_state(connection).oldest
    if oldest >= version or count_older(connection, version):
        return oldest
    with _changing(connection):
        connection.exec_driver_sql(_RAISE_OLDEST)
        oldest = schema_state(connection).oldest
        # Waits for a process that is just saying that it is alive: its row tells it whether it was in time.
        connection.exec_driver_sql(_LOCK_HOLDERS, (version,))
        if oldest < version and not count_older(connection, version):
            for step in migrations[oldest - 1 :]:
                for statement in step.contract:
                    connection.exec_driver_sql(statement)
            connection.exec_driver_sql("UPDATE schema_version SET oldest = %s", (version,))
            oldest = version
    return oldest


def count_older(connection: Connection, version: int) -> int:
    """Return how many processes of older versions are alive."""
    return connection.exec_driver_sql(_ALIVE, (version,)).scalar_one()


@contextmanager
def _changing(connection: Connection) -> Generator[None]:
    """Change the tables in a transaction; two processes that made a table at a time would fail."""
    connection.exec_driver_sql("BEGIN")
    try:
        # Another process may take its time to change them; a table that is in use is not waited for so long.
        connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
        # A busy machine may stop this process for seconds. Only other processes that start wait for it.
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}")
        connection.exec_driver_sql(_CHANGE_TABLES)
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
        yield
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(SQLAlchemyError):  # a connection that was lost has no transaction
            connection.exec_driver_sql("ROLLBACK")
        raise


def require_current(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Check that this planwave can use the tables of a database, without a change.

    Raises:
        SchemaTooNew, StoreError: It cannot, or there are none.
    """
    state = schema_state(connection)
    if not state.version:
        raise StoreError(
            "the database has no tables of planwave yet",
            code="database-unusable",
            hint="start planwave serve with it once",
        )
    if not is_current(state, migrations):
        raise StoreError(
            f"the database has schema {state.version}, this planwave needs {len(migrations) + 1}",
            code="database-unusable",
            hint="run planwave migrate, or start the new planwave serve with it once",
        )


def is_current(state: SchemaState, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Return whether tables have all that this planwave needs.

    Raises:
        SchemaTooNew: A newer planwave made the tables, and does without the older ones.
        StoreError: ``storage-of-another-build``.
    """
    version = len(migrations) + 1
    if state.oldest > version:
        raise schema_too_new(state, version)
    hashes = (*(each.schema_hash for each in migrations), schema_hash())
    if 0 < state.version <= version and state.schema_hash != hashes[state.version - 1]:
        raise StoreError(
            "another build of planwave made the tables of the database, and they differ",
            code="storage-of-another-build",
            hint="keep a dump of it, which only that build can read, and start with an empty database",
        )
    return state.version >= version


def schema_too_new(state: SchemaState, version: int) -> SchemaTooNew:
    """Return the error for a process that is too old for a database."""
    return SchemaTooNew(
        f"the database has schema {state.version} and is used by planwave of schema {state.oldest} or newer, "
        f"this planwave knows up to {version}",
        hint="use the planwave that made it, or a newer one",
    )
