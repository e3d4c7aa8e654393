"""What a single writer gives for nothing, and several have to ask for: locks by name, and who is alive.

On SQLite one process writes at a time, one transaction after the other; there the functions do nothing.
"""

from __future__ import annotations

from typing import Final, Literal

from sqlalchemy import Connection, bindparam, select, text

from planwave.storage.sql.dialects import is_postgresql
from planwave.storage.sql.schema import holders

LockKind = Literal["chat", "delivery", "flow-name", "idempotency-key", "plan"]

_EXCLUSIVE: Final = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
_SHARED: Final = text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))")
_IS_ALIVE: Final = select(holders.c.holder_id).where(
    holders.c.holder_id == bindparam("of"), holders.c.expires_at > text("clock_timestamp()")
)


def lock(connection: Connection, kind: LockKind, *names: str) -> None:
    """Wait until no other transaction has this lock, and hold it to the end of the transaction."""
    if is_postgresql(connection):
        connection.execute(_EXCLUSIVE, {"name": _name(kind, names)})


def lock_shared(connection: Connection, kind: LockKind, *names: str) -> None:
    """Wait until no other transaction has this lock exclusively, and keep it so to the end of this one."""
    if is_postgresql(connection):
        connection.execute(_SHARED, {"name": _name(kind, names)})


def _name(kind: LockKind, names: tuple[str, ...]) -> str:
    return "\x1f".join((kind, *names))


def is_alive(connection: Connection, holder: str) -> bool:
    """Return whether another opening of the store still works on what it claimed."""
    return (
        is_postgresql(connection)
        and connection.execute(_IS_ALIVE, {"of": holder}).first() is not None
    )
