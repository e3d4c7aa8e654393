"""Fit the body of a request to what a server takes: names and options that the SDKs always send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from planwave.providers.capabilities import Capabilities
from planwave.providers.protocols import Api

_TOKEN_FIELDS: Final = ("max_tokens", "max_completion_tokens")


def fitted_body(body: Mapping[str, Any], api: Api, capabilities: Capabilities) -> Mapping[str, Any]:
    """Return the body of a request as a server takes it; the same one where it fits.

    Only chat completions have options that other servers do not take.
    """
    if api != "chat":
        return body
    fitted = dict(body)
    if not capabilities.stream_usage:
        fitted.pop("stream_options", None)
    for name in _TOKEN_FIELDS:
        if name in fitted and name != capabilities.max_tokens_field:
            fitted[capabilities.max_tokens_field] = fitted.pop(name)
            break
    if not capabilities.reasoning_effort:
        fitted.pop("reasoning_effort", None)
    if not capabilities.required_tool_choice and fitted.get("tool_choice") not in (
        None, "auto", "none",
    ):  # fmt: skip
        fitted["tool_choice"] = "auto"
    if capabilities.system_role == "developer":
        turns = cast("list[dict[str, Any]]", body.get("messages", []))
        fitted["messages"] = [
            {**turn, "role": "developer"} if turn.get("role") == "system" else turn
            for turn in turns
        ]
    return fitted if fitted != body else body
