"""What may answer a request: taken whole, or refused with a code and everything wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planwave.errors import GraphInvalid, InvalidAnswer
from planwave.service.executions.answers import MAX_NOTE_CHARS, require_answer_size, validate_answer

FORM = {
    "type": "object",
    "properties": {"days": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["days"],
    "additionalProperties": False,
}
PLAIN: dict[str, Any] = {
    "kind": "approval",
    "prompt": "?",
    "actions": ["approve", "reject"],
    "form": None,
    "value": 1,
    "editable": False,
}
OPEN = {**PLAIN, "editable": True}
FILLED = {**PLAIN, "form": FORM}
LENIENT = {**PLAIN, "form": {"type": "object"}}
CUT_OFF = {
    "kind": "interrupted",
    "prompt": "?",
    "actions": ["run_again", "give_result", "fail"],
}
BUDGET = {
    "kind": "budget",
    "message": "?",
    "actions": ["raise", "stop"],
    "limits": {"usd": 1, "tokens": 100},
    "used": {"usd": 0.5, "tokens": 90},
}
GO = {"decision": "approve"}
MORE = {"decision": "raise", "value": {"tokens": 91}}


def refusal(request: Any, answer: Any) -> InvalidAnswer:
    with pytest.raises(InvalidAnswer) as caught:
        validate_answer(request, answer)
    assert isinstance(caught.value, GraphInvalid), "which every surface shows with its issues"
    assert caught.value.status_hint == 422
    return caught.value


@pytest.mark.parametrize(
    ("request_", "answer", "kept"),
    [
        (PLAIN, GO, {"decision": "approve", "note": ""}),
        (PLAIN, {"decision": "reject", "note": "no"}, {"decision": "reject", "note": "no"}),
        (PLAIN, {**GO, "note": "n" * MAX_NOTE_CHARS}, {**GO, "note": "n" * MAX_NOTE_CHARS}),
        (PLAIN, {**GO, "form": None}, {**GO, "note": ""}),
        (OPEN, {**GO, "value": [1]}, {**GO, "note": "", "value": [1]}),
        (OPEN, {**GO, "value": None}, {**GO, "note": "", "value": None}),
        (FILLED, {**GO, "form": {"days": 3}}, {**GO, "note": "", "form": {"days": 3}}),
        (LENIENT, GO, {**GO, "note": ""}),
        (BUDGET, {"decision": "stop"}, {"decision": "stop", "note": ""}),
        (BUDGET, MORE, {**MORE, "note": ""}),
        (CUT_OFF, {"decision": "run_again"}, {"decision": "run_again", "note": ""}),
        (
            CUT_OFF,
            {"decision": "give_result", "value": None},
            {"decision": "give_result", "note": "", "value": None},
        ),
        ({"form": FORM}, {"form": {"days": 3}}, {"form": {"days": 3}, "note": ""}),
        ({"editable": True}, {"value": 2}, {"value": 2, "note": ""}),
        ({"question": "how many?"}, 3, 3),
        ({"actions": []}, ["any"], ["any"]),
        ({"actions": [1], "form": "paper"}, None, None),
        ("how many?", {"of": "what"}, {"of": "what"}),
    ],
)
def test_valid_answer_is_normalized(request_: Any, answer: Any, kept: Any) -> None:
    assert validate_answer(request_, answer) == kept


@pytest.mark.parametrize(
    ("request_", "answer", "code", "pointer"),
    [
        (PLAIN, "approve", "invalid-answer", ""),
        (PLAIN, None, "invalid-answer", ""),
        (PLAIN, [GO], "invalid-answer", ""),
        (PLAIN, {**GO, "reason": "x"}, "invalid-answer", "/reason"),
        (PLAIN, {**GO, "note": None}, "invalid-answer", "/note"),
        (PLAIN, {**GO, "note": "n" * (MAX_NOTE_CHARS + 1)}, "invalid-answer", "/note"),
        (PLAIN, {**GO, "note": "\ud800"}, "invalid-answer", "/note"),
        (PLAIN, {}, "unknown-decision", "/decision"),
        (PLAIN, {"decision": "later"}, "unknown-decision", "/decision"),
        (PLAIN, {"decision": ["approve"]}, "unknown-decision", "/decision"),
        (PLAIN, {"decision": True}, "unknown-decision", "/decision"),
        (PLAIN, {**GO, "value": 1}, "value-not-editable", "/value"),
        (PLAIN, {**GO, "value": None}, "value-not-editable", "/value"),
        (PLAIN, {**GO, "form": {}}, "invalid-form", "/form"),
        (FILLED, GO, "invalid-form", "/form"),
        (FILLED, {**GO, "form": None}, "invalid-form", "/form"),
        (FILLED, {**GO, "form": {"days": "3"}}, "invalid-form", "/form/days"),
        ({**PLAIN, "form": {"$ref": "http://127.0.0.1:9/"}}, GO, "invalid-form", "/form"),
        (CUT_OFF, {"decision": "give_result"}, "invalid-answer", "/value"),
        (CUT_OFF, {"decision": "fail", "value": 1}, "value-not-editable", "/value"),
        ({"form": FORM}, {**GO, "form": {"days": 3}}, "invalid-answer", "/decision"),
        ({"form": FORM}, 3, "invalid-answer", ""),
        ({"question": "?"}, float("nan"), "invalid-answer", ""),
        ({"question": "?"}, {1: 2}, "invalid-answer", ""),
    ],
)
def test_invalid_answer_is_rejected_with_pointer(
    request_: Any, answer: Any, code: str, pointer: str
) -> None:
    refused = refusal(request_, answer)
    assert refused.code == code
    assert [found.pointer for found in refused.diagnostics] == [pointer]


def test_unknown_decision_lists_decisions() -> None:
    assert refusal(PLAIN, {"decision": "later"}).hint == "decisions are approve, reject"
    near = refusal(PLAIN, {"decision": "Aprove"})
    assert near.hint == "did you mean 'approve'? decisions are approve, reject"
    assert "'Aprove'" in near.message


def test_all_errors_are_listed_and_the_first_gives_the_code() -> None:
    form = {"days": "x", "more": 1}
    answer = {"decision": "later", "note": 3, "value": 1, "form": form, "by": "me"}
    refused = refusal(FILLED, answer)
    assert refused.code == "invalid-answer"
    assert [(found.code, found.pointer) for found in refused.diagnostics] == [
        ("invalid-answer", "/by"),
        ("invalid-answer", "/note"),
        ("unknown-decision", "/decision"),
        ("value-not-editable", "/value"),
        ("invalid-form", "/form/days"),
        ("invalid-form", "/form"),
    ]


def test_answered_form_values_are_not_echoed() -> None:
    refused = refusal(FILLED, {**GO, "form": {"days": "my password"}})
    assert "my password" not in json.dumps([found.as_json() for found in refused.diagnostics])


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
any_json = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)
schemas = st.recursive(
    st.booleans() | st.sampled_from([{}, {"type": "string"}, {"$ref": "#/$defs/a"}]) | any_json,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "integer", ["null", "string"], "odd"]),
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "$defs": st.fixed_dictionaries({"a": inner}),
            "unevaluatedProperties": inner,
            "multipleOf": st.floats() | st.integers(),
            "pattern": st.text(max_size=4),
            "enum": st.lists(any_json, max_size=2),
        },
    ),
    max_leaves=6,
)
requests = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["approval", "interrupted", "own"]),
        "actions": st.lists(st.sampled_from(["approve", "give_result", "x"]), max_size=3)
        | any_json,
        "form": schemas,
        "editable": st.booleans() | any_json,
    },
)
answers = any_json | st.fixed_dictionaries(
    {"decision": st.sampled_from(["approve", "give_result", "x"])},
    optional={"note": st.text(max_size=3) | any_json, "value": any_json, "form": any_json},
)
CODES = {"invalid-answer", "unknown-decision", "value-not-editable", "invalid-form"}


@given(request_=requests | any_json, answer=answers)
@example(request_=FILLED, answer={**GO, "form": {"days": 1}})
def test_any_answer_is_accepted_or_rejected_with_a_code(request_: Any, answer: Any) -> None:
    refused: InvalidAnswer | None = None
    stored: Any = None
    try:
        stored = validate_answer(request_, answer)
    except InvalidAnswer as error:
        refused = error
    if refused is not None:
        assert refused.code in CODES
        assert refused.diagnostics
        issues = [found.as_json() for found in refused.diagnostics]
        assert json.dumps(issues, ensure_ascii=False).encode()
        return
    assert json.loads(json.dumps(stored, allow_nan=False)) == stored
    if stored != answer:
        assert stored == {
            "note": "",
            **{k: v for k, v in answer.items() if (k, v) != ("form", None)},
        }
    assert validate_answer(request_, stored) == stored, "what is stored would be taken again"


@pytest.mark.parametrize("answer", [{"decision": "approve", "value": "x" * 50}, "x" * 50])
def test_an_answer_larger_than_a_result_may_be_is_refused(answer: Any) -> None:
    require_answer_size(answer, 52)
    with pytest.raises(InvalidAnswer) as refused:
        require_answer_size(answer, 51)
    assert refused.value.code == "limit-exceeded"
