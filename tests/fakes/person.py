"""A person at the terminal who types what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from planwave.cli.screen import Screen


class Scripted:
    """Types lines in turn; None is Ctrl-D, and behind the last line nothing comes any more.

    Args:
        lines: What is typed.
        screen: Where questions are shown.
        edits: What an editor makes of a text; None without one.
        at_a_loss: Called where nothing is left to be typed, before waiting for ever.
    """

    def __init__(
        self,
        lines: Iterable[str | None],
        screen: Screen,
        edits: Callable[[str], str] | None = None,
        at_a_loss: Callable[[], object] = lambda: None,
    ) -> None:
        self._lines = list(lines)
        self._screen = screen
        self._edits = edits
        self._at_a_loss = at_a_loss

    @property
    def is_done(self) -> bool:
        """Whether every line was asked for."""
        return not self._lines

    @property
    def edits(self) -> bool:
        return self._edits is not None

    async def line(self, prompt: str) -> str | None:
        self._screen.prompt(prompt)
        if not self._lines:
            self._at_a_loss()
            await asyncio.Event().wait()
        return self._lines.pop(0)

    async def edited(self, text: str, ending: str) -> str:
        assert self._edits is not None
        return self._edits(text)

    def forget(self) -> None:
        pass
