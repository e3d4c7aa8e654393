"""The approved tools of MCP servers in the store, and their statements."""

from __future__ import annotations

from sqlalchemy import Connection, select

from planwave.storage.event_codec import storable_text
from planwave.storage.sql.dialects import upsert
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import approved_tools


class SqlApprovedTools:
    """How the tools of MCP servers were described when a person last approved a call of each.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def fingerprint(self, server: str, tool: str) -> str | None:
        """Return the fingerprint of a tool; None if no call of it was ever approved."""
        columns = approved_tools.c
        statement = select(columns.fingerprint).where(
            columns.server == storable_text(server), columns.tool == storable_text(tool)
        )
        return await self._read(lambda connection: connection.execute(statement).scalar())

    async def approve(self, server: str, tool: str, fingerprint: str) -> None:
        """Store the fingerprint of a tool; durable on return."""
        row = {
            "server": storable_text(server),
            "tool": storable_text(tool),
            "fingerprint": fingerprint,
        }

        def change(connection: Connection) -> None:
            new = upsert(connection, approved_tools).values(row)
            connection.execute(
                new.on_conflict_do_update(
                    index_elements=["server", "tool"], set_={"fingerprint": fingerprint}
                )
            )

        await self._write(change)
