"""``planwave watch``: follow an execution that another process runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from planwave.cli.backends.lock_owner import lock_owner
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.follow_run import naming_what_runs_on
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.signals import Interrupt, Interrupted
from planwave.cli.views.live_run import show_events
from planwave.cli.views.progress import progress_of
from planwave.cli.views.result import answer_command, show_next, show_result
from planwave.errors import Unreachable
from planwave.events import ENDED_STATUS, TERMINAL, Event
from planwave.events.request_text import is_timer
from planwave.events.types import WAITING, pause_kind

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.cli.backends.remote import RemoteBackend
    from planwave.cli.console import CommandConsole
    from planwave.service.queries.history import History

_KEYS_HINT: Final = "Ctrl-C leaves, the execution continues"
_POLL_INTERVAL_S: Final = 0.5
"""The pause between two reads of what another process has written."""

ReadEvents = Callable[[str], AsyncGenerator[Event]]
"""Yields the events of an execution, by its id."""


@shared_options(over_http=True)
def watch(ctx: CommandContext, name: ExecutionArgument) -> None:
    """Follow an execution until it ends; replay it if it has ended.

    Ctrl-C only leaves: the execution continues. The exit code is that of `planwave run`.

    For example:

    * `planwave watch last`
    * `planwave watch 09a2fd --json > result.json`
    """
    if code := asyncio.run(_watch(ctx, name)):
        raise typer.Exit(code)


async def _watch(ctx: CommandContext, name: str) -> int:
    async with events_reader(ctx) as (queries, read_events):
        return await _show(ctx, queries, read_events, name)


@asynccontextmanager
async def events_reader(ctx: CommandContext) -> AsyncGenerator[tuple[Queries, ReadEvents]]:
    """Open the stored data, and what reads the events of executions as they happen."""
    settings = ctx.settings()
    if (remote := ctx.remote_backend(settings)) is not None:
        async with remote:
            yield remote, partial(_watch_service, remote)
        return
    async with ctx.history(settings) as stored:
        yield stored, partial(_poll_store, stored, settings.storage_dir)


async def _show(ctx: CommandContext, queries: Queries, read_events: ReadEvents, name: str) -> int:
    """Show an execution, its result and how to go on; return the exit code."""
    console = ctx.console()
    with Interrupt(console) as interrupt:
        try:
            execution_id = await interrupt.cancel_on_signal(find_execution(queries, name))
            with naming_what_runs_on(ctx, execution_id):
                await interrupt.cancel_on_signal(_follow(ctx, queries, read_events, execution_id))
        except Interrupted as left:
            left.message = "left; the execution continues"
            left.hint = f"watch it again with: {ctx.command_hint(f'watch {name}')}"
            raise
        document = await queries.executions.document(execution_id)
        show_result(console, document, queries.executions.document_path(execution_id))
    show_next(ctx, console, document)
    status = document["status"]
    if status not in (*ENDED_STATUS, "paused") and not document.get("interrupted"):
        resume = f"resume it with: {ctx.command_hint(f'resume {execution_id}')}"
        cancel = f"end it with: {ctx.command_hint(f'cancel {execution_id}')}"
        console.error(
            f"no process runs this execution: it stays {status}",
            cancel if status == "starting" else resume,
        )
    return ExitCode.OK if status in ("completed", "paused") else ExitCode.FAILED


async def _follow(
    ctx: CommandContext, queries: Queries, read_events: ReadEvents, execution_id: str
) -> None:
    """Show an execution until it ends, or no process runs it any more."""
    console = ctx.console()
    async with aclosing(read_events(execution_id)) as events:
        created = await anext(events)
        before = await queries.executions.document(execution_id)
        progress = progress_of(created)
        console.line(f"{created.data.get('title') or execution_id}")
        hinted = _with_hints(ctx, console, before, events)
        await show_events(console, progress, hinted, _KEYS_HINT)


async def _with_hints(
    ctx: CommandContext,
    console: CommandConsole,
    before: Mapping[str, Any],
    events: AsyncIterator[Event],
) -> AsyncIterator[Event]:
    """Yield events; after an open question or a pause, write the command that answers or resumes.

    Args:
        ctx: The context of the command.
        console: The console to write to.
        before: The document at the start; questions in earlier events may be closed already.
        events: The events of the execution.
    """
    still_open = {each["request_id"] for each in before.get("requests") or ()}
    async for event in events:
        yield event
        is_news, request_id = event.seq > before["last_seq"], event.data.get("request_id")
        is_open = is_news or request_id in still_open
        if "request" in event.data and is_open and not is_timer(event.data["request"]):
            request = event.data["request"]
            words = answer_command(ctx, event.execution_id, request_id, request)
            console.verbatim(f"  answer with: {words}")
        elif event.type == "execution.paused" and is_news and pause_kind(event.data) != WAITING:
            console.verbatim(f"  resume with: {ctx.command_hint(f'resume {event.execution_id}')}")


async def _watch_service(backend: RemoteBackend, execution_id: str) -> AsyncGenerator[Event]:
    # Lazy: test_help_loads_no_heavy_library
    from planwave.cli.backends.remote import OwnerEnded

    ended: OwnerEnded | None = None
    async with aclosing(backend.executions.watch(execution_id)) as events:
        try:
            async for event in events:
                yield event
        except OwnerEnded as error:
            ended = error
    try:
        # An owner that ends answers until the end was read.
        await backend.executions.wait(execution_id)
    except Unreachable as error:
        raise ended or error from None


async def _poll_store(
    queries: History, directory: Path, execution_id: str
) -> AsyncGenerator[Event]:
    """Yield stored events, until the execution ends or no process owns the directory any more."""
    seq = 0
    while True:
        is_owned = lock_owner(directory) is not None
        for event in await queries.executions.events(execution_id, after=seq):
            seq = event.seq
            yield event
            if event.type in TERMINAL:
                return
        if not is_owned:
            return
        await asyncio.sleep(_POLL_INTERVAL_S)
