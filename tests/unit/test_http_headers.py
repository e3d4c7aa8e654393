"""Which headers requests and answers may have."""

from __future__ import annotations

import pytest

from planwave.http_headers import (
    answer_header_fault,
    is_answer_header,
    is_relative_location,
    request_header_fault,
)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("X-Id", "a b\tc", None), ("Accept", "", None), ("Connection", "close", "own"),
        ("accept-ENCODING", "gzip", "own"), ("Host", "h", "own"), ("a b", "x", "name"), ("", "x", "name"),
        ("X-Id", "a\nb", "value"), ("X-Id", " a", "value"), ("X-Id", "é", "value"),
    ],
)  # fmt: skip
def test_a_request_adds_no_header_of_the_connection(
    name: str, value: str, fault: str | None
) -> None:
    assert request_header_fault(name, value) == fault


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("Content-Type", "text/html", None), ("X-Result", "7", None), ("Cache-Control", "no-store", "own"),
        ("x-content-type-options", "nosniff", "own"), ("X_Frame_Options", "DENY", "own"), ("a:b", "x", "name"),
        ("x" * 101, "x", "name"), ("X-Result", "a\r\nb", "value"), ("X-Result", "a" * 4_003, "value"),
    ],
)  # fmt: skip
def test_an_answer_has_headers_about_itself_alone(name: str, value: str, fault: str | None) -> None:
    assert answer_header_fault(name, value) == fault
    if fault != "name":
        assert is_answer_header(name) is (fault != "own")


@pytest.mark.parametrize(
    ("value", "is_relative"),
    [("/a?b#c", True), ("a/b", True), ("//h/a", False), ("https://h/", False), ("a\\b", False)],
)
def test_a_relative_address_stays_at_its_host(value: str, is_relative: bool) -> None:
    assert is_relative_location(value) is is_relative
