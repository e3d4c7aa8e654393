"""Requests and answers as text for people, and the kinds of requests."""

from __future__ import annotations

from typing import Any, Final, cast

from planwave.expressions.json_text import to_text

TIMEOUT: Final = "timeout"
"""Stands for who answered where nobody did in time."""
PERSON: Final = "person"


def answer_text(answer: Any) -> str:
    """Give an answer for people: the decision with its note, or any other answer as text."""
    decision = field_of(answer, "decision")
    if not isinstance(decision, str):
        return to_text(answer) or "nothing"
    edited = " (with a value)" if "value" in answer else ""
    note = field_of(answer, "note")
    return f"{decision}{edited}: {note}" if isinstance(note, str) and note else decision + edited


def request_text(request: Any) -> str:
    """Give a request for people: its question, or all of it as text."""
    for name in ("prompt", "message", "question"):
        if isinstance(found := field_of(request, name), str) and found:
            return found
    return to_text(request)


def is_timer(request: Any) -> bool:
    """Say whether a request waits for a time, not for a person."""
    return field_of(request, "kind") == "timer"


def end_of_timer(request: Any) -> str:
    """Give the time that a timer waits for, as it says it; its text where it does not."""
    until = field_of(request, "until")
    return until if isinstance(until, str) else request_text(request)


def is_decision(request: Any) -> bool:
    """Say whether a request is planwave's own, about a node that was cut off and may act but once."""
    return field_of(request, "kind") == "interrupted"


def field_of(value: Any, name: str) -> Any:
    """Return a field of an object, or None where the value is no object."""
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
