"""The form of a request: what a person fills in, and the answer that a sent form is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from planwave.errors import InvalidAnswer
from planwave.events.budget import amount_text
from planwave.events.request_text import (
    BUDGET,
    EDIT,
    PLAN_APPROVAL,
    RAISE,
    field_of,
    is_decision,
)
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.json_values import pointer_of_name

if TYPE_CHECKING:
    from planwave.graph.model import Json

_GIVE_RESULT: Final = "give_result"
_REJECT: Final = "reject"
_LIMITS: Final = {"usd": "dollars", "calls": "calls of models", "wall_s": "seconds"}
_LONG_TEXT: Final = re.compile(
    r"(prompt|text|task|note|description|content|message|body|question|reason|comment)$", re.I
)
"""Texts whose names end so are written in several lines."""

Posted = Mapping[str, str]
"""What was sent, by the names of the fields."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of the form.

    Attributes:
        kind: ``json`` is a text that holds any JSON.
        value: What stands in it; of ``check``, ``on`` or nothing.
        choices: The values of ``choice`` with their words.
        is_folded: Whether it is out of sight until somebody opens it.
    """

    name: str
    label: str
    kind: Literal["line", "text", "json", "number", "date", "check", "choice"] = "line"
    value: str = ""
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    required: bool = False
    error: str = ""
    is_folded: bool = False


class AnswerForm(NamedTuple):
    """The form of a request.

    Attributes:
        decisions: The name of each with its words; none where any answer is taken.
        problems: What is wrong with the answer that was sent, beside what its fields say.
    """

    fields: Sequence[Field]
    decisions: Sequence[tuple[str, str]]
    problems: Sequence[str]


def answer_form(
    request: Json, posted: Posted | None = None, refused: InvalidAnswer | None = None
) -> AnswerForm:
    """Return the form of a request.

    Args:
        request: As in ``node.waiting``.
        posted: What was sent, if it could not be taken.
        refused: Why.
    """
    errors = {} if refused is None else _errors_of(refused)
    fields = [_filled(each, posted, errors) for each in _fields(request)]
    shown = {each.error for each in fields}
    return AnswerForm(
        fields,
        [(each, words(each)) for each in decisions_of(request)],
        [each for each in errors.values() if each not in shown],
    )


def decisions_of(request: Json) -> Sequence[str]:
    """Return the decisions of a request that need nothing but its form."""
    actions = field_of(request, "actions")
    given = cast("list[Json]", actions) if isinstance(actions, list) else []
    named = [each for each in given if isinstance(each, str)]
    is_plan = field_of(request, "kind") == PLAN_APPROVAL
    return [each for each in named if not (is_plan and each == EDIT)]


def words(decision: str) -> str:
    """Return a decision for people, such as "Ask again" for "ask_again"."""
    spaced = re.sub(r"[_-]+", " ", decision)
    return spaced[:1].upper() + spaced[1:]


def read_answer(request: Json, posted: Posted) -> Json:
    """Return the answer that a sent form is; ``validate_answer`` checks it.

    Raises:
        InvalidAnswer: A changed value is no JSON.
    """
    decisions, form = decisions_of(request), field_of(request, "form")
    is_editable = field_of(request, "editable") is True
    if not decisions and not isinstance(form, dict) and not is_editable:
        return _json_or_text(posted.get("answer", ""))
    decision = posted.get("decision", "")
    answer: dict[str, Json] = {"decision": decision} if decisions else {}
    if note := _text(posted.get("note", "")).strip():
        answer["note"] = note
    if isinstance(form, dict):
        answer["form"] = dict(_form_values(cast("dict[str, Any]", form), posted))
    if decision == _GIVE_RESULT and is_decision(request):
        answer["value"] = _json_or_text(posted.get("result", ""))
    elif decision == RAISE and field_of(request, "kind") == BUDGET:
        answer["value"] = dict(_new_limits(request, posted))
    elif is_editable and decision != _REJECT and "value" in posted:
        written, before = _text(posted["value"]), field_of(request, "value")
        if written != _text(_shown(before)):
            answer["value"] = written if isinstance(before, str) else _edited(written)
    return answer


def _fields(request: Json) -> Iterator[Field]:
    """Yield the fields of a request, as they are before anything is sent."""
    form, kind = field_of(request, "form"), field_of(request, "kind")
    is_editable = field_of(request, "editable") is True
    decisions = decisions_of(request)
    if not decisions and not isinstance(form, dict) and not is_editable:
        hint = "JSON is passed on as JSON, anything else as text."
        yield Field("answer", "Answer", "text", hint=hint, required=True)
        return
    if is_editable:
        value = field_of(request, "value")
        label = "Change what goes on"
        yield Field(
            "value",
            label,
            "text" if isinstance(value, str) else "json",
            _shown(value),
            is_folded=True,
        )
    if kind == BUDGET and RAISE in decisions:
        yield from _limit_fields(request)
    if _GIVE_RESULT in decisions and is_decision(request):
        hint = "For “Give result”: JSON is passed on as JSON, anything else as text."
        yield Field("result", "Result", "text", hint=hint)
    if isinstance(form, dict):
        yield from _form_fields(cast("dict[str, Any]", form))
    yield Field("note", "Note", "text", hint="Kept with the answer.")


def _limit_fields(request: Json) -> Iterator[Field]:
    limits: Mapping[str, float] = field_of(request, "limits") or {}
    used: Mapping[str, float] = field_of(request, "used") or {}
    proposed: Mapping[str, float] = field_of(request, "proposed") or {}
    for name, most in limits.items():
        hint = f"Used: {amount_text(name, used.get(name, 0))} of {amount_text(name, most)}. Empty keeps it."
        label = f"New limit: {_LIMITS.get(name, name)}"
        yield Field(f"limit.{name}", label, "number", str(proposed.get(name, "")), hint)


def _form_fields(schema: dict[str, Any]) -> Iterator[Field]:
    required: Sequence[str] = schema.get("required") or ()
    for name, each in _properties(schema):
        label = each.get("title")
        kind, choices = _kind_of(name, each)
        default = each.get("default")
        value = "" if default is None else _default_text(kind, default)
        hint = each.get("description")
        yield Field(
            f"form.{name}",
            label if isinstance(label, str) and label else words(name),
            kind,
            value,
            hint if isinstance(hint, str) else "",
            choices,
            required=name in required and kind != "check",
        )


def _properties(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the properties of a schema, the required ones first."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required: Sequence[str] = schema.get("required") or ()
    for is_required in (True, False):
        for name, each in properties.items():
            if (name in required) == is_required:
                yield name, each if isinstance(each, dict) else {}


def _kind_of(name: str, schema: dict[str, Any]) -> tuple[Any, Sequence[tuple[str, str]]]:
    """Return the kind of the field for a schema, and its choices."""
    values = schema.get("enum")
    if isinstance(values, list) and values:
        options = [(_dumped(each), _shown(each)) for each in cast("list[Json]", values)]
        return "choice", options
    match schema.get("type"):
        case "boolean":
            return "check", ()
        case "integer" | "number":
            return "number", ()
        case "string" if schema.get("format") == "date":
            return "date", ()
        case "string":
            return ("text" if _LONG_TEXT.search(name) else "line"), ()
        case _:
            return "json", ()


def _default_text(kind: str, default: Json) -> str:
    if kind == "check":
        return "on" if default is True else ""
    return _dumped(default) if kind == "choice" else _shown(default)


def _filled(field: Field, posted: Posted | None, errors: Mapping[str, str]) -> Field:
    """Return a field with what was sent, and with what is wrong with it."""
    unsent = "" if field.kind == "check" else field.value
    value = field.value if posted is None else posted.get(field.name, unsent)
    pointer = "".join(map(pointer_of_name, _pointer_parts(field.name)))
    error = errors.get(pointer, "")
    is_folded = field.is_folded and value == field.value
    return Field(
        field.name, field.label, field.kind, value, field.hint, field.choices, field.required, error,
        is_folded,
    )  # fmt: skip


def _pointer_parts(name: str) -> Sequence[str]:
    kind, _, rest = name.partition(".")
    if kind == "form":
        return "form", rest
    return ("value", rest) if kind == "limit" else ("value" if kind == "result" else kind,)


def _errors_of(refused: InvalidAnswer) -> dict[str, str]:
    """Return the first error of each part of an answer, by its pointer."""
    errors: dict[str, str] = {}
    for each in refused.diagnostics:
        pointer: str = each.as_json().get("pointer", "")
        prefix = f"{pointer.removeprefix('/')}: "
        errors.setdefault(pointer, each.message.removeprefix(prefix))
    return errors


def _form_values(schema: dict[str, Any], posted: Posted) -> Iterator[tuple[str, Json]]:
    for name, each in _properties(schema):
        kind, _ = _kind_of(name, each)
        text = _text(posted.get(f"form.{name}", ""))
        if kind == "check":
            yield name, text != ""
        elif text != "":
            yield name, text if kind in ("line", "text", "date") else _json_or_text(text)


def _new_limits(request: Json, posted: Posted) -> Iterator[tuple[str, Json]]:
    limits: Mapping[str, float] = field_of(request, "limits") or {}
    for name in limits:
        if text := posted.get(f"limit.{name}", "").strip():
            yield name, _json_or_text(text)


def _edited(text: str) -> Json:
    """Return a changed value.

    Raises:
        InvalidAnswer: It is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        finding = Diagnostic("invalid-answer", "error", "this is no JSON", "/value")
        raise InvalidAnswer([finding]) from error


def _json_or_text(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _text(text)


def _text(written: str) -> str:
    """Return a text with the line ends that it had before a browser sent it."""
    return written.replace("\r\n", "\n")


def _dumped(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
