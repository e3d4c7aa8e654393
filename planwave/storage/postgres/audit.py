"""The files of the audit log as rows of a database, each process its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import psycopg

from planwave.storage.audit import LogEnd, end_of
from planwave.storage.postgres.connection import connect_raw, database_unusable

_NAMES: Final = "SELECT DISTINCT file FROM audit_lines ORDER BY file"
_READ: Final = "SELECT line FROM audit_lines WHERE file = %s ORDER BY number"
_APPEND: Final = (
    "INSERT INTO audit_lines (file, number, line) SELECT %s, * FROM unnest(%s::int[], %b::text[])"
)
_ENDS: Final = (
    "SELECT file, number, line FROM audit_lines JOIN ("
    "SELECT file, max(number) AS number FROM audit_lines GROUP BY file ORDER BY file DESC LIMIT 20"
    ") AS newest USING (file, number) ORDER BY file DESC"
)
_DELETE: Final = "DELETE FROM audit_lines WHERE file = ANY(%s)"


class PostgresAuditFiles:
    """Satisfies ``AuditFiles`` by the table ``audit_lines``, with a connection of its own.

    Args:
        url: The URL of the database.
    """

    is_shared = True
    location = "the database"

    def __init__(self, url: str) -> None:
        self._url = url
        self._raw: psycopg.Connection[Any] | None = None

    def names(self) -> list[str]:
        """Return the names of the files, oldest first."""
        return [row[0] for row in self._rows(_NAMES)]

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return b"".join(row[0].encode() + b"\n" for row in self._rows(_READ, (name,)))

    def append(self, name: str, number: int, lines: Sequence[bytes]) -> None:
        """Append lines to a file; see ``AuditFiles``."""
        texts = [line.decode().removesuffix("\n") for line in lines]
        numbers = list(range(number, number + len(texts)))
        self._rows(_APPEND, (name, numbers, texts))

    def ends(self) -> list[LogEnd]:
        """Return the ends of the newest files, the newest first."""
        found: list[LogEnd] = []
        for file, number, line in self._rows(_ENDS):
            end = end_of(file, line.encode() + b"\n")
            found += [] if end is None else [end._replace(lines=number)]
        return found

    def prune(self, before: datetime) -> int:
        """Delete the oldest files whose last entry is older than a time, but the newest; return how many."""
        old: list[str] = []
        for name in self.names()[:-1]:
            # A later one may end earlier: it stays, so that what is there is all from one file on.
            if _last_time(self.read(name)) >= before.isoformat(timespec="microseconds"):
                break
            old.append(name)
        self._rows(_DELETE, (old,))
        return len(old)

    def close(self) -> None:
        """Close the connection."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement; return its rows.

        Raises:
            StoreError: ``database-unusable``: the server does not answer, or has no tables of planwave.
        """
        try:
            if self._raw is None or self._raw.closed:
                self._raw = connect_raw(self._url, None)
            cursor = self._raw.execute(sql.encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []
        except psycopg.Error as error:
            self.close()
            raise database_unusable(self._url, error) from error


def _last_time(content: bytes) -> str:
    return str(json.loads(content.splitlines()[-1]).get("at", ""))
