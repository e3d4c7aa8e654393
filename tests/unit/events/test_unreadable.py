"""Errors while stored events are read: an impossible order, told apart from bugs."""

from __future__ import annotations

import pytest

from planwave.errors import Conflict, InputError, InvalidTransition
from planwave.events.unreadable import UNREADABLE, guard_stored


def test_an_order_that_the_schedule_refuses_was_changed_from_outside() -> None:
    with (
        pytest.raises(Conflict, match="x1 cannot be read: node 'a' is") as caught,
        guard_stored("x1"),
    ):
        raise InvalidTransition("node 'a' is RUNNING")
    assert caught.value.code == UNREADABLE
    assert "restore it from a backup" in str(caught.value.hint)


@pytest.mark.parametrize("error", [KeyError("seq"), TypeError("odd"), AttributeError("odd")])
def test_a_bug_is_not_reported_as_damage(error: Exception) -> None:
    with pytest.raises(type(error)), guard_stored("x1"):
        raise error


def test_what_is_refused_already_stays_as_it_is() -> None:
    with pytest.raises(InputError), guard_stored("x1"):
        raise InputError("no")
