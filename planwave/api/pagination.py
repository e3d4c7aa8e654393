"""Path and query parameters of routes: ids, filters, page size and cursor."""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar

import orjson
from fastapi import Path, Query

from planwave.api.schemas.examples import (
    CHAT_ID,
    EXECUTION_ID,
    FLOW_ID,
    MESSAGE_ID,
    NOTIFICATION_ID,
    PLAN_ID,
    REQUEST_ID,
    TOKEN_ID,
    TRIGGER_ID,
)
from planwave.errors import InputError, LimitExceeded, NotFound
from planwave.graph.diagnostics import short_repr
from planwave.ids import UUID_PATTERN
from planwave.service.triggers.trigger_service import Trigger
from planwave.settings import Limits
from planwave.storage.chats import ChatRecord
from planwave.storage.links import LinkRecord
from planwave.storage.notifications import NotificationRecord
from planwave.storage.records import (
    NEWEST_FIRST,
    ExecutionRecord,
    ExecutionSort,
    PageCursor,
    PlanRecord,
    PlanRevision,
)

_DEFAULT_PAGE_SIZE: Final = 50
"""Items on a page where nobody asked for a number of them."""
_MOST_SEQ: Final = 2**63
"""No store counts further."""
_UUID: Final = f"^{UUID_PATTERN.pattern}$"
LINK_ID: Final = "019a0000-0000-7000-8000-000000000010"
"""That of examples."""
_CURSOR: Final = re.compile(
    rf"([0-9T:.+-]{{10,40}}) ({UUID_PATTERN.pattern}|[1-9][0-9]{{0,9}})", re.ASCII
)
"""A time, and an id or the number of a revision."""

PlanId = Annotated[str, Path(description="A plan's id.", pattern=_UUID, examples=[PLAN_ID])]
ExecutionId = Annotated[
    str,
    Path(
        description="An execution's id.",
        pattern=_UUID,
        examples=[EXECUTION_ID],
    ),
]
FlowId = Annotated[str, Path(description="A flow's id.", pattern=_UUID, examples=[FLOW_ID])]
TriggerId = Annotated[
    str, Path(description="A trigger's id.", pattern=_UUID, examples=[TRIGGER_ID])
]
NotificationId = Annotated[
    str, Path(description="A notification's id.", pattern=_UUID, examples=[NOTIFICATION_ID])
]
TokenId = Annotated[
    str, Path(description="An access token's id.", pattern=_UUID, examples=[TOKEN_ID])
]
LinkId = Annotated[str, Path(description="A link's id.", pattern=_UUID, examples=[LINK_ID])]
ChatId = Annotated[str, Path(description="A chat's id.", pattern=_UUID, examples=[CHAT_ID])]
MessageId = Annotated[
    str, Path(description="A message's id.", pattern=_UUID, examples=[MESSAGE_ID])
]
HookId = Annotated[str, Path(description="The id of a webhook's trigger.", examples=[TRIGGER_ID])]
RequestId = Annotated[
    str,
    Path(
        description="A request's id, unique in its execution.",
        pattern="^r[1-9][0-9]{0,17}$",
        examples=[REQUEST_ID],
    ),
]
MAX_REVISION: Final = 2**31 - 1
PlanIdFilter = Annotated[
    str | None, Query(alias="plan_id", description="Only those of this plan.", pattern=_UUID)
]
FlowIdFilter = Annotated[
    str | None, Query(alias="plan_id", description="Only those of this flow.", pattern=_UUID)
]
Force = Annotated[
    bool, Query(description="Remove what leads to the name of the flow, in place of an answer 409.")
]
RevisionChoice = Annotated[
    int | None,
    Query(
        description="The revision to give; else the one that callers start.",
        ge=1,
        le=MAX_REVISION,
        examples=[1],
    ),
]
SearchExecutions = Annotated[
    str | None,
    Query(
        alias="q",
        description="Only those with all these words, or parts of words, whatever their case: in name, title, goal, tags, "
        "note, inputs, the tasks of their steps, or their result once they have paused or ended; or with this id.",
        max_length=1_000,
    ),
]
SearchPlans = Annotated[
    str | None,
    Query(
        alias="q",
        description="Only those with this in name, title, description or goal.",
        max_length=1_000,
    ),
]
FlowName = Annotated[
    str | None,
    Query(description="Only the one with this name, whatever its case.", max_length=1_000),
]
Named = Annotated[bool | None, Query(description="Only flows; `false`: only plans without a name.")]
SearchChats = Annotated[
    str | None,
    Query(alias="q", description="Only those with this in the title.", max_length=1_000),
]
PageSize = Annotated[
    int | None,
    Query(
        alias="limit",
        ge=1,
        description=f"Items on the page, {_DEFAULT_PAGE_SIZE} by default; the limit `page_items` is the most.",
    ),
]
Cursor = Annotated[
    str | None, Query(alias="cursor", description="The `next_cursor` of the page before.")
]
_Record = TypeVar(
    "_Record",
    PlanRecord,
    ExecutionRecord,
    PlanRevision,
    Trigger,
    NotificationRecord,
    ChatRecord,
    LinkRecord,
)


