from __future__ import annotations

import httpx2
import pytest

from planwave.client import requests
from planwave.client.requests import (
    RetryPolicy,
    auth_headers,
    error_from_response,
    is_stream,
    parse_response,
    request_arguments,
    validated_url,
)
from planwave.errors import InputError, PlanwaveError, QueueFull, ShuttingDown, Unreachable


def test_an_answer_is_sent_whole_whatever_json_it_is() -> None:
    assert request_arguments(requests.answer("x", "r1", {"value": None}))["json"] == {"value": None}
    assert request_arguments(requests.answer("x", "r1", [1]))["json"] == [1]
    null = request_arguments(requests.answer("x", "r1", None))
    assert (null["content"], null["headers"]["content-type"]) == (b"null", "application/json")
    assert "json" not in request_arguments(requests.post("a", "b"))
    assert request_arguments(requests.cancel("x", None, "a"))["json"] == {"node": "a"}


def test_an_address_keeps_its_path_and_loses_its_last_slash() -> None:
    assert validated_url("https://there:81/below/") == "https://there:81/below"


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://there", "http://", "http://[::1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InputError) as refused:
        validated_url(url)
    assert refused.value.code == "invalid-url"


def test_a_token_goes_into_a_header_as_it_is() -> None:
    assert auth_headers(None) == {}
    assert auth_headers("größe") == {b"authorization": "Bearer größe".encode()}


@pytest.mark.parametrize("token", ["", "  ", "se\ncret", "se\x00cret"])
def test_a_token_no_header_can_carry_is_refused_without_telling_it(token: str) -> None:
    with pytest.raises(InputError) as refused:
        auth_headers(token)
    assert refused.value.code == "invalid-token"
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>a login page</html>"),
        httpx2.Response(302, headers={"location": "/login"}),
        httpx2.Response(502, text="bad gateway"),
    ],
)
def test_answers_of_something_else_are_failures(answer: httpx2.Response) -> None:
    with pytest.raises(PlanwaveError):
        parse_response(answer)


def test_an_answer_without_content_is_none() -> None:
    assert parse_response(httpx2.Response(204)) is None


def test_only_an_event_stream_is_read_as_one() -> None:
    stream = {"content-type": "text/event-stream; charset=utf-8"}
    assert is_stream(httpx2.Response(200, headers=stream))
    assert not is_stream(httpx2.Response(204))
    with pytest.raises(PlanwaveError) as refused:
        is_stream(httpx2.Response(200, text="<html>"))
    assert refused.value.code == "not-planwave"


def test_a_refusal_that_is_no_json_still_says_its_status() -> None:
    assert error_from_response(httpx2.Response(504), b"\xff").message.endswith("status 504")


def test_patience_ends_after_eight_connections_in_a_row_that_gave_nothing() -> None:
    patience = RetryPolicy()
    pauses = [patience.next_delay(progressed=False) for _ in range(7)]
    assert 0.125 <= pauses[0] <= 0.25
    assert 4.0 <= pauses[-1] <= 8.0
    with pytest.raises(Unreachable, match="again and again"):
        patience.next_delay(progressed=False)


def test_what_is_given_in_between_begins_it_anew() -> None:
    patience, gone = RetryPolicy(), ShuttingDown()
    for _ in range(50):
        for _ in range(7):
            patience.next_delay(False, gone)
        assert patience.next_delay(True, gone) == 0.0
    for _ in range(7):
        patience.next_delay(False, gone)
    with pytest.raises(ShuttingDown):
        patience.next_delay(False, gone)


def test_a_service_that_asks_for_time_is_given_it_up_to_a_minute() -> None:
    full = QueueFull("full", retry_after_s=20.0)
    assert RetryPolicy().next_delay(False, full) == 20.0
    full.retry_after_s = 86_400.0
    assert RetryPolicy().next_delay(True, full) == 60.0
