"""``planwave logs``: the stored log of an execution, with its calls of models and tools and its tracebacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Final

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.commands.executions.browse import find_node
from planwave.cli.commands.executions.watch import events_reader
from planwave.cli.context import CommandContext
from planwave.cli.formatting import local_time
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.signals import Interrupt, Interrupted
from planwave.cli.views.log_lines import ExecutionLog, LogLine
from planwave.cli.views.result import traceback_lines
from planwave.events import TERMINAL, Event
from planwave.events.logs.text_log import LEVELS, Level
from planwave.events.paths import is_inside

_STYLES: Final = {"debug": "dim", "info": "", "warning": "yellow", "error": "red"}

FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow", "-f", help="Go on with what happens, until the execution ends or Ctrl-C."
    ),
]
NodeOption = Annotated[
    str | None,
    typer.Option(
        "--node",
        metavar="NODE",
        autocompletion=completion.steps,
        help="Only this step, and what runs inside it.",
    ),
]
LevelOption = Annotated[
    Level,
    typer.Option("--level", metavar="LEVEL", help="The lowest level: debug, info, warning, error."),
]


@shared_options(over_http=True)
def logs(
    ctx: CommandContext,
    name: ExecutionArgument = "last",
    follow: FollowOption = False,
    node: NodeOption = None,
    level: LevelOption = "info",
) -> None:
    """Print the log of an execution: steps, calls of models and tools, approvals, retries, tracebacks.

    For example:

    * `planwave logs`
    * `planwave logs last -f --level warning`
    * `planwave logs 09a2fd --node clerk`
    """
    asyncio.run(_logs(ctx, name, node, level, follow=follow))


async def _logs(
    ctx: CommandContext, name: str, node: str | None, level: Level, *, follow: bool
) -> None:
    console = ctx.console()
    async with events_reader(ctx) as (queries, read_events):
        execution_id = await find_execution(queries, name)
        document = await queries.executions.document(execution_id)
        path = None if node is None else str(find_node(document, node)["path"])
        is_interrupted = bool(document.get("interrupted"))  # then nothing follows
        last_seq = None if follow and not is_interrupted else int(document["last_seq"])
        lines = _lines(read_events(execution_id), last_seq)
        found: list[LogLine] = []
        with Interrupt(console) as interrupt:
            try:
                at = await interrupt.cancel_on_signal(_write(ctx, lines, path, level, found))
            except Interrupted as left:
                left.message = "left; the execution continues"
                raise
    if is_interrupted:
        again = ctx.command_hint(f"resume {execution_id}")
        end = LogLine(at, "warning", None, f"its process ended; continue with: {again}")
        found.append(end)
        if not console.json:
            console.texts(_shown(end))
    if console.json:
        entries = [line.as_json() for line in found]
        console.result({"execution_id": execution_id, "lines": entries})


async def _write(
    ctx: CommandContext,
    lines: AsyncGenerator[LogLine],
    path: str | None,
    level: Level,
    found: list[LogLine],
) -> str:
    """Write lines, or collect those that are written as one JSON object; return the time of the last one.

    Args:
        ctx: The command.
        lines: All lines.
        path: The step whose lines are written, with what runs inside it; None for all.
        level: The lowest level that is written.
        found: The lines so far.
    """
    console, at = ctx.console(), ""
    async with aclosing(lines):
        async for line in lines:
            at = line.at
            if LEVELS.index(line.level) < LEVELS.index(level) or not _is_of(line.node, path):
                continue
            if console.json:
                found.append(line)
            else:
                console.texts(_shown(line))
    return at


def _is_of(node: str | None, path: str | None) -> bool:
    return path is None or (node is not None and (node == path or is_inside(node, path)))


def _shown(line: LogLine) -> Iterator[Text]:
    """Yield a line as people read it, and its traceback below."""
    yield Text.assemble(
        (f"{local_time(line.at, seconds=True)}  ", "dim"),
        (f"{line.level.upper():<7}  ", _STYLES[line.level]),
        (f"{line.node}  " if line.node else "", "cyan"),
        line.text,
    )
    yield from traceback_lines({"traceback": line.traceback})


async def _lines(events: AsyncGenerator[Event], last_seq: int | None) -> AsyncGenerator[LogLine]:
    """Yield the lines of events, up to the event of a number; None for all to the end."""
    log, starts, at = ExecutionLog(), _Starts(), ""
    async with aclosing(events):
        async for event in events:
            at, line = event.at, log.line_of(event)
            for each in _present(line) if last_seq is None else starts.pass_on(event, line):
                yield each
            if event.type in TERMINAL or (last_seq is not None and event.seq >= last_seq):
                break
    for each in starts.held:
        yield each
    for path, text in log.calls.unfinished():
        yield LogLine(at, "warning", path, text)


class _Starts:
    """Holds the starts of steps until it is known that they were not reused instead.

    Attributes:
        held: The lines that are held, in order.
    """

    def __init__(self) -> None:
        self.held: list[LogLine] = []

    def pass_on(self, event: Event, line: LogLine | None) -> list[LogLine]:
        """Return the lines that are not held any more; that of the event is held or among them."""
        released: list[LogLine] = []
        if event.type == "node.completed" and "reused" in event.data:
            self.held = [each for each in self.held if each.node != event.path]
        elif event.type not in ("node.started", "wave.started"):
            released, self.held = self.held, []
        self.held += _present(line)
        return released


def _present(line: LogLine | None) -> list[LogLine]:
    return [] if line is None else [line]
