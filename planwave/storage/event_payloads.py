"""Validation of stored events: each payload has the form of its type in ``events/types.py``.

Readers of events rely on these types. Fields and types of events that this version does not know are
accepted: another version may have stored them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, get_args

from pydantic import TypeAdapter, ValidationError

from planwave.events import Event
from planwave.events.types import TypedEvent, UsageData, engine_type
from planwave.events.unreadable import unreadable_error

_PAYLOADS: Final[Mapping[str, Any]] = {
    get_args(type_name)[0]: payload for type_name, payload in map(get_args, get_args(TypedEvent))
}
"""The payload types by event type."""


def validate_payloads(events: Iterable[Event]) -> None:
    """Check that each payload has the form of its type.

    Raises:
        Conflict: ``unreadable``.
    """
    for event in events:
        _, _, _, event_type, _, _, data = event
        if event_type == "node.event" and (own_type := engine_type(data)) is not None:
            event_type, data = own_type, data.get("data")
        adapter = _adapter(event_type)
        if adapter is not None and not adapter.validator.isinstance_python(data, strict=True):
            raise unreadable_error(event.execution_id, _error_text(event, adapter, data))


@cache
def _adapter(event_type: str) -> TypeAdapter[Any] | None:
    """Return the validation of a type's payload, None where it may be any object."""
    payload = _PAYLOADS.get(event_type, UsageData)
    return None if payload is UsageData else TypeAdapter(payload)


def _error_text(event: Event, adapter: TypeAdapter[Any], data: Any) -> str:
    try:
        adapter.validate_python(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, ("data", *first["loc"])))
        return f"{field} of event {event.seq} ({event.type}): {first['msg']}"
    return f"the data of event {event.seq} ({event.type}) are invalid"
