"""A run on the screen: redrawn in place on a terminal, one line for each event elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import cell_len
from rich.live import Live
from rich.text import Text

from planwave.cli.console import CommandConsole
from planwave.cli.formatting import (
    DURATION_WIDTH,
    STATUS_WIDTH,
    counted,
    duration,
    money,
    one_line,
    status_style,
    status_text,
    tail,
    tokens_text,
    truncate,
)
from planwave.cli.views.progress import (
    NODE_END_STATUSES,
    NodeLine,
    RunProgress,
    WaveLines,
    event_line,
    message_line,
)
from planwave.events import Event
from planwave.events.paths import is_inside

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

FRAMES_PER_SECOND = 10
_NAME_WIDTH = 30
_ACTIVE = ("running", "retrying")


_HOLD_S: Final = 0.3
"""How long the start of a fork's node is not shown; to find a result to reuse takes less."""
STOP_HINT: Final = "Ctrl-C stops"


async def show_events(
    console: CommandConsole,
    progress: RunProgress,
    events: AsyncIterator[Event],
    keys_hint: str = STOP_HINT,
    *,
    until: Callable[[], bool] = lambda: False,
) -> bool:
    """Show a run until its events end, or until ``until`` returns True.

    Args:
        console: The console to write to.
        progress: The state of the run; updated with each event.
        events: The events of the run.
        keys_hint: The keys the user can press.
        until: Called after each event; True if the display has to stop for something else.

    Returns:
        Whether ``until`` stopped the display; a further call continues it.
    """
    if console.live:
        return await _show_events_live(console, progress, events, keys_hint, until)
    lines = _EventLines(console, progress)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(lines.write_held_starts())
        try:
            async for event in events:
                progress.apply(event)
                lines.write(event)
                if until():
                    return True
            return False
        finally:
            writing.cancel()


class _EventLines:
    """Writes a line for each event.

    In a fork every node starts, and ends at once if its result is reused. So the line of a start is
    held until the node shows that it runs, by an event or by the time that passes.
    """

    def __init__(self, console: CommandConsole, progress: RunProgress) -> None:
        self._console, self._progress = console, progress
        self._held: dict[str, _HeldStart] = {}

    def write(self, event: Event) -> None:
        """Write the line of an event that the progress has applied."""
        line, path = self._line(event), event.path or ""
        if event.type == "node.started" and self._progress.is_fork:
            self._held[path] = _HeldStart(line, time.monotonic())
            return
        if event.type == "node.completed" and event.data.get("reused"):
            self._held.pop(path, None)
        else:
            self._release([each for each in self._held if _is_at_or_inside(path, each)])
        self._write(line)

    async def write_held_starts(self) -> None:
        """Write the lines of starts that were held long enough, until cancelled."""
        while self._progress.is_fork:
            await asyncio.sleep(_HOLD_S)
            limit = time.monotonic() - _HOLD_S
            self._release([path for path, held in self._held.items() if held.since <= limit])

    def _release(self, paths: list[str]) -> None:
        for path in paths:
            self._write(self._held.pop(path).line)

    def _line(self, event: Event) -> str | None:
        """Return the line of an event with its time, by the clock that its durations are of too."""
        line = event_line(event, self._progress)
        return None if line is None else f"[{self._progress.event_elapsed:7.1f}s] {line}"

    def _write(self, line: str | None) -> None:
        if line is not None:
            self._console.line(line)


class _HeldStart(NamedTuple):
    line: str | None
    since: float


def _is_at_or_inside(path: str, node: str) -> bool:
    return path == node or is_inside(path, node)


async def _show_events_live(
    console: CommandConsole,
    progress: RunProgress,
    events: AsyncIterator[Event],
    keys: str,
    until: Callable[[], bool],
) -> bool:
    frame = RunScreen(console, progress, keys)
    with Live(frame, console=console.out, auto_refresh=False, transient=True) as live:

        async def tick() -> None:
            while True:
                live.refresh()
                await asyncio.sleep(1 / FRAMES_PER_SECOND)

        async with asyncio.TaskGroup() as tasks:
            ticking = tasks.create_task(tick())
            try:
                async for event in events:
                    progress.apply(event)
                    if (message := message_line(event, progress)) is not None:
                        console.line(message)
                    frame.print_settled()
                    if until():
                        return True
                frame.print_settled(all_left=True)
                return False
            finally:
                ticking.cancel()


class RunScreen:
    """The live area of the screen: unsettled waves. Settled waves are printed above it."""

    def __init__(
        self, console: CommandConsole, progress: RunProgress, keys: str = STOP_HINT
    ) -> None:
        self._console = console
        self._progress = progress
        self._keys = keys
        names = (cell_len(one_line(node.name)) for node in progress.counted_nodes)
        self._name_width = min(_NAME_WIDTH, max(names, default=0))

    def print_settled(self, *, all_left: bool = False) -> None:
        """Print settled waves above the live area."""
        waves = self._progress.waves
        while self._progress.written_waves < len(waves):
            wave = waves[self._progress.written_waves]
            if not (all_left or wave.is_settled):
                return
            self._progress.written_waves += 1
            self._console.lines(self._wave(wave, self._console.width))

    def rows(self, width: int, height: int) -> list[Text]:
        """Return the rows of the live area: running and pending waves, then a line of totals."""
        waves = self._progress.waves[self._progress.written_waves :]
        rows = [row for wave in waves for row in self._wave(wave, width)]
        if len(rows) > height - 2:
            rows = [row for wave in waves for row in self._wave(wave, width, only_active=True)]
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
        look = status_style(node.status)
        seconds = self._progress.running_for(node)
        took = "" if seconds is None else duration(seconds)
        row = Text.assemble(
            "  ",
            (
                f"{self._glyph(node.status)} {status_text(node.status):<{STATUS_WIDTH}} ",
                look.style,
            ),
            f"{_padded(truncate(node.name, self._name_width), self._name_width)} ",
            (f"{took:>{DURATION_WIDTH}}  ", "dim"),
        )
        room = width - row.cell_len - 1
        if node.note:
            row.append(truncate(node.note, room), style=look.style)
        elif node.status == "running":
            row.append(tail(node.tail, room), style="dim")
        elif node.status == "pending" and node.needs:
            row.append(truncate("after " + ", ".join(node.needs), room), style="dim")
        return row

    def _glyph(self, status: str) -> str:
        still = self._console.glyph(status)
        return self._console.spinner(time.monotonic(), still) if status in _ACTIVE else still

    def _totals(self) -> Text:
        progress = self._progress
        nodes = progress.counted_nodes
        done = sum(node.status in NODE_END_STATUSES for node in nodes)
        parts = [f"{done} of {counted(len(nodes), 'step')} ended", duration(progress.elapsed)]
        usage = progress.usage
        if usage.input_tokens or usage.output_tokens:
            parts.append(f"tokens {tokens_text(usage.as_json())}")
        if usage.cost_usd:
            parts.append(money(usage.cost_usd))
        if progress.status == "paused":
            parts.append(f"paused: {one_line(progress.pause_reason)}")
        elif progress.is_planning:
            parts.append("a change of the plan is being written")
        parts.append(self._keys)
        return Text(f" {self._console.symbol('·', '-')} ".join(parts), style="dim")


def _padded(text: str, width: int) -> str:
    """Pad by terminal cells: a wide character takes two."""
    return text + " " * max(width - cell_len(text), 0)
