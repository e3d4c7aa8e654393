"""Results of tool calls: an outcome, or an error as a sentence with its way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types

from planwave.errors import PlanwaveError
from planwave.interop.mcp_server.outcomes import text_of


def outcome_result(outcome: Mapping[str, Any]) -> mcp_types.CallToolResult:
    """Return the result of a call that started or followed an execution; an error if that failed."""
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=text_of(outcome))],
        structured_content=dict(outcome),
        is_error=outcome["status"] in ("failed", "cancelled"),
    )


def json_result(value: Mapping[str, Any], text: str) -> mcp_types.CallToolResult:
    """Return the result of a call: JSON, and the same as a model reads it best."""
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=text)], structured_content=dict(value)
    )


def error_result(error: PlanwaveError) -> mcp_types.CallToolResult:
    """Return the result of a call that was refused or failed."""
    text = f"{error.message}; {error.hint}" if error.hint else error.message
    return mcp_types.CallToolResult(
        content=[mcp_types.TextContent(text=text)],
        structured_content=dict(error.as_json()),
        is_error=True,
    )
