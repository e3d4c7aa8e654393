"""The form of each kind of request, and the answer that it is when it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.api.link_pages.answer_form import answer_form, decisions_of, read_answer, words
from planwave.errors import InvalidAnswer
from planwave.service.executions.answers import validate_answer

APPROVAL: dict[str, Any] = {
    "kind": "approval", "prompt": "Ship?", "actions": ["approve", "reject"], "form": None,
    "value": "one\ntwo", "editable": True,
}  # fmt: skip
TOOL: dict[str, Any] = {
    "kind": "approval", "prompt": "Call it?", "actions": ["approve", "reject"], "editable": True,
    "tool": {"name": "send_mail", "effect": "once"}, "value": {"to": "ada", "copies": 1},
}  # fmt: skip
INTERRUPTED = {
    "kind": "interrupted", "message": "Cut off.", "actions": ["run_again", "give_result", "fail"]
}  # fmt: skip
BUDGET = {
    "kind": "budget", "prompt": "More?", "actions": ["raise", "stop"], "limits": {"usd": 5, "tokens": 100},
    "used": {"usd": 5.1, "tokens": 90}, "proposed": {"usd": 10},
}  # fmt: skip
PLAN = {"kind": "plan-approval", "prompt": "Run it?", "actions": ["approve", "reject", "edit"]}
FORM: dict[str, Any] = {
    **APPROVAL,
    "editable": False,
    "form": {
        "type": "object",
        "properties": {
            "copies": {"type": "integer", "default": 2},
            "audience": {"type": "string", "title": "Who reads it", "description": "A group."},
            "colour": {"enum": ["red", 7]},
            "urgent": {"type": "boolean", "default": True},
            "day": {"type": "string", "format": "date"},
            "message": {"type": "string"},
            "more": {"type": "array"},
        },
        "required": ["audience"],
    },
}
FREE = {"kind": "question", "prompt": "Which one?"}


def posted(**fields: str) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in fields.items()}


@pytest.mark.parametrize(
    ("request_", "sent", "answer"),
    [
        (APPROVAL, {"decision": "approve", "note": "", "value": "one\r\ntwo"}, {"decision": "approve"}),
        (
            APPROVAL,
            {"decision": "approve", "note": " fine ", "value": "one\r\nthree"},
            {"decision": "approve", "note": "fine", "value": "one\nthree"},
        ),
        (APPROVAL, {"decision": "reject", "value": "changed"}, {"decision": "reject"}),
        (
            TOOL,
            {"decision": "approve", "value": '{"to": "bob", "copies": 1}'},
            {"decision": "approve", "value": {"to": "bob", "copies": 1}},
        ),
        (INTERRUPTED, {"decision": "run_again", "result": ""}, {"decision": "run_again"}),
        (
            INTERRUPTED,
            {"decision": "give_result", "result": "[1]"},
            {"decision": "give_result", "value": [1]},
        ),
        (
            INTERRUPTED,
            {"decision": "give_result", "result": "plain"},
            {"decision": "give_result", "value": "plain"},
        ),
        (
            BUDGET,
            {"decision": "raise", "limit.usd": "12.5", "limit.tokens": " "},
            {"decision": "raise", "value": {"usd": 12.5}},
        ),
        (BUDGET, {"decision": "stop", "limit.usd": "12"}, {"decision": "stop"}),
        (PLAN, {"decision": "approve"}, {"decision": "approve"}),
        (
            FORM,
            {
                "decision": "approve", "form.audience": "all", "form.copies": "3", "form.colour": "7",
                "form.day": "2026-01-31", "form.message": "a\r\nb", "form.more": "[1]", "form.urgent": "",
            },
            {
                "decision": "approve",
                "form": {
                    "audience": "all", "copies": 3, "colour": 7, "day": "2026-01-31", "message": "a\nb",
                    "more": [1], "urgent": False,
                },
            },
        ),
        (FREE, {"answer": '{"a": 1}'}, {"a": 1}),
        (FREE, {"answer": "the\r\nfirst"}, "the\nfirst"),
    ],
)  # fmt: skip
def test_answer_of_a_sent_form(request_: Any, sent: dict[str, str], answer: Any) -> None:
    assert read_answer(request_, sent) == answer
    validate_answer(request_, answer)


@pytest.mark.parametrize("request_", [APPROVAL, TOOL, INTERRUPTED, BUDGET, PLAN, FORM, FREE])
def test_a_form_that_is_sent_as_it_is_shown_is_the_plain_answer(request_: Any) -> None:
    form = answer_form(request_)
    sent = {each.name: each.value.replace("\n", "\r\n") for each in form.fields}
    sent |= {"form.audience": "all", "answer": "that one"}
    decision = form.decisions[0][0] if form.decisions else None
    answer = read_answer(request_, sent if decision is None else {**sent, "decision": decision})
    if request_ is not BUDGET:
        assert decision is None or "value" not in answer
    validate_answer(request_, answer)


def test_a_changed_value_that_is_no_json_is_told_at_its_field() -> None:
    sent = {"decision": "approve", "value": "{nonsense"}
    with pytest.raises(InvalidAnswer) as refused:
        read_answer(TOOL, sent)
    form = answer_form(TOOL, sent, refused.value)
    (value,) = [each for each in form.fields if each.name == "value"]
    assert (value.value, value.error, value.is_folded) == ("{nonsense", "this is no JSON", False)
    assert form.problems == []


def test_fields_of_a_form_say_what_is_wrong_and_keep_what_was_sent() -> None:
    sent = {"decision": "approve", "form.audience": "all", "form.copies": "many"}
    with pytest.raises(InvalidAnswer) as refused:
        validate_answer(FORM, read_answer(FORM, sent))
    form = answer_form(FORM, sent, refused.value)
    by_name = {each.name: each for each in form.fields}
    assert by_name["form.copies"].value == "many"
    assert 'not of type "integer"' in by_name["form.copies"].error
    assert by_name["form.audience"].value == "all"
    assert by_name["form.urgent"].value == ""  # it was switched off
    assert form.problems == []


def test_what_belongs_to_no_field_is_a_problem_of_the_whole() -> None:
    sent = {"decision": "nonsense"}
    with pytest.raises(InvalidAnswer) as refused:
        validate_answer(APPROVAL, read_answer(APPROVAL, sent))
    assert "nonsense" in answer_form(APPROVAL, sent, refused.value).problems[0]


def test_fields_are_of_the_kind_of_their_schema() -> None:
    fields = answer_form(FORM).fields
    assert [(each.name, each.kind) for each in fields] == [
        ("form.audience", "line"),
        ("form.copies", "number"),
        ("form.colour", "choice"),
        ("form.urgent", "check"),
        ("form.day", "date"),
        ("form.message", "text"),
        ("form.more", "json"),
        ("note", "text"),
    ]
    audience, copies, colour, urgent, *_ = fields
    assert (audience.label, audience.hint, audience.required) == ("Who reads it", "A group.", True)
    assert (copies.value, urgent.value, colour.choices) == (
        "2",
        "on",
        [('"red"', "red"), ("7", "7")],
    )


def test_a_plan_is_not_edited_and_decisions_have_words() -> None:
    assert decisions_of(PLAN) == ["approve", "reject"]
    assert decisions_of({**APPROVAL, "actions": ["edit"]}) == ["edit"]
    assert words("ask_again") == "Ask again"


@pytest.mark.parametrize("request_", [None, "text", 7, [], {}, {"actions": "x", "form": 3}])
def test_requests_of_any_shape_have_a_form(request_: Any) -> None:
    assert [each.name for each in answer_form(request_).fields] == ["answer"]
    assert read_answer(request_, {"answer": "x"}) == "x"
