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


def test_any_json_answer_is_sent() -> None:
    assert request_arguments(requests.answer("x", "r1", {"value": None}))["json"] == {"value": None}
    assert request_arguments(requests.answer("x", "r1", [1]))["json"] == [1]
    null = request_arguments(requests.answer("x", "r1", None))
    assert (null["content"], null["headers"]["content-type"]) == (b"null", "application/json")
    assert "json" not in request_arguments(requests.post("a", "b"))
    assert request_arguments(requests.cancel("x", None, "a"))["json"] == {"node": "a"}


def test_url_keeps_its_path_without_trailing_slash() -> None:
    assert validated_url("https://there:81/below/") == "https://there:81/below"


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://there", "http://", "http://[::1"])
def test_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(InputError) as refused:
        validated_url(url)
    assert refused.value.code == "invalid-url"


def test_token_becomes_a_header() -> None:
    assert auth_headers(None) == {}
    assert auth_headers("größe") == {b"authorization": "Bearer größe".encode()}


@pytest.mark.parametrize("token", ["", "  ", "se\ncret", "se\x00cret"])
def test_invalid_token_is_rejected_without_showing_it(token: str) -> None:
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
def test_response_of_another_service_is_an_error(answer: httpx2.Response) -> None:
    with pytest.raises(PlanwaveError):
        parse_response(answer)


def test_empty_response_is_none() -> None:
    assert parse_response(httpx2.Response(204)) is None


def test_only_an_event_stream_is_a_stream() -> None:
    stream = {"content-type": "text/event-stream; charset=utf-8"}
    assert is_stream(httpx2.Response(200, headers=stream))
    assert not is_stream(httpx2.Response(204))
    with pytest.raises(PlanwaveError) as refused:
        is_stream(httpx2.Response(200, text="<html>"))
    assert refused.value.code == "not-planwave"


def test_error_without_json_has_its_status() -> None:
    assert error_from_response(httpx2.Response(504), b"\xff").message.endswith("status 504")


def test_retries_end_after_eight_attempts_without_progress() -> None:
    retry_policy = RetryPolicy()
    pauses = [retry_policy.next_delay(progressed=False) for _ in range(7)]
    assert 0.125 <= pauses[0] <= 0.25
    assert 4.0 <= pauses[-1] <= 8.0
    with pytest.raises(Unreachable, match="again and again"):
        retry_policy.next_delay(progressed=False)


def test_number_of_attempts_can_be_chosen() -> None:
    with pytest.raises(ShuttingDown):
        RetryPolicy(1).next_delay(False, ShuttingDown())
    assert RetryPolicy(1).next_delay(True, ShuttingDown()) == 0.0


def test_progress_resets_the_retries() -> None:
    retry_policy, gone = RetryPolicy(), ShuttingDown()
    for _ in range(50):
        for _ in range(7):
            retry_policy.next_delay(False, gone)
        assert retry_policy.next_delay(True, gone) == 0.0
    for _ in range(7):
        retry_policy.next_delay(False, gone)
    with pytest.raises(ShuttingDown):
        retry_policy.next_delay(False, gone)


def test_retry_after_is_respected_up_to_a_minute() -> None:
    full = QueueFull("full", retry_after_s=20.0)
    assert RetryPolicy().next_delay(False, full) == 20.0
    full.retry_after_s = 86_400.0
    assert RetryPolicy().next_delay(True, full) == 60.0
