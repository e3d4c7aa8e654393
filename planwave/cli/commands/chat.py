"""``planwave chat``: talk to a flow or a model in the terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, cast

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.context import CommandContext
from planwave.cli.follow_run import show_models
from planwave.cli.formatting import one_line, truncate
from planwave.cli.lookup import find_flow
from planwave.cli.options import ModelOption, ProviderOption, shared_options
from planwave.cli.prompts import ask, terminal_prompter
from planwave.errors import Conflict, InputError, PlanwaveError

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.console import CommandConsole
    from planwave.cli.prompts import Prompter
    from planwave.client import AsyncClient
    from planwave.service.service import Service
    from planwave.settings import Settings

_PROMPT: Final = "> "
_HELP: Final = (
    "Commands: /retry another reply, /continue the last one, /edit TEXT instead of your last "
    "message, /cancel a reply while it comes, /quit."
)
_ENDS: Final = frozenset({"/quit", "/exit"})


@shared_options(has_json=False, untrusted="ask", over_http=True)
def chat(
    ctx: CommandContext,
    flow: Annotated[
        str | None,
        typer.Argument(
            metavar="[FLOW]",
            autocompletion=completion.flows,
            help="A flow with a chat_start node, by its name or its id. [default: a model]",
            show_default=False,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option("--system", metavar="TEXT", help="Who the model is, without a flow."),
    ] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            "--tool",
            metavar="NAME",
            autocompletion=completion.tools,
            help="A tool that it may call; may be repeated.",
        ),
    ] = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
) -> None:
    """Talk to a flow, or to a model.

    Replies are streamed; what a reply asks is asked here. /retry, /continue and /edit add branches,
    nothing is lost. Without a terminal each line of the input is a message. For example:

    * `planwave chat`
    * `planwave chat "Support" `
    * `planwave chat --model gpt-5.6-luna --system "You are brief."`
    """
    chosen = {"provider": provider, "model": model, "system_prompt": system, "tools": tool}
    model_config = {name: value for name, value in chosen.items() if value is not None}
    if flow is not None and model_config:
        raise InputError(
            "a flow says itself which model replies",
            code="usage",
            hint="leave out the flow, or --provider, --model, --system and --tool",
        )

    asyncio.run(_talk(ctx, ctx.settings(), flow, model_config))


async def _talk(
    ctx: CommandContext, settings: Settings, flow: str | None, config: dict[str, Any]
) -> None:
    """Create a chat and talk in it until the person leaves."""
    console = ctx.console()
    async with ctx.backend(settings) as backend:
        plan = None if flow is None else await find_flow(backend, flow)
        plan_id = None if plan is None else plan.plan_id
        chosen = None if plan_id is not None else config
        chat_id = await chats_of(backend).create(plan_id, None, chosen)
        graph = _model_graph(config) if plan is None else plan.graph
        if console.is_interactive:  # else standard output has the replies alone
            await show_models(backend, console, graph)
        await ChatSession(backend, console, terminal_prompter(console), chat_id).run()


def _model_graph(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph with the one call of a chat with a model."""
    chosen = {name: config[name] for name in ("provider", "model") if name in config}
    return {
        "nodes": [{"id": "reply", "type": "llm", "data": {"prompt": "…", **chosen}}],
        "edges": [],
    }


