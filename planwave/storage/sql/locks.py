"""What a single writer gives for nothing, and several have to ask for: locks by name, and who is alive.

On SQLite one process writes at a time, one transaction after the other; there the functions do nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, select, text

from planwave.errors import StoreError
from planwave.storage.records import STORE_UNREACHABLE
from planwave.storage.sql.dialects import is_postgresql
from planwave.storage.sql.schema import holders


class Claimed(Protocol):
    """What a claim returns.

    Attributes:
        is_new: Whether the caller is to do the work.
    """

    @property
    def is_new(self) -> bool: ...


_C = TypeVar("_C", bound=Claimed)
LockKind = Literal[
    "chat", "delivery", "flow-name", "followers", "idempotency-key", "plan", "provider"
]

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


class LostClaims:
    """The claims of this opening on which nobody works: the caller left, or the server gave no answer.

    Their rows say that this process works on them, as long as it lives. So the next caller here takes them.
    """

    def __init__(self) -> None:
        self._keys: set[tuple[str, ...]] = set()

    async def claim(
        self,
        key: tuple[str, ...],
        write: Callable[[Callable[[Connection], Any]], Awaitable[Any]],
        change: Callable[[Connection, bool], _C],
    ) -> _C:
        """Claim something.

        Args:
            key: What is claimed.
            write: Commits a change.
            change: Makes the claim, given whether one of this opening is lost.
        """
        was_lost = key in self._keys
        self._keys.discard(key)
        made: list[_C] = []
        has_left = False

        def claim(connection: Connection) -> _C:
            made[:] = [change(connection, was_lost)]
            keep_lost()  # the caller may have left before
            return made[0]

        def keep_lost() -> None:
            if has_left and (made[0].is_new if made else was_lost):
                self._keys.add(key)

        try:
            return await write(claim)
        except (asyncio.CancelledError, StoreError) as error:
            if not isinstance(error, StoreError) or error.code == STORE_UNREACHABLE:
                has_left = True
                keep_lost()
            raise

    async def release(self, key: tuple[str, ...], releasing: Awaitable[Any]) -> None:
        """Wait until a claim is released; it is lost if that fails."""
        try:
            await releasing
        except BaseException:
            self._keys.add(key)
            raise
