from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from planwave.cli.commands.executions import answer
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
    two_approvals_graph,
)
from tests.support.cli.scripted_prompter import ScriptedPrompter

FORM = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def prompt_with(monkeypatch: pytest.MonkeyPatch, lines: Sequence[str | None], **more: Any) -> None:
    """Have somebody sit at the terminal and type."""
    monkeypatch.setattr(
        answer,
        "terminal_prompter",
        lambda console: None if console.json else ScriptedPrompter(lines, console, **more),
    )


def test_answer_runs_execution_to_its_end() -> None:
    waiting = execute_graph(approval_graph())
    assert waiting["status"] == "paused"
    done = invoke("answer", "last", "--decision", "approve", "--note", "fine")
    assert done.exit_code == 0, done.output
    assert "answered   q  Check: approve: fine" in done.stdout
    assert "started    draft" not in done.stdout
    assert "sent: Dear all" in done.stdout
    assert invoke_json("show", "last")["status"] == "completed"


def test_value_and_form_are_read_from_option_or_file() -> None:
    execution_id = execute_graph(approval_graph(form=FORM))["execution_id"]
    Path("letter.json").write_text('"Dear you"', "utf-8")
    given = ["--decision", "approve", "--value", "@letter.json", "--form", '{"n": 2}']
    done = invoke_json("answer", execution_id, "r9", *given)
    assert done["node_results"]["sent"] == "sent: Dear you"
    (answer,) = done["nodes"][1]["answers"]
    assert answer["answer"]["form"] == {"n": 2}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--decision", "aprove"], "did you mean 'approve'?"),
        (["--decision", "approve", "--form", "3"], "form"),
        (["--decision", "approve", "--value", '{"Dear'], "--value: "),
        (["--decision", "approve", "--value", "@nowhere"], "no file 'nowhere'"),
        (["r99", "--decision", "approve"], "no request 'r99'"),
        (["--note", "hm"], "a decision is missing"),
        ([], "no terminal to ask on; pass --decision "),
    ],
)
def test_invalid_answer_is_reported_and_request_stays_open(args: list[str], says: str) -> None:
    execute_graph(approval_graph())
    done = invoke("answer", "last", *args)
    assert done.exit_code == 2, done.output
    assert says in done.stderr
    assert invoke_json("show", "last")["waitingForInput"] is True


@pytest.mark.parametrize(("written", "value"), [("charged", "charged"), ('"charged"', "charged")])
def test_a_value_may_be_a_text_where_the_request_takes_one(written: str, value: str) -> None:
    execute_graph(approval_graph(editable=True))
    done = invoke_json("answer", "last", "--decision", "approve", "--value", written)
    assert done["node_results"]["sent"] == f"sent: {value}"


def test_all_errors_of_an_answer_are_listed() -> None:
    execute_graph(approval_graph(form=FORM))
    done = invoke_json("answer", "last", "--decision", "no", "--form", "{}", code=2)
    assert [each["code"] for each in done["diagnostics"]] == ["unknown-decision", "invalid-form"]


def test_request_id_is_required_when_several_are_open() -> None:
    execute_graph(two_approvals_graph())
    unclear = invoke("answer", "last", "--decision", "approve")
    assert unclear.exit_code == 2
    assert "r6 (p: Well?)" in unclear.stderr
    assert "r7 (q: Well?)" in unclear.stderr
    first = invoke_json("answer", "last", "r7", "--decision", "approve")
    assert (first["status"], [each["path"] for each in first["requests"]]) == ("paused", ["p"])
    again = invoke("answer", "last", "r7", "--decision", "approve")
    assert (again.exit_code, "answered already" in again.stderr) == (2, True)
    assert invoke_json("answer", "last", "--decision", "reject")["status"] == "completed"
    nothing = invoke_json("answer", "last", "--decision", "approve", code=2)
    assert nothing["error"]["code"] == "nothing-asked"
    assert "planwave explain" in nothing["error"]["hint"]


