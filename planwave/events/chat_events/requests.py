"""Requests to people as a chat shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from planwave.events.request_text import TIMEOUT, field_of, request_text

_STATES: Final = {"approve": "approved", "reject": "rejected"}


def request_tool(execution_id: str, request_id: str, request: Any) -> dict[str, Any]:
    """Return the ``tool`` of an ``ApprovalRequired``."""
    tool: Any = field_of(request, "tool")
    call_id, editable = field_of(tool, "call_id"), bool(field_of(request, "editable"))
    timeout_s, value = field_of(request, "timeoutS"), field_of(request, "value")
    schema = field_of(request, "valueSchema")
    call: dict[str, Any] = {
        "id": call_id,
        "toolName": field_of(tool, "name"),
        "toolArgs": value,
        "editableArgs": (schema or {}) if editable else None,
    }
    return {
        "runId": execution_id,
        "requestId": request_id,
        "kind": field_of(request, "kind"),
        "toolUseIds": [] if call_id is None else [call_id],
        "toolName": field_of(tool, "name"),
        "riskLevel": field_of(tool, "effect"),
        "summary": request_text(request),
        "options": field_of(request, "actions") or [],
        "questions": _questions(field_of(request, "form")),
        "editable": editable,
        "config": {} if tool is not None or value is None else {"value": value},
        "timeoutMs": None if timeout_s is None else round(timeout_s * 1_000),
        "tools": [] if tool is None else [call],
    }


def answer_state(answer: Any, by: str | None) -> str:
    """Return the status of a request that was answered."""
    if by == TIMEOUT:
        return "timeout"
    decision = field_of(answer, "decision")
    return _STATES.get(decision, "answered") if isinstance(decision, str) else "answered"


def _questions(form: Any) -> list[dict[str, Any]]:
    """Return the fields of a form, each with its JSON Schema."""
    fields: Any = field_of(form, "properties")
    required: Any = field_of(form, "required") or []
    if not isinstance(fields, dict):
        return []
    return [
        {"name": name, "schema": schema, "required": name in required}
        for name, schema in cast("Mapping[str, Any]", fields).items()
    ]
