"""docs/openai.md is true: its flow is published and served, and the clients of others talk to it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from typer.testing import CliRunner

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory, start_command
from tests.support.cli.doc_page import blocks
from tests.support.llm.fake_llm_server import (
    TextReply,
    ToolCallReply,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
    tool_results_of,
    tools_of,
)
from tests.support.mcp.servers import free_port
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "openai.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "openai_client"
BLOCKS = {block["kind"]: block["text"] for block in blocks(PAGE)}


class Bird(BaseModel):
    """A bird."""

    name: str


def reply_to(body: dict[str, Any]) -> TextReply:
    """A model that calls the tool it is offered, then repeats its result; else it unplugs."""
    if results := tool_results_of(body):
        return TextReply(f"It says {', '.join(results.values())}.", chunks=3)
    if "weather" in tools_of(body):
        return ToolCallReply([("weather", {"place": "Kiel"})])
    if schema_of(body) is not None:
        return TextReply('{"name": "robin"}')
    assert "You help with printers." in json.dumps(body)
    return TextReply("Unplug it." if "burns" in prompt_of(body) else "Which one?", chunks=2)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service that was set up by the commands of the page."""
    directory = tmp_path_factory.mktemp("served")
    with (
        pytest.MonkeyPatch.context() as patched,
        fake_llm_in_thread(reply_to=reply_to) as llm,
    ):
        isolated_directory(directory, patched)
        patched.setenv("OPENAI_API_KEY", "sk-test")
        patched.setenv("OPENAI_BASE_URL", llm.openai_url)
        (directory / "printers.json").write_text(BLOCKS["json"])
        *commands, serve = [line[2:] for line in BLOCKS["console"].splitlines()]
        for command in commands:
            done = CliRunner().invoke(app, shlex.split(command)[1:], obj=cli_factories())
            assert done.exit_code == 0, done.output
        assert serve == "planwave serve"
        with start_command("serve", "--port", "0", "--json") as process:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
            process.kill()


def weather(place: str) -> str:
    """Return the weather of a place."""
    return f"9 degrees in {place}"


def test_program_of_the_page_prints_the_answer(url: str) -> None:
    program = BLOCKS["python"].replace("http://127.0.0.1:8000", url)
    with redirect_stdout(StringIO()) as printed:
        exec(compile(program, "openai.md", "exec"), {})  # noqa: S102 - a block of the page
    assert printed.getvalue() == "Unplug it.\n"


@pytest.mark.slow
@pytest.mark.parametrize("make", [OpenAIChatModel, OpenAIResponsesModel])
async def test_pydantic_ai_streams_calls_tools_and_validates(url: str, make: Any) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="unused") as client:
        model = make("printers", provider=OpenAIProvider(openai_client=client))
        async with Agent(model).run_stream("My printer burns.") as stream:
            text = "".join([piece async for piece in stream.stream_text(delta=True)])
        assert text == "Unplug it."
        result = await Agent(model, tools=[weather]).run("And in Kiel?")
        assert result.output == "It says 9 degrees in Kiel."
        assert result.usage.requests == 2
        assert result.usage.output_tokens > 0
        for output in (Bird, NativeOutput(Bird)):  # by a call that it insists on, and by a schema
            told = await Agent(model, output_type=output).run("Which bird?")
            assert told.output == Bird(name="robin")


@pytest.mark.slow
async def test_langchain_streams_calls_tools_and_validates(url: str) -> None:
    model = ChatOpenAI(base_url=f"{url}/v1", api_key=SecretStr("unused"), model="printers")
    pieces = [piece async for piece in model.astream("My printer burns.")]
    assert "".join(str(piece.content) for piece in pieces) == "Unplug it."
    tools = model.bind_tools([weather])
    asked: list[Any] = [HumanMessage("And in Kiel?")]
    called = await tools.ainvoke(asked)
    assert isinstance(called, AIMessage)
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("weather", {"place": "Kiel"})
    answer = ToolMessage(weather(**call["args"]), tool_call_id=call["id"])
    last = await tools.ainvoke([*asked, called, answer])
    assert last.content == "It says 9 degrees in Kiel."
    assert last.usage_metadata is not None
    for method in ("json_schema", "function_calling"):
        birds = model.with_structured_output(Bird, method=method)
        assert await birds.ainvoke("Which bird?") == Bird(name="robin")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_example_is_run_by_the_command_of_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = blocks((EXAMPLE / "README.md").read_text("utf-8"))
    with fake_llm_in_thread(reply_to=reply_to) as llm:
        isolated_directory(tmp_path, monkeypatch)
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        monkeypatch.setenv("PATH", programs)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(tmp_path))
        monkeypatch.setenv("PLANWAVE_PORT", str(free_port()))
        command = shlex.split(block["text"].removeprefix("$ "))
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("Unplug it.")


def test_example_has_eight_lines() -> None:
    lines = [line for line in (EXAMPLE / "ask.py").read_text("utf-8").splitlines() if line]
    assert len(lines) <= 8
