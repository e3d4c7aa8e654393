"""Following a run: show its events and ask its questions until it is idle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from planwave.cli.errors import ExitCode, root_error
from planwave.cli.formatting import asker_of
from planwave.cli.prompts import Prompter, ask, terminal_prompter
from planwave.cli.signals import Interrupt, Interrupted
from planwave.cli.views.live_run import show_events
from planwave.cli.views.plan import models_line
from planwave.cli.views.progress import RunProgress, progress_of
from planwave.cli.views.result import show_next, show_result
from planwave.errors import Conflict, Gone, InputError, Unreachable
from planwave.events import TERMINAL, Event, OpenRequest
from planwave.events.unreadable import UNREADABLE

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.console import CommandConsole
    from planwave.cli.context import CommandContext
    from planwave.cli.prompts import PromptResult

_NODE_END_EVENTS = ("node.completed", "node.failed", "node.cancelled")
_CLOSED = "closed meanwhile"


async def follow_run(
    ctx: CommandContext,
    backend: Backend,
    interrupt: Interrupt,
    execution_id: str,
    *,
    after: int = 0,
) -> int:
    """Show an execution until it is idle, ask its questions, show its result.

    Args:
        ctx: The context of the command.
        backend: The backend that runs the execution.
        interrupt: The first signal stops the execution; at a question, it leaves the question open.
        execution_id: The execution to follow.
        after: Sequence number of the last event that is not shown.

    Returns:
        The exit code.
    """
    console = ctx.console()
    progress = await _progress(backend, execution_id, after)
    attendance = _RunFollower(backend, console, interrupt, progress, execution_id, after)
    await attendance.skip_answered()
    if progress.is_idle and (await backend.executions.document(execution_id))["last_seq"] <= after:
        return await _show_outcome(
            ctx, backend, console, interrupt, execution_id
        )  # idle, without a new event

    async def stop() -> None:
        with suppress(Conflict):
            await backend.executions.cancel(execution_id, interrupt.cause)

    console.line()
    with naming_what_runs_on(ctx, execution_id):
        async with asyncio.TaskGroup() as tasks:

            def begin_to_stop() -> None:
                tasks.create_task(stop())
                console.line("stopping; press Ctrl-C again to exit at once")

            with interrupt.on_stop(begin_to_stop):
                await attendance.until_idle()
                await backend.executions.wait(execution_id)
    if attendance.superseded_by is not None:
        return await follow_run(ctx, backend, interrupt, attendance.superseded_by)
    return await _show_outcome(ctx, backend, console, interrupt, execution_id)


@contextmanager
def naming_what_runs_on(ctx: CommandContext, execution_id: str) -> Generator[None]:
    """Say, where the service of an execution is lost in the block, how to see what became of it."""
    try:
        yield
    except (Unreachable, BaseExceptionGroup) as error:
        lost = root_error(error)
        if not isinstance(lost, Unreachable):
            raise
        if execution_id not in (lost.hint or ""):
            lost.message += f"; what became of execution {execution_id} is not known here"
            lost.hint = f"once it runs again: {ctx.command_hint(f'watch {execution_id}')}"
        raise lost from error


async def _progress(backend: Backend, execution_id: str, after: int) -> RunProgress:
    """Return the progress of an execution up to an event, or as of its first event."""
    async with aclosing(backend.executions.watch(execution_id)) as events:
        progress = progress_of(await anext(events))
        if after > 1:
            async for event in events:
                progress.apply(event)
                if event.seq >= after:
                    break
    return progress


async def show_models(
    backend: Backend, console: CommandConsole, graph: Mapping[str, Any] | None
) -> None:
    """Write which models the steps of a graph call, if any does."""
    line = models_line(await backend.models(graph)) if graph else None
    if line is not None:
        console.line(line)


class _RunFollower:
    """Shows one execution, with pauses for questions.

    Attributes:
        superseded_by: The execution of the plan that the user edited, which asks again.
    """

    def __init__(
        self,
        backend: Backend,
        console: CommandConsole,
        interrupt: Interrupt,
        progress: RunProgress,
        execution_id: str,
        seq: int,
    ) -> None:
        self._backend, self._console, self._interrupt = backend, console, interrupt
        self._progress, self._execution_id, self._seq = progress, execution_id, seq
        self._prompter: Prompter | None = terminal_prompter(console)
        self._handled: set[str] = set()
        # Requests that are closed, though the events shown so far do not say so yet.
        self._closed_requests: set[str] = set()
        self.superseded_by: str | None = None

    async def skip_answered(self) -> None:
        """Mark requests that are closed already, so that they are not shown again."""
        open_now = {
            each.request_id for each in await self._backend.executions.requests(self._execution_id)
        }
        self._closed_requests = self._progress.requests.keys() - open_now
        self._handled |= self._closed_requests

    async def until_idle(self) -> None:
        """Show events and ask questions until the execution is idle."""
        is_interrupted = True
        while is_interrupted:
            if self._prompter is not None and (request := self._next_request()) is not None:
                await self._prompt(request, self._prompter)
                continue
            async with aclosing(self._events()) as events:
                is_interrupted = await show_events(
                    self._console, self._progress, events, until=self._has_request
                )

    async def _events(self) -> AsyncGenerator[Event]:
        """Yield events after the last one shown, until the execution is idle."""
        watched = self._backend.executions.watch(self._execution_id, after=self._seq)
        async with aclosing(watched) as events:
            async for event in events:
                self._seq = max(self._seq, event.seq)
                yield event
                is_behind = not self._closed_requests.isdisjoint(self._progress.requests)
                if self._progress.is_idle and not is_behind:
                    return

    def _has_request(self) -> bool:
        return self._prompter is not None and self._next_request() is not None

    def _next_request(self) -> OpenRequest | None:
        open_now = self._progress.questions
        return next((each for each in open_now if each.request_id not in self._handled), None)

    async def _prompt(self, request: OpenRequest, prompter: Prompter) -> None:
        """Ask the user a question and send the answer to the backend."""
        self._handled.add(request.request_id)
        try:
            reply = await self._interrupt.cancel_on_signal(self._answer(request, prompter))
        except Interrupted:
            self._prompter = None
            self._console.line()
            self._console.note("the question stays open; running steps end first")
            return
        if reply is None:
            return
        answered = self._execution_id
        try:
            answered = await self._backend.answer(
                self._execution_id, request.request_id, reply.answer
            )
        except (Conflict, Gone) as error:  # answered elsewhere, or timed out
            if error.code == UNREADABLE:
                raise
            self._console.note(error.message)
        except InputError as error:
            self._console.note(error.message)
            return
        self._closed_requests.add(request.request_id)
        if answered != self._execution_id:
            self.superseded_by = answered

    async def _answer(self, request: OpenRequest, prompter: Prompter) -> PromptResult | None:
        """Ask the user while the request is open; None if the user skips it or it is closed."""
        node = self._progress.nodes.get(request.path or "")
        name = asker_of(request.path, request.request) if node is None else node.name
        graph = None
        if request.path is None:
            graph = (await self._backend.executions.document(self._execution_id)).get("graph")
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(ask(self._console, prompter, request, name, graph))
            closing = tasks.create_task(self._closed(request))
            await asyncio.wait([asking, closing], return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
            closing.cancel()
        if asking.cancelled():
            self._console.line()
            self._console.note(closing.result())
            self._closed_requests.add(request.request_id)
            return None
        return asking.result()

    async def _closed(self, request: OpenRequest) -> str:
        """Wait until a request is closed; return the sentence that says so."""
        watched = self._backend.executions.watch(self._execution_id, after=self._seq)
        async with aclosing(watched) as events:
            async for event in events:
                if _closes_request(event, request):
                    is_answer = "answer" in event.data and "by" not in event.data
                    return f"the question was {'answered elsewhere' if is_answer else _CLOSED}"
        return f"the question was {_CLOSED}"


def _closes_request(event: Event, request: OpenRequest) -> bool:
    if event.type in ("node.answered", "execution.resumed"):
        return bool(event.data.get("request_id") == request.request_id)
    return event.type in TERMINAL or (event.type in _NODE_END_EVENTS and event.path == request.path)


async def _show_outcome(
    ctx: CommandContext,
    backend: Backend,
    console: CommandConsole,
    interrupt: Interrupt,
    execution_id: str,
) -> int:
    """Show the result of an execution; return the exit code."""
    document: Mapping[str, Any] = await backend.executions.document(execution_id)
    show_result(console, document, backend.executions.document_path(execution_id))
    show_next(ctx, console, document)
    status = document["status"]
    if interrupt.received is not None and status in ("cancelled", "paused"):
        note = "completed results are stored"
        hint = f"see it with: {ctx.command_hint(f'show {execution_id}')}"
        if status == "paused":
            note = f"the execution stays paused, {note}"
        else:
            hint += f"; run the rest with: {ctx.command_hint(f'retry {execution_id}')}"
        console.error(f"interrupted; {note}", hint)
        return 128 + interrupt.received
    return ExitCode.OK if status in ("completed", "paused") else ExitCode.FAILED
