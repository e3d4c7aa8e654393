"""docs/tutorial.md is true: every block is run in its order, against the composition root."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.llm.fake_llm_server import fake_llm_in_thread, prompt_of, schema_of
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node
from tests.support.nodes.node_packages import PROGRAMS, install_entry_points
from tests.support.paths import ROOT
from tests.support.processes.forked_process import run_forked

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S
)
LEFT_OUT = "…"
ADDRESS = "http://127.0.0.1:8000"
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
SECONDS = re.compile(r"\[ *\d+\.\ds\]|\(\d+\.\d s\)")
PROGRESS = re.compile(r"(?:^\[time\].*\n)+", re.M)

TASKS = {
    "tea": "Say in one sentence how tea keeps a person awake.",
    "coffee": "Say in one sentence how coffee keeps a person awake.",
    "recommend": "Recommend one of the two, with the reason.",
}
PLAN = planner_reply(
    *(reply_node(name, description=task) for name, task in TASKS.items()),
    edges=[reply_edge("tea", "recommend"), reply_edge("coffee", "recommend")],
    title="Tea or coffee for a night shift",
)
REPLIES = {
    TASKS["recommend"]: (
        "Drink tea: its effect lasts until the morning, and you sleep well afterwards."
    ),
    TASKS["coffee"]: (
        "Coffee has about 95 mg of caffeine a cup, and its effect comes within half an hour."
    ),
    TASKS["tea"]: "Tea has about 40 mg of caffeine a cup, and its effect comes slowly.",
}


def model_reply(body: dict[str, Any]) -> str:
    if schema_of(body) is not None:
        return PLAN
    return next(reply for task, reply in REPLIES.items() if task in prompt_of(body))


class Command(NamedTuple):
    """A command line of the page, and the output that the page shows."""

    line: str
    output: str


def blocks() -> list[re.Match[str]]:
    return list(BLOCK.finditer(PAGE))


def commands(text: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output)


class Reader:
    """Follows the page in one directory, with ids, times and a port of its own."""

    def __init__(self, directory: Path, resources: ExitStack) -> None:
        self._directory = directory
        self._resources = resources
        self._site = directory / "site"
        self._ids: dict[str, str] = {}
        self._address = ADDRESS
        self._http = resources.enter_context(httpx2.Client(trust_env=False))

    def follow(self, command: Command) -> None:
        """Run a command; its output has to be that of the page."""
        line = ID.sub(lambda found: self._ids[found[0]], command.line)
        words = shlex.split(line)
        if line == "planwave serve":
            output = self._serve()
        elif words[0] == "curl":
            output = self._curl(words)
        elif line == "pip install -e .":
            install_entry_points(self._directory, self._site)
            output = ""
        else:
            output = self._run(words)
        self._compare(command, output)

    def _run(self, words: list[str]) -> str:
        file = words[words.index(">") + 1] if ">" in words else None
        program, *arguments = words[: words.index(">")] if file else words
        done = run_forked("-W", "error", *PROGRAMS[program], *arguments)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        if file is None:
            return done.stdout
        Path(file).write_text(done.stdout, "utf-8")
        return ""

    def _serve(self) -> str:
        process = self._resources.enter_context(start_command("serve", "--port", "0"))
        self._resources.callback(process.kill)
        output = read_until(process.stdout, "listens on")
        self._address = output.split()[-1]
        return f"{output}and so on".replace(self._address, ADDRESS)

    def _curl(self, words: list[str]) -> str:
        *options, url = words[1:]
        url = url.replace(ADDRESS, self._address)
        if "--json" in options:
            body = json.loads(options[options.index("--json") + 1])
            return self._http.post(url, json=body).text
        return self._http.get(url).text

    def _compare(self, command: Command, output: str) -> None:
        shown, received = in_order(command.output), in_order(output)
        parts = re.split(f"({ID.pattern}|{LEFT_OUT})", shown)
        pattern, names = "", list[str]()
        for part in parts:
            if ID.fullmatch(part):
                names.append(part)
                pattern += f"({ID.pattern})"
            else:
                pattern += ".*?" if part == LEFT_OUT else re.escape(part)
        found = re.fullmatch(pattern, received, re.S)
        assert found, f"{command.line}\n--- the page:\n{shown}\n--- the output:\n{received}"
        for name, real in zip(names, found.groups(), strict=True):
            assert self._ids.setdefault(name, real) == real, (command.line, name)


def in_order(output: str) -> str:
    """Leave out times, and sort progress lines: parallel steps end in any order."""
    text = SECONDS.sub("[time]", output).strip()
    return PROGRESS.sub(lambda lines: "\n".join(sorted(lines[0].splitlines())) + "\n", text)


def test_every_block_runs_and_prints_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path / 'site'}:{tmp_path}")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    programs = set[str]()
    with fake_llm_in_thread(reply_to=model_reply) as llm, ExitStack() as resources:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        reader = Reader(tmp_path, resources)
        for block in blocks():
            if block["kind"] == "console":
                for command in commands(block["text"]):
                    reader.follow(command)
                    programs.add(command.line.split()[0])
            elif block["file"]:
                (tmp_path / block["file"]).write_text(block["text"], "utf-8")
    assert programs == {"planwave", "python", "pip", "curl"}


def test_every_block_is_a_file_or_a_command_but_the_installation() -> None:
    assert len(blocks()) * 2 == len(re.findall(r"^```", PAGE, re.M))
    installation, *others = blocks()
    assert installation["kind"] == "sh"
    assert [b[0] for b in others if (b["kind"] == "console") != (b["file"] is None)] == []


def test_linked_files_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", PAGE) if "://" not in link]
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_false_output_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    with ExitStack() as resources:
        reader = Reader(tmp_path, resources)
        reader.follow(Command("planwave --version", LEFT_OUT))
        with pytest.raises(AssertionError, match="the page"):
            reader.follow(Command("planwave --version", "planwave 9.9"))