def test_request_is_prompted_without_decision_option(monkeypatch: pytest.MonkeyPatch) -> None:
    execute_graph(approval_graph())
    prompt_with(monkeypatch, ["reject", "no"])
    done = invoke("answer", "last")
    assert done.exit_code == 0, done.output
    assert "Send it?" in done.stdout
    assert done.stdout.rstrip().endswith(".json")
    assert invoke_json("show", "last")["node_results"]["dropped"] == "dropped"


def test_prompt_can_be_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    execute_graph(approval_graph())
    prompt_with(monkeypatch, [None])
    done = invoke("answer", "last")
    assert (done.exit_code, "stays open" in done.output) == (0, True)
    prompt_with(monkeypatch, [], on_exhausted=lambda: os.kill(os.getpid(), signal.SIGINT))
    done = invoke("answer", "last")
    assert (done.exit_code, "the question stays open" in done.stderr) == (130, True)
    assert invoke_json("show", "last")["status"] == "paused"


def test_request_without_decision_takes_any_json(monkeypatch: pytest.MonkeyPatch) -> None:
    from planwave.cli.commands.executions.answer import _answer_from_options

    assert _answer_from_options(None, None, '["a"]', None) == (["a"],)
    assert _answer_from_options(None, None, "null", None) == (None,)
    assert _answer_from_options(None, None, None, None) is None
    assert _answer_from_options("ok", None, "null", None) == ({"decision": "ok", "value": None},)


def test_show_lists_requests_and_answers() -> None:
    execute_graph(approval_graph())
    shown = invoke("show", "last").stdout
    assert "for an answer to r9: Send it?" in shown
    assert " r9 --decision approve   (or reject)" in shown
    invoke("answer", "last", "--decision", "approve", "--note", "fine")
    assert "answered by local user: approve: fine" in invoke("show", "last").stdout
    document = json.loads(next(Path("storage").glob("*.json")).read_text("utf-8"))
    assert document["requests"] == []


# -- waiting for a time


def waiting_for(**data: Any) -> dict[str, Any]:
    """Give a graph that waits for a time and then says so."""
    return {
        "nodes": [
            {"id": "later", "type": "wait", "data": data},
            {"id": "said", "type": "text", "data": {"text": "It was time."}},
        ],
        "edges": [{"source": "later", "target": "said", "data": {"channel": "flow"}}],
    }


def test_short_timer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt_with(monkeypatch, [])  # whoever sits there would be at a loss
    done = invoke("exec", "-", stdin=json.dumps(waiting_for(seconds=0.05)))
    assert done.exit_code == 0, done.output
    assert "waiting    later: until " in done.stdout
    assert "continued  later" in done.stdout
    assert "It was time." in done.stdout
    assert invoke_json("show", "last")["status"] == "completed"


def test_a_long_timer_leaves_the_run_and_can_be_answered() -> None:
    waiting = execute_graph(waiting_for(seconds=7_200))
    assert (waiting["status"], waiting["waitingForInput"]) == ("paused", False)
    assert [each["request"]["kind"] for each in waiting["requests"]] == ["timer"]
    shown = invoke("show", "last").stdout
    assert "continue now with: planwave answer" in shown
    assert "The timer continues by itself while a server runs: planwave serve" in shown
    done = invoke("answer", "last", "--decision", "continue")
    assert done.exit_code == 0, done.output
    assert "It was time." in done.stdout


def test_approval_is_preferred_to_timer() -> None:
    graph = waiting_for(seconds=7_200)
    graph["nodes"].append({"id": "q", "type": "approval", "data": {"prompt": "Well?"}})
    execute_graph(graph)
    answered = invoke_json("answer", "last", "--decision", "approve")
    assert (answered["status"], answered["waitingForInput"]) == ("paused", False)
    assert invoke_json("answer", "last", "--decision", "continue")["status"] == "completed"


def test_message_of_a_node_is_shown() -> None:
    graph = {"nodes": [{"id": "tell", "type": "send_message", "data": {"message": "Half way."}}]}
    done = invoke("exec", "-", stdin=json.dumps({**graph, "edges": []}))
    assert done.exit_code == 0, done.output
    assert "] tell: Half way.\n" in done.stdout
    assert (
        "Message from node tell: tell - Half way." in invoke_json("show", "last")["execution_logs"]
    )
