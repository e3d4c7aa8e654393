"""What is stored of an execution and makes no sense: told as a refusal, never as a crash."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from planwave.errors import Conflict, KernelMisuse, PlanwaveError

UNREADABLE: Final = "unreadable"


@contextmanager
def reading(execution_id: str) -> Generator[None]:
    """Make sense of what is stored of an execution: somebody may have written to it, or the disk.

    Raises:
        Conflict: ``unreadable``: what is stored is nothing that planwave has stored.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, PlanwaveError) and not isinstance(error, KernelMisuse):
            raise
        raise unreadable(execution_id, f"{type(error).__name__}: {error}") from error


def unreadable(execution_id: str, why: str) -> Conflict:
    """Give the error for what somebody has changed or removed, and its way out."""
    return Conflict(
        f"what is stored of execution {execution_id} cannot be read: {why}",
        code=UNREADABLE,
        hint="it was changed from outside: restore it from a backup, or delete it (DELETE "
        "/api/executions/ID, or `planwave prune` in time); one that has not ended is cancelled first",
    )
