"""What a model call is recorded under, and how a record is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote

from planwave.errors import StoreError
from planwave.providers.protocols import CallKey, CallScope, ModelReply, ModelRequest, Usage

USAGE_UNREPORTED: Final = "untold"
"""What a reply says that was recorded, and of which nobody has told yet what it took."""


def idempotency_key(key: CallKey) -> str:
    """Give ``{execution}/{path}/{ordinal}`` in characters a header may hold."""
    return quote(f"{key.execution_id}/{key.path}/{key.ordinal}", safe="/[]().,:=@+~-_")


def key_of(request: ModelRequest, scope: CallScope) -> CallKey:
    """Give the identity of a scope's next call."""
    return CallKey(
        scope.execution_id, scope.path, scope.attempt, scope.next_ordinal(), request.hash()
    )


def reply_from(record: Mapping[str, Any]) -> ModelReply:
    """Read a recorded reply. Rows come from storage, so nothing about them is taken for granted.

    Raises:
        StoreError: It is no reply.
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
            hint="start the execution anew",
        ) from error


def _price_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _checked(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind.__name__)
    return value
