from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from planwave.api.pagination import decode_cursor, page_size, paginate
from planwave.api.schemas.examples import PLAN_ID
from planwave.errors import InputError, LimitExceeded
from planwave.ids import new_id
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord, PageCursor


def records(count: int) -> list[ExecutionRecord]:
    time = "2026-01-31T12:00:00.000000+00:00"
    return [ExecutionRecord(new_id(), None, "t", "g", "starting", time) for _ in range(count)]


def test_page_size_is_limited() -> None:
    limits = Limits(page_items=60)
    assert [page_size(requested, limits) for requested in (None, 1, 60)] == [50, 1, 60]
    assert page_size(None, Limits(page_items=7)) == 7
    with pytest.raises(LimitExceeded, match="page_items for a page is 60, met 61") as caught:
        page_size(61, limits)
    assert caught.value.status_hint == 422


def test_last_page_has_no_cursor() -> None:
    found = records(2)
    assert paginate(found, 2) == (found, None)


def test_cursor_is_position_of_last_item() -> None:
    found = records(3)
    page, cursor = paginate(found, 2)
    assert page == found[:2]
    assert decode_cursor(cursor) == PageCursor(found[1].created_at, found[1].execution_id)


def test_missing_cursor_starts_at_the_beginning() -> None:
    assert decode_cursor(None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-31",
        f"2026-01-31T12:00:00 {PLAN_ID} ",
        f"' OR 1=1 -- {PLAN_ID}",
        f"2026-01-31T12:00:00\x00 {PLAN_ID}",
    ],
)
def test_invalid_cursor_is_rejected(text: str) -> None:
    for cursor in (text, urlsafe_b64encode(text.encode()).decode()):
        with pytest.raises(InputError) as caught:
            decode_cursor(cursor)
        assert caught.value.code == "invalid-cursor"
