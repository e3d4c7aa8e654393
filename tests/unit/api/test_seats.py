import pytest

from planwave.api.seats import Seats
from planwave.errors import Busy


def test_seats_are_counted_for_each_principal_and_given_back() -> None:
    seats = Seats()
    with seats.take("a", 2), seats.take("a", 2), seats.take("b", 1):
        with pytest.raises(Busy, match="as many as may") as caught, seats.take("a", 2):
            pass
        assert "SOCKET_CONNECTIONS" in (caught.value.hint or "")
    with seats.take("a", 1):
        pass


def test_a_seat_is_given_back_whatever_happens() -> None:
    seats = Seats()
    for _ in range(3):
        with pytest.raises(ValueError, match="x"), seats.take("a", 1):
            raise ValueError("x")
