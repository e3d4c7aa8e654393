"""What the shell offers at Tab: read-only, quiet, and quick."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.nodes.agents.tool_function import tool
from planwave.nodes.agents.tool_registry import ToolRegistry
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.notifications import NotificationTarget
from planwave.storage.records import InputSet
from planwave.storage.sqlite.store import SqliteStore
from planwave.storage.triggers import TriggerRecord
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.command_tree import CommandPath, every_command
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.graph.builders import make_graph, text_node

GRAPH = json.dumps(make_graph(text_node("step", "one")).to_document())
ASKS = json.dumps(
    {"nodes": [{"id": "step", "type": "approval", "data": {"prompt": "Go?"}}], "edges": []}
)
INSTALLERS = ("install_completion", "show_completion")
IDS = {
    "execution": "last", "flow": "triage", "type": "agent", "provider": "openai", "step": "step",
    "tool": "look_up", "secret": "orders", "trigger": "trg-0001", "token": "tok-0001",
    "target": "trt-0001", "message": "ntf-0001", "request": "r5", "inputs": "weekend",
}  # fmt: skip
"""What is there of each kind."""
REGISTRY = Registry(LIBRARY, tools=ToolRegistry())


@tool(effect="read", registry=REGISTRY)
def look_up(order: str) -> str:
    """Look an order up."""
    return order


STORED_AS = {
    "A": "execution", "B": "execution", "PLAN": "flow", "PLAN_ID": "flow", "FLOW": "flow",
    "[FLOW]": "flow", "NAME_OR_ID": "flow", "TYPE": "type", "REQUEST": "request", "NODE": "step",
    "SAVED": "inputs",
}  # fmt: skip
"""The kind of what an argument names, by its metavar."""
OTHERS = {
    "An execution": "execution",
    "A file with a graph": "execution",
    "A trigger": "trigger",
    "A token": "token",
    "A target": "target",
    "A message that nobody": "message",
    "Cancel only this step": "step",
    "The name of the flow": "flow",
    "Save the graph as a flow": "flow",
    "openai, anthropic": "provider",
    "Ask this provider": "provider",
    "Show one tool": "tool",
    "A tool that it may call": "tool",
    "A secret of the operator": "secret",
}
"""The kind of what an argument names whose metavar says too little, by how its help begins."""
NEW_OR_NOT_STORED = {
    ("tokens create", "name"): "a new name",
    ("audit", "of"): "an id of any kind, also of what was deleted",
    ("answer", "decision"): "an action of one request, which the command asks for",
    ("model pull", "name"): "a model that is not here yet; `planwave doctor` lists them",
    ("notifications add", "event"): "one of four words, which the help lists",
    ("*", "model"): "a model is asked of its provider, which Tab never does",
    ("serve", "root_path"): "a path of URLs",
    ("exec", "run_from"): "a step of a file",
    ("exec", "run_to"): "a step of a file",
}
"""Arguments with such a metavar that name nothing stored, and why."""
VALUES = {
    "FILE", "DIR", "[PATH]", "MODULE", "URL", "ADDRESS", "GOAL", "[WORDS]", "WORDS", "HASH", "TEXT", "JSON", "VALUE", "INPUT",
    "NODE=TEXT", "NODE.FIELD=VALUE", "QUESTION=ANSWER", "N", "DAYS", "USD", "NEW_NAME", "ACTION", "SCOPE", "STATUS",
    "LEVEL", "DATABASE_URL", "TAG", "TIME", "GROUP", None,
}  # fmt: skip
"""Metavars of what is a value, a file or one of the choices of its type: it names nothing stored."""


def tab(*words: str) -> Result:
    """Press Tab after words of which the last one is being typed."""
    line = {"COMP_WORDS": " ".join(["planwave", *words]), "COMP_CWORD": str(len(words))}
    environment = {"_PLANWAVE_COMPLETE": "complete_bash", **line}
    factories = replace(cli_factories(), catalogue=lambda _: REGISTRY)
    return CliRunner().invoke(app, [], obj=factories, env=environment)


def offered(*words: str) -> list[str]:
    done = tab(*words)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with one of each kind that commands name."""
    directory = tmp_path_factory.mktemp("place") / "stored"
    at = ("--storage", str(directory))
    invoke_json("flow", "save", "triage", "-", *at, stdin=GRAPH)
    asked = invoke_json("exec", "-", *at, stdin=ASKS)
    assert [each["request_id"] for each in asked["requests"]] == [IDS["request"]]
    asyncio.run(store_others(directory))
    return directory


