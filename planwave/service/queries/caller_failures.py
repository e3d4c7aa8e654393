"""What the caller of an execution that failed is told, be it who may not see which nodes failed, and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from planwave.events import ExecutionState
from planwave.events.outcome import outcome_of
from planwave.outbound.urls import without_credentials


def failed_at_url_of_caller(state: ExecutionState) -> bool:
    """Return whether the cause of a failure is a URL that stands in the inputs of the execution.

    Whatever way they came in: as the body of a request, a conversation, arguments of a tool.
    """
    url = None if state.error is None else state.error.get("url")
    return bool(url) and _holds_url(state.inputs, re.compile(rf"{re.escape(str(url))}(?![\w/.%-])"))


def partial_result(state: ExecutionState, *, shows_causes: bool = False) -> dict[str, Any]:
    """Return ``{"outcome", "outputs", "missing"}`` of an execution that failed and delivered results, else nothing.

    Args:
        state: That of the execution.
        shows_causes: Whether the caller may see which nodes failed, and how.
    """
    outcome = outcome_of(state)
    if outcome["outcome"] is None:
        return {}
    missing: list[Any] = [*outcome["missing"]]
    if not shows_causes:
        missing = [{name: each[name] for name in ("path", "name", "status")} for each in missing]
    return {
        "outcome": outcome["outcome"],
        "outputs": state.result().values,
        "missing": missing,
    }


def _holds_url(value: object, url: re.Pattern[str]) -> bool:
    if isinstance(value, str):
        return not value.startswith("data:") and url.search(without_credentials(value)) is not None
    if isinstance(value, Mapping):
        return any(_holds_url(each, url) for each in cast("Mapping[str, object]", value).values())
    return isinstance(value, list) and any(
        _holds_url(each, url) for each in cast("list[object]", value)
    )
