"""The saved inputs of flows, and their statements."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from planwave.principals import Principal, principal_text
from planwave.storage.errors import input_set_taken, not_found, too_many_input_sets
from planwave.storage.event_codec import storable_text
from planwave.storage.records import InputSet
from planwave.storage.sql.flow_names import require_flows
from planwave.storage.sql.locks import lock
from planwave.storage.sql.readers import Read, Write
from planwave.storage.sql.schema import input_sets

_COLUMNS = input_sets.c


class SqlInputSets:
    """Inputs that were saved under a name, in the table ``input_sets``.

    Args:
        read: Runs a query beside the writer.
        write: Commits a change, which is durable on return where there is a disk.
    """

    def __init__(self, read: Read, write: Write) -> None:
        self._read = read
        self._write = write

    async def all(self, plan_id: str) -> list[InputSet]:
        """Return the inputs that are saved of a flow, by name."""
        return await self._read(lambda connection: _all(connection, plan_id))

    async def save(self, changed: InputSet, name: str, *, most: int) -> None:
        """Save inputs of a flow in place of those of a name, or as new ones where there are none.

        Args:
            changed: The inputs; with another name, those of the name before get it.
            name: The name before.
            most: How many a flow may have.

        Raises:
            NotFound: There is no such flow, or with another name, nothing that could get it.
            Conflict: ``name-taken``: others have the new name; ``too-many-input-sets``.
        """
        row = {
            "name": storable_text(changed.name),
            "inputs": json.dumps(changed.inputs),
            "updated_at": changed.updated_at,
            "created_by": principal_text(changed.created_by),
        }

        def change(connection: Connection) -> None:
            lock(connection, "plan", changed.plan_id)
            require_flows(connection, [changed.plan_id])
            names = {each.name for each in _all(connection, changed.plan_id)}
            if changed.name != name and changed.name in names:
                raise input_set_taken(changed.name)
            if name in names:
                connection.execute(
                    update(input_sets).where(*_own(changed.plan_id, name)).values(row)
                )
                return
            if changed.name != name:
                raise not_found("input set", name)
            if len(names) >= most:
                raise too_many_input_sets(most)
            own = {"plan_id": changed.plan_id, "created_at": changed.created_at}
            connection.execute(insert(input_sets).values({**row, **own}))

        await self._write(change)

    async def delete(self, plan_id: str, name: str) -> bool:
        """Delete the inputs of a name; return whether there were any."""
        statement = delete(input_sets).where(*_own(plan_id, name))
        return await self._write(lambda connection: connection.execute(statement).rowcount > 0)


def _own(plan_id: str, name: str) -> tuple[Any, Any]:
    return _COLUMNS.plan_id == storable_text(plan_id), _COLUMNS.name == storable_text(name)


def _all(connection: Connection, plan_id: str) -> list[InputSet]:
    own = _COLUMNS.plan_id == storable_text(plan_id)
    rows = connection.execute(select(input_sets).where(own)).mappings()
    return sorted((_from_row(row) for row in rows), key=lambda each: each.name)


def _from_row(row: RowMapping) -> InputSet:
    fields: dict[str, Any] = {str(name): value for name, value in row.items()}
    fields["inputs"] = json.loads(row["inputs"])
    fields["created_by"] = Principal.from_text(row["created_by"])
    return InputSet(**fields)
