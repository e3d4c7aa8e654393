from __future__ import annotations

from typing import Any

import pytest

from planwave.events import Event, execution_logs
from planwave.events.logs.text_log import one_line
from tests.support.engine.event_story import Fact, numbered_events

GRAPH = {"nodes": [{"id": "a", "type": "agent", "name": "Writer", "data": {}}], "edges": []}


def lines_of(*facts: Fact) -> list[str]:
    """The sentences of what follows the creation of an execution."""
    created = ("execution.created", None, {"graph": GRAPH})
    return execution_logs(numbered_events([created, *facts]))


@pytest.mark.parametrize(
    ("kind", "path", "data", "sentence"),
    [
        ("execution.started", None, {"waves": 1}, "Starting execution..."),
        ("wave.started", None, {"wave": 1, "nodes": ["a"]}, "Executing 1 nodes in parallel: ['a']"),
        (
            "wave.started",
            "a[1]",
            {"wave": 1, "nodes": ["i"]},
            "Executing 1 nodes in parallel: ['a[1]/i']",
        ),
        ("node.started", "a", {"wave": 1}, "Starting node a: Writer"),
        ("node.started", "a[1]/i", {"wave": 1}, "Starting node a[1]/i: i"),
        ("node.completed", "a", {"duration_s": 1.234}, "Completed node a (took 1.23s)"),
        ("node.failed", "a", {"error": {"message": "boom"}}, "Failed node a: Writer - boom"),
        (
            "node.blocked", "a", {"cause": {"node": "b"}},
            "Cannot proceed - dependencies failed: ['b']",
        ),
        ("execution.failed", None, {}, "Execution completed. Status: failed"),
    ],
)  # fmt: skip
def test_the_sentences_of_the_text_log_are_stable(
    kind: str, path: str | None, data: dict[str, Any], sentence: str
) -> None:
    assert lines_of((kind, path, data)) == [sentence]


@pytest.mark.parametrize(
    ("kind", "data", "sentence"),
    [
        ("node.started", {"reentry": 1}, "Starting node a: Writer again, as it was cut off"),
        ("node.waiting", {"request_id": "r1"}, "Waiting for an answer: node a: Writer"),
        (
            "node.answered", {"answer": {"decision": "approve", "note": "fine"}},
            "Answered node a: Writer - approve: fine",
        ),
        (
            "node.answered", {"answer": {"decision": "reject"}, "by": "timeout"},
            "No answer in time: node a: Writer goes on with reject",
        ),
        ("node.cancelled", {"cause": "no need"}, "Cancelled node a: Writer - no need"),
        (
            "node.completed", {"reused": {"execution_id": "x0"}},
            "Completed node a (reused from execution x0)",
        ),
        ("node.completed", {"changed": True}, "Completed node a (given by the fork)"),
    ],
)  # fmt: skip
def test_waits_answers_and_reused_results_have_a_sentence(
    kind: str, data: dict[str, Any], sentence: str
) -> None:
    assert lines_of((kind, "a", data)) == [sentence]


def test_a_nested_node_is_logged_with_the_name_of_its_start_event() -> None:
    assert lines_of(
        ("node.started", "a[0]/read", {"wave": 1, "name": "Read it"}),
        ("node.failed", "a[0]/read", {"error": {"message": "no"}}),
        ("node.started", "a[0]/x", {"wave": 1}),
    )[-3:] == [
        "Starting node a[0]/read: Read it",
        "Failed node a[0]/read: Read it - no",
        "Starting node a[0]/x: x",
    ]


def test_pause_and_resume_are_logged_with_their_reason() -> None:
    reasons = [("paused", "paused by request"), ("resumed", "answered"), ("resumed", "recovery")]
    assert lines_of(*((f"execution.{kind}", None, {"reason": why}) for kind, why in reasons)) == [
        "Execution paused: paused by request",
        "Execution resumed: answered",
        "Execution resumed in another process: the one before had ended or was cut off",
    ]


def test_a_node_cancelled_before_it_ran_has_no_sentence() -> None:
    assert execution_logs([Event("x1", 1, "t", "node.cancelled", "a", None, {"cause": "c"})]) == []


def test_nodes_blocked_by_the_same_failure_share_a_sentence() -> None:
    blocked = ("node.blocked", "a", {"cause": {"node": "b"}})
    assert len(lines_of(blocked, blocked)) == 1


def test_a_timer_is_not_logged_as_a_question() -> None:
    until = "2030-01-31T09:00:00+00:00"
    timer = {"kind": "timer", "message": "…", "until": until, "actions": ["continue"]}
    waits = ("node.waiting", "a", {"request_id": "r1", "request": timer})
    goes_on = {"request_id": "r1", "answer": {"decision": "continue", "note": ""}}
    assert lines_of(waits, ("node.answered", "a", {**goes_on, "by": "timeout"})) == [
        f"Waiting until {until}: node a: Writer",
        "The time has come: node a: Writer goes on",
    ]
    early = lines_of(waits, ("node.answered", "a", goes_on))
    assert early[1] == "Answered node a: Writer - continue"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"text": "Half way.", "extras": {"step": 1}}, "Half way."),
        ({"text": 5}, "5"),
        ({"extras": {"step": 1}}, ""),
        ("plain", "plain"),
    ],
)
def test_a_message_to_the_caller_is_a_sentence(data: Any, text: str) -> None:
    event = ("node.event", "a", {"event_type": "message", "data": data})
    assert lines_of(event) == [f"Message from node a: Writer - {text}"]
    assert lines_of(("node.event", "a", {"event_type": "prompt", "data": data})) == []


def test_no_text_of_a_node_looks_like_another_line() -> None:
    assert one_line("a\nb\r\nc\u2028d\te") == "a\u23ceb\u23cec\u23ced\te"
    assert one_line("a\x1b[2Kb\x7f\x9b\u202e") == "a\u241b[2Kb\u2421\ufffd\ufffd"


def test_a_run_that_waits_for_a_time_does_not_say_that_it_waits_for_an_answer() -> None:
    timer = {"request_id": "r1", "request": {"kind": "timer", "until": "noon"}}
    asked = {"request_id": "r2", "request": {"kind": "question"}}
    paused = ("execution.paused", None, {"kind": "waiting", "reason": "waiting for an answer"})
    resumed = ("execution.resumed", None, {"reason": "answered"})
    assert lines_of(("node.waiting", "a", timer), paused, resumed)[-2:] == [
        "Execution paused: waiting for a time",
        "Execution resumed: the wait is over",
    ]
    both = (("node.waiting", "a", timer), ("node.waiting", "b", asked), paused, resumed)
    assert lines_of(*both)[-2:] == [
        "Execution paused: waiting for an answer",
        "Execution resumed: answered",
    ]


def test_a_question_about_a_step_that_was_cut_off_says_so() -> None:
    data = {"request_id": "r1", "request": {"kind": "interrupted"}, "interrupted": True}
    (line,) = lines_of(("node.waiting", "pay", data))
    assert line == "Waiting for an answer: node pay: pay was cut off and may have acted"
