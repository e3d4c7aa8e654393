"""What a goal leaves open, on the terminal: options, and questions to a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from planwave.cli.questions import answer_option, ask_questions, read_answers
from planwave.errors import InputError
from tests.support.cli.fake_console import console_output, plain_console
from tests.support.cli.scripted_prompter import ScriptedPrompter

if TYPE_CHECKING:
    from planwave.shapes.plans import PlanQuestion

MARKET: PlanQuestion = {
    "question": "Which market?",
    "answer": "Germany",
    "assumed": True,
    "options": ["Germany", "Austria"],
}
READER: PlanQuestion = {
    "question": "Who \x1b[2Jreads?",
    "answer": "the board",
    "assumed": True,
    "options": [],
}
TOLD: PlanQuestion = {"question": "When?", "answer": "May", "assumed": False, "options": []}


async def asked(
    lines: Sequence[str | None], *questions: PlanQuestion
) -> tuple[dict[str, str] | None, str]:
    """Return what comes of a person who types these lines, and all they saw."""
    console = plain_console()
    person = ScriptedPrompter(lines, console)
    answers = await ask_questions(console, person, questions)
    assert person.is_exhausted
    return answers, console_output(console)


async def test_enter_takes_what_is_assumed_and_asks_no_model_again() -> None:
    answers, seen = await asked(["", " "], MARKET, READER)
    assert answers is None
    assert "Which market?\n  1  Germany\n  2  Austria\nAnswer [Germany]: " in seen
    assert "\x1b" not in seen


async def test_an_option_is_chosen_by_its_number_and_others_are_written() -> None:
    answers, _ = await asked(["2", "me and you"], MARKET, READER)
    assert answers == {"Which market?": "Austria", READER["question"]: "me and you"}
    answers, _ = await asked(["3"], MARKET)
    assert answers == {"Which market?": "3"}


async def test_what_was_answered_by_an_option_is_not_asked_and_is_kept() -> None:
    answers, seen = await asked(["Italy"], TOLD, MARKET)
    assert answers == {"When?": "May", "Which market?": "Italy"}
    assert "When?" not in seen


async def test_the_end_of_input_takes_the_rest_as_assumed() -> None:
    assert (await asked([None], MARKET, READER))[0] is None
    answers, _ = await asked(["2", None], MARKET, READER)
    assert answers == {"Which market?": "Austria", READER["question"]: "the board"}


async def test_an_answer_that_is_too_long_is_asked_for_again() -> None:
    answers, seen = await asked(["x" * 501, "Italy"], MARKET)
    assert answers == {"Which market?": "Italy"}
    assert "1 to 500 characters" in seen


async def test_nobody_is_asked_without_a_terminal_or_without_anything_assumed() -> None:
    assert await ask_questions(plain_console(), None, [MARKET]) is None
    answers, seen = await asked([], TOLD)
    assert (answers, seen) == (None, "")


def test_answers_of_the_command_line_are_split_at_the_first_equals_sign() -> None:
    assert read_answers(["Which market? = a=b", "When?="]) == {"Which market?": "a=b", "When?": ""}
    for question in ("Is x = 3?", "Is a==b?"):
        value = answer_option(question).replace("ANSWER", "c=d")
        assert read_answers([value]) == {question: "c=d"}
    with pytest.raises(InputError, match="does not say which question"):
        read_answers(["Italy"])
