"""How far a call is, for progress notifications: its planning, then the waves of its execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planwave.events import Event

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends a notification: a number, the number at the end if that is known, and a sentence."""


class CallProgress:
    """Reports the progress of one call; the numbers only grow.

    A wave counts half when it starts and one when it ends, a plan that is written counts one.

    Args:
        report: Sends a notification; does nothing where the client wants none.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._planned = 0
        self._wave_events = 0
        self._waves: int | None = None

    async def planning(self) -> None:
        """Report that the goal is being planned."""
        await self._report(0, None, "Planning")

    async def planned(self, title: str, nodes: int) -> None:
        """Report that the plan is written."""
        self._planned = 1
        await self._report(
            1, None, f"Planned {title!r}: {nodes} {'step' if nodes == 1 else 'steps'}"
        )

    async def event(self, event: Event) -> None:
        """Report what an event of the execution says about its waves."""
        data: Any = event.data
        if event.type == "execution.created" or event.type == "plan.revised":
            self._waves = data.get("waves")
        elif event.type == "wave.started":
            nodes = ", ".join(data.get("nodes", ()))
            await self._wave(f"Wave {data['wave']}{self._of_all()}: {nodes}")
        elif event.type == "wave.completed":
            await self._wave(f"Wave {data['wave']}{self._of_all()} completed")

    def set_waves(self, total: int) -> None:
        """Set the number of waves, for an execution that is not followed from its beginning."""
        self._waves = total

    async def _wave(self, message: str) -> None:
        self._wave_events += 1
        total = None if self._waves is None else self._planned + self._waves
        done = self._planned + self._wave_events / 2
        # An execution that is resumed may go through waves again.
        await self._report(done, None if total is None else max(total, done), message)

    def _of_all(self) -> str:
        return "" if self._waves is None else f" of {self._waves}"
