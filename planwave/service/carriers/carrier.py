"""The port of carriers: they hand executions over to be driven, in one process or in any of several.

A carrier knows ids, and never what an execution does: everything that counts is in the store. It may hand an execution
over more often than needed, again after a process has died, and a second time while a process that gave no sign of life
still drives it: what keeps two processes from driving it at a time is the epoch in the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from planwave.executor.messages import PlaceChange


Role = Literal["service", "worker", "service-with-worker"]
"""What a process does where a carrier hands executions to several: it serves HTTP, drives executions, or both."""


class CarrierUnavailable(Exception):
    """A carrier does not answer; what was to be submitted is stored, and is submitted again."""


class Rest(NamedTuple):
    """How an execution was when it came to rest.

    Attributes:
        status: ``completed``, ``failed``, ``cancelled``; ``paused``: a command can continue it; ``starting``: it was not
            started yet; ``interrupted``: this process goes down, and another one has to go on.
        wake_at: When it is to be driven again although nobody submits it: the time for an answer is over.
        needs: The capability that this process lacks and the execution needs: one that has it has to go on.
    """

    status: str
    wake_at: datetime | None = None
    needs: str | None = None


class Slot(Protocol):
    """The place among those that run which a carrier gave to an execution."""

    def change(self, change: PlaceChange, grant: Callable[[], None]) -> None:
        """Follow what becomes of the place of an execution that stays in memory.

        Args:
            change: ``freed``: nothing of it runs any more; ``wanted``: something is to run again; ``taken``: it runs
                already.
            grant: To be called once a place that was ``wanted`` is there.
        """
        ...


Drive = Callable[[str, Slot], Awaitable[Rest]]
"""Drives an execution until it rests. Where it raises, the execution is as it is stored, and has to go on later."""


class CarrierLoad(NamedTuple):
    """What a carrier has to do with this process.

    Attributes:
        waiting: Executions that wait in this process.
        driven: Executions that are driven in this process, those that wait in memory included.
        places: The running places that these hold.
    """

    waiting: int
    driven: int
    places: int


class Carrier(Protocol):
    """Hands executions over to be driven."""

    @property
    def load(self) -> CarrierLoad: ...

    @property
    def is_ready(self) -> bool:
        """Whether executions can be handed to this process, once it serves."""
        ...

    def running_of(self, account: str) -> int:
        """Return the number of running places of an account, as far as this process knows."""
        ...

    async def submit(
        self, execution_id: str, account: str, *, has_started: bool, needs: str | None = None
    ) -> None:
        """Have an execution driven: for the first time, or once more after it came to rest.

        To submit one that waits changes nothing; one that is being driven is driven once more afterwards.

        Args:
            execution_id: Which.
            account: Whose share of the running places it counts towards; see ``Principal.account``.
            has_started: It ran before, and goes before those of the account that did not.
            needs: Hand it only to processes that have this capability; see ``executions/capabilities.py``.

        Raises:
            CarrierUnavailable: The carrier does not answer; try again.
        """
        ...

    async def drop(self, execution_id: str) -> None:
        """Carry an execution no further that has ended: no process need be there that could drive it.

        Raises:
            CarrierUnavailable: The carrier does not answer; try again.
        """
        ...

    def withdraw(self, execution_id: str) -> bool:
        """Forget an execution that need not be driven any more; return whether it waits in this process no longer.

        It may be driven nevertheless.
        """
        ...

    def position(self, execution_id: str) -> int | None:
        """Return the position of an execution that waits, 1 for the next one; None if it is not known."""
        ...

    async def serve(self, drive: Drive, slots: int) -> None:
        """Have executions driven in this process, so many at a time, until cancelled.

        From then on nothing is handed over; it returns once what is driven has come to rest. Cancelled once more,
        it cancels that.
        """
        ...
