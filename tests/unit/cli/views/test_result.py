from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planwave.cli.console import CommandConsole
from planwave.cli.context import CommandContext
from planwave.cli.views.result import (
    final_results,
    node_lines,
    show_failures,
    show_next,
    show_result,
    summary,
)
from tests.support.cli.fake_console import console_output, plain_console, terminal_console
from tests.support.cli.fake_factories import fake_factories


def node(
    node_id: str, status: str = "completed", error: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    told = {"error": None if error is None else error["message"], "error_detail": error}
    return {
        "id": node_id, "path": node_id, "name": node_id.title(), "status": status, **told, **more
    }  # fmt: skip


DOCUMENT: dict[str, Any] = {
    "execution_id": "x", "status": "completed", "title": "T",
    "nodes": [
        node("a", result="first", execution_time=1.5),
        node("b", result="**final**", execution_time=2),
        node("t", "linked"),
    ],
    "result": {"nodes": ["b"], "value": "**final**"},
    "usage": {"input_tokens": 1200, "output_tokens": 30, "cost_usd": 0.02},
    "started_at": "2026-01-01T00:00:00+00:00", "completed_at": "2026-01-01T00:00:07.500000+00:00",
}  # fmt: skip


def test_final_results_are_those_that_the_document_names() -> None:
    assert final_results(DOCUMENT) == [("B", "**final**")]


def test_nested_failure_is_shown_once_at_its_origin() -> None:
    def failed(path: str, code: str, why: str) -> dict[str, Any]:
        return {**node(path, "failed", error={"code": code, "message": why}), "path": path}

    received = "node 'loop[1]/deep[0]/x' failed: no luck"
    nodes = [
        failed("loop", "nested-run-failed", received),
        failed("loop[1]/deep", "nested-run-failed", received),
        failed("loop[1]/deep[0]/x", "broken", "no luck"),
        failed("other", "nested-run-failed", "nobody knows what failed inside"),
        failed("own", "broken", "its own fault"),
        failed("own[k]/x", "broken", "and this"),
    ]
    console = plain_console()
    show_failures(console, {**DOCUMENT, "status": "failed", "nodes": nodes})
    assert console_output(console).splitlines()[1:] == [
        "✗ loop[1]/deep[0]/x: no luck",
        "✗ Other: nobody knows what failed inside",
        "✗ Own: its own fault",
        "✗ own[k]/x: and this",
    ]


def test_a_document_without_a_result_has_no_final_results() -> None:
    assert final_results({**DOCUMENT, "result": {"nodes": [], "value": None}}) == []


def test_pipe_output_has_text_then_summary_then_file(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    console = plain_console()
    show_result(console, DOCUMENT, path)
    assert console_output(console).splitlines() == [
        "",
        "**final**",
        "",
        "✓ completed · 2 of 2 steps completed · 7.5 s · tokens 1,200 in, 30 out · $0.0200",
        f"Stored in {path}",
    ]


def test_unwritten_document_is_not_mentioned(tmp_path: Path) -> None:
    console = plain_console()
    show_result(console, DOCUMENT, tmp_path / "missing.json")
    assert "Stored in" not in console_output(console)


def test_several_results_have_headings() -> None:
    console = terminal_console()
    show_result(console, {**DOCUMENT, "result": {"nodes": ["a", "b"], "value": {}}}, None)
    shown = console_output(console)
    assert shown.index("A\n") < shown.index("first") < shown.index("B\n") < shown.index("final")


def test_failures_have_reason_and_hint() -> None:
    failed = node("b", "failed", error={"code": "c", "message": "no answer", "hint": "try later"})
    console = plain_console()
    show_result(console, {**DOCUMENT, "status": "failed", "nodes": [node("a"), failed]}, None)
    assert "✗ B: no answer\n  → try later\n" in console_output(console)
    assert "✗ failed · 1 of 2 steps completed" in console_output(console)


def test_nested_nodes_are_named_by_path_and_not_counted() -> None:
    def inner(number: int) -> dict[str, Any]:
        failed = {"id": "x", "name": "x", "status": "failed", "error": "no luck"}
        return {**failed, "path": f"loop[{number}]/x"}

    nodes = [node("loop", result="done"), *map(inner, range(23))]
    console = plain_console()
    document = {**DOCUMENT, "nodes": nodes, "result": {"nodes": ["loop"], "value": "done"}}
    show_result(console, document, None)
    lines = console_output(console).splitlines()
    assert lines[3:5] == ["✗ loop[0]/x: no luck", "✗ loop[1]/x: no luck"]
    assert lines[22:24] == ["✗ loop[19]/x: no luck", "  … and 3 more"]
    assert lines[-1].startswith("✓ completed · 1 of 1 step completed")
    assert node_lines(console, document)[1].plain.split() == [
        "✗",
        "failed",
        "loop[0]/x",
        "no",
        "luck",
    ]


def test_execution_error_is_shown() -> None:
    console = plain_console()
    error = {"code": "run-timeout", "message": "took longer than 5 s"}
    show_result(console, {**DOCUMENT, "status": "failed", "error": error}, None)
    assert "✗ took longer than 5 s" in console_output(console)


def test_missing_prices_and_times_are_omitted() -> None:
    bare = {"status": "cancelled", "nodes": [], "usage": {"input_tokens": 1, "output_tokens": 2}}
    line = summary(plain_console(), bare).plain
    assert line == "■ cancelled · 0 of 0 steps completed · tokens 1 in, 2 out · price unknown"


def test_steps_that_are_no_part_of_the_run_are_not_counted() -> None:
    nodes = [node("a"), node("b"), node("c", "not_reached"), node("m", "linked")]
    line = summary(plain_console(), {"status": "completed", "nodes": nodes}).plain
    assert line == "✓ completed · 2 of 2 steps completed"


def test_skipped_steps_are_counted() -> None:
    nodes = [node("a"), node("b", "skipped"), node("c", "skipped")]
    line = summary(plain_console(), {"status": "completed", "nodes": nodes}).plain
    assert line == "✓ completed · 1 of 3 steps completed, 2 skipped"


def test_node_lines_have_status_time_and_reason() -> None:
    document = {
        **DOCUMENT,
        "nodes": [
            node("a", execution_time=1.5),
            node("b", "failed", error={"message": "no"}, handled=True, execution_time=130),
            node("c", "blocked", cause={"node": "b", "error": {}}, name="c"),
            node("d", "skipped", reason="not chosen"),
            node("e", "cancelled", cause="stopped"),
            {**node("x"), "path": "loop[1]/x"},
            node("f", "waiting", answers=[{"by": "timeout", "answer": {"decision": "no"}}]),
        ],
        "requests": [{"path": "f", "request": {"prompt": "Again?"}}],
    }
    lines = [line.plain.rstrip() for line in node_lines(plain_console(), document)]
    assert lines == [
        "  ✓ completed         1.5 s  a          A",
        "  ✗ failed       2 min 10 s  b          B  no (handled)",
        "  ⊘ blocked                  c          because b failed",
        "  → skipped                  d          D  not chosen",
        "  ■ cancelled                e          E  stopped",
        "  ✓ completed                loop[1]/x  X",
        "  ◷ waiting                  f          F  for an answer: Again?",
        "      answered by its time limit: no",
    ]


def test_what_a_step_had_written_when_it_was_cut_off_is_shown_and_its_price_unknown() -> None:
    cut = node("a", "cancelled", cause="stopped", streamed={"text": "Lisbon\nhas " + "y" * 90})
    told = node(
        "b", "failed", error={"message": "no"}, streamed={"reasoning": "So"}, usage={"calls": 1}
    )
    document = {"status": "cancelled", "nodes": [cut, told], "usage": {}}
    lines = [line.plain.rstrip() for line in node_lines(plain_console(), document)]
    assert lines == [
        "  ■ cancelled                a  A  stopped",
        f"      had written 101 characters, which nothing gets: Lisbon has {'y' * 48}…",
        "  ✗ failed                   b  B  no",
        "      had written 2 characters, which nothing gets: So",
    ]
    assert summary(plain_console(), document).plain == (
        "■ cancelled · 0 of 2 steps completed · price of what was cut off unknown"
    )


def test_the_steps_of_a_loop_are_listed_below_it_item_by_item() -> None:
    paths = ["start", "quotes", "end", "quotes[0]/it", "quotes[1]/it", "quotes[10]/it",
             "quotes[0]/q", "quotes[1]/q", "quotes[1]/q[k]/deep"]  # fmt: skip
    document = {"nodes": [{**node(path), "path": path, "name": ""} for path in paths]}
    lines = [line.plain.split()[-1] for line in node_lines(plain_console(), document)]
    assert lines == [
        "start", "quotes", "quotes[0]/it", "quotes[0]/q", "quotes[1]/it", "quotes[1]/q",
        "quotes[1]/q[k]/deep", "quotes[10]/it", "end",
    ]  # fmt: skip


def test_handled_failure_is_marked() -> None:
    handled = node("b", "failed", error={"code": "c", "message": "no answer"}, handled=True)
    console = plain_console()
    show_result(console, {**DOCUMENT, "nodes": [handled]}, None)
    assert "✗ B: no answer (handled)\n" in console_output(console)


def test_narrow_terminal_does_not_cut_reasons(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    console = terminal_console(width=30)
    error = {"message": "the endpoint refused what it was asked", "hint": "ask for something else"}
    show_result(console, {**DOCUMENT, "nodes": [node("b", "failed", error=error)]}, path)
    shown = console_output(console)
    assert "…" not in shown
    words = " ".join(shown.split())
    assert "the endpoint refused what it was asked → ask for something else" in words
    assert "tokens 1,200 in, 30 out · $0.0200" in words
    assert f"Stored in {path}\n" in shown


def test_json_result_is_the_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import json

    show_result(CommandConsole(json=True), DOCUMENT, Path("somewhere/x.json"))
    out, err = capsys.readouterr()
    assert json.loads(out) == {**DOCUMENT, "document_path": "somewhere/x.json"}
    assert err == ""


WAITING = "waiting for an answer"


def shown(storage: str | None = None, **document: Any) -> str:
    console = plain_console()
    requested = CommandContext(fake_factories(), storage=storage)
    show_next(requested, console, {"execution_id": "x", "status": "paused", **document})
    return console_output(console)


def request(**fields: Any) -> dict[str, Any]:
    return {"request_id": "r7", "path": "q", "request": fields}


def test_open_request_has_answer_command() -> None:
    asks = request(prompt="Go\non?", actions=["go on", "stop", "wait a bit"])
    output = shown("over there", reason=WAITING, requests=[asks, request(question="Which?")])
    assert output.splitlines() == [
        "◷ q: waiting for an answer to r7: Go on?",
        "  answer with: planwave answer x r7 --decision 'go on' --storage 'over there'   "
        "(or stop, 'wait a bit')",
        "◷ q: waiting for an answer to r7: Which?",
        "  answer with: planwave answer x r7 --storage 'over there'",
    ]


def test_timer_has_its_actions() -> None:
    timer = request(kind="timer", until="noon", actions=["continue"])
    assert shown(reason=WAITING, requests=[timer]).splitlines() == [
        "◷ q: waiting until noon",
        "  continue now with: planwave answer x r7 --decision continue",
        "The timer continues by itself while a server runs: planwave serve",
    ]


def test_failed_execution_has_retry_command() -> None:
    failed = [node("b", "failed", error={"message": "no"})]
    output = shown("over there", status="failed", nodes=failed)
    assert output == "Run what failed again with: planwave retry x --storage 'over there'\n"
    assert shown(status="failed", nodes=[node("b")]) == ""  # nothing to retry: it never ran
    assert shown(status="completed", nodes=failed) == ""


def test_value_under_review_is_shown_shortened() -> None:
    output = shown(reason=WAITING, requests=[request(prompt="Send?", value="Dear Ada,\n\nyes.")])
    assert output.splitlines()[:4] == [
        "◷ q: waiting for an answer to r7: Send?",
        "    Dear Ada,",
        "",
        "    yes.",
    ]
    long = shown(reason=WAITING, requests=[request(prompt="Send?", value=list(range(2_000)))])
    assert "    [0,1,2," in long
    assert "    …\n" in long
    tall = shown(reason=WAITING, requests=[request(prompt="Send?", value="line\n" * 40)])
    assert (tall.count("    line"), tall.count("…")) == (12, 1)


def test_paused_by_request_is_shown() -> None:
    output = shown(reason="paused by request", requests=[request(prompt="Go?", actions=["ok"])])
    assert output.splitlines()[-1] == (
        "The execution is paused by request; resume it with: planwave resume x"
    )


def test_no_requests_show_nothing() -> None:
    assert shown(status="completed", requests=[request(prompt="?")]) == ""


def test_request_text_has_no_control_characters() -> None:
    output = shown(reason=WAITING, requests=[request(prompt="\x1b[2J", actions=["a\x1b]0;b"])])
    assert "\x1b" not in output


@pytest.mark.parametrize("status", ["paused", "executing", "failed"])
def test_the_commands_of_a_run_with_types_of_a_module_say_that_they_need_it(status: str) -> None:
    nodes = [
        {"id": "a", "path": "a", "type": "slow"},
        {"id": "b", "path": "b", "type": "text"},
        {"id": "c", "path": "a[0]/c", "type": "inner"},
    ]
    note = "Add the module that has the types of its steps (slow): --import MODULE"
    assert note in shown(status=status, interrupted=status == "executing", nodes=nodes)
    assert "--import" not in shown(status=status, nodes=nodes[1:2])
    assert "--import" not in shown(status="completed", nodes=nodes)


def test_a_partial_result_comes_before_what_is_missing_and_why() -> None:
    def missing(path: str, status: str, cause: str | None) -> dict[str, Any]:
        error = {"code": "c", "message": "no answer"}
        name = path.title()
        return {
            "path": path,
            "name": name,
            "status": status,
            "cause": {"node": cause, "error": error},
        }

    nodes = [
        node("b", result="there"),
        node("f", "failed", error={"code": "c", "message": "no answer"}),
        node("r", "blocked"),
    ]
    document = {
        **DOCUMENT,
        "status": "failed",
        "outcome": "partial",
        "nodes": nodes,
        "missing": [
            missing("f", "failed", "f"),
            missing("r", "blocked", "f"),
            missing("q", "pending", None),
            missing("s", "blocked", "loop[1]/x"),
        ],
    }
    console = plain_console()
    show_result(console, document, None)
    assert console_output(console).splitlines() == [
        "",
        "there",
        "",
        "✗ F has no result: it failed",
        "⊘ R has no result: because F failed",
        "· Q has no result: it did not run",
        "⊘ S has no result: because loop[1]/x failed",
        "",
        "✗ F: no answer",
        "",
        "◐ failed, partial result · 1 of 3 steps completed · 7.5 s · tokens 1,200 in, 30 out · $0.0200",
    ]
