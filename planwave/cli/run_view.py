"""A run on the screen: redrawn in place on a terminal, one line an event everywhere else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from planwave.cli.progress import SETTLED, NodeLine, RunProgress, WaveLines, sentence
from planwave.cli.screen import Screen
from planwave.cli.wording import (
    STATUS_WIDTH,
    counted,
    cut,
    duration,
    money,
    one_line,
    state,
    status_words,
    tail,
)
from planwave.events import Event

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

FRAMES_PER_SECOND = 10
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_NAME_WIDTH = 30
_TIME_WIDTH = 12


async def follow(screen: Screen, progress: RunProgress, events: AsyncIterator[Event]) -> None:
    """Show a run until its events end."""
    if screen.live:
        await _follow_live(screen, progress, events)
        return
    async for event in events:
        progress.apply(event)
        said = sentence(event, progress)
        if said is not None:
            screen.line(f"[{progress.elapsed:7.1f}s] {said}")


async def _follow_live(screen: Screen, progress: RunProgress, events: AsyncIterator[Event]) -> None:
    from rich.live import Live

    frame = Frame(screen, progress)
    with Live(frame, console=screen.out, auto_refresh=False, transient=True) as live:

        async def tick() -> None:
            while True:
                live.refresh()
                await asyncio.sleep(1 / FRAMES_PER_SECOND)

        async with asyncio.TaskGroup() as tasks:
            ticking = tasks.create_task(tick())
            try:
                async for event in events:
                    progress.apply(event)
                    frame.print_settled()
                frame.print_settled(all_left=True)
            finally:
                ticking.cancel()


class Frame:
    """What is redrawn: the waves that are not settled. Settled ones scroll away above, in order."""

    def __init__(self, screen: Screen, progress: RunProgress) -> None:
        self._screen = screen
        self._progress = progress
        self._printed = 0
        names = (cell_len(one_line(node.name)) for node in progress.counted_nodes)
        self._name_width = min(_NAME_WIDTH, max(names, default=0))

    def print_settled(self, *, all_left: bool = False) -> None:
        """Write the waves that will not change any more above the moving part."""
        waves = self._progress.waves
        while self._printed < len(waves) and (all_left or waves[self._printed].settled):
            wave = waves[self._printed]
            self._printed += 1
            self._screen.lines(self._wave(wave, self._screen.width))

    def rows(self, width: int, height: int) -> list[Text]:
        """Give the moving part: waves at work or ahead, then one line of totals."""
        left = self._progress.waves[self._printed :]
        rows = [row for wave in left for row in self._wave(wave, width)]
        if len(rows) > height - 2:
            rows = [row for wave in left for row in self._wave(wave, width, only_active=True)]
        if len(rows) > height - 2:
            hidden = len(rows) - max(height - 3, 0)
            rows = rows[: max(height - 3, 0)]
            rows.append(Text(f"  … {counted(hidden, 'more line')}", style="dim"))
        return [*rows, self._totals()]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.rows(options.max_width, console.size.height):
            row.no_wrap, row.overflow = True, "ellipsis"
            yield row

    def _wave(self, wave: WaveLines, width: int, *, only_active: bool = False) -> list[Text]:
        nodes = wave.nodes
        if only_active:
            nodes = [n for n in nodes if n.status in ("running", "retrying", "waiting")]
            if not nodes:
                return []
        title = f"Wave {wave.number} of {len(self._progress.waves)}"
        return [Text(title, style="bold"), *(self._node(node, width) for node in nodes)]

    def _node(self, node: NodeLine, width: int) -> Text:
        look = state(node.status)
        seconds = self._progress.running_for(node)
        took = "" if seconds is None else duration(seconds)
        row = Text.assemble(
            "  ",
            (
                f"{self._glyph(node.status)} {status_words(node.status):<{STATUS_WIDTH}} ",
                look.style,
            ),
            f"{_padded(cut(node.name, self._name_width), self._name_width)} ",
            (f"{took:>{_TIME_WIDTH}}  ", "dim"),
        )
        room = width - row.cell_len - 1
        if node.note:
            row.append(cut(node.note, room), style=look.style)
        elif node.status == "running":
            row.append(tail(node.tail, room), style="dim")
        elif node.status == "pending" and node.needs:
            row.append(cut("after " + ", ".join(node.needs), room), style="dim")
        return row

    def _glyph(self, status: str) -> str:
        if status in ("running", "retrying") and self._screen.unicode:
            return _SPINNER[int(time.monotonic() * FRAMES_PER_SECOND) % len(_SPINNER)]
        return self._screen.glyph(status)

    def _totals(self) -> Text:
        progress = self._progress
        nodes = progress.counted_nodes
        done = sum(node.status in SETTLED for node in nodes)
        parts = [f"{done} of {counted(len(nodes), 'step')} done", duration(progress.elapsed)]
        tokens = progress.input_tokens + progress.output_tokens
        if tokens:
            parts.append(counted(tokens, "token"))
        if progress.cost_usd:
            parts.append(money(progress.cost_usd))
        parts.append("Ctrl-C stops and keeps what is done")
        return Text(f" {self._screen.sign('·', '-')} ".join(parts), style="dim")


def _padded(text: str, width: int) -> str:
    """Pad by terminal cells: a wide character takes two."""
    return text + " " * max(width - cell_len(text), 0)
