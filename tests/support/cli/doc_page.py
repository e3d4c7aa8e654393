"""Pages of documentation: their blocks, and a reader who runs their commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from planwave.providers.protocols import text_tokens
from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.llm.fake_llm_server import (
    ReplyStep,
    TextReply,
    asks_for_plan,
    fake_llm_in_thread,
    prompt_of,
)
from tests.support.nodes.node_packages import PROGRAMS
from tests.support.paths import ROOT
from tests.support.processes.forked_process import run_forked

LEFT_OUT = "…"
_BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
_ADDRESS = "http://127.0.0.1:8000"
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_SECONDS = re.compile(r"\[ *\d+\.\ds\]|\(\d+\.\d s\)|(?<=  )\d+\.\d s\b")
_PROGRESS = re.compile(r"(?:^\[time\].*\n)+", re.M)


def blocks(page: str) -> list[re.Match[str]]:
    """Return the blocks of a page: ``kind``, ``text``, and ``file`` if the page names one."""
    return list(_BLOCK.finditer(page))


class Command(NamedTuple):
    """A command line of a page, and the output that the page shows."""

    line: str
    output: str


def commands(text: str) -> Iterator[Command]:
    """Return the commands of a block: the lines after ``$``."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output)


class PageReader:
    """Runs the commands of a page in one directory, with ids, times and a port of its own.

    Args:
        directory: The working directory, empty.
        monkeypatch: Sets the environment of the commands.
        resources: Ends the model server and the service.
        plan: The planner's reply of the scripted model server, whose address is that of OpenAI.
        replies: Its other replies, by a text of the prompt.
        reply: The model instead, as a function of the request.
    """

    def __init__(
        self,
        directory: Path,
        monkeypatch: pytest.MonkeyPatch,
        resources: ExitStack,
        *,
        plan: str = "",
        replies: Mapping[str, str] | None = None,
        reply: Callable[[dict[str, Any]], str | ReplyStep] | None = None,
    ) -> None:
        def scripted(body: dict[str, Any]) -> TextReply:
            prompt = prompt_of(body)
            text = plan
            if not asks_for_plan(body):
                text = next(reply for task, reply in (replies or {}).items() if task in prompt)
            return TextReply(text, usage=(text_tokens(prompt), text_tokens(text)))

        isolated_directory(directory, monkeypatch)
        llm = resources.enter_context(fake_llm_in_thread(reply_to=reply or scripted))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        monkeypatch.setenv("COLUMNS", "120")
        self._directory = directory
        self._resources = resources
        self._http = resources.enter_context(httpx2.Client(trust_env=False))
        self._address = _ADDRESS
        self.ids: dict[str, str] = {}
        """Ids of the page, and those that stand for them here."""

    def follow(self, command: Command) -> None:
        """Run a command; its output has to be that of the page."""
        self._compare(command, self.run(command.line))

    def run(self, line: str) -> str:
        """Run a command line, which has to succeed; return its output."""
        for shown, real in self.ids.items():
            line = line.replace(shown, real)
        words = shlex.split(line, comments=True)
        if words[:2] == ["planwave", "serve"]:
            return self._serve(words[2:])
        if words[0] == "curl":
            return self._curl(words[1:])
        return self._run(words)

    def _run(self, words: list[str]) -> str:
        file = words[words.index(">") + 1] if ">" in words else None
        program, *arguments = words[: words.index(">")] if file else words
        done = run_forked("-W", "error", *PROGRAMS[program], *arguments)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        if file is None:
            return done.stdout
        (self._directory / file).write_text(done.stdout, "utf-8")
        return ""

    def _serve(self, options: list[str]) -> str:
        process = self._resources.enter_context(start_command("serve", "--port", "0", *options))
        self._resources.callback(process.kill)
        first = read_until(process.stdout, "web UI: ")
        self._address = first.split()[3]
        root = options[options.index("--root-path") + 1] if "--root-path" in options else ""
        # Where there is no Node, the page is not built.
        first = re.sub("web UI: not built.*", f"web UI: {self._address}{root}/", first)
        return first.replace(self._address, _ADDRESS) + LEFT_OUT  # the rest is not read

    def _curl(self, words: list[str]) -> str:
        """Send what ``curl`` would send: a GET, or a POST of JSON."""
        *options, url = words
        url = url.replace(_ADDRESS, self._address)
        if "--json" in options:
            body = json.loads(options[options.index("--json") + 1])
            answer = self._http.post(url, json=body)
        else:
            answer = self._http.get(url)
        assert answer.is_success, (url, answer.text)
        return answer.text

    def _compare(self, command: Command, output: str) -> None:
        shown, received = _in_order(command.output), _in_order(output)
        pattern, names = "", list[str]()
        for part in re.split(f"({_ID.pattern}|{LEFT_OUT})", shown):
            if _ID.fullmatch(part):
                names.append(part)
                pattern += f"({_ID.pattern})"
            else:
                pattern += ".*?" if part == LEFT_OUT else re.escape(part)
        found = re.fullmatch(pattern, received, re.S)
        assert found, f"{command.line}\n--- the page:\n{shown}\n--- the output:\n{received}"
        for name, real in zip(names, found.groups(), strict=True):
            assert self.ids.setdefault(name, real) == real, (command.line, name)


def _in_order(output: str) -> str:
    """Leave out times, and sort progress lines: parallel steps end in any order."""
    text = _SECONDS.sub("[time]", output).strip()
    return _PROGRESS.sub(lambda lines: "\n".join(sorted(lines[0].splitlines())) + "\n", text)