def validate_id(value: str, what: str) -> str:
    """Return an id from a body.

    Raises:
        NotFound: No id of that form was ever given out.
    """
    if UUID_PATTERN.fullmatch(value) is None:
        raise NotFound(f"{short_repr(value)} is no {what} id")
    return value


def page_size(requested: int | None, limits: Limits) -> int:
    """Return the number of items on a page.

    Raises:
        LimitExceeded: More than ``page_items``, as 422.
    """
    if requested is not None and requested > limits.page_items:
        error = LimitExceeded("page_items", limits.page_items, requested, what="a page")
        error.status_hint = 422
        error.hint = f"ask for {limits.page_items} at most, and for the rest with next_cursor"
        raise error
    return min(requested or _DEFAULT_PAGE_SIZE, limits.page_items)


def decode_cursor(cursor: str | None) -> PageCursor | None:
    """Return the position that a cursor names.

    Raises:
        InputError: ``invalid-cursor``: no page ever ended with it.
    """
    if cursor is None:
        return None
    try:
        text = b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        text = ""
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise _invalid_cursor()
    return PageCursor(match[1], match[2])


def decode_sorted_cursor(cursor: str | None, sort: ExecutionSort) -> PageCursor | None:
    """Return the position that a cursor names in a list of executions of this order.

    Raises:
        InputError: ``invalid-cursor``: no page of this order ever ended with it.
    """
    if cursor is None or sort.by == "created":
        return decode_cursor(cursor)
    match _json_of(cursor):
        case [str(created_at), str(execution_id), str() | int() | float() as value] if isinstance(
            value, str
        ) == (sort.by == "name") and _is_number_or_text(value):
            return PageCursor(created_at, execution_id, value)
        case _:
            raise _invalid_cursor()


def _is_number_or_text(value: str | float) -> bool:
    """Return whether a database takes a value, which a client may have made."""
    return isinstance(value, str) or abs(value) < _MOST_SEQ


def decode_request_cursor(cursor: str | None) -> tuple[str, ...] | None:
    """Return the place in the list of all open requests that a cursor names.

    Raises:
        InputError: ``invalid-cursor``: no page of requests ever ended with it.
    """
    if cursor is None:
        return None
    match _json_of(cursor):
        case [str(deadline), str(since), str(execution_id), str(request_id)]:
            return deadline, since, execution_id, request_id
        case _:
            raise _invalid_cursor()


def decode_answer_cursor(cursor: str | None) -> tuple[str, str, int] | None:
    """Return the place in the list of answered requests that a cursor names.

    Raises:
        InputError: ``invalid-cursor``: no page of answered requests ever ended with it.
    """
    if cursor is None:
        return None
    match _json_of(cursor):
        case [str(at), str(execution_id), int(seq)] if abs(seq) < _MOST_SEQ:
            return at, execution_id, seq
        case _:
            raise _invalid_cursor()


def _json_of(cursor: str) -> Any:
    """Return what is in a cursor of requests; None where that is no JSON."""
    try:
        return orjson.loads(b64decode(cursor, altchars=b"-_", validate=True))
    except ValueError:
        return None


def encode_request_cursor(order: Sequence[str | float | None]) -> str:
    """Return the cursor of a place in a list of requests, or of executions in another order than their age."""
    return urlsafe_b64encode(orjson.dumps(order)).decode("ascii")


def decode_revision_cursor(cursor: str | None) -> int | None:
    """Return the number of the revision that a cursor names.

    Raises:
        InputError: ``invalid-cursor``: no page of revisions ever ended with it.
    """
    position = decode_cursor(cursor)
    if position is None:
        return None
    if not position.id.isdigit():
        raise _invalid_cursor()
    return int(position.id)


def _invalid_cursor() -> InputError:
    return InputError(
        "the cursor is not one of this service",
        code="invalid-cursor",
        hint="use next_cursor of the page before as it is, or leave it out to begin anew",
    )


def paginate(
    records: Sequence[_Record], size: int, sort: ExecutionSort = NEWEST_FIRST
) -> tuple[Sequence[_Record], str | None]:
    """Return a page and the cursor of the next one, from at most one record more than the page holds."""
    if len(records) <= size:
        return records, None
    last = records[size - 1]
    if isinstance(last, ExecutionRecord) and sort.by != "created":
        return records[:size], encode_request_cursor([*sort.cursor_after(last)])
    place = f"{last.created_at} {_record_id(last)}"
    return records[:size], urlsafe_b64encode(place.encode()).decode("ascii")


def _record_id(
    record: PlanRecord
    | ExecutionRecord
    | PlanRevision
    | Trigger
    | NotificationRecord
    | ChatRecord
    | LinkRecord,
) -> str:
    match record:
        case PlanRecord():
            return record.plan_id
        case ExecutionRecord():
            return record.execution_id
        case PlanRevision():
            return str(record.revision)
        case Trigger():
            return record.trigger_id
        case NotificationRecord():
            return record.notification_id
        case ChatRecord():
            return record.chat_id
        case LinkRecord():
            return record.link_id
