from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
)


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def plan_file(graph: object) -> str:
    Path("plan.json").write_text(json.dumps(graph))
    return "plan.json"


def test_an_execution_that_waits_goes_on_with_a_changed_plan() -> None:
    before = execute_graph(approval_graph())["execution_id"]
    graph = invoke_json("show", "last")["graph"]
    graph["nodes"].append({"id": "costs", "type": "text", "data": {"text": "the costs"}})
    done = invoke("revise", "last", "--plan", plan_file(graph), "--note", "costs, too")
    assert "costs" in done.stdout, done.output
    shown = invoke_json("show", before)
    assert shown["status"] == "paused"
    assert shown["node_results"]["costs"] == "the costs"
    assert [(each["change"], each["note"]) for each in shown["changes"]] == [(1, "costs, too")]
    assert "plan changed: new or changed costs - costs, too" in invoke("logs", before).stdout
    (request,) = shown["requests"]
    assert invoke("answer", before, request["request_id"], "--decision", "approve").exit_code == 0
    assert invoke_json("show", before)["status"] == "completed"


def test_what_has_begun_is_refused_with_the_way_out() -> None:
    execute_graph(approval_graph())
    graph = invoke_json("show", "last")["graph"]
    (waiting,) = [each for each in graph["nodes"] if each["id"] == "q"]
    waiting["data"]["prompt"] = "Really?"
    done = invoke("revise", "last", "--plan", plan_file(graph))
    assert done.exit_code != 0
    assert "node 'q' cannot be changed: it is waiting" in done.output
    assert "fork the execution to run that step again" in done.output


def test_an_execution_that_has_ended_is_forked_instead() -> None:
    graph = {"nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}], "edges": []}
    execute_graph(graph)
    done = invoke("revise", "last", "--plan", plan_file(graph))
    assert done.exit_code != 0
    assert "already completed" in done.output
    assert "fork it with the changed graph" in done.output
