"""Errors while stored events are read, distinguished from bugs in the reading code."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import Conflict, InputError, InvalidTransition
from planwave.events.unreadable import UNREADABLE, guard_stored


class Typed:
    """Something of ours, in place of JSON."""


def read(stored: Any) -> Any:
    return stored.get("data")["seq"] + 1


@pytest.mark.parametrize("stored", [{}, {"data": {}}, {"data": {"seq": "1"}}, "text", None, [1]])
def test_stored_data_of_another_form_are_unreadable(stored: Any) -> None:
    with pytest.raises(Conflict) as caught, guard_stored("x1"):
        read(stored)
    assert caught.value.code == UNREADABLE
    assert "restore it from a backup" in str(caught.value.hint)


def test_stored_events_that_the_scheduler_rejects_are_unreadable() -> None:
    with pytest.raises(Conflict, match="x1 cannot be read: InvalidTransition"), guard_stored("x1"):
        raise InvalidTransition("node 'a' is RUNNING")


@pytest.mark.parametrize(
    "bug",
    [lambda: read(Typed()), lambda: undefined],  # noqa: F821
)
def test_an_error_in_the_reading_code_is_reported_as_a_bug(bug: Any) -> None:
    with pytest.raises(Conflict, match="because of a bug") as caught, guard_stored("x1"):
        bug()
    assert caught.value.code == UNREADABLE
    assert "report" in str(caught.value.hint)
    assert "test_unreadable" in caught.value.message
    assert "changed" not in caught.value.message + str(caught.value.hint)


def test_errors_of_planwave_pass_through_unchanged() -> None:
    with pytest.raises(InputError), guard_stored("x1"):
        raise InputError("no")
