"""The access tokens of the store, and their statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, select, update

from planwave.principals import Principal, principal_text
from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.event_codec import storable_text
from planwave.storage.sql.flow_names import require_flows
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import access_tokens


class SqlAccessTokens:
    """Access tokens, in the table of this name.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def create(self, token: AccessTokenRecord) -> None:
        """Store a token."""
        row = {
            **asdict(token),
            "name": storable_text(token.name),
            "scopes": json.dumps(token.scopes),
            "flows": json.dumps(token.flows),
            "created_by": principal_text(token.created_by),
        }

        def change(connection: Connection) -> None:
            require_flows(connection, token.flows)
            connection.execute(insert(access_tokens).values(row))

        await self._write(change)

    async def all(self) -> Sequence[AccessTokenRecord]:
        """Return all tokens, newest first."""
        columns = access_tokens.c
        statement = select(access_tokens).order_by(
            columns.created_at.desc(), columns.token_id.desc()
        )
        rows = await self._read(lambda connection: connection.execute(statement).mappings().all())
        return [_from_row(row) for row in rows]

    async def set_last_used(self, uses: Mapping[str, str]) -> None:
        """Store when tokens were used last, UTC by id; unknown ids are ignored, and so is an earlier time."""
        statement = (
            update(access_tokens)
            .where(
                access_tokens.c.token_id == bindparam("own_id"),
                func.coalesce(access_tokens.c.last_used_at, "") < bindparam("at"),
            )
            .values(last_used_at=bindparam("at"))
        )
        rows = [{"own_id": storable_text(each), "at": at} for each, at in uses.items()]
        if rows:
            await self._write(lambda connection: connection.execute(statement, rows))

    async def delete(self, token_id: str) -> bool:
        """Delete a token; return whether there was one of this id."""
        own = access_tokens.c.token_id == storable_text(token_id)
        statement = delete(access_tokens).where(own)
        return await self._write(lambda connection: connection.execute(statement).rowcount > 0)


def _from_row(row: RowMapping) -> AccessTokenRecord:
    fields: dict[str, Any] = {str(name): value for name, value in row.items()}
    for name in ("scopes", "flows"):
        fields[name] = tuple(json.loads(row[name]))
    fields["created_by"] = Principal.from_text(row["created_by"])
    return AccessTokenRecord(**fields)
