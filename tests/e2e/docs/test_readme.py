"""README.md is true: its Python runs and prints what it says, what it names and links is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import planwave
from planwave.cli.app import app
from tests.support.paths import ROOT
from tests.support.server.running_server import RunningServer

README = (ROOT / "README.md").read_text("utf-8")


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


def test_python_blocks_run_and_print_their_output(tmp_path: Path) -> None:
    first, *others = blocks("python")
    promised = re.findall(r"^print\(.*\)  # (.*)$", first, re.MULTILINE)
    assert promised
    assert [block for block in others if "async def watch" in block]
    assert [block for block in others if "def send" in block]
    watch = (
        "import asyncio, io, contextlib, json\n"
        "said = io.StringIO()\n"
        "with contextlib.redirect_stdout(said):\n"
        "    watched = asyncio.run(watch())\n"
        "    sent = send('Dear Ann')\n"
        "assert (said.getvalue().splitlines()[-1], sent) == ('paused', 'Sent: Dear Ann')\n"
        "said = io.StringIO(said.getvalue().removesuffix('paused\\n'))\n"
        "print(json.dumps([watched.status, watched.text, said.getvalue().splitlines()]))\n"
    )
    script = "\n".join([first, *others, watch])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    *printed, last = done.stdout.splitlines()
    assert printed == promised
    status, text, events = json.loads(last)
    assert (status, text) == ("completed", promised[-1])
    assert [line.split()[0] for line in events] == [str(n + 1) for n in range(len(events))]
    assert events[-1].split()[1] == "execution.completed"
    left = [path.name for path in tmp_path.iterdir()]
    assert left == ["runs"], "a run without a store leaves nothing behind"


def test_client_block_controls_a_service(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = [block for block in blocks("python") if "planwave.Client" in block]
    names: dict[str, Any] = {"planwave": planwave}
    exec(shown, names)  # noqa: S102 - our own README
    assert names["ask"]("texts", server.base_url) == {"a": "one", "b": "two"}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["1", "execution.created"]
    assert lines[-1].split()[1] == "execution.completed"


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
    named = {command_of(words) for words in named_after("planwave")}
    assert {"run", "plan", "exec", "check", "ls", "show", "watch", "cancel"} <= named
    assert {"answer", "pause", "resume", "retry", "fork", "diff"} <= named
    assert {"serve", "model pull", "doctor"} <= named
    with pytest.raises(AssertionError, match="no command"):
        command_of(["serve-tea"])


def test_named_options_exist() -> None:
    known = {option for one in get_command(app).commands["run"].params for option in one.opts}  # type: ignore[attr-defined]
    named = {line for line in code_lines() if line.startswith("--")}
    assert {"--json", "--provider", "--model"} <= named <= known


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {words[0] for words in named_after("make")}
    assert {"run", "test", "check"} <= named <= targets


def test_linked_files_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link]
    assert {"docs/semantics.md", "CONTRIBUTING.md"} <= set(links)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_settings_block_is_valid(tmp_path: Path) -> None:
    (toml,) = blocks("toml")
    (tmp_path / "planwave.toml").write_text(toml, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from planwave.main import main; main()", "doctor", "--json"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "MINE_KEY": "k"},
        capture_output=True,
        text=True,
        check=False,
    )
    providers = {one["name"]: one for one in json.loads(done.stdout)["providers"]}
    assert providers["mine"]["available"] is True