async def store_others(directory: Path) -> None:
    store, at = SqliteStore.open(directory), "2026-01-01T00:00:00.000000+00:00"
    (flow,) = await store.plans(named=True)
    inputs = InputSet(flow.plan_id, IDS["inputs"], {"step": {"output": "x"}}, at, at)
    await store.input_sets.save(inputs, inputs.name, most=9)
    await store.triggers.create(TriggerRecord(IDS["trigger"], flow.plan_id, "step", "webhook", at))
    await store.access_tokens.create(AccessTokenRecord(IDS["token"], "ada", "0", ("run",), (), at))
    target = NotificationTarget(
        IDS["target"], "https://a.test", ("s",), ("failed",), flow.plan_id, at
    )
    assert await store.notifications.create_target(target)
    await store.close()
    message = (IDS["message"], IDS["target"], "x", 1, "failed", at, at, at, "dead", 3, "no", None)
    with closing(sqlite3.connect(directory / "planwave.db")) as database, database:
        columns = "notification_id, target_id, execution_id, seq, event, created_at, since, next_at"
        columns += ", status, attempts, error, body"
        marks = ", ".join("?" * len(message))
        database.execute(f"INSERT INTO notifications ({columns}) VALUES ({marks})", message)  # noqa: S608 - names of columns


def kind_of(path: CommandPath, parameter: Any) -> str | None:
    """Return the kind of what a parameter names; None for a value.

    Raises:
        AssertionError: Its metavar is new: say in one of the tables what it names.
    """
    command = " ".join(path.words)
    excepted = NEW_OR_NOT_STORED.keys() & {(command, parameter.name), ("*", parameter.name)}
    if excepted or parameter.metavar in VALUES or parameter.type_descriptor.choices:
        return None
    help_text = str(parameter.help or "")
    by_help = (kind for start, kind in OTHERS.items() if help_text.startswith(start))
    kind = next(by_help, STORED_AS.get(parameter.metavar))
    assert kind is not None, f"{command} {parameter.name}: what does {parameter.metavar} name?"
    return kind


def named() -> list[tuple[tuple[str, ...], Any, str]]:
    """Return each parameter that names something, with the words before it and the kind of what it names."""
    found: list[tuple[tuple[str, ...], Any, str]] = []
    for path in every_command():
        words = path.words
        for each in path.command.params:
            if getattr(each, "is_flag", False) or each.name in ("help", *INSTALLERS):
                continue
            kind, is_argument = kind_of(path, each), each.param_type_name == "argument"
            if kind is not None:
                found.append((words if is_argument else (*words, each.opts[0]), each.name, kind))
            words = (*words, "last" if kind == "execution" else "triage") if is_argument else words
    return found


@pytest.mark.parametrize(("words", "name", "kind"), named(), ids=str)
def test_everything_that_is_named_is_completed(
    words: tuple[str, ...], name: str, kind: str, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_SECRETS", '{"orders": {"env": "X"}}')
    words, expected = ("--storage", str(storage), *words), IDS[kind]
    assert expected in offered(*words, ""), name
    assert offered(*words, expected[:-1])[0] == expected
    assert offered(*words, "no-such") == []


def test_every_exception_is_of_a_command_that_there_is() -> None:
    there = {
        (" ".join(path.words), each.name)
        for path in every_command()
        for each in path.command.params
    }
    assert {each for each in NEW_OR_NOT_STORED if each[0] != "*"} <= there


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
