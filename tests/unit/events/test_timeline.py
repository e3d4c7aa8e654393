from __future__ import annotations

from typing import Any

import pytest

from planwave.events import Event
from planwave.events.request_text import answer_text, is_decision, request_text
from planwave.events.timeline import answers, reentries, timelines
from tests.support.engine.event_story import numbered_events


def course_of(*facts: tuple[str, dict[str, Any]]) -> Any:
    return timelines(numbered_events((kind, "a", data) for kind, data in facts))["a"]


def test_all_that_happened_to_a_node_is_told_in_order_with_its_facts() -> None:
    error = {"code": "busy", "message": "busy"}
    course = course_of(
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
    assert [step.what for step in course] == [
        "started", "tried-again", "entered-again", "asked", "answered", "completed",
    ]  # fmt: skip
    assert course[1].as_json() == {
        "seq": 3, "at": "t3", "what": "tried-again", "attempt": 1, "error": error, "delay_s": 1,
        "next_attempt": 2,
    }  # fmt: skip
    assert course[3].details["timeout_answer"] == 0
    assert reentries(course) == 1
    assert answers(course) == [
        {"at": "t6", "request_id": "r5", "by": "timeout", "answer": {"decision": "no"},
         "decision": "no"},
    ]  # fmt: skip


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
def test_every_end_has_its_word(kind: str, data: dict[str, Any], what: str) -> None:
    (step,) = course_of((kind, data))
    assert step.what == what


def test_what_is_of_no_node_is_in_no_course() -> None:
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
def test_answers_read_as_people_say_them(answer: Any, text: str) -> None:
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
def test_requests_read_as_their_question(request_: Any, text: str) -> None:
    assert request_text(request_) == text


def test_a_decision_about_a_cut_off_node_is_told_from_other_requests() -> None:
    assert is_decision({"kind": "interrupted"})
    assert not is_decision({"kind": "approval"})
    assert not is_decision("interrupted")
