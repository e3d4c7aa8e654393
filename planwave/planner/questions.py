"""What a goal leaves open: the questions of a planner, with the answers under which its plan is written.

A model asks in the reply that has the plan, and names the answer that it assumes. So a question costs no
call unless a person answers otherwise. Questions never make a plan faulty: one that cannot be shown is left
out, and the plan says so among its fixes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planwave.errors import InputError
from planwave.graph.json_values import is_storable_text
from planwave.graph.model import Json
from planwave.validation import describe_error

if TYPE_CHECKING:
    from planwave.shapes.plans import PlanQuestion

NO_ANSWERS: Final[Mapping[str, str]] = MappingProxyType({})
MAX_QUESTIONS: Final = 3
MAX_QUESTION_CHARS: Final = 200
MAX_ANSWER_CHARS: Final = 500
"""Of an answer of a person; one that a model assumes is as short as a question."""
_MAX_OPTIONS: Final = 6
_FIELD: Final = "questions"


class _ReplyQuestion(BaseModel):
    """One question as a model writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: str
    assumed: str
    options: list[str] | None = Field(None, max_length=_MAX_OPTIONS)


class ReadQuestions(NamedTuple):
    """The questions of a reply.

    Attributes:
        rest: The reply without them.
        questions: Those that a person has answered, and those of the reply that can be asked.
        fixes: Why others cannot, one sentence each.
    """

    rest: Json
    questions: list[PlanQuestion]
    fixes: list[str]


def question_schema() -> dict[str, Json]:
    """Return the JSON Schema of the questions in a reply."""
    text = {"type": "string"}
    question: dict[str, Json] = {
        "type": "object",
        "properties": {
            "question": text,
            "assumed": text,
            "options": {"type": "array", "items": text},
        },
        "required": ["question", "assumed"],
        "additionalProperties": False,
    }
    return {_FIELD: {"type": "array", "items": question}}


def read_questions(reply: Json, answers: Mapping[str, str], *, may_ask: bool) -> ReadQuestions:
    """Take the questions out of a reply.

    Args:
        reply: The JSON of the reply.
        answers: The answers that a person has given, by question: these are not asked again, and count.
        may_ask: Whether the model was offered to ask.
    """
    questions: list[PlanQuestion] = [
        {"question": question, "answer": answer, "assumed": False, "options": []}
        for question, answer in answers.items()
    ]
    if not isinstance(reply, dict) or _FIELD not in reply:
        return ReadQuestions(reply, questions, [])
    rest = cast("dict[str, Json]", reply)
    rest = {name: value for name, value in rest.items() if name != _FIELD}
    written: Json = reply[_FIELD]  # pyright: ignore[reportUnknownVariableType]
    if written is None:
        return ReadQuestions(rest, questions, [])
    if not isinstance(written, list):
        return ReadQuestions(rest, questions, [_left_out("the questions", "they are no list")])
    most = MAX_QUESTIONS if may_ask else 0
    known = {_key(question) for question in answers}
    fixes: list[str] = []
    for number, each in enumerate(cast("list[Json]", written), start=1):
        read = _read(each, known) if len(questions) < most else "no more may be asked"
        if isinstance(read, str):
            fixes.append(_left_out(f"question {number}", read))
        else:
            known.add(_key(read["question"]))
            questions.append(read)
    return ReadQuestions(rest, questions, _summarised(fixes))


def check_answers(answers: Mapping[str, str]) -> None:
    """Raise if answers are too many, empty, too long or not storable.

    Raises:
        InputError: ``invalid-goal-answer``.
    """
    if len(answers) > MAX_QUESTIONS:
        raise _invalid(f"a goal has at most {MAX_QUESTIONS} answers, not {len(answers)}")
    for question, answer in answers.items():
        for name, text, most in (
            ("question", question, MAX_QUESTION_CHARS),
            ("answer", answer, MAX_ANSWER_CHARS),
        ):
            if not text.strip() or len(text) > most or not is_storable_text(text):
                raise _invalid(
                    f"the {name} {text[:60]!r} has to be text of 1 to {most} characters without NUL"
                )


def goal_with_answers(goal: str, answers: Mapping[str, str]) -> str:
    """Return a goal followed by what was answered, for a model that reads one text."""
    return "\n".join([goal, *(f"{question} {answer}" for question, answer in answers.items())])


def _read(written: Json, known: set[str]) -> PlanQuestion | str:
    """Return a question, or why it cannot be asked."""
    try:
        read = _ReplyQuestion.model_validate(written)
    except ValidationError as invalid:
        error: Mapping[str, Any] = invalid.errors(include_url=False)[0]
        return describe_error("/".join(map(str, error["loc"])), error)
    question, assumed, *options = (
        " ".join(text.split()) for text in (read.question, read.assumed, *(read.options or ()))
    )
    texts = (question, assumed, *options)
    if not all(texts):
        return "it has an empty text"
    if not all(map(is_storable_text, texts)):
        return "it has characters that cannot be stored"
    if any(len(text) > MAX_QUESTION_CHARS for text in texts):
        return f"it has a text of more than {MAX_QUESTION_CHARS} characters"
    if _key(question) in known:
        return "it was asked before"
    return {
        "question": question,
        "answer": assumed,
        "assumed": True,
        "options": [*dict.fromkeys(options)],
    }


def _key(question: str) -> str:
    return " ".join(question.split()).casefold()


def _left_out(what: str, why: str) -> str:
    return f"left out {what} of the model: {why}"


def _summarised(fixes: list[str]) -> list[str]:
    """Return the first fixes, and how many more there are: a reply may have thousands."""
    if len(fixes) <= MAX_QUESTIONS:
        return fixes
    more = len(fixes) - MAX_QUESTIONS
    return [*fixes[:MAX_QUESTIONS], f"left out {more} more questions of the model"]


def _invalid(message: str) -> InputError:
    return InputError(message, code="invalid-goal-answer", hint="answer in a few words")
