"""The links of the store, and their statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, func, select, update

from planwave.principals import Principal, principal_text
from planwave.storage.event_codec import storable_text
from planwave.storage.links import LinkEnd, LinkRecord
from planwave.storage.sql.dialects import insert_new
from planwave.storage.sql.lists import ListQuery, query_parameter
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import links

if TYPE_CHECKING:
    from planwave.storage.records import PageCursor

_LINKS: Final = ListQuery(
    tuple(links.c),
    links,
    links.c.created_at,
    links.c.link_id,
    {
        "execution_id": links.c.execution_id == query_parameter("execution_id"),
        "now": (links.c.expires_at > query_parameter("now")) & links.c.ended.is_(None),
    },
)


class SqlLinks:
    """Links, in the table of this name.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def create(self, link: LinkRecord) -> bool:
        """Store a link; return False, and change nothing, where one of its key exists."""
        row = {**asdict(link), "created_by": principal_text(link.created_by)}
        row["target"] = None if link.target is None else storable_text(link.target)
        return await self._write(lambda connection: insert_new(connection, links, row))

    async def by_digest(self, digest: str) -> LinkRecord | None:
        """Return the link of the digest of a key, also after its end."""
        statement = select(links).where(links.c.digest == digest)
        row = await self._read(lambda connection: connection.execute(statement).first())
        return None if row is None else _from_row(row)

    async def page(
        self,
        now: str,
        *,
        execution_id: str | None = None,
        before: PageCursor | None = None,
        limit: int = 50,
    ) -> Sequence[LinkRecord]:
        """Return the links that still open something, newest first.

        Args:
            now: UTC time.
            execution_id: Only those to this execution.
            before: The position of the last one already seen.
            limit: The most to return.
        """
        chosen = {"now": now, "execution_id": execution_id}
        rows = await self._read(lambda c: _LINKS.page(c, chosen, before, limit))
        return [_from_row(row) for row in rows]

    async def count(self, now: str, execution_id: str) -> int:
        """Return the number of links to an execution that people created and that still open something."""
        statement = (
            select(func.count())
            .select_from(links)
            .where(
                links.c.execution_id == execution_id,
                links.c.target.is_(None),
                links.c.ended.is_(None),
                links.c.expires_at > now,
            )
        )
        return await self._read(lambda connection: connection.execute(statement).scalar_one())

    async def end(self, link_id: str, why: LinkEnd) -> bool:
        """End a link before its time; return whether there is one of this id that had not ended."""
        statement = (
            update(links)
            .where(links.c.link_id == storable_text(link_id), links.c.ended.is_(None))
            .values(ended=why)
        )
        return await self._write(lambda connection: connection.execute(statement).rowcount > 0)

    async def delete_expired(self, before: str) -> None:
        """Delete the links that expired before a UTC time."""
        is_old = links.c.expires_at < before
        found = select(links.c.link_id).where(is_old).limit(1)
        if await self._read(lambda connection: connection.execute(found).first()) is not None:
            await self._write(lambda connection: connection.execute(delete(links).where(is_old)))


def _from_row(row: Sequence[Any]) -> LinkRecord:
    fields: dict[str, Any] = dict(zip(links.c.keys(), row, strict=True))
    fields["created_by"] = Principal.from_text(fields["created_by"])
    return LinkRecord(**fields)
