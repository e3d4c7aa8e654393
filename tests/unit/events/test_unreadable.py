"""Errors while stored events are read, distinguished from bugs in the reading code."""

from __future__ import annotations

import pytest

from planwave.errors import Conflict, InputError, InvalidTransition
from planwave.events.unreadable import UNREADABLE, guard_stored


def test_stored_events_that_the_schedule_rejects_are_unreadable() -> None:
    with (
        pytest.raises(Conflict, match="x1 cannot be read: node 'a' is") as caught,
        guard_stored("x1"),
    ):
        raise InvalidTransition("node 'a' is RUNNING")
    assert caught.value.code == UNREADABLE
    assert "restore it from a backup" in str(caught.value.hint)


@pytest.mark.parametrize("error", [KeyError("seq"), TypeError("odd"), AttributeError("odd")])
def test_an_error_in_the_reading_code_is_not_reported_as_unreadable(error: Exception) -> None:
    with pytest.raises(type(error)), guard_stored("x1"):
        raise error


def test_errors_of_planwave_pass_through_unchanged() -> None:
    with pytest.raises(InputError), guard_stored("x1"):
        raise InputError("no")
