"""The chat in the terminal: in this process, and against a running service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.cli.backends.local import LocalBackend
from planwave.cli.backends.remote import RemoteBackend
from planwave.cli.commands.chat import ChatSession, chats_of
from planwave.cli.console import CommandConsole
from planwave.client import AsyncClient
from planwave.service.service import Service
from tests.support.chat.chats import agent, chat_flow, chat_parts
from tests.support.cli.scripted_prompter import ScriptedPrompter
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    TextReply,
    ToolCallReply,
    fake_llm_in_thread,
)
from tests.support.server.loop_server import loop_server

WITH_TOOLS = chat_flow(agent("agent-1"), kit_of=["agent-1"])
backends = pytest.mark.parametrize("kind", ["local", "remote"])


class PatientPrompter(ScriptedPrompter):
    """Types what it is asked for; while a reply comes only ``/cancel``, once text is there."""

    async def read_line(self, prompt: str) -> str | None:
        if not prompt:
            said = "/cancel" in self._lines[:1] and "Once"
            while not said or said not in output_of(self._console):  # noqa: ASYNC110 - of a console
                await asyncio.sleep(0.01)
        return await super().read_line(prompt)


def output_of(console: CommandConsole) -> str:
    assert isinstance(console.out.file, StringIO)
    return console.out.file.getvalue()


@asynccontextmanager
async def opened(kind: str) -> AsyncGenerator[tuple[Any, FakeLLMServer]]:
    """Give a backend, and the model behind it."""
    async with chat_parts() as (parts, llm):
        if kind == "local":
            async with Service(parts) as service:
                yield LocalBackend(service), llm
        else:
            async with loop_server(parts) as server, AsyncClient(server.base_url) as client:
                yield RemoteBackend(client, parts.directory), llm  # pyright: ignore[reportArgumentType]


async def typed(
    backend: Any,
    flow: dict[str, Any] | None,
    *lines: str | None,
    prompter_type: type[PatientPrompter] = PatientPrompter,
) -> str:
    """Type lines in a chat; give what is shown."""
    console = CommandConsole()
    console.out = Console(file=StringIO(), width=200)
    plan_id = None
    if flow is not None:
        plan_id = (await backend.flows.create("F", graph=json.dumps(flow).encode())).plan_id
    chat_id = await chats_of(backend).create(plan_id, None, {} if flow is None else None)
    prompter = prompter_type(lines, console)
    async with asyncio.timeout(30):
        await ChatSession(backend, console, prompter, chat_id).run()
    assert prompter.is_exhausted
    return output_of(console)


@backends
async def test_replies_are_streamed_retried_and_edited(kind: str) -> None:
    async with opened(kind) as (backend, llm):
        llm.add(*(TextReply(f"Reply {number}.", chunks=2) for number in range(1, 5)))
        shown = await typed(backend, None, "Hello", "/retry", "/edit Hi", "/continue", "/quit")
        for number in range(1, 5):
            assert f"Reply {number}." in shown
        said = [request.body["messages"][-1]["content"] for request in llm.requests]
        assert said[:3] == ["Hello", "Hello", "Hi"]


@backends
async def test_approval_is_asked_inline(kind: str) -> None:
    async with opened(kind) as (backend, llm):
        refund = ToolCallReply([("refund", {"order": "A-1", "amount": 5})])
        llm.add(refund, TextReply("Refunded."))
        shown = await typed(backend, WITH_TOOLS, "Refund it", "approve", "", "/quit")
        assert "May the tool refund be called" in shown
        assert "Refunded." in shown


@backends
async def test_reply_is_cancelled_while_it_comes(kind: str) -> None:
    async with opened(kind) as (backend, llm):
        llm.add(TextReply("Once upon a time.", chunks=2, gates={2: asyncio.Event()}))
        shown = await typed(backend, None, "Tell me", "/cancel", "/quit")
        assert "cancelled" in shown


@backends
async def test_input_that_ends_cancels_no_reply(kind: str) -> None:
    rest = asyncio.Event()

    class LeavingPrompter(PatientPrompter):
        """Presses Ctrl-D while a reply comes."""

        async def read_line(self, prompt: str) -> str | None:
            if not prompt:
                asyncio.get_running_loop().call_soon(rest.set)
                return None
            return await super().read_line(prompt)

    async with opened(kind) as (backend, llm):
        llm.add(TextReply("Once upon a time.", chunks=2, gates={2: rest}))
        shown = await typed(backend, None, "Tell me", prompter_type=LeavingPrompter)
        assert "Once upon a time." in shown


async def test_unknown_commands_are_explained() -> None:
    async with opened("local") as (backend, _):
        await typed(backend, None, "/retry", "/what", "", "/quit")


def test_lines_of_the_input_are_messages(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_llm_in_thread(TextReply("One."), TextReply("Two.")) as llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        monkeypatch.chdir(tmp_path)
        result = CliRunner().invoke(
            app, ["chat", "--storage", str(tmp_path)], input="a\nb\n", obj=cli_factories()
        )
        assert result.exit_code == 0, result.output
        assert result.stdout.split() == ["One.", "Two."]
