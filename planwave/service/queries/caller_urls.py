"""Failures at a URL that the caller of an execution named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from planwave.events import ExecutionState
from planwave.outbound.urls import without_credentials


def failed_at_url_of_caller(state: ExecutionState) -> bool:
    """Return whether the cause of a failure is a URL that stands in the inputs of the execution.

    Whatever way they came in: as the body of a request, a conversation, arguments of a tool.
    """
    url = None if state.error is None else state.error.get("url")
    return bool(url) and _holds_url(state.inputs, re.compile(rf"{re.escape(str(url))}(?![\w/.%-])"))


def _holds_url(value: object, url: re.Pattern[str]) -> bool:
    if isinstance(value, str):
        return not value.startswith("data:") and url.search(without_credentials(value)) is not None
    if isinstance(value, Mapping):
        return any(_holds_url(each, url) for each in cast("Mapping[str, object]", value).values())
    return isinstance(value, list) and any(
        _holds_url(each, url) for each in cast("list[object]", value)
    )
