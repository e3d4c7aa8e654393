"""The keys of recorded calls, and the reading of records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

from planwave.errors import ProviderError, StoreError
from planwave.events.usage import PART_TOKENS
from planwave.providers.protocols import (
    CallKey,
    CallScope,
    ModelReply,
    ModelRequest,
    Recorder,
    Source,
    ToolCall,
    Usage,
)

_Item = TypeVar("_Item", ToolCall, Source)

USAGE_UNREPORTED: Final = "untold"
"""Marks a recorded reply whose usage was not reported yet."""
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
_OPTIONAL: Final = ("tool_calls", "sources", "native")
KIND: Final = "kind"
"""The field of a record that is not of a model call: what was called."""
FAILURE: Final = "failure"
"""The only field of a record of a call that failed for good."""


def idempotency_key(key: CallKey) -> str:
    """Return ``{execution}/{path}/{ordinal}``, quoted for a header."""
    return quote(f"{key.execution_id}/{key.path}/{key.ordinal}", safe="/[]().,:=@+~-_")


def key_of(request: ModelRequest, scope: CallScope) -> CallKey:
    """Return the key of the next call in a scope."""
    return CallKey(
        scope.execution_id, scope.path, scope.attempt, scope.next_ordinal(), request.hash()
    )


async def find_record(recorder: Recorder, key: CallKey, scope: CallScope) -> dict[str, Any] | None:
    """Return the record that an attempt is served for a call, or None: the call has to be made.

    An attempt is served what it called before, as long as it makes the same calls: from the first
    other call on nothing is served any more. One that begins without records never is, so that most
    attempts ask the store once.
    """
    if scope.is_served is None and not await recorder.has_calls(key):
        scope.is_served = False
    if scope.is_served is False:
        return None
    record = await recorder.recorded(key)
    if record is None and await recorder.has_other(key):
        scope.is_served = False
    elif scope.is_served is None:
        scope.is_served = True
    return record


def record_of(reply: ModelReply) -> dict[str, Any]:
    """Return the record of a reply; it holds no calls, sources or native form where there are none."""
    record = {**asdict(reply), "usage": reply.usage.as_json()}
    record["tool_calls"] = [call._asdict() for call in reply.tool_calls]
    record["sources"] = [source._asdict() for source in reply.sources]
    del record["warnings"]
    return {name: value for name, value in record.items() if name not in _OPTIONAL or value}


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
                **{name: _checked(int, usage.get(name, 0)) for name in PART_TOKENS},
            ),
            attempts=_checked(int, record.get("attempts", 1)),
            duration_s=float(record.get("duration_s", 0.0)),
            tool_calls=tuple(_items(ToolCall, record.get("tool_calls", []))),
            sources=tuple(_items(Source, record.get("sources", []))),
            native=_native(record.get("native")),
            recorded=not record.get(USAGE_UNREPORTED, False),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(error) from error


def usage_data(reply: ModelReply) -> dict[str, Any]:
    """Return what a call used and took, from its first attempt to its end, as a ``usage`` event has it."""
    data = {**reply.usage.as_json(), "duration_s": reply.duration_s}
    if reply.attempts > 1:
        data["attempts"] = reply.attempts
    if reply.recorded:
        data["recorded"] = True
    return data


def failure_record(error: ProviderError) -> dict[str, Any]:
    """Return the record of a call that failed for good."""
    failure = {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "provider": error.provider,
        "model": error.model,
        "retryable": error.retryable,
        "status": error.status,
    }
    return {FAILURE: failure}


def failure_from(record: Mapping[str, Any]) -> ProviderError | None:
    """Return the failure that a record holds, None for the record of a reply.

    Raises:
        StoreError: The failure cannot be read.
    """
    if FAILURE not in record:
        return None
    try:
        failure = cast("dict[str, Any]", record[FAILURE])
        return ProviderError(
            _checked(str, failure["message"]),
            provider=_checked(str, failure["provider"]),
            model=failure.get("model"),
            code=_checked(str, failure["code"]),
            hint=failure.get("hint"),
            retryable=_checked(bool, failure["retryable"]),
            status=failure.get("status"),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> StoreError:
    return StoreError(
        f"a recorded model call cannot be read: {type(error).__name__}",
        code="bad-record",
        hint="run the execution again",
    )


def _items(kind: type[_Item], records: object) -> Iterator[_Item]:
    """Yield the named tuples of texts in a list of objects."""
    for record in cast("list[Any]", _checked(list, records)):
        fields = cast("dict[str, Any]", _checked(dict, record))
        yield kind(*(_checked(str, fields[name]) for name in kind._fields))


def _native(record: object) -> dict[str, Any] | None:
    return None if record is None else _checked(dict, record)


def _price_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _checked(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind.__name__)
    return value
