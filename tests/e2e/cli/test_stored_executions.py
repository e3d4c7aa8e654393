"""Commands on stored executions: short ids, explain, delete; storage that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
)

TEXTS: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "text", "name": "First", "data": {"text": "one"}},
        {"id": "b", "type": "text", "data": {"text": "b {{ input }}"}},
    ],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def test_the_end_of_an_id_names_an_execution() -> None:
    first = execute_graph(TEXTS)["execution_id"]
    execute_graph(TEXTS)
    for name in (first[-6:], f"…{first[-6:]}", first[-12:].upper()):
        assert invoke_json("show", name)["execution_id"] == first
    assert invoke_json("diff", first[-6:], "last")["counts"] == {
        "same": 2, "changed": 0, "only_a": 0, "only_b": 0,
    }  # fmt: skip


def test_explain_says_why_steps_ran() -> None:
    parent = execute_graph(TEXTS)["execution_id"]
    assert invoke("fork", "last", "--set", "b.text=c {{ input }}").exit_code == 0
    reused = f"It did not run: its result was reused from execution {parent}, because nothing"
    assert invoke("explain", "last").stdout.splitlines() == [
        f"✓ reused      a  {reused} it depends on has changed.",
        "✓ completed   b  All nodes it depends on had ended: 'a' delivered a value.",
    ]
    shown = invoke("explain", "last", "b").stdout.splitlines()
    assert shown[:6] == [
        "✓ completed b",
        "All nodes it depends on had ended: 'a' delivered a value.",
        "",
        "Inputs",
        "  input from a: one",
        "",
    ]
    assert [line.split()[-1] for line in shown[6:]] == ["History", "started", "completed"]
    overview = invoke_json("explain", "last")
    assert [each["code"] for each in overview["nodes"]] == ["reused", "inputs-arrived"]
    assert invoke_json("explain", "last", "First")["path"] == "a"
    missing = invoke("explain", "last", "zz")
    assert missing.exit_code == 2
    assert "this execution has no step 'zz'" in missing.output


def test_explain_says_why_steps_did_not_run() -> None:
    execute_graph(approval_graph())
    assert invoke("answer", "last", "--decision", "approve").exit_code == 0
    found = {each["path"]: each for each in invoke_json("explain", "last")["nodes"]}
    assert (found["dropped"]["status"], found["dropped"]["code"]) == ("skipped", "no-input")
    assert found["dropped"]["reason"] in invoke("explain", "last", "dropped").stdout


def test_explain_of_a_failure_says_the_way_out() -> None:
    node = {"id": "num", "type": "text", "data": {"text": "{{ goal.nope }}"}}
    invoke_json("exec", "-", stdin=json.dumps({"nodes": [node], "edges": []}), code=1)
    found = invoke_json("explain", "last", "num")
    shown = invoke("explain", "last", "num").stdout.splitlines()
    assert shown[2] == f"  → {found['error']['hint']}"


def test_delete_removes_an_execution_and_then_its_plan() -> None:
    document = execute_graph(TEXTS)
    execution_id, plan_id = document["execution_id"], document["plan_id"]
    done = invoke("delete", execution_id[-6:])
    assert done.stdout == f"✓ Deleted execution {execution_id}\n"
    assert not Path("storage", f"{execution_id}.json").exists()
    assert invoke_json("delete", plan_id) == {"deleted": plan_id, "kind": "plan"}
    assert invoke_json("ls") == {"executions": [], "plans": []}


def test_paused_execution_is_not_deleted() -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    refused = invoke("delete", "last")
    assert refused.exit_code == 2, refused.output
    assert invoke_json("show", "last")["execution_id"] == execution_id


@pytest.mark.parametrize("directory", ["file", "file/below"])
@pytest.mark.parametrize("command", [["ls"], ["show", "last"], ["exec", "file"]])
def test_storage_that_is_no_directory_is_an_error(directory: str, command: list[str]) -> None:
    Path("file").write_text('{"nodes": [], "edges": []}')
    refused = invoke(*command, "--storage", directory)
    assert refused.exit_code == 1
    reason = repr("file" if directory == "file" else str(Path("file").absolute()))
    assert refused.stderr.splitlines() == [
        f"✗ the storage directory {directory!r} cannot be used: {reason} is not a directory",
        "  → check its owner and permissions, or choose another directory (--storage or "
        "PLANWAVE_STORAGE_DIR)",
    ]


@pytest.mark.parametrize("args", [["--storage", "", "ls"], ["delete", "last", "--storage", ""]])
def test_empty_storage_is_an_error(args: list[str]) -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    refused = invoke(*args)
    assert (refused.exit_code, refused.stderr) == (
        2,
        "✗ --storage is empty\n  → name a directory: --storage DIR\n",
    )
    assert invoke_json("show", "last")["execution_id"] == execution_id


def test_saved_flow_is_run_by_its_name() -> None:
    Path("g.json").write_text(
        '{"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}'
    )
    saved = invoke("flow", "save", "Weekly report", "g.json")
    assert saved.stdout.splitlines()[-1] == "Run it with: planwave flow run 'Weekly report'"


def test_retry_names_its_parent() -> None:
    first = execute_graph(approval_graph())["execution_id"]
    assert invoke("cancel", "last").exit_code == 0
    again = invoke("retry", "last").stdout.splitlines()
    assert (
        again[0] == f"execution {invoke_json('show', 'last')['execution_id']}, a retry of {first}"
    )
    assert f"Retry of  {first}" in invoke("show", "last").stdout


def test_a_partial_outcome_is_shown_with_its_results_first() -> None:
    Path("half.json").write_text(json.dumps(HALF))
    ran = invoke("exec", "half.json")
    shown = invoke("show", "last")
    assert (ran.exit_code, shown.exit_code) == (1, 0)
    for output in (ran.stdout, shown.stdout):
        there, missing, failed, end = map(
            output.index,
            (
                "Lisbon is on the sea.",
                "Report has no result: because Prices failed",
                "Prices: data.text",
                "failed, partial result",
            ),
        )
        assert there < missing < failed < end
    assert "partial" in invoke("ls", "--status", "failed").stdout
    [listed] = invoke_json("ls")["executions"]
    assert (listed["status"], listed["outcome"]) == ("failed", "partial")
    document = invoke_json("show", "last")
    assert [each["path"] for each in document["missing"]] == ["report"]


HALF: dict[str, Any] = {
    "nodes": [
        {"id": "summary", "type": "text", "data": {"text": "Lisbon is on the sea."}},
        {"id": "prices", "type": "text", "name": "Prices", "data": {"text": "{{ 1 / 0 }}"}},
        {"id": "report", "type": "text", "name": "Report", "data": {"text": "{{ input }}"}},
    ],
    "edges": [{"source": "prices", "target": "report", "data": {"channel": "flow"}}],
}
