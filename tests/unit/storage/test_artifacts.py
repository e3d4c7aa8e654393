from __future__ import annotations

import pytest

from planwave.events import Event
from planwave.storage.artifacts import load_artifacts, offload_artifacts


def nothing(digest: str) -> bytes | None:
    raise AssertionError(digest)


@pytest.mark.parametrize("data", [{}, {"outputs": None}, {"outputs": {}}, {"outputs": {"o": 1}}])
def test_event_without_large_values_is_unchanged(data: dict[str, object]) -> None:
    event = Event("x1", 1, "t", "node.completed", "a", 1, data)
    assert offload_artifacts(event, 10) == (event, [])
    assert load_artifacts(event, nothing) == event