class ChatSession:
    """One conversation at the terminal.

    Args:
        backend: Has the chat.
        console: Shows it.
        prompter: Reads what the person says; None reads lines of the input.
        chat_id: The chat.
    """

    def __init__(
        self,
        backend: Backend,
        console: CommandConsole,
        prompter: Prompter | None,
        chat_id: str,
    ) -> None:
        self._backend = backend
        self._chats = chats_of(backend)
        self._console = console
        self._prompter = prompter
        self._chat_id = chat_id
        self._user_id = self._reply_id = ""
        self._reading: asyncio.Task[str | None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Talk until the person leaves."""
        if self._prompter is not None:
            self._console.hint(_HELP)
        while (line := await self._read()) is not None and line.strip() not in _ENDS:
            if line.strip():
                try:
                    await self._turn(line.strip())
                except (InputError, Conflict) as error:
                    self._console.note(error.message + (f" ({error.hint})" if error.hint else ""))
        await self._stop_reading()

    async def _turn(self, line: str) -> None:
        """Begin the reply that a line asks for, and follow it."""
        command, _, rest = line.partition(" ")
        own = self._chat_id
        if command in ("/retry", "/continue", "/edit") and not self._reply_id:
            raise InputError("nothing was said yet", code="usage")
        match command:
            case "/retry":
                self._reply_id = await self._chats.retry(own, self._reply_id)
            case "/continue":
                self._reply_id = await self._chats.continue_(own, self._reply_id)
            case "/edit":
                ids = await self._chats.edit(own, self._user_id, rest)
                self._user_id, self._reply_id = ids
            case "/cancel":
                raise InputError("no reply is under way", code="usage")
            case _ if command.startswith("/"):
                raise InputError(f"there is no command {command!r}", code="usage", hint=_HELP)
            case _:
                self._user_id, self._reply_id = await self._chats.send(own, line)
        await self._follow()

    async def _follow(self) -> None:
        view = ReplyView(self._console, shows_reasoning=self._prompter is not None)
        self._start_watching()
        try:
            async with aclosing(self._chats.events(self._chat_id, self._reply_id)) as events:
                async for event in events:
                    view.show(event)
                    if event["event"] == "ApprovalRequired":
                        view.close()
                        await self._ask(event["tool"])
        finally:
            view.close()
            await self._stop_watching()

    async def _ask(self, question: dict[str, Any]) -> None:
        """Ask the person what the reply asks; without a terminal the question stays open."""
        execution_id, request_id = question["runId"], question["requestId"]
        if self._prompter is None:
            hint = f"planwave answer {execution_id} {request_id}"
            self._console.note(f"{question['summary']} Answer with: {hint}")
            return
        await self._stop_watching()
        await self._stop_reading()
        requests = {
            each.request_id: each for each in await self._backend.executions.requests(execution_id)
        }
        if request_id in requests:  # else somebody else has answered it
            name = question["toolName"] or "The reply"
            answer = await ask(self._console, self._prompter, requests[request_id], name)
            if answer is not None:
                with suppress(Conflict):
                    await self._backend.answer(execution_id, request_id, answer.answer)
        self._start_watching()

    def _start_watching(self) -> None:
        if self._prompter is not None:
            loop = asyncio.get_running_loop()
            self._watching = loop.create_task(self._watch_for_cancel())

    async def _stop_watching(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch_for_cancel(self) -> None:
        """Cancel the reply when the person types that; keep any other line, or the end, for later."""
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._next_line(""))
        line = await asyncio.shield(self._reading)
        if line is not None and line.strip() == "/cancel":
            self._reading = None
            with suppress(PlanwaveError):
                await self._chats.cancel(self._chat_id, self._reply_id)

    async def _read(self) -> str | None:
        """Return the next line, perhaps one that was typed during a reply."""
        reading, self._reading = self._reading, None
        if reading is not None and not await _stopped(reading):
            return reading.result()
        return await self._next_line(_PROMPT)

    async def _next_line(self, prompt: str) -> str | None:
        if self._prompter is not None:
            return await self._prompter.read_line(prompt)
        return await asyncio.to_thread(sys.stdin.readline) or None

    async def _stop_reading(self) -> None:
        if self._reading is not None and await _stopped(self._reading):
            self._reading = None


async def _stopped(reading: asyncio.Task[str | None]) -> bool:
    """Stop a read, which keeps the typed part of a line; return False where it had read a line."""
    reading.cancel()
    # Only one task may wait for the terminal: the end of this one would unregister the next one.
    await asyncio.wait([reading])
    return reading.cancelled()


def chats_of(backend: Backend) -> ChatBackend:
    """Return the chats of a backend."""
    return backend.choose(LocalChats, RemoteChats)


class ChatBackend(Protocol):
    """Begins chats and replies; each method that begins a reply returns the id of its message."""

    async def create(
        self, plan_id: str | None, plan_revision: int | None, config: Mapping[str, Any] | None
    ) -> str:
        """Create a chat; return its id."""
        ...

    async def send(self, chat_id: str, text: str) -> tuple[str, str]:
        """Say something; return the ids of the message and of the reply."""
        ...

    async def edit(self, chat_id: str, message_id: str, text: str) -> tuple[str, str]: ...
    async def retry(self, chat_id: str, message_id: str) -> str: ...
    async def continue_(self, chat_id: str, message_id: str) -> str: ...
    async def cancel(self, chat_id: str, message_id: str) -> object: ...
    def events(self, chat_id: str, message_id: str) -> AsyncGenerator[dict[str, Any]]:
        """Yield the events of a reply as they happen, until it ends."""
        ...


class LocalChats:
    """The chats of a service in this process."""

    def __init__(self, service: Service) -> None:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.service.chats.chat_documents import UserContent

        self._content = UserContent
        self._service = service
        self.cancel = service.chats.cancel_reply

    async def create(
        self, plan_id: str | None, plan_revision: int | None, config: Mapping[str, Any] | None
    ) -> str:
        """See ``ChatBackend.create``."""
        chat = await self._service.chats.create(
            plan_id=plan_id, plan_revision=plan_revision, config=config
        )
        return chat.record.chat_id

    async def send(self, chat_id: str, text: str) -> tuple[str, str]:
        """See ``ChatBackend.send``."""
        turn = await self._service.chats.send(chat_id, self._content(text))
        return turn.reply.parent_id or "", turn.reply.message_id

    async def edit(self, chat_id: str, message_id: str, text: str) -> tuple[str, str]:
        """See ``ChatBackend.edit``."""
        turn = await self._service.chats.edit(chat_id, message_id, self._content(text))
        return turn.reply.parent_id or "", turn.reply.message_id

    async def retry(self, chat_id: str, message_id: str) -> str:
        """See ``ChatBackend.retry``."""
        return (await self._service.chats.retry_reply(chat_id, message_id)).reply.message_id

    async def continue_(self, chat_id: str, message_id: str) -> str:
        """See ``ChatBackend.continue_``."""
        return (await self._service.chats.continue_reply(chat_id, message_id)).reply.message_id

    async def events(self, chat_id: str, message_id: str) -> AsyncGenerator[dict[str, Any]]:
        """See ``ChatBackend.events``."""
        async with self._service.chats.follow_reply(chat_id, message_id) as reply:
            while (events := await reply.next()) is not None:
                for event in events:
                    yield event


class RemoteChats:
    """The chats of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.cancel = client.cancel_message
        self.events = client.reply_events

    async def create(
        self, plan_id: str | None, plan_revision: int | None, config: Mapping[str, Any] | None
    ) -> str:
        """See ``ChatBackend.create``."""
        chat = await self._client.create_chat(plan_id, plan_revision=plan_revision, config=config)
        return chat["chat_id"]

    async def send(self, chat_id: str, text: str) -> tuple[str, str]:
        """See ``ChatBackend.send``."""
        return _ids(await self._client.send_message(chat_id, text))

    async def edit(self, chat_id: str, message_id: str, text: str) -> tuple[str, str]:
        """See ``ChatBackend.edit``."""
        return _ids(await self._client.edit_message(chat_id, message_id, text))

    async def retry(self, chat_id: str, message_id: str) -> str:
        """See ``ChatBackend.retry``."""
        return (await self._client.retry_message(chat_id, message_id))["message"]["message_id"]

    async def continue_(self, chat_id: str, message_id: str) -> str:
        """See ``ChatBackend.continue_``."""
        return (await self._client.continue_message(chat_id, message_id))["message"]["message_id"]


def _ids(turn: object) -> tuple[str, str]:
    messages = cast("dict[str, Any]", turn)
    return messages["user_message"]["message_id"], messages["message"]["message_id"]


_SHOWN_CHARS = 200


class ReplyView:
    """Writes the events of a reply: its text as it comes, one line for everything else.

    Args:
        console: The terminal.
        shows_reasoning: Whether reasoning is written too.
    """

    def __init__(self, console: CommandConsole, *, shows_reasoning: bool = True) -> None:
        self._console = console
        self._shows_reasoning = shows_reasoning
        self._lengths: dict[str, int] = {}
        self._block: str | None = None

    def show(self, event: dict[str, Any]) -> None:
        """Write an event; those that say nothing to people write nothing."""
        match event["event"]:
            case "RunContent":
                self._piece(event, event["content"])
            case "ReasoningStep" if self._shows_reasoning:
                self._piece(event, event["reasoningContent"])
            case "ToolCallStarted":
                tool = event["tool"]
                self._note(f"calls {tool['toolName']} {tool['toolArgs']}")
            case "ToolCallCompleted":
                self._note(f"{event['tool']['toolName']}: {event['tool']['toolResult']}")
            case "ToolCallFailed" | "MemberRunError" | "FlowNodeError" | "RunError":
                self._note(f"failed: {event['error']['message']}")
            case "MemberRunStarted":
                self._note(f"asks {event['memberName']}: {event['task']}")
            case "ApprovalResolved":
                self._note(str(event["state"]))
            case "StreamWarning":
                self._note(str(event["warning"]))
            case "RunCancelled":
                self._note("cancelled")
            case _:
                pass

    def close(self) -> None:
        """End the line that is open."""
        if self._block is not None:
            self._console.line()
            self._block = None

    def _piece(self, event: dict[str, Any], piece: str) -> None:
        """Write what is new of a text; what was written cannot be taken back."""
        block_id, offset = event["blockId"], event["offset"]
        length = self._lengths.get(block_id, 0)
        new = piece[max(length - offset, 0) :]
        self._lengths[block_id] = max(length, offset + len(piece))
        if not new:
            return
        if self._block != block_id:
            self.close()
            self._block = block_id
        self._console.prompt(new)

    def _note(self, text: str) -> None:
        self.close()
        self._console.line(Text(f"  {truncate(one_line(text), _SHOWN_CHARS)}", style="dim"))
