import pytest

from planwave.api.seats import ConnectionLimiter
from planwave.errors import TooManyRequests


def test_seats_are_counted_for_each_principal_and_given_back() -> None:
    seats = ConnectionLimiter()
    with seats.slot("a", 2), seats.slot("a", 2), seats.slot("b", 1):
        with pytest.raises(TooManyRequests, match="as many as may") as caught, seats.slot("a", 2):
            pass
        assert "SOCKET_CONNECTIONS" in (caught.value.hint or "")
    with seats.slot("a", 1):
        pass


def test_a_seat_is_given_back_whatever_happens() -> None:
    seats = ConnectionLimiter()
    for _ in range(3):
        with pytest.raises(ValueError, match="x"), seats.slot("a", 1):
            raise ValueError("x")
