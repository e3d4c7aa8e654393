"""Copying a storage directory into a database of PostgreSQL: wholly and verified, or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import Connection as RawConnection
from psycopg import Cursor, sql
from sqlalchemy import ColumnElement, Connection, Table, literal, select, true
from sqlalchemy.exc import DBAPIError

from planwave.errors import Conflict, StoreError
from planwave.graph.diagnostics import short_repr
from planwave.storage.audit import DirectoryFiles
from planwave.storage.files import ARTIFACT_DIR
from planwave.storage.lock import DirectoryLock
from planwave.storage.postgres.connection import connect, database_unusable
from planwave.storage.postgres.leader_lock import LEADER_KEY
from planwave.storage.postgres.migrations import migrate
from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.sql.dialects import KEY
from planwave.storage.sql.errors import cause_of, is_of_content
from planwave.storage.sql.schema import (
    artifact_uses,
    artifacts,
    audit_lines,
    executions,
    links,
    metadata,
)
from planwave.storage.sqlite.connection import DATABASE_NAME, open_for_reading
from planwave.storage.sqlite.connection import database_unusable as directory_unusable

_TABLES: Final = tuple(each for each in metadata.sorted_tables if each.name != "schema_hash")
_COPIED: Final[Mapping[str, ColumnElement[bool]]] = {"links": links.c.ended.is_not(None)}
"""Of tables that are not copied whole, the rows that are. A link opens something in one place; one that has ended stays
so, that no notification that waits creates it again."""
_CHUNK: Final = 500
"""Rows that are read, or compared, at a time."""


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """What was copied.

    Attributes:
        rows: The number of rows by table.
        artifacts: The number of large values.
        audit_lines: The number of lines of the audit log.
    """

    rows: dict[str, int]
    artifacts: int
    audit_lines: int


def copy_directory(directory: Path, url: str) -> StoreCopy:
    """Copy all that a directory keeps, but its open links, into an empty database; the directory stays as it is.

    The sessions of browsers end, as the key that signs them is the database's own. All is read back and compared before
    the commit. Nothing may write to either meanwhile.

    Args:
        directory: A storage directory of this schema.
        url: The URL of the database.

    Raises:
        StoreError: ``storage-locked``: a process writes to the directory; ``store-unusable``, ``database-unusable``,
            ``copy-differs``; ``not-storable``: PostgreSQL cannot store a row, which the message names;
            ``large-results-missing``: one that an execution uses is not in the directory, or was changed.
        Conflict: ``store-not-empty``: the database keeps something already.
        SchemaTooNew: A newer planwave wrote one of them.
        InputError: ``storage-untrusted``: an older planwave wrote the directory.
        OSError: The directory cannot be read.
    """
    if not (directory / DATABASE_NAME).is_file():
        raise StoreError(
            f"nothing is stored in {str(directory)!r}",
            code="store-unusable",
            hint="name a storage directory of planwave",
        )
    lock = DirectoryLock(directory)
    engine = None
    try:
        engine = open_for_reading(directory / DATABASE_NAME, migrates=False)
        target = PostgresTransactions(partial(connect, url))
        try:
            migrate(target.connection)
            with engine.connect() as source:
                target.begin()
                copied = _copy(directory, source, target.connection)
                target.commit()
        finally:
            target.roll_back()
            target.close()
    except (psycopg.Error, sqlite3.Error, DBAPIError) as error:
        if isinstance(cause_of(error), sqlite3.Error):
            raise directory_unusable(directory / DATABASE_NAME, error) from error
        raise database_unusable(url, error) from error
    finally:
        if engine is not None:
            engine.dispose()
        lock.release()
    return copied


def _copy(directory: Path, source: Connection, target: Connection) -> StoreCopy:
    target.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
    if not target.exec_driver_sql(f"SELECT pg_try_advisory_xact_lock({LEADER_KEY})").scalar_one():
        raise StoreError(
            "a process drives the executions of the database",
            code="storage-locked",
            hint="end that one first",
        )
    for table in _TABLES:
        if target.execute(select(literal(1)).select_from(table).limit(1)).first() is not None:
            raise Conflict(
                f"the database keeps something already, in the table {table.name}",
                code="store-not-empty",
                hint="copy into an empty database",
            )
    raw: Any = target.connection.driver_connection
    counts = {table.name: _copy_table(source, raw, table) for table in _TABLES}
    for table in _TABLES:
        _compare(source, target, table)
        _set_sequence(raw, table)
    return StoreCopy(
        counts, _copy_artifacts(directory, source, raw), _copy_audit_log(directory, raw)
    )


class _Row(NamedTuple):
    """A row as both databases can keep it.

    Attributes:
        key: Its primary key.
        values: Its columns.
        is_moved: Whether the key is another one now, which comes later in the order.
    """

    key: tuple[Any, ...]
    values: list[Any]
    is_moved: bool


def _rows(connection: Connection, table: Table) -> Iterator[_Row]:
    """Yield the rows of a table in the order of its primary key."""
    query = select(table).where(_is_copied(table)).order_by(*table.primary_key.columns)
    result = connection.execution_options(yield_per=_CHUNK).execute(query)
    of_key = [index for index, column in enumerate(table.c) if column.primary_key]
    for row in result:
        values = [
            value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value
            for value in row
        ]
        key = tuple(values[index] for index in of_key)
        yield _Row(key, values, key != tuple(row[index] for index in of_key))


def _is_copied(table: Table) -> ColumnElement[bool]:
    return _COPIED.get(table.name, true())


def _copy_table(source: Connection, raw: RawConnection[Any], table: Table) -> int:
    """Copy the rows of a table; return their number.

    Raises:
        StoreError: ``not-storable``: one of them cannot be stored in PostgreSQL.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(table.name), sql.SQL(", ").join(sql.Identifier(c.name) for c in table.c)
    )
    count = 0
    cursor: Cursor[Any]
    try:
        with raw.cursor() as cursor, cursor.copy(statement) as copy:
            for row in _rows(source, table):
                copy.write_row(row.values)
                count += 1
    except psycopg.Error as error:
        line = re.search(r"line (\d+)", error.diag.context or "")
        if not (is_of_content(error) and line):
            raise
        raise _not_storable(source, table, int(line[1]), error) from error
    return count


