from __future__ import annotations

from typing import Any

import pytest

from planwave.events import Event
from planwave.events.request_text import answer_text, is_decision, request_text
from planwave.events.timeline import answers, reentries, timelines
from tests.support.engine.event_story import numbered_events


def steps_of(*facts: tuple[str, dict[str, Any]]) -> Any:
    return timelines(numbered_events((kind, "a", data) for kind, data in facts))["a"]


def test_the_timeline_of_a_node_has_its_steps_in_order_with_their_data() -> None:
    error = {"code": "busy", "message": "busy"}
    steps = steps_of(
        ("node.started", {"wave": 1}),
        ("node.log", {"message": "hm"}),
        ("node.retrying", {"error": error, "delay_s": 1, "next_attempt": 2}),
        ("node.started", {"wave": 1, "reentry": 2}),
        (
            "node.waiting",
            {"request_id": "r5", "request": "ok?", "timeout_s": 3, "timeout_answer": 0},
        ),
        ("node.answered", {"request_id": "r5", "answer": {"decision": "no"}, "by": "timeout"}),
        ("node.completed", {"duration_s": 2.0}),
    )
    assert [step.what for step in steps] == [
        "started", "tried-again", "entered-again", "asked", "answered", "completed",
    ]  # fmt: skip
    assert steps[1].as_json() == {
        "seq": 3, "at": "t3", "what": "tried-again", "attempt": 1, "error": error, "delay_s": 1,
        "next_attempt": 2,
    }  # fmt: skip
    assert steps[3].details["timeout_answer"] == 0
    assert reentries(steps) == 1
    assert answers(steps) == [
        {"at": "t6", "request_id": "r5", "by": "timeout", "answer": {"decision": "no"},
         "decision": "no"},
    ]  # fmt: skip


def test_an_attempt_that_is_entered_again_calls_nothing_twice() -> None:
    call = {"call_id": "c1", "name": "look", "arguments": {"n": 1}}
    start = ("node.event", {"event_type": "tool_call_start", "data": call})
    end = ("node.event", {"event_type": "tool_call_end", "data": {**call, "result": "yes"}})
    again = ("node.started", {"wave": 1, "reentry": 2})
    steps = steps_of(("node.started", {"wave": 1}), start, end, again, end)
    assert [step.what for step in steps] == ["started", "called", "entered-again"]
    assert steps[1].details == {"arguments": {"n": 1}, "name": "look", "result": "yes"}


def test_warnings_of_a_node_are_steps_and_its_other_lines_are_not() -> None:
    (step,) = steps_of(
        ("node.log", {"message": "the call waits 5 s", "level": "warning"}),
        ("node.log", {"message": "all is well", "level": "info"}),
    )
    assert (step.what, step.details) == ("warned", {"message": "the call waits 5 s"})


@pytest.mark.parametrize(
    ("kind", "data", "what"),
    [
        ("node.completed", {"given": True}, "given"),
        ("node.completed", {"reused": {"execution_id": "x0"}}, "reused"),
        ("node.completed", {"changed": True}, "changed"),
        ("node.failed", {"error": {}, "handled": True}, "failed"),
        ("node.skipped", {"reason": "no"}, "skipped"),
        ("node.blocked", {"cause": {}}, "blocked"),
        ("node.cancelled", {"cause": "c"}, "cancelled"),
    ],
)
def test_every_outcome_has_its_own_step(kind: str, data: dict[str, Any], what: str) -> None:
    (step,) = steps_of((kind, data))
    assert step.what == what


def test_events_without_a_node_are_in_no_timeline() -> None:
    assert timelines([Event("x1", 1, "t", "execution.started", None, None, {})]) == {}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"decision": "approve", "note": ""}, "approve"),
        ({"decision": "approve", "note": "fine", "value": 1}, "approve (with a value): fine"),
        ({"decision": 5}, '{"decision":5}'),
        ("yes", "yes"),
        (None, "nothing"),
    ],
)
def test_an_answer_as_text_has_decision_value_and_note(answer: Any, text: str) -> None:
    assert answer_text(answer) == text


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"prompt": "May I?", "actions": []}, "May I?"),
        ({"kind": "interrupted", "message": "cut off"}, "cut off"),
        ({"prompt": ""}, '{"prompt":""}'),
        ("which?", "which?"),
    ],
)
def test_a_request_as_text_is_its_prompt_or_message(request_: Any, text: str) -> None:
    assert request_text(request_) == text


def test_only_requests_of_interrupted_nodes_are_decisions() -> None:
    assert is_decision({"kind": "interrupted"})
    assert not is_decision({"kind": "approval"})
    assert not is_decision("interrupted")


def test_calls_of_tools_are_steps_with_their_arguments_and_waits_for_them_are_none() -> None:
    call = {"call_id": "c1", "name": "look_up"}
    ended = {**call, "result": {"cents": 100}, "duration_s": 0.2}
    data = {"arguments": {"order": "1"}, **call}
    steps = steps_of(
        ("node.event", {"event_type": "tool_call_start", "data": data}),
        ("node.parked", {}),
        ("node.unparked", {}),
        ("node.event", {"event_type": "tool_call_end", "data": ended}),
        ("node.event", {"event_type": "tool_call_error", "data": {"name": "x", "error": {"code": "no"}}}),
        ("node.event", {"event_type": "prompt", "data": {}}),
    )  # fmt: skip
    assert [(step.what, step.details) for step in steps] == [
        (
            "called",
            {"name": "look_up", "arguments": {"order": "1"}, "result": {"cents": 100}, "duration_s": 0.2},
        ),
        ("called", {"name": "x", "error": {"code": "no"}}),
    ]  # fmt: skip
