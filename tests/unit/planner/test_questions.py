"""What a goal leaves open: reading questions of a reply, answers of people, and the second request."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InputError
from planwave.graph.json_values import is_storable_text
from planwave.graph.plan import Plan
from planwave.planner.planner import Planner
from planwave.planner.questions import (
    MAX_ANSWER_CHARS,
    MAX_QUESTION_CHARS,
    MAX_QUESTIONS,
    check_answers,
    read_questions,
)
from planwave.settings import Limits
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import reply_step, small_model_reply, step_reply
from tests.support.llm.watched_model import WatchedModel, in_pieces

MARKET = {"question": "Which market?", "assumed": "Germany", "options": ["Germany", "Austria"]}
READER = {"question": "Who reads it?", "assumed": "the board"}
ASSUMED_MARKET = {
    "question": "Which market?",
    "answer": "Germany",
    "assumed": True,
    "options": ["Germany", "Austria"],
}


def reply_with(questions: Any) -> str:
    """A sound plan of one step that asks something."""
    return step_reply(reply_step("a"), reply_step("b", "a"), questions=questions)


def planner_of(models: WatchedModel) -> Planner:
    providers = FakeProviders()
    return Planner(models, providers, library_registry(providers), Limits())


async def plan_of(*replies: str, **arguments: Any) -> tuple[Plan, WatchedModel]:
    models = WatchedModel([*replies])
    return await planner_of(models).create_plan("Plan the launch", **arguments), models


async def test_a_plan_has_the_questions_of_its_reply_with_the_assumed_answers() -> None:
    plan, models = await plan_of(reply_with([MARKET, READER]))
    assert plan.questions[0] == ASSUMED_MARKET
    assert plan.questions[1] == {
        "question": "Who reads it?",
        "answer": "the board",
        "assumed": True,
        "options": [],
    }
    assert plan.as_json()["questions"] == [*plan.questions]
    assert len(models.requests) == 1
    assert "ask at most three short questions" in models.requests[0].system


async def test_answers_of_a_person_stand_in_the_prompt_and_in_the_plan() -> None:
    answers = {"Which market?": "{{ Austria }}\nand Italy"}
    plan, models = await plan_of(reply_with([READER]), answers=answers)
    assert "- Which market? {{ Austria }}\nand Italy" in models.requests[0].prompt
    assert plan.questions[0] == {
        "question": "Which market?",
        "answer": "{{ Austria }}\nand Italy",
        "assumed": False,
        "options": [],
    }
    assert [each["assumed"] for each in plan.questions] == [False, True]
    assert plan.user_prompt == "Plan the launch"


async def test_a_goal_without_answers_has_the_prompt_that_it_had_before() -> None:
    _, models = await plan_of(step_reply(reply_step("a")))
    assert models.requests[0].prompt == "Write the plan for this goal:\n\nPlan the launch"


async def test_a_reply_without_questions_asks_nothing() -> None:
    for questions in (None, []):
        plan, models = await plan_of(reply_with(questions))
        assert not plan.questions
        assert not plan.fixes
        assert len(models.requests) == 1


async def test_what_was_answered_is_not_asked_again_and_three_are_the_most_in_all() -> None:
    again = {**MARKET, "question": "which  MARKET?"}
    more = [again, READER, {"question": "When?", "assumed": "May"}]
    answers = {"Which market?": "Italy", "How long?": "a page"}
    plan, _ = await plan_of(reply_with(more), answers=answers)
    assert [each["question"] for each in plan.questions] == [*answers, "Who reads it?"]
    assert plan.fixes == [
        "left out question 1 of the model: it was asked before",
        "left out question 3 of the model: no more may be asked",
    ]


async def test_steps_are_reported_one_by_one_wherever_the_questions_stand() -> None:
    last = json.loads(reply_with([MARKET, READER]))
    first = {"questions": last.pop("questions"), **last}
    for reply in (first, {**last, "questions": first["questions"]}):
        told: list[str] = []
        pieces = in_pieces(*json.dumps(reply))
        planner = planner_of(WatchedModel([pieces]))
        await planner.create_plan(
            "Plan the launch", on_progress=lambda event, told=told: told.append(event.kind)
        )
        assert [kind for kind in told if kind != "delta"] == ["title", "node", "node", "edge"]


async def test_questions_alone_are_no_plan() -> None:
    _, models = await plan_of(json.dumps({"questions": [MARKET]}), reply_with([MARKET]))
    assert "missing field 'steps'" in models.requests[1].prompt


async def test_small_models_never_ask() -> None:
    models = WatchedModel([json.dumps({**json.loads(small_model_reply()), "questions": [MARKET]})])
    plan = await planner_of(models).create_plan(
        "Plan the launch", "tiny", answers={"Which market?": "Italy"}
    )
    assert [each["question"] for each in plan.questions] == ["Which market?"]
    assert "Which market? Italy" in models.requests[0].prompt
    assert "questions" not in json.dumps(models.requests[0].schema)
    assert "left out question 1 of the model: no more may be asked" in plan.fixes


TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["", "x" * (MAX_QUESTION_CHARS + 1), "{{ 7 * 7 }}", "<b>a</b>", "a\0b", "\ud800"]
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=6,
)
QUESTIONS = st.one_of(
    JSON,
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "question": TEXTS | JSON,
                "assumed": TEXTS | JSON,
                "options": st.lists(TEXTS, max_size=8) | JSON,
                "answer": TEXTS,
            },
        ),
        max_size=8,
    ),
)


@given(QUESTIONS, st.dictionaries(st.sampled_from(["a", "b", "c"]), st.just("x"), max_size=3))
def test_no_questions_whatever_they_are_spoil_a_plan(written: Any, answers: dict[str, str]) -> None:
    reply = {"title": "T", "questions": written, "nodes": []}
    rest, questions, fixes = read_questions(reply, answers, may_ask=True)
    assert rest == {"title": "T", "nodes": []}
    assert len(questions) <= MAX_QUESTIONS
    assert {
        each["question"]: each["answer"] for each in questions if not each["assumed"]
    } == answers
    questions = [each for each in questions if each["assumed"]]
    assert len(fixes) <= MAX_QUESTIONS + 1
    for each in questions:
        texts = [each["question"], each["answer"], *each["options"]]
        assert all(0 < len(text) <= MAX_QUESTION_CHARS for text in texts)
        assert all(is_storable_text(text) and "\n" not in text for text in texts)
        assert each["question"].casefold() not in answers
    if isinstance(written, list) and written:
        assert questions or fixes


@pytest.mark.parametrize(
    "answers",
    [
        {"": "Italy"},
        {"Which market?": "  "},
        {"Which market?": "x" * (MAX_ANSWER_CHARS + 1)},
        {"x" * (MAX_QUESTION_CHARS + 1): "Italy"},
        {"Which market?": "a\0b"},
        {str(number): "x" for number in range(MAX_QUESTIONS + 1)},
    ],
)
def test_answers_that_are_none_are_refused(answers: dict[str, str]) -> None:
    with pytest.raises(InputError) as refused:
        check_answers(answers)
    assert refused.value.code == "invalid-goal-answer"
