from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planwave.cli.commands.executions.forks import parse_settings
from planwave.errors import InputError
from planwave.service.executions.fork import changes_of_fields
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
    two_approvals_graph,
)

TEXTS = {
    "nodes": [
        {"id": "a", "type": "text", "data": {"text": "one"}},
        {"id": "b", "type": "text", "data": {"text": "b {{ input }}"}},
    ],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def test_fork_runs_with_changed_data_and_names_its_parent() -> None:
    before = execute_graph(TEXTS)["execution_id"]
    done = invoke("fork", "last", "--set", "a.text=two")
    assert done.exit_code == 0, done.output
    assert f"a fork of {before}" in done.stdout
    after = invoke_json("show", "last")
    assert (after["node_results"]["b"], after["parent"]["execution_id"]) == ("b two", before)
    assert f"Fork of   {before}" in invoke("show", "last").stdout


def test_set_changes_the_task_of_a_step() -> None:
    execute_graph(TEXTS)
    done = invoke("fork", "last", "--set", "a.description=Say it twice")
    assert done.exit_code == 0, done.output
    shown = invoke_json("show", "last")
    assert shown["graph"]["nodes"][0]["description"] == "Say it twice"
    assert [each["reused"] is None for each in shown["nodes"]] == [True, False]


def test_reused_steps_are_shown_as_reused() -> None:
    before = execute_graph(TEXTS)["execution_id"]
    done = invoke("fork", "last", "--set", "b.text=two")
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    assert f"reused     a: from {before}" in lines
    assert "started    a" not in lines
    assert "started    b" in lines
    assert "✓ completed · 2 of 2 steps completed, 1 of them reused · " in done.stdout
    origin = {"execution_id": before, "path": "a", "failed_inside": False}
    nodes = {each["path"]: each["reused"] for each in invoke_json("show", "last")["nodes"]}
    assert nodes == {"a": origin, "b": None}
    shown = [line.split() for line in invoke("show", "last").stdout.splitlines()]
    assert ["✓", "reused", "a", "from", before] in shown


def test_fork_reads_changes_from_stdin_and_reruns_nodes() -> None:
    before = execute_graph(TEXTS)["execution_id"]
    changes = json.dumps({"a": {"outputs": {"output": "given"}}})
    done = invoke_json("fork", before, "--changes", "-", "--rerun", "b", stdin=changes)
    assert done["node_results"] == {"a": "given", "b": "b given"}


@pytest.mark.parametrize(
    ("args", "stdin", "says"),
    [
        (["--set", "a.text"], None, "has no value"),
        (["--set", "zz.text=1"], None, "the steps are a, b"),
        (["--set", "a.=1"], None, "is not a field"),
        (["--set", "a.description=[]"], None, "description of node 'a' must be text, got an array"),
        (["--rerun", "zz"], None, "no node 'zz'"),
        (["--changes", "-"], "[]", "not {node: {…}}"),
        (["--changes", "-"], '{"a": 1}', "not {node: {…}}"),
        (["--changes", "-"], "{", "--changes '-': "),
        (["--changes", "nowhere.json"], None, "no file 'nowhere.json'"),
    ],
)
def test_invalid_fork_is_reported(args: list[str], stdin: str | None, says: str) -> None:
    execute_graph(TEXTS)
    done = invoke("fork", "last", *args, stdin=stdin)
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert len(invoke_json("ls")["executions"]) == 1


def test_set_options_are_merged_into_changes() -> None:
    given: dict[str, Any] = {"a": {"data": {"x": {"p": 1}}}, "b.c": {"outputs": {}}}
    written = [
        "a.x.q=[2]",
        "a.t=hello = you",
        "a.n=null",
        "b.c.d=5",
        'e.t="6"',
        "e.description=Do it",
    ]
    made = changes_of_fields(given, parse_settings(written), ["a", "b", "b.c", "e"])
    assert made == {
        "a": {"data": {"x": {"p": 1, "q": [2]}, "t": "hello = you", "n": None}},
        "b.c": {"outputs": {}, "data": {"d": 5}},
        "e": {"data": {"t": "6"}, "description": "Do it"},
    }
    assert given["a"] == {"data": {"x": {"p": 1}}}
    with pytest.raises(InputError):
        changes_of_fields({}, parse_settings(["a..b=1"]), ["a"])


def test_retry_runs_cancelled_nodes_and_reuses_the_rest() -> None:
    execute_graph(approval_graph())
    assert invoke("retry", "last").exit_code == 2  # nothing has failed
    invoke("cancel", "last")
    again = invoke_json("retry", "last")
    assert (again["status"], again["node_results"]) == ("paused", {"draft": "Dear all"})
    done = invoke_json("answer", "last", "--decision", "reject")
    assert done["node_results"]["dropped"] == "dropped"


def test_paused_execution_with_requests_can_be_forked() -> None:
    execute_graph(two_approvals_graph())
    forked = invoke_json("fork", "last")
    assert (forked["status"], len(forked["requests"])) == ("paused", 2)
