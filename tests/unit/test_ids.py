from __future__ import annotations

import threading
import time
from uuid import UUID

import pytest

from planwave.ids import UUID_PATTERN, new_id


def test_ids_are_uuids_of_version_seven() -> None:
    made = UUID(new_id())
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert UUID_PATTERN.fullmatch(str(made))
    assert abs((made.int >> 80) / 1_000 - time.time()) < 60


def test_ids_sort_by_when_they_were_made() -> None:
    made = [new_id() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_a_clock_that_goes_back_does_not_turn_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert new_id() > before


def test_threads_never_share_an_id() -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.extend([new_id() for _ in range(1_000)]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 4_000
