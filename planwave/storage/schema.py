"""The tables, how a database gets them, and how it is opened."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    StaticPool,
    Table,
    Text,
    create_engine,
    func,
    insert,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError

from planwave.errors import SchemaTooNew, StoreError
from planwave.storage.faults import cause_of, is_recoverable
from planwave.storage.files import artifact_digests

DATABASE_NAME: Final = "planwave.db"
BUSY_MS: Final = 5_000
"""How long a statement waits for a lock of a process that does not know ours (a database browser)."""

metadata = MetaData()

plans = Table(
    "plans",
    metadata,
    Column("plan_id", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("user_prompt", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("search", Text, nullable=False),
    Column("document", Text, nullable=False),
    Index("plans_by_age", "created_at", "plan_id"),
)

flows = Table(
    "flows",
    metadata,
    Column("flow_id", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("search", Text, nullable=False),
    Index("flows_by_age", "created_at", "flow_id"),
)

flow_versions = Table(
    "flow_versions",
    metadata,
    Column("flow_id", Text, ForeignKey("flows.flow_id"), primary_key=True),
    Column("version", Text, primary_key=True),
    Column("revision", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("node_count", Integer, nullable=False),
    Column("graph", Text, nullable=False),
    Index("flow_versions_by_age", "flow_id", "created_at", "version"),
)
"""Every content a flow ever had, once; ``flows.version`` is the present one."""

executions = Table(
    "executions",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("execution_id", Text, nullable=False, unique=True),
    Column("plan_id", Text),
    Column("status", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("started_at", Text),
    Column("completed_at", Text),
    Column("document_seq", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("queued", Integer, nullable=False, server_default=text("0")),
    Column("flow_id", Text),
    Column("flow_version", Text),
    Index("executions_by_age", "created_at", "execution_id"),
    Index("executions_by_status", "status", "created_at", "execution_id"),
    Index("executions_by_plan", "plan_id", "created_at", "execution_id"),
    Index(
        "executions_by_flow",
        "flow_id",
        "created_at",
        "execution_id",
        sqlite_where=text("flow_id IS NOT NULL"),
    ),
)
"""``last_seq`` is not here: it is the greatest ``last`` of ``batches``."""

execution_texts = Table(
    "execution_texts",
    metadata,
    Column("execution", Integer, ForeignKey("executions.key"), primary_key=True),
    Column("title", Text, nullable=False),
    Column("user_prompt", Text, nullable=False),
    Column("search", Text, nullable=False),
)
"""Apart from ``executions``, whose rows are rewritten with every change of status."""

batches = Table(
    "batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("execution", Integer, ForeignKey("executions.key"), nullable=False),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    Column("events", Text, nullable=False),
    Index("batches_in_order", "execution", "first", unique=True),
)
"""Events as they were appended: one row for each batch, ``rows.EncodedBatch`` says how.

