"""How long what was read of a shared database counts, whatever happens to the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from planwave.errors import StoreError
from planwave.service.following import CONFIRMED_FOR, Following
from tests.support.polling import until


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Database:
    """A shared store, as far as it is followed."""

    is_shared = True

    def __init__(self) -> None:
        self.reads, self.is_away = 0, False
        self.notices = SimpleNamespace(subscribe=lambda *_: None, on_reconnect=[])

    async def read(self) -> None:
        if self.is_away:
            raise StoreError("the database is away")
        self.reads += 1


@pytest.mark.parametrize("step", [timedelta(hours=-1), CONFIRMED_FOR * 2])
async def test_after_the_clock_was_set_nothing_counts_until_it_is_read_again(
    step: timedelta,
) -> None:
    clock, database = Clock(), Database()
    following = Following(cast("Any", database), "tokens", database.read, clock)
    async with following:
        following.require_confirmed()
        database.is_away = True
        clock.now += step
        with pytest.raises(StoreError, match="tokens are not accepted"):
            following.require_confirmed()
        database.is_away = False
        with pytest.raises(StoreError):
            following.require_confirmed()
        await until(lambda: database.reads == 2)  # at once, not after ``RELOAD_S``
        following.require_confirmed()
