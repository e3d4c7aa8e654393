"""A plan while a model writes it: told by the planner, shown step by step."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from rich.text import Text

from planwave.cli.screen import CommandConsole
from planwave.cli.wording import truncate, duration, one_line, plan_progress_text, step_name, tail

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_STRING: Final = r'"\s*:\s*"((?:[^"\\]|\\.)*)"'
_TITLE: Final = re.compile(rf'"title{_STRING}')
_NAME: Final = re.compile(rf'"name{_STRING}')
_SCANNED_CHARS: Final = 64 * 1024
"""Far more than a plan; a reply that never ends is not searched again and again."""
_TAIL_CHARS: Final = 600


class PlanUpdate(Protocol):
    """What the planner tells: ``PlanProgress`` fits."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> Mapping[str, Any]: ...


class PlanDraft:
    """What is known of a plan that is not finished.

    A capable model's plan is told node by node. A small model writes another form, of which only
    the text is told at first; title and names are then picked out of it for showing.
    """

    def __init__(self, author: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.author = author
        self.title = ""
        self.steps: list[str] = []
        self.text = ""
        self.thinking = ""
        self.problem = ""
        self._has_node_events = False
        self._clock = clock
        self._began = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since planning began."""
        return self._clock() - self._began

    def apply(self, update: PlanUpdate) -> list[str]:
        """Take in one thing; give the plain lines it is worth."""
        match update.kind:
            case "delta":
                self._delta(str(update.data.get("text", "")), update.data.get("reasoning"))
                return []
            case "title":
                self.title = one_line(str(update.data.get("title", "")))
            case "node":
                if not self._has_node_events:
                    self._has_node_events, self.steps = True, []
                self.steps.append(step_name(update.data))
                return [f"step {len(self.steps)}: {self.steps[-1]}"]
            case "repair":
                self.title, self.steps, self.text, self._has_node_events = "", [], "", False
                self.problem = plan_progress_text(update.kind, update.data) or ""
            case _:
                pass
        words = plan_progress_text(update.kind, update.data)
        return [] if words is None else [words]

    def _delta(self, text: str, reasoning: object) -> None:
        if reasoning:
            self.thinking = (self.thinking + text)[-_TAIL_CHARS:]
            return
        self.thinking = ""
        self.text += text
        if self._has_node_events or '"' not in text or len(self.text) > _SCANNED_CHARS:
            return
        title = _TITLE.search(self.text)
        if title:
            self.title = one_line(title[1])
        self.steps = [one_line(name) for name in _NAME.findall(self.text)]


@contextmanager
def live_draft(screen: CommandConsole, draft: PlanDraft) -> Generator[Callable[[PlanUpdate], None]]:
    """Show a plan as it is written; gives the function that takes in what the planner tells."""
    if not screen.live:
        screen.line(f"planning with {draft.author}")

        def tell(told: PlanUpdate) -> None:
            screen.lines(f"[{draft.elapsed:7.1f}s] {line}" for line in draft.apply(told))

        yield tell
        return
    from rich.live import Live

    with Live(_DraftView(screen, draft), console=screen.out, refresh_per_second=10, transient=True):

        def show(told: PlanUpdate) -> None:
            draft.apply(told)

        yield show


class _DraftView:
    """The moving part: who plans, the steps so far, the end of what is being written."""

    def __init__(self, screen: CommandConsole, draft: PlanDraft) -> None:
        self._screen = screen
        self._draft = draft

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for row in self.rows(options.max_width, console.size.height):
            row.no_wrap, row.overflow = True, "ellipsis"
            yield row

    def rows(self, width: int, height: int) -> list[Text]:
        """Give the lines, at most ``height`` of them."""
        draft = self._draft
        head = Text.assemble(
            (f"{self._screen.spinner(draft.elapsed, '*')} ", "cyan"),
            ("Planning", "bold"),
            (f" with {one_line(draft.author)}  {duration(draft.elapsed)}", "dim"),
        )
        rows = [head]
        if draft.problem:
            rows.append(Text(f"  {truncate(draft.problem, width - 3)}", style="yellow"))
        if draft.title:
            rows.append(Text(f"  {truncate(draft.title, width - 3)}", style="bold"))
        room = max(height - len(rows) - 2, 0)
        hidden = max(len(draft.steps) - room, 0)
        for number, step in enumerate(draft.steps[hidden:], start=hidden + 1):
            rows.append(Text(f"  {number:>2}. {truncate(step, width - 8)}"))
        saying = draft.thinking or draft.text
        rows.append(Text(f"  {tail(saying, width - 4)}", style="dim"))
        return rows
