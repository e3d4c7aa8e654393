"""README.md is true: its Python runs and prints what it says, what it names and links is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import planwave
from planwave.cli.app import app
from tests.support.cli.doc_page import PageReader, commands
from tests.support.cli.terminal import at_terminal
from tests.support.llm.fake_llm_server import ReplyStep, ToolCallReply, tool_results_of
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node
from tests.support.paths import ROOT
from tests.support.processes.forked_process import run_forked
from tests.support.server.running_server import RunningServer

README = (ROOT / "README.md").read_text("utf-8")
STORES = {
    "relational": ("Relational", "Describe storing time series in a relational database."),
    "columnar": ("Columnar files", "Describe storing time series in Parquet files."),
    "dedicated": ("Time series database", "Describe storing them in a time series database."),
    "recommend": ("Recommend", "Recommend one of the three, with the reason."),
}
PLAN = planner_reply(
    *(
        {**reply_node(node_id), "name": name, "description": task}
        for node_id, (name, task) in STORES.items()
    ),
    edges=[reply_edge(node_id, "recommend") for node_id in STORES if node_id != "recommend"],
    title="Three ways to store time series data",
)
REPLIES = {
    "Recommend one of the three": (
        "Use a time series database. It needs the least code for retention and roll-ups, and at "
        "this size\nthe extra service costs less than the work it saves."
    ),
    "Describe storing": "It keeps years of values on one disk, and answers questions about a day at once.",
}
ANYTHING = {"": "I would rather not say."}
"""The replies of a model that does nothing that it is asked for."""


def blocks(language: str) -> list[str]:
    """Give the fenced blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def code_lines() -> list[str]:
    """Give the command lines README shows: those after ``$``, and code within sentences."""
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.DOTALL | re.MULTILINE)
    prompted = [line[2:] for block in blocks("console") for line in block.splitlines()]
    return [*prompted, *re.findall(r"`([^`\n]+)`", prose)]


def named_after(program: str) -> list[list[str]]:
    """Give the plain words that follow a program's name, for every command line."""
    found: list[list[str]] = []
    for line in code_lines():
        words = line.split()
        if words[:1] == [program] and len(words) > 1:
            found.append(words[1:])
    return found


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageReader]:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with ExitStack() as resources:
        yield PageReader(tmp_path, monkeypatch, resources, plan=PLAN, replies=REPLIES)


def lines_without_numbers(output: str) -> Counter[str]:
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", output)
    return Counter(re.sub(r" *\d[\d.,]*", " N", text).splitlines())


def test_shown_run_is_a_real_run(reader: PageReader) -> None:
    (run,) = commands(blocks("console")[0])
    received = lines_without_numbers(reader.run(run.line))
    assert lines_without_numbers(run.output) - received == Counter()


@pytest.mark.parametrize("replies", [ANYTHING, {"": "APPROVED. It is good as it is."}])
def test_commands_work_in_their_order_whatever_the_model_replies(
    replies: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (session,) = (block for block in blocks("console") if "planwave flow save" in block)
    *first, diff, doctor = commands(session)
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources, plan=PLAN, replies=replies)
        for command in first:
            reader.run(command.line)
        original = json.loads(reader.run("planwave ls --json"))["executions"][1]["execution_id"]
        reader.ids["$ID"] = original[-6:]
        assert "changed in the graph: data.userPrompt" in reader.run(diff.line), "the fork"
        reader.run(doctor.line)


def test_question_is_answered_in_another_terminal(reader: PageReader) -> None:
    shown = blocks("console")
    at = next(number for number, block in enumerate(shown) if "what it asks" in block)
    ((first,), second) = (list(commands(block)) for block in shown[at - 1 : at + 1])
    reader.run('planwave plan "Compare three ways to store time series data" --json > plan.json')
    with at_terminal(shlex.split(first.line)[1:]) as terminal:
        terminal.read_until("Decision: ")
        show, answer = (reader.run(command.line) for command in second)
        code, seen = terminal.end()
    assert "planwave answer" in show
    assert "Answered" in answer
    assert (code, "the question was answered elsewhere" in seen) == (0, True)


