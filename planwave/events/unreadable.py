"""Errors for stored executions that cannot be read: a ``Conflict``, never a crash."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from planwave.errors import Conflict, InvalidTransition

UNREADABLE: Final = "unreadable"


@contextmanager
def guard_stored(execution_id: str) -> Generator[None]:
    """Report an order of stored events that planwave never stores as a ``Conflict``.

    The form of each event was checked where it was read from the store. All other errors are bugs.

    Raises:
        Conflict: ``unreadable``.
    """
    try:
        yield
    except InvalidTransition as error:
        raise unreadable_error(execution_id, error.message) from error


def unreadable_error(execution_id: str, why: str) -> Conflict:
    """Return the error for stored data that were changed or removed from outside."""
    return Conflict(
        f"what is stored of execution {execution_id} cannot be read: {why}",
        code=UNREADABLE,
        hint="it was changed from outside: restore it from a backup, or delete it; an execution that "
        "has not ended must be cancelled first",
    )
