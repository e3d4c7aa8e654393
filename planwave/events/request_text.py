"""Requests and answers as text for people, and the kinds of requests."""

from __future__ import annotations

from typing import Any, Final, cast

from planwave.expressions.json_text import to_text

TIMEOUT: Final = "timeout"
"""``by`` of an answer that the request's timeout gave."""
PERSON: Final = "person"


def answer_text(answer: Any) -> str:
    """Return an answer as text: the decision with its note, or any other answer."""
    decision = field_of(answer, "decision")
    if not isinstance(decision, str):
        return to_text(answer) or "nothing"
    edited = " (with a value)" if "value" in answer else ""
    note = field_of(answer, "note")
    return f"{decision}{edited}: {note}" if isinstance(note, str) and note else decision + edited


def request_text(request: Any) -> str:
    """Return a request as text: its question where it has one, else the whole request."""
    for name in ("prompt", "message", "question"):
        if isinstance(text := field_of(request, name), str) and text:
            return text
    return to_text(request)


def is_timer(request: Any) -> bool:
    """Return whether a request waits for a time, not for a person."""
    return field_of(request, "kind") == "timer"


def end_of_timer(request: Any) -> str:
    """Return the ``until`` of a timer request; without one, the request as text."""
    until = field_of(request, "until")
    return until if isinstance(until, str) else request_text(request)


def is_decision(request: Any) -> bool:
    """Return whether the driver made a request, about an interrupted node that must not act twice."""
    return field_of(request, "kind") == "interrupted"


PLAN_APPROVAL: Final = "plan-approval"
"""``kind`` of the request for approval of a plan, which the execution makes itself."""
APPROVE: Final = "approve"
EDIT: Final = "edit"


BUDGET: Final = "budget"
"""``kind`` of the request for a higher budget, which the execution makes itself."""
RAISE: Final = "raise"
STOP: Final = "stop"


PLAN_CHANGE: Final = "plan-change"
"""``kind`` of the request for approval of a change of the graph that is run, which the execution makes itself."""


def is_change_request(request: Any) -> bool:
    """Return whether a request is for the approval of a change of the graph that is run."""
    return field_of(request, "kind") == PLAN_CHANGE


def is_budget_request(request: Any) -> bool:
    """Return whether a request is for a higher budget."""
    return field_of(request, "kind") == BUDGET


def is_about_running(request: Any) -> bool:
    """Return whether an execution makes a request once it has started: about its budget, or a change."""
    return is_budget_request(request) or is_change_request(request)


def is_plan_approval(request: Any) -> bool:
    """Return whether a request is for the approval of a plan."""
    return field_of(request, "kind") == PLAN_APPROVAL


def is_approved(answer: Any) -> bool:
    """Return whether an answer approves a plan."""
    return field_of(answer, "decision") == APPROVE


def rejection_text(answer: Any) -> str:
    """Return why a change of a graph is not made that was not approved."""
    note = field_of(answer, "note")
    return f"the change was rejected: {note}" if note else "the change was rejected"


def refusal_cause(answer: Any) -> str:
    """Return why an execution ends whose plan was not approved."""
    if field_of(answer, "decision") == EDIT:
        return f"superseded by execution {field_of(field_of(answer, 'value'), 'execution_id')}"
    note = field_of(answer, "note")
    return f"the plan was rejected: {note}" if note else "the plan was rejected"


def field_of(value: Any, name: str) -> Any:
    """Return a field of an object, or None where the value is no object."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
