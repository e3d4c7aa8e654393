from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.asking import asking, executed, planwave, told, two_questions
from tests.fakes.command_line import place


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(tmp_path, monkeypatch)


def test_a_paused_execution_keeps_its_answers_until_it_is_resumed() -> None:
    execution_id = executed(asking())["execution_id"]
    assert told("pause", "last") == {"execution_id": execution_id, "status": "paused"}
    again = planwave("pause", "last")
    assert (again.exit_code, f"planwave resume {execution_id}" in again.stdout) == (0, True)
    answered = planwave("answer", "last", "--decision", "approve")
    assert answered.exit_code == 0, answered.output
    assert "It is paused by request; have it go on with: planwave resume" in answered.stdout
    held = told("show", "last")
    assert (held["status"], held["requests"]) == ("paused", [])
    assert told("resume", "last")["node_results"]["sent"] == "sent: Dear all"


def test_what_waits_for_an_answer_is_not_resumed() -> None:
    executed(asking())
    done = planwave("resume", "last")
    assert (done.exit_code, "answer its open requests" in done.stderr) == (2, True)


def test_one_step_is_cancelled_and_the_rest_goes_on() -> None:
    executed(two_questions())
    after = told("cancel", "last", "--node", "p")
    assert after["status"] == "paused"
    assert [node["status"] for node in after["nodes"]] == ["cancelled", "waiting"]
    gone = planwave("answer", "last", "r6", "--decision", "approve")
    assert (gone.exit_code, "its node was cancelled" in gone.stderr) == (2, True)
    assert planwave("cancel", "last", "--node", "nobody").exit_code == 2
    assert told("answer", "last", "--decision", "approve", code=1)["status"] == "failed"


def test_what_is_over_takes_no_commands() -> None:
    execution_id = executed(asking())["execution_id"]
    assert told("cancel", "last") == {"execution_id": execution_id, "status": "cancelled"}
    for command in ("cancel", "pause", "resume"):
        done = planwave(command, "last")
        assert (done.exit_code, "already cancelled" in done.stderr) == (2, True)


def test_a_plan_takes_none_either() -> None:
    plan_id = executed(asking())["plan_id"]
    for command in ("cancel", "pause", "resume", "answer", "retry", "fork"):
        done = planwave(command, plan_id)
        assert (done.exit_code, "is a plan" in done.stderr) == (2, True)
