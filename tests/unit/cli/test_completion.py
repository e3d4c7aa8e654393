"""What the shell offers at Tab: read-only, quiet, and quick."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.command_tree import every_command
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.graph.builders import make_graph, text_node

GRAPH = json.dumps(make_graph(text_node("a", "one")).to_document())
KINDS = {
    "An execution": "last",
    "Another one": "last",
    "A plan,": "triage",
    "A stored plan": "triage",
    "A flow": "triage",
    "The flow": "triage",
    "The name of the flow": "triage",
    "Show one type": "agent",
    "openai, anthropic": "openai",
}
"""What is offered for an argument, by how its help begins."""


def tab(*words: str) -> Result:
    """Press Tab after words of which the last one is being typed."""
    line = {"COMP_WORDS": " ".join(["planwave", *words]), "COMP_CWORD": str(len(words))}
    environment = {"_PLANWAVE_COMPLETE": "complete_bash", **line}
    return CliRunner().invoke(app, [], obj=cli_factories(), env=environment)


def offered(*words: str) -> list[str]:
    done = tab(*words)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("place") / "stored"
    invoke_json("exec", "-", "--storage", str(directory), stdin=GRAPH)
    invoke_json("flow", "save", "triage", "-", "--storage", str(directory), stdin=GRAPH)
    return directory


def completed() -> list[tuple[tuple[str, ...], Any, str]]:
    """Return every argument that has a kind, with the words before it and what has to be offered."""
    found: list[tuple[tuple[str, ...], Any, str]] = []
    for path in every_command():
        words = path.words
        for each in path.command.params:
            help_text = str(each.help or "")
            kind = next((value for key, value in KINDS.items() if help_text.startswith(key)), None)
            is_argument = each.param_type_name == "argument"
            if kind is not None:
                found.append((words if is_argument else (*words, each.opts[0]), each.name, kind))
            words = (*words, "abcdef01") if is_argument else words
    return found


@pytest.mark.parametrize(("words", "name", "expected"), completed(), ids=str)
def test_every_argument_of_a_kind_is_completed(
    words: tuple[str, ...], name: str, expected: str, storage: Path
) -> None:
    words = ("--storage", str(storage), *words)
    assert expected in offered(*words, ""), name
    assert offered(*words, expected[:2])[0] == expected
    assert offered(*words, "no-such") == []


def test_ids_are_offered_whole_and_the_newest_first(storage: Path) -> None:
    listed = invoke_json("ls", "--storage", str(storage))
    ids = [each["execution_id"] for each in listed["executions"]]
    assert offered("watch", "--storage", str(storage), "") == ["last", *ids]
    assert offered("--storage", str(storage), "show", ids[0][:6])[0] == ids[0]


def test_commands_and_options_are_offered() -> None:
    assert offered("sh") == ["show"]
    assert "triggers" in offered("")
    assert "--older-than" in offered("prune", "--")


def test_nothing_is_offered_or_made_where_nothing_is_stored() -> None:
    assert offered("show", "") == offered("flow", "run", "") == []
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("words", [("show", ""), ("nodes", ""), ("run", "--provider", "")])
def test_what_cannot_be_read_is_no_error(words: tuple[str, ...]) -> None:
    Path("storage").mkdir()
    Path("storage/planwave.db").write_text("no database")
    Path("planwave.toml").write_text("nonsense")
    done = tab(*words)
    assert (done.exit_code, done.output.strip()) == (0, "")


def test_a_service_elsewhere_is_not_asked_nor_confused_with_this_directory(
    storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(storage))
    assert "last" in offered("show", "")
    assert offered("--url", "http://127.0.0.1:1", "show", "") == []
    monkeypatch.setenv("PLANWAVE_URL", "http://127.0.0.1:1")
    assert offered("show", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_by_the_command_itself(shell: str) -> None:
    script = CliRunner().invoke(app, [], env={"_PLANWAVE_COMPLETE": f"source_{shell}"}).stdout
    assert f"_PLANWAVE_COMPLETE=complete_{shell}" in script
    assert "--install-completion" in invoke("--help").output


def test_a_press_of_tab_loads_no_service(storage: Path) -> None:
    heavy = (
        "fastapi", "openai", "anthropic", "pydantic_ai", "httpx2", "planwave.service.service",
        "planwave.cli.backends.local", "planwave.cli.commands.flows", "planwave.cli.commands.run",
    )  # fmt: skip
    script = (
        "import sys; from planwave.main import main\n"
        "try: main()\n"
        f"finally: print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    line = {"COMP_WORDS": f"planwave --storage {storage} show ", "COMP_CWORD": "4"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        env={**os.environ, "_PLANWAVE_COMPLETE": "complete_bash", **line},
    )  # fmt: skip
    assert "last" in done.stdout.split()
    assert done.stderr.strip() == "[]"
