"""A person at the terminal who types what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from planwave.cli.console import CommandConsole


class ScriptedPrompter:
    """Types lines in turn; None is Ctrl-D, and behind the last line nothing comes any more.

    Args:
        lines: What is typed.
        console: Where questions are shown.
        has_editor: What an editor makes of a text; None without one.
        on_exhausted: Called where nothing is left to be typed, before waiting for ever.
    """

    def __init__(
        self,
        lines: Iterable[str | None],
        console: CommandConsole,
        edits: Callable[[str], str] | None = None,
        on_exhausted: Callable[[], object] = lambda: None,
    ) -> None:
        self._lines = list(lines)
        self._console = console
        self._edits = edits
        self._on_exhausted = on_exhausted

    @property
    def is_exhausted(self) -> bool:
        """Whether every line was asked for."""
        return not self._lines

    @property
    def has_editor(self) -> bool:
        return self._edits is not None

    async def read_line(self, prompt: str) -> str | None:
        self._console.prompt(prompt)
        if not self._lines:
            self._on_exhausted()
            await asyncio.Event().wait()
        return self._lines.pop(0)

    async def edit(self, text: str, ending: str) -> str:
        assert self._edits is not None
        return self._edits(text)

    def discard_typed(self) -> None:
        pass
