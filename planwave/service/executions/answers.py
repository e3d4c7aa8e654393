"""What may answer a request: an answer is taken whole, or refused with everything wrong with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, cast

from planwave.errors import Conflict, Gone, InvalidAnswer, NotFound
from planwave.events import ExecutionState
from planwave.events.budget import amount_text, is_amount
from planwave.events.node_state import OpenRequest
from planwave.events.request_text import BUDGET, EDIT, PLAN_APPROVAL, RAISE
from planwave.graph.diagnostics import Diagnostic, limit_exceeded, short_repr
from planwave.graph.json_values import json_findings, pointer_of_name, size_of
from planwave.graph.model import Json
from planwave.graph.suggestions import closest_match

MAX_NOTE_CHARS: Final = 10_000
_FIELDS: Final = ("decision", "note", "value", "form")
_INVALID: Final = InvalidAnswer.code
_CLOSED: Final = {
    "timeout": "its time was over",
    "cancelled": "its node was cancelled, or nothing needs an answer any more",
}
_END: Final = {
    "cancelled": "its execution was cancelled",
    "failed": "its execution failed",
    "completed": "its execution has ended",
}
"""Why a request is closed that was open when the execution ended, such as that of the plan."""
_GIVES: Final = {"interrupted": "give_result", PLAN_APPROVAL: EDIT, BUDGET: RAISE}
"""The one decision that comes with a value, by kind of request."""
_GIVEN: Final = {
    "give_result": ("what the step would have given", 'add "value", any JSON'),
    EDIT: ("the changed plan", 'add "value", its graph, or {"plan_hash"} of a new revision'),
    RAISE: ("the new limits", 'add "value", such as {"usd": 10}'),
}


def open_request(state: ExecutionState, request_id: str) -> OpenRequest:
    """Return an open request.

    Raises:
        NotFound: The execution never made such a request.
        Conflict: ``request-answered``.
        Gone: ``request-closed``: its time was over, or its node or execution was cancelled.
    """
    request = state.requests.get(request_id)
    if request is not None:
        return request
    closed_by = state.closed_requests.get(request_id)
    if closed_by is None:
        raise NotFound(
            f"execution {state.execution_id} has no request {request_id!r}",
            hint=f"its open requests are {', '.join(map(repr, state.requests))}"
            if state.requests
            else "it has no open request",
        )
    if closed_by == "answered":
        raise request_answered(request_id)
    why = _CLOSED.get(closed_by) or _END[state.status]
    raise Gone(f"request {request_id!r} is closed: {why}", code="request-closed")


def request_answered(request_id: str) -> Conflict:
    """Return the error for a second answer to a request."""
    return Conflict(f"request {request_id!r} was answered already", code="request-answered")


def validate_answer(request: Json, answer: Json) -> Json:
    """Return an answer in the form in which it is stored.

    A request that has ``actions`` (or ``form``, or ``editable``) is answered with ``{"decision",
    "note"?, "value"?, "form"?}``: the decision is one of its actions, the value may only be given
    where it is ``editable``, and fits its ``valueSchema``, the form fits its JSON Schema. Without a form in the answer an empty
    one, ``{}``, has to fit. Of the kind ``interrupted``, ``give_result`` comes with a value and
    nothing else does; of the kind ``plan-approval``, ``edit``; of the kind ``budget``, ``raise``, with
    limits above what is used. Requests of other shapes take any JSON:
    their node checks it.

    Args:
        request: As in ``node.waiting``.
        answer: The JSON value of the answer. The caller checks its size.

    Returns:
        ``{"decision", "note", "value"?, "form"?}``, ``note`` always there (``decision`` where there
        are actions); for requests of other shapes the answer as it is.

    Raises:
        AnswerInvalid: It cannot be taken; see there for the codes.
    """
    if unsound := json_findings(answer):
        raise InvalidAnswer(unsound, _INVALID)
    expected = _expected_fields(request)
    if expected is None:
        return answer
    if not isinstance(answer, dict):
        message = f"an answer is an object with a decision, not {short_repr(answer)}"
        hint = _decisions_hint(expected)
        if isinstance(answer, str) and answer in cast("list[str]", expected.get("actions", ())):
            hint = f'write {{"decision": "{answer}"}}'
        raise InvalidAnswer([_answer_error(_INVALID, message, "", hint)])
    fields = cast("dict[str, Json]", answer)
    findings = [
        *_shape_errors(expected, fields),
        *_decision_errors(expected, fields),
        *_value_errors(expected, fields),
        *_form_errors(expected, fields),
    ]
    if findings:
        raise InvalidAnswer(findings)
    answer_fields = {name: fields[name] for name in _FIELDS if name in fields}
    if "form" not in expected:
        answer_fields.pop("form", None)  # null, which stands for none
    return {**answer_fields, "note": fields.get("note", "")}


def _expected_fields(request: Json) -> dict[str, Json] | None:
    """Return ``actions``, ``form`` and ``editable`` of a request; None if any answer is valid."""
    if not isinstance(request, dict):
        return None
    named = cast("dict[str, Json]", request)
    expected: dict[str, Json] = {}
    actions = named.get("actions")
    if isinstance(actions, list) and actions and _are_strings(cast("list[Json]", actions)):
        expected["actions"] = actions
    if isinstance(named.get("form"), dict):
        expected["form"] = named["form"]
    if isinstance(named.get("editable"), bool):
        expected["editable"] = named["editable"]
        if isinstance(named.get("valueSchema"), dict):
            expected["value_schema"] = named["valueSchema"]
    kind = named.get("kind")
    if expected and isinstance(kind, str) and kind in _GIVES:
        expected["gives"] = _GIVES[kind]
        expected |= {name: named.get(name) for name in ("limits", "used") if kind == BUDGET}
    return expected or None


def _are_strings(items: list[Json]) -> bool:
    return all(isinstance(item, str) for item in items)


def _shape_errors(expected: dict[str, Json], answer: dict[str, Json]) -> Iterator[Diagnostic]:
    fields = [name for name in _FIELDS if name != "decision" or "actions" in expected]
    for name in answer:
        if name not in fields:
            message = f"an answer has no field {short_repr(name)}"
            hint = f"its fields are {', '.join(fields)}"
            yield _answer_error(_INVALID, message, pointer_of_name(name), hint)
    note = answer.get("note", "")
    if not isinstance(note, str):
        yield _answer_error(_INVALID, f"the note is text, not {short_repr(note)}", "/note")
    elif len(note) > MAX_NOTE_CHARS:
        message = f"the note has {len(note)} characters, at most {MAX_NOTE_CHARS} are kept"
        yield _answer_error(_INVALID, message, "/note", "shorten it")


def _decision_errors(expected: dict[str, Json], answer: dict[str, Json]) -> Iterator[Diagnostic]:
    actions: Collection[str] | None = expected.get("actions")
    decision = answer.get("decision")
    if actions is None or (isinstance(decision, str) and decision in actions):
        return
    near = closest_match(decision, actions) if isinstance(decision, str) else None
    hint = f"did you mean {near!r}? " if near else ""
    message = (
        f"there is no decision {short_repr(decision)} here" if decision else "a decision is missing"
    )
    yield _answer_error(
        "unknown-decision", message, "/decision", f"{hint}{_decisions_hint(expected)}"
    )


def _value_errors(expected: dict[str, Json], answer: dict[str, Json]) -> Iterator[Diagnostic]:
    gives = expected.get("gives")
    if gives is not None and answer.get("decision") == gives:
        if "value" not in answer:
            what, hint = _GIVEN[str(gives)]
            yield _answer_error(_INVALID, f"{gives} needs a value: {what}", "/value", hint)
        elif gives == RAISE:
            yield from _budget_errors(expected, answer["value"])
    elif "value" in answer and expected.get("editable") is not True:
        message = (
            "the value cannot be edited here" if gives is None else f"only {gives} has a value"
        )
        yield _answer_error("value-not-editable", message, "/value", "leave out value")
    elif "value" in answer and "value_schema" in expected:
        yield from _schema_errors("value", expected["value_schema"], answer["value"], _INVALID)


def _budget_errors(expected: dict[str, Json], value: Json) -> Iterator[Diagnostic]:
    """Yield what is wrong with the limits that raise a budget."""
    limits = cast("dict[str, float]", expected.get("limits") or {})
    used = cast("dict[str, float]", expected.get("used") or {})
    hint = f"its limits are {', '.join(limits)}; only those that are to change are given"
    raised = cast("dict[str, Json]", value if isinstance(value, dict) else {})
    if not raised:
        message = f"the new limits are an object, not {short_repr(cast('Json', value))}"
        yield _answer_error(_INVALID, message, "/value", hint)
    for name, most in raised.items():
        pointer = f"/value{pointer_of_name(name)}"
        if name not in limits:
            message = f"this budget does not limit {short_repr(name)}"
            yield _answer_error(_INVALID, message, pointer, hint)
        elif not is_amount(name, most):
            message = f"a limit of {name} is a number above 0, not {short_repr(most)}"
            yield _answer_error(_INVALID, message, pointer)
        elif cast("float", most) <= used.get(name, 0):
            message = (
                f"{amount_text(name, used[name])} already used; the new limit has to be higher"
            )
            yield _answer_error(_INVALID, message, pointer)


def _form_errors(expected: dict[str, Json], answer: dict[str, Json]) -> Iterator[Diagnostic]:
    if "form" not in expected:
        if answer.get("form") is not None:
            message = "no form is asked for here"
            yield _answer_error("invalid-form", message, "/form", "leave out form")
        return
    yield from _schema_errors("form", expected["form"], answer.get("form", {}), "invalid-form")


def _schema_errors(field: str, schema: Json, value: Json, code: str) -> Iterator[Diagnostic]:
    # Lazy: test_the_schema_library_is_loaded_only_for_forms
    from planwave.nodes.json_schema import validate

    for error in validate(schema, value):
        message = f"{field}{error.pointer}: {error.message}"
        yield _answer_error(code, message, f"/{field}{error.pointer}", error.hint)


def _decisions_hint(expected: dict[str, Json]) -> str | None:
    actions = expected.get("actions")
    return None if actions is None else f"decisions are {', '.join(actions)}"


def _answer_error(code: str, message: str, pointer: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(code, "error", message, pointer, hint=hint)


def require_answer_size(answer: Json, most: int) -> None:
    """Refuse an answer whose value would be too large a result of its node; the request stays open.

    Raises:
        InvalidAnswer: ``limit-exceeded``.
    """
    has_value = isinstance(answer, dict) and "value" in answer
    size = size_of(answer["value"] if has_value else answer)
    if size > most:
        pointer = "/value" if has_value else ""
        raise InvalidAnswer(
            [limit_exceeded("largest_result_bytes", most, size, "the answer", pointer)]
        )