A batch is written, read and made durable as one, and a row for each event would cost more than all
else that is done to keep it. A rowid table on purpose: long rows cost four times as much in a
WITHOUT ROWID table."""

calls = Table(
    "calls",
    metadata,
    Column("execution_id", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("request_hash", Text, primary_key=True),
    Column("reply", Text, nullable=False),
)

artifact_uses = Table(
    "artifact_uses",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("execution", Integer, ForeignKey("executions.key"), primary_key=True),
    Index("artifact_uses_by_execution", "execution"),
)
"""Which executions refer to a value in a file of its own; several may share one."""

answers = Table(
    "answers",
    metadata,
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("status", Integer),
    Column("body", Text),
    Column("created_at", Text, nullable=False),
    Index("answers_by_age", "created_at"),
)
"""Requests under their idempotency keys. ``holder`` is the opening of the store that works, or
worked, on it: of another one than the present it is dead, for one process writes at a time."""


def _batch_events(connection: Connection) -> None:
    """Up to version 1 there was a row for each event."""
    batches.create(connection)
    connection.exec_driver_sql(
        "INSERT INTO batches (execution, first, last, events) SELECT execution, seq, seq, "
        "'[[' || json_quote(at) || ',' || json_quote(type) || ',' || data || ',' || "
        "json_quote(path) || ',' || json_quote(attempt) || ']]' FROM events ORDER BY id"
    )
    connection.exec_driver_sql("DROP TABLE events")


def _index_lists(connection: Connection) -> None:
    """Up to version 2 there was no way to delete, no idempotency, and lists were short."""
    artifact_uses.create(connection)
    answers.create(connection)
    connection.exec_driver_sql("DROP INDEX executions_by_status")
    for index in executions.indexes:
        if index.name in ("executions_by_status", "executions_by_plan"):
            index.create(connection)
    found = connection.execute(
        select(batches.c.execution, batches.c.events).where(
            func.instr(batches.c.events, '"artifact":') > 0
        )
    )
    uses = {(digest, execution) for execution, text in found for digest in artifact_digests(text)}
    for digest, execution in sorted(uses):
        connection.execute(insert(artifact_uses).values(digest=digest, execution=execution))


def _note_queued(connection: Connection) -> None:
    """Up to version 3 a queued start did not outlive its process."""
    connection.exec_driver_sql(
        "ALTER TABLE executions ADD COLUMN queued INTEGER DEFAULT 0 NOT NULL"
    )


def _add_flows(connection: Connection) -> None:
    """Up to version 4 there were no flows."""
    flows.create(connection)
    flow_versions.create(connection)
    for column in ("flow_id", "flow_version"):
        connection.exec_driver_sql(f"ALTER TABLE executions ADD COLUMN {column} TEXT")
    for index in executions.indexes:
        if index.name == "executions_by_flow":
            index.create(connection)


MIGRATIONS: Final = (_batch_events, _index_lists, _note_queued, _add_flows)
"""Step ``i`` takes a database from version ``i + 1`` to ``i + 2``."""

SCHEMA_VERSION: Final = len(MIGRATIONS) + 1


def writing_connection(path: Path) -> sqlite3.Connection:
    """Open a database for writing: WAL, ``synchronous=FULL``, foreign keys, own transactions."""
    raw = sqlite3.connect(
        path,
        timeout=BUSY_MS / 1_000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("PRAGMA synchronous=FULL")
        raw.execute("PRAGMA foreign_keys=ON")
    except sqlite3.Error:
        raw.close()
        raise
    return raw


def reading_connection(path: Path, *, unchanging: bool = False) -> sqlite3.Connection:
    """Open a database that another connection, here or in another process, may be writing.

    Args:
        path: The database.
        unchanging: Nobody is writing; then not even SQLite's own lock files are needed.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if unchanging else ''}",
        uri=True,
        timeout=BUSY_MS / 1_000,
        check_same_thread=False,
    )


def engine_of(raw: sqlite3.Connection) -> Engine:
    """Give an engine whose only connection is this one; transactions are begun by hand."""
    return create_engine(
        "sqlite://", creator=lambda: raw, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )


def reading_engine(path: Path, *, unchanging: bool = False) -> Engine:
    """Give an engine for reading from several threads; see :func:`reading_connection`."""
    return create_engine(
        f"sqlite:///{path}", creator=lambda: reading_connection(path, unchanging=unchanging)
    )


def has_wal(path: Path) -> bool:
    """Say whether a database has a log: it is being written, or its writer was killed.

    The last connection to a database that closes takes its log away.
    """
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def empty_engine() -> Engine:
    """Give an engine over tables without rows, for a directory in which nothing is stored yet."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    metadata.create_all(engine)
    return engine


def version_of(connection: Connection) -> int:
    """Give the schema version of a database; 0 for one without tables.

    Raises:
        SchemaTooNew: A newer planwave wrote it.
    """
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(
            f"the database has schema {version}, this planwave knows up to {SCHEMA_VERSION}",
            hint="use the planwave that wrote it, or a newer one",
        )
    return version


def migrate(connection: Connection) -> None:
    """Bring a database to the present schema in one transaction: wholly, or not at all.

    Raises:
        SchemaTooNew: A newer planwave wrote it.
    """
    version = version_of(connection)
    if version == SCHEMA_VERSION:
        return
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        if version == 0:
            metadata.create_all(connection, checkfirst=False)
        else:
            for step in MIGRATIONS[version - 1 :]:
                step(connection)
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        with suppress(DBAPIError):  # a full disk may have undone it already
            connection.exec_driver_sql("ROLLBACK")
        raise


def database_unusable(path: Path, error: Exception) -> StoreError:
    """Give the error for a database that cannot be opened."""
    cause = cause_of(error)
    way_out = "restore it from a copy"
    if is_recoverable(cause):
        way_out = "free some space"
    elif isinstance(cause, OSError):
        way_out = "look at the owner and permissions of its directory"
    return StoreError(
        f"{str(path)!r} cannot be opened as a database: {cause}",
        code="store-unusable",
        hint=f"{way_out}, or set PLANWAVE_STORAGE_DIR to another directory",
    )