def _not_storable(source: Connection, table: Table, line: int, error: psycopg.Error) -> StoreError:
    key = table.primary_key.columns
    rows = select(*key).where(_is_copied(table)).order_by(*key)
    refused = source.execute(rows.offset(line - 1).limit(1)).first()
    named = ", ".join(map(short_repr, refused or ()))
    return StoreError(
        f"the row {named} of the table {table.name} cannot be stored in PostgreSQL, which has no NUL in texts, and no "
        f"keys above 2,700 bytes: {error.diag.message_primary}",
        code="not-storable",
        hint="delete in the directory what the row belongs to, then copy again; nothing was copied",
    )


def _compare(source: Connection, target: Connection, table: Table) -> None:
    """Check that both have the same rows of a table.

    Raises:
        StoreError: ``copy-differs``.
    """
    moved: dict[tuple[Any, ...], list[Any]] = {}
    copied = _rows(target, table)

    def next_copied() -> list[Any] | None:
        for row in copied:
            if moved.pop(row.key, None) != row.values:
                return row.values
        return None

    for row in _rows(source, table):
        if row.is_moved:
            moved[row.key] = row.values  # before it comes in the copy
        elif next_copied() != row.values:
            raise _differs(table)
    if next_copied() is not None or moved:
        raise _differs(table)


def _differs(table: Table) -> StoreError:
    return StoreError(
        f"the copy of the table {table.name} is not the same; nothing was copied",
        code="copy-differs",
        hint="see that nothing writes to the database, then try again",
    )


def _set_sequence(raw: RawConnection[Any], table: Table) -> None:
    """Have new rows of a table numbered after those that were copied."""
    for column in table.primary_key.columns:
        if column.type is KEY:
            raw.execute(
                sql.SQL(
                    "SELECT setval(pg_get_serial_sequence({table}, {name}), "
                    "(SELECT coalesce(max({column}), 0) + 1 FROM {of}), false)"
                ).format(
                    table=sql.Literal(table.name),
                    name=sql.Literal(column.name),
                    column=sql.Identifier(column.name),
                    of=sql.Identifier(table.name),
                )
            )


def _copy_artifacts(directory: Path, source: Connection, raw: RawConnection[Any]) -> int:
    """Copy the large values that executions use; return their number.

    Raises:
        StoreError: ``large-results-missing``, ``copy-differs``.
    """
    stored, missing = 0, list[str]()
    used = select(artifact_uses.c.digest).distinct().order_by(artifact_uses.c.digest)
    for digest in source.execute(used).scalars().all():
        path = _artifact_path(directory, digest)
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != digest:
            missing.append(digest)
            continue
        raw.execute("INSERT INTO artifacts (digest, content) VALUES (%s, %s)", (digest, content))
        stored += 1
    if missing:
        raise _missing(directory, source, missing)
    read = raw.execute(
        "SELECT count(*) FROM artifacts WHERE encode(sha256(content), 'hex') = digest"
    )
    if read.fetchone() != (stored,):
        raise _differs(artifacts)
    return stored


def _artifact_path(directory: Path, digest: str) -> Path:
    return directory / ARTIFACT_DIR / f"{os.path.basename(digest)}.json"


def _missing(directory: Path, source: Connection, digests: Sequence[str]) -> StoreError:
    users = select(executions.c.execution_id).join(
        artifact_uses, artifact_uses.c.execution == executions.c.key
    )
    of_first = users.where(artifact_uses.c.digest == digests[0]).order_by(executions.c.execution_id)
    user = source.execute(of_first.limit(1)).scalar()
    more = f", and {len(digests) - 1} more" if len(digests) > 1 else ""
    return StoreError(
        f"a large result of the execution {user} is missing or was changed: "
        f"{_artifact_path(directory, digests[0])}{more}; nothing was copied",
        code="large-results-missing",
        hint="put the file back from a backup, or delete the execution in the directory, then copy again",
    )


def _copy_audit_log(directory: Path, raw: RawConnection[Any]) -> int:
    """Copy the lines of the audit log as they are, so that their chain holds; return their number.

    Raises:
        StoreError: ``copy-differs``.
    """
    files, count = DirectoryFiles(directory), 0
    for name in files.names():
        # A line that was cut is none; one that holds anything else than text was changed, and stays so.
        content = files.read(name).decode(errors="replace").replace("\0", "\ufffd")
        lines = content.split("\n")[:-1]
        raw.execute(
            "INSERT INTO audit_lines (file, number, line) SELECT %s, * FROM unnest(%s::int[], %s::text[]) "
            "ON CONFLICT DO NOTHING",
            (name, list(range(1, len(lines) + 1)), lines),
        )
        read = raw.execute("SELECT line FROM audit_lines WHERE file = %s ORDER BY number", (name,))
        if [line for (line,) in read] != lines:
            raise _differs(audit_lines)
        count += len(lines)
    return count
