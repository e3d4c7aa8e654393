import pytest

from planwave.api.rate_limit import AccessTokenRates, ConnectionLimiter, TokenBucket
from planwave.errors import TooManyRequests
from planwave.storage.access_tokens import AccessTokenRecord


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_burst_is_allowed_and_next_request_gets_retry_after() -> None:
    clock = Clock()
    pace = TokenBucket("requests", 2, 3, clock)
    for _ in range(3):
        pace.acquire("me")
    with pytest.raises(TooManyRequests, match="3 at once, then 2 a second") as refused:
        pace.acquire("me")
    assert (refused.value.retry_after_s, refused.value.hint) == (0.5, "try again in 1 s")
    clock.now += 0.5
    pace.acquire("me")
    with pytest.raises(TooManyRequests):
        pace.acquire("me")


def test_principals_have_separate_buckets() -> None:
    pace = TokenBucket("requests", 1, 1, Clock())
    for principal in ("me", "you"):
        pace.acquire(principal)
        with pytest.raises(TooManyRequests):
            pace.acquire(principal)


def test_bucket_never_exceeds_its_burst() -> None:
    clock = Clock()
    pace = TokenBucket("requests", 1, 2, clock)
    clock.now += 1_000
    for _ in range(2):
        pace.acquire("me")
    with pytest.raises(TooManyRequests):
        pace.acquire("me")


def test_connections_are_counted_for_each_principal() -> None:
    seats = ConnectionLimiter()
    with seats.slot("a", 2), seats.slot("a", 2), seats.slot("b", 1):
        with pytest.raises(TooManyRequests, match="as many as may") as caught, seats.slot("a", 2):
            pass
        assert "SOCKET_CONNECTIONS" in (caught.value.hint or "")
    with seats.slot("a", 1):
        pass


def test_connection_is_released_after_error() -> None:
    seats = ConnectionLimiter()
    for _ in range(3):
        with pytest.raises(ValueError, match="x"), seats.slot("a", 1):
            raise ValueError("x")


def test_access_tokens_have_the_limits_of_their_records() -> None:
    rates = AccessTokenRates(Clock())

    def token(token_id: str, **limits: int) -> AccessTokenRecord:
        return AccessTokenRecord(token_id, "", "", ("run",), ("f",), "", **limits)

    limited, other, free = (
        token("a", requests_per_minute=1),
        token("b", requests_per_minute=1),
        token("c"),
    )
    for each in (limited, other, free, free):
        rates.count(each, "requests")
    rates.count(limited, "executions")
    with pytest.raises(
        TooManyRequests, match="too many requests with this access token: 1 at once"
    ):
        rates.count(limited, "requests")
