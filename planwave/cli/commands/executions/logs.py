"""``planwave logs``: the stored log of an execution, with its calls of tools and its tracebacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.commands.executions.browse import find_node
from planwave.cli.commands.executions.watch import ReadEvents, events_reader
from planwave.cli.context import CommandContext
from planwave.cli.formatting import clock_time, error_text, one_line, status_reason
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.signals import Interrupt, Interrupted
from planwave.cli.views.result import traceback_lines
from planwave.events import TERMINAL, Event, TextLog
from planwave.events.logs.call_lines import CallEvents, call_level
from planwave.events.logs.text_log import LEVELS, Level, level_of
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


class LogLine(NamedTuple):
    """One line of the log of an execution; ``node`` is a path, None for the execution itself."""

    at: str
    level: Level
    node: str | None
    text: str
    traceback: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the line as JSON, without what it has not."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@shared_options(over_http=True)
def logs(
    ctx: CommandContext,
    name: ExecutionArgument = "last",
    follow: FollowOption = False,
    node: NodeOption = None,
    level: LevelOption = "info",
) -> None:
    """Print the log of an execution: steps, calls of tools, approvals, retries, tracebacks.

    For example:

    * `planwave logs`
    * `planwave logs last -f --level warning`
    * `planwave logs 09a2fd --node clerk`
    """
    asyncio.run(_logs(ctx, name, node, level, follow=follow))


async def _logs(
    ctx: CommandContext, name: str, node: str | None, level: Level, *, follow: bool
) -> None:
    async with events_reader(ctx) as (queries, read_events):
        execution_id = await find_execution(queries, name)
        document = await queries.executions.document(execution_id)
        path = None if node is None else str(find_node(document, node)["path"])
        last_seq = None if follow else int(document["last_seq"])
        with Interrupt(ctx.console()) as interrupt:
            writing = _write(ctx, read_events, execution_id, last_seq, path, level)
            try:
                await interrupt.cancel_on_signal(writing)
            except Interrupted as left:
                left.message = "left; the execution continues"
                raise


async def _write(
    ctx: CommandContext,
    read_events: ReadEvents,
    execution_id: str,
    last_seq: int | None,
    path: str | None,
    level: Level,
) -> None:
    console, found = ctx.console(), list[dict[str, Any]]()
    async with aclosing(_lines(read_events(execution_id), last_seq)) as lines:
        async for line in lines:
            if LEVELS.index(line.level) < LEVELS.index(level) or not _is_of(line.node, path):
                continue
            if console.json:
                found.append(line.as_json())
            else:
                console.texts(_shown(line))
    if console.json:
        console.result({"execution_id": execution_id, "lines": found})


def _is_of(node: str | None, path: str | None) -> bool:
    return path is None or (node is not None and (node == path or is_inside(node, path)))


def _shown(line: LogLine) -> Iterator[Text]:
    """Yield a line as people read it, and its traceback below."""
    yield Text.assemble(
        (f"{clock_time(line.at)}  ", "dim"),
        (f"{line.level.upper():<7}  ", _STYLES[line.level]),
        (f"{line.node}  " if line.node else "", "cyan"),
        line.text,
    )
    yield from traceback_lines({"traceback": line.traceback})


async def _lines(events: AsyncGenerator[Event], last_seq: int | None) -> AsyncGenerator[LogLine]:
    """Yield the lines of events, up to the event of a number; None for all to the end."""
    log, at = ExecutionLog(), ""
    async with aclosing(events):
        async for event in events:
            at = event.at
            if (line := log.line_of(event)) is not None:
                yield line
            if event.type in TERMINAL or (last_seq is not None and event.seq >= last_seq):
                break
    for path, text in log.calls.unfinished():
        yield LogLine(at, "warning", path, text)


class ExecutionLog:
    """Makes a line of each event that people look for in a log.

    Attributes:
        calls: The calls of tools so far.
    """

    def __init__(self) -> None:
        self._sentences = TextLog()
        self.calls = CallEvents()

    def line_of(self, event: Event) -> LogLine | None:
        """Return the line of an event, None for one that has none."""
        call, sentence = self.calls.read(event), self._sentences.line_for(event)
        if call is not None:
            agent = self.calls.agent_of(event.path or "")
            return LogLine(event.at, call_level(call), agent, one_line(call))
        if self.calls.is_question(event.path):
            return None
        level, text = level_of(event), _text_of(event) or sentence
        if text is None:
            return None
        trace = event.data.get("traceback")
        return LogLine(event.at, level, event.path, one_line(text), trace)


def _text_of(event: Event) -> str | None:
    """Return the words of an event about a node; None where the sentences of the log have them."""
    data = event.data
    match event.type:
        case "node.started":
            return "started again: it was cut off" if data.get("reentry") else "started"
        case "execution.created":
            return f"created: {data.get('title') or data.get('goal') or 'no title'}"
        case "node.completed" if data.get("given"):
            return "given with the inputs"
        case "node.completed" if not data.get("reused"):
            took = data.get("duration_s")
            return "completed" if took is None else f"completed in {float(took):.2f} s"
        case "node.failed":
            return f"failed: {status_reason('failed', data)}"
        case "node.retrying":
            return f"attempt {event.attempt} failed: {status_reason('retrying', data)}"
        case "node.log":
            return str(data.get("message"))
        case "node.skipped":
            return f"skipped: {data.get('reason')}"
        case "execution.failed":
            return f"failed: {error_text(data.get('error'))}"
        case _:
            return None
