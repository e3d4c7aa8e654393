"""What a goal leaves open: the answers given by options, and questions on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from planwave.cli.formatting import one_line
from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.cli.prompts import Prompter
    from planwave.shapes.plans import PlanQuestion

_ESCAPED: Final = r"\="
"""An equals sign in a question."""
_EQUALS: Final = re.compile(r"(?<!\\)=")


def read_answers(written: Iterable[str]) -> dict[str, str]:
    """Parse all ``--answer`` values: ``QUESTION=ANSWER``, where an equals sign of the question has a backslash before it.

    Raises:
        InputError: A value has no ``=``.
    """
    answers: dict[str, str] = {}
    for text in written:
        parts = _EQUALS.split(text, maxsplit=1)
        if len(parts) < 2:
            raise InputError(
                f"--answer {one_line(text[:60])!r} does not say which question it is for",
                code="usage",
                hint="write --answer 'QUESTION=ANSWER', with the question as the plan has it",
            )
        question, answer = parts
        answers[question.replace(_ESCAPED, "=").strip()] = answer.strip()
    return answers


def answer_option(question: str) -> str:
    """Return the value of ``--answer`` that answers a question, which ``read_answers`` reads."""
    return f"{one_line(question).replace('=', _ESCAPED)}=ANSWER"


async def ask_questions(
    console: CommandConsole, prompter: Prompter | None, questions: Sequence[PlanQuestion]
) -> dict[str, str] | None:
    """Ask a person on the terminal what a plan assumes; without a prompter there is none.

    Returns:
        The answers to all questions; None where those that are assumed are taken.
    """
    if prompter is None or not any(each["assumed"] for each in questions):
        return None
    console.line()
    console.text("The goal leaves something open. Enter takes the answer in brackets.")
    prompter.discard_typed()
    answers: dict[str, str] = {}
    for each in questions:
        answer = each["answer"]
        if each["assumed"]:
            typed = await _typed_answer(console, prompter, each)
            if typed is None:  # end of input: the rest is as assumed
                break
            answer = typed
        answers[each["question"]] = answer
    given = {each["question"]: each["answer"] for each in questions} | answers
    return None if all(given[each["question"]] == each["answer"] for each in questions) else given


async def _typed_answer(
    console: CommandConsole, prompter: Prompter, question: PlanQuestion
) -> str | None:
    # Lazy: test_help_loads_no_heavy_library
    from planwave.planner.questions import check_answers

    console.line()
    console.text(Text(one_line(question["question"]), style="bold"))
    options = question["options"]
    for number, option in enumerate(options, start=1):
        console.text(f"  {number}  {one_line(option)}")
    while True:
        line = await prompter.read_line(f"Answer [{one_line(question['answer'])}]: ")
        if line is None:
            return None
        answer = _chosen(line.strip(), options) or question["answer"]
        try:
            check_answers({question["question"]: answer})
        except InputError as error:
            console.note(error.message)
        else:
            return answer


def _chosen(line: str, options: Sequence[str]) -> str:
    """Return the option of a number; any other line as it is."""
    if line.isdecimal() and 0 < int(line) <= len(options):
        return options[int(line) - 1]
    return line
