"""What SQLite and PostgreSQL say differently, in the statements that are otherwise the same."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from sqlalchemy import BigInteger, Connection, Integer, Table, Text
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

POSTGRESQL: Final = "postgresql"

KEY: Final = BigInteger().with_variant(Integer, "sqlite")
"""The type of numbers that the database gives to rows; of the rowid in SQLite."""
TEXT: Final = Text().with_variant(Text(collation="C"), POSTGRESQL)
"""The type of texts, compared by their bytes: pages and cursors depend on that order."""

NAMED_PARAMETERS: Final[Mapping[str, Literal["named", "pyformat"]]] = MappingProxyType(
    {"sqlite": "named", POSTGRESQL: "pyformat"}
)
"""The style of parameters in which the driver of each takes a dictionary."""


def upsert(connection: Connection, table: Table) -> Any:
    """Return an insertion into a table that has ``on_conflict_do_update`` and ``on_conflict_do_nothing``."""
    if is_postgresql(connection):
        # Lazy: test_a_directory_needs_nothing_of_postgresql
        from sqlalchemy.dialects.postgresql import insert as postgresql_insert

        return postgresql_insert(table)
    return sqlite_insert(table)


def insert_new(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row; return False, and insert nothing, where it conflicts with one that is there."""
    new = upsert(connection, table).values(row).on_conflict_do_nothing()
    # psycopg's dialect leaves the count of an insertion out otherwise.
    return connection.execute(new, execution_options={"preserve_rowcount": True}).rowcount > 0


def is_postgresql(connection: Connection) -> bool:
    """Whether several processes may write the database at a time."""
    return connection.dialect.name == POSTGRESQL


def database_bytes(connection: Connection) -> int:
    """Return the bytes of a database, without its write-ahead log."""
    if is_postgresql(connection):
        query = "SELECT pg_database_size(current_database())"
        return connection.exec_driver_sql(query).scalar_one()
    pages, page_bytes = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
        for name in ("page_count", "page_size")
    )
    return pages * page_bytes


class position_of(FunctionElement[int]):
    """``position_of(text, part)``: where a part begins in a text, from 1; 0 where it does not occur; also of bytes."""

    name = "position_of"
    type = Integer()
    inherit_cache = True


@compiles(position_of)
def _instr(element: position_of, compiler: Any, **options: Any) -> str:
    return f"instr({compiler.process(element.clauses, **options)})"


@compiles(position_of, POSTGRESQL)
def _position(element: position_of, compiler: Any, **options: Any) -> str:
    text, part = (compiler.process(each, **options) for each in element.clauses)
    return f"position({part} in {text})"
