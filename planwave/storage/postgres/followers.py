"""Which openings have clients that follow an execution that is cancelled when the last one leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from sqlalchemy import Connection, text

from planwave.storage.sql.locks import lock

_IS_ALIVE: Final = "EXISTS (SELECT 1 FROM holders h WHERE h.holder_id = f.holder_id AND h.expires_at > clock_timestamp())"
_ADD: Final = text(
    "INSERT INTO followers (execution_id, holder_id) VALUES (:of, :me) ON CONFLICT DO NOTHING"
)
_REMOVE: Final = text(
    f"DELETE FROM followers f WHERE execution_id = :of AND (holder_id = :me OR NOT {_IS_ALIVE})"  # noqa: S608
)
_COUNT: Final = text("SELECT count(*) FROM followers WHERE execution_id = :of")
_LEFT: Final = text(
    "SELECT execution_id FROM followers f GROUP BY execution_id "  # noqa: S608
    f"HAVING NOT bool_or({_IS_ALIVE}) ORDER BY execution_id"
)


class PostgresFollowers:
    """Satisfies ``SharedFollowers`` by the table ``followers``: a row for each opening that has clients.

    Args:
        read: Runs a query.
        write: Commits a change.
        holder_id: This opening.
    """

    def __init__(
        self,
        read: Callable[[Callable[[Connection], Any]], Awaitable[Any]],
        write: Callable[[Callable[[Connection], Any]], Awaitable[Any]],
        holder_id: str,
    ) -> None:
        self._read, self._write, self._me = read, write, holder_id

    async def add(self, execution_id: str) -> None:
        """Say that this opening has a client; see ``SharedFollowers``."""
        row = {"of": execution_id, "me": self._me}
        await self._write(lambda connection: connection.execute(_ADD, row))

    async def remove(self, execution_id: str) -> bool:
        """Say that it has none; return whether no opening has."""
        row = {"of": execution_id, "me": self._me}

        def change(connection: Connection) -> bool:
            # Of two that leave at a time, one is the last.
            lock(connection, "followers", execution_id)
            connection.execute(_REMOVE, row)
            return not connection.execute(_COUNT, row).scalar_one()

        return await self._write(change)

    async def left(self) -> list[str]:
        """Return the executions that only openings follow that are not alive."""

        def query(connection: Connection) -> list[str]:
            return list(connection.execute(_LEFT).scalars())

        return await self._read(query)
