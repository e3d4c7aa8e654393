"""Which of the processes that have one database open leads: it does what may be done once only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Leadership(Protocol):
    """Whether this opening of the store leads.

    Attributes:
        on_displaced: Called on the event loop when another process leads although this one must, as it drives
            executions without a carrier that they share.
    """

    on_displaced: list[Callable[[], object]]

    @property
    def leads(self) -> bool:
        """Whether this opening leads now."""
        ...

    def open(self) -> None:
        """Begin to try to lead; called on the event loop of the two waits."""
        ...

    async def gained(self) -> None:
        """Wait until this opening leads."""
        ...

    async def lost(self) -> None:
        """Wait until this opening may lead no more; no other one does before that."""
        ...


class SoleLeadership:
    """Satisfies ``Leadership`` where no other process may write: it always leads."""

    leads = True

    def __init__(self) -> None:
        self.on_displaced: list[Callable[[], object]] = []

    def open(self) -> None:
        """Do nothing."""

    async def gained(self) -> None:
        """Return at once."""

    async def lost(self) -> None:
        """Wait for ever."""
        await asyncio.Event().wait()
