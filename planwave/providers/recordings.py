"""The keys of recorded model calls, and the reading of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote

from planwave.errors import StoreError
from planwave.providers.protocols import CallKey, CallScope, ModelReply, ModelRequest, Usage

USAGE_UNREPORTED: Final = "untold"
"""Marks a recorded reply whose usage was not reported yet."""


def idempotency_key(key: CallKey) -> str:
    """Return ``{execution}/{path}/{ordinal}``, quoted for a header."""
    return quote(f"{key.execution_id}/{key.path}/{key.ordinal}", safe="/[]().,:=@+~-_")


def key_of(request: ModelRequest, scope: CallScope) -> CallKey:
    """Return the key of the next call in a scope."""
    return CallKey(
        scope.execution_id, scope.path, scope.attempt, scope.next_ordinal(), request.hash()
    )


def reply_from(record: Mapping[str, Any]) -> ModelReply:
    """Parse a recorded reply; checks every field, because the record comes from a store.

    Raises:
        StoreError: The record is not a reply.
    """
    try:
        usage = cast("dict[str, Any]", record["usage"])
        return ModelReply(
            text=_checked(str, record["text"]),
            provider=_checked(str, record["provider"]),
            model=_checked(str, record["model"]),
            finish_reason=_checked(str, record["finish_reason"]),
            usage=Usage(
                input_tokens=_checked(int, usage["input_tokens"]),
                output_tokens=_checked(int, usage["output_tokens"]),
                cost_usd=_price_of(usage.get("cost_usd")),
                estimated=bool(usage.get("estimated")),
            ),
            attempts=_checked(int, record.get("attempts", 1)),
            duration_s=float(record.get("duration_s", 0.0)),
            recorded=not record.get(USAGE_UNREPORTED, False),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"a recorded model call cannot be read: {type(error).__name__}",
            code="bad-record",
            hint="run the execution again",
        ) from error


def _price_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _checked(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind.__name__)
    return value