def test_service_answers_the_calls(reader: PageReader) -> None:
    (calls,) = (block for block in blocks("console") if "planwave serve" in block)
    serve, run, *others = commands(calls)
    reader.run(serve.line)
    reader.ids["$ID"] = json.loads(reader.run(run.line))["execution_id"]
    status, events, result = (reader.run(each.line) for each in others)
    assert json.loads(status)["user_prompt"] == "Compare three ways to store time series data"
    assert "event: execution.completed" in events
    assert "Use a time series database." in json.loads(result)["node_results"]["recommend"]


def test_python_blocks_run_and_print_their_output(tmp_path: Path) -> None:
    shown = blocks("python")
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", "\n".join(shown), re.MULTILINE)
    assert len(promised) == 7
    done = run_forked("-W", "error", "-c", "\n".join(shown), cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == promised
    left = [path.name for path in tmp_path.iterdir()]
    assert left == ["runs"], "a run without a store leaves nothing behind"


def test_client_block_controls_a_service(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = [block for block in blocks("python") if "planwave.Client" in block]
    names: dict[str, Any] = {"planwave": planwave}
    exec(shown, names)  # noqa: S102 - our own README
    assert names["ask"]("texts", server.base_url) == "two"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["1", "execution.created"]
    assert lines[-1].split()[1] == "execution.completed"


def test_agent_block_runs_the_call_that_was_approved_with_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = [block for block in blocks("python") if "planwave.tool" in block]

    def reply(body: dict[str, Any]) -> str | ReplyStep:
        results = tool_results_of(body)
        return next(iter(results.values()), "") or ToolCallReply([("refund", {"order": "A-17"})])

    with ExitStack() as resources:
        PageReader(tmp_path, monkeypatch, resources, reply=reply)
        script = f"import planwave\n{shown}\nprint(reply_to('The kettle of order A-17 is broken.'))"
        done = run_forked("-W", "error", "-c", script, cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.endswith("50 % of order A-17 refunded\n")


def command_of(words: list[str]) -> str:
    """Follow words into the command line's tree; give those that are commands."""
    here, path = get_command(app), list[str]()
    for word in words:
        below = getattr(here, "commands", {})
        if word not in below:
            break
        here = below[word]
        path.append(word)
    assert not getattr(here, "commands", {}), f"no command: planwave {' '.join(words)}"
    return " ".join(path)


def test_named_commands_exist() -> None:
    named = {command_of(words) for words in named_after("planwave") if words[0][0] != "-"}
    assert {"run", "plan", "exec", "check", "ls", "show", "watch", "cancel"} <= named
    assert {"answer", "pause", "resume", "retry", "fork", "diff", "flow run"} <= named
    assert {"serve", "model pull", "doctor"} <= named
    with pytest.raises(AssertionError, match="no command"):
        command_of(["serve-tea"])


def test_named_options_exist() -> None:
    whole = get_command(app)
    run = whole.commands["run"]  # type: ignore[attr-defined]
    known = {option for one in (*whole.params, *run.params) for option in one.opts}
    lines = {line.removeprefix("planwave ") for line in code_lines()}
    options = {line.split()[0] for line in lines if line.startswith("--")}
    assert {"--json", "--provider", "--model", "--install-completion"} <= options <= known


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {words[0] for words in named_after("make")}
    assert {"run", "test", "check"} <= named <= targets


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_files_exist(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", page.read_text("utf-8"))
    missing = [each for each in links if "://" not in each and not (page.parent / each).exists()]
    assert missing == []


def test_the_python_that_is_needed_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = project["requires-python"].removeprefix(">=")
    for page in (ROOT / "README.md", ROOT / "docs" / "operations.md"):
        assert f"needs Python {needed} or newer" in " ".join(page.read_text("utf-8").split())


def test_settings_block_is_valid(tmp_path: Path) -> None:
    (toml,) = blocks("toml")
    (tmp_path / "planwave.toml").write_text(toml, "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from planwave.main import main; main()",
            "doctor",
            "--json",
            "--config",
            "planwave.toml",
        ],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "MINE_KEY": "k"},
        capture_output=True,
        text=True,
        check=False,
    )
    providers = {one["name"]: one for one in json.loads(done.stdout)["providers"]}
    assert providers["mine"]["available"] is True


def test_pictures_are_there_and_small() -> None:
    pictures = [ROOT / path for path in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)]
    assert len(pictures) == 2
    for picture in pictures:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 300_000
