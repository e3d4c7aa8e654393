"""The sessions of browsers that were closed before their end, and the key that signs them, for all processes."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_bytes
from typing import Final

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from planwave.storage.notices import Notices
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import closed_sessions, secret_keys

_KEY_NAME: Final = "session"


class SharedSessions:
    """Closed sessions, in the table of this name.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change.
        notices: Tells other processes.
    """

    def __init__(
        self,
        read: Read,
        write: Write,
        notices: Notices,
    ) -> None:
        self._read, self._write, self._notices = read, write, notices

    async def key(self, size: int) -> bytes:
        """Return the random bytes that all processes sign sessions with; the first process makes them."""
        made = insert(secret_keys).values(name=_KEY_NAME, key=token_bytes(size))
        stored = select(secret_keys.c.key).where(secret_keys.c.name == _KEY_NAME)

        def change(connection: Connection) -> bytes:
            connection.execute(made.on_conflict_do_nothing())
            return bytes(connection.execute(stored).scalar_one())

        return await self._write(change)

    async def closed(self, now: float) -> dict[str, float]:
        """Return when each closed session would have ended; those that have are left out. Seconds since the epoch."""
        statement = select(closed_sessions).where(closed_sessions.c.ends_at > now)
        rows = await self._read(lambda connection: connection.execute(statement).all())
        return {row.claims: row.ends_at for row in rows}

    async def close(self, sessions: Mapping[str, float], now: float) -> None:
        """Store that sessions are closed, until when each would have ended; delete those that have."""
        rows = [{"claims": claims, "ends_at": ends_at} for claims, ends_at in sessions.items()]

        def change(connection: Connection) -> None:
            connection.execute(delete(closed_sessions).where(closed_sessions.c.ends_at <= now))
            connection.execute(insert(closed_sessions).on_conflict_do_nothing(), rows)

        await self._write(change)
        self._notices.publish("sessions", "")
