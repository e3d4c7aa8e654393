"""Calls that forks need not pay for again."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.executor.reuse import Reuse
from planwave.providers.api import CallKey
from planwave.service.lending import Lending
from planwave.storage.memory import MemoryStore

BEFORE = CallKey("x0", "a[k]/n", 2, 0, "h")
NOW = BEFORE._replace(execution_id="x1", attempt=1)


class GoesOn(Reuse):
    """Of an execution in which some nodes were under way, in their second attempts."""

    def __init__(self, *paths: str) -> None:
        super().__init__("x0", None, (), {})
        self._gone_on_with = dict.fromkeys(paths, 2)


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore()
    await made.record(BEFORE, {"text": "paid"})
    return made


async def test_what_a_node_goes_on_with_is_found_and_recorded_for_it_too(
    store: MemoryStore,
) -> None:
    lending, reuse = Lending(store), GoesOn("a[k]/n")
    lending.lend("x1", reuse)
    assert await lending.recorded(NOW) == {"text": "paid"}
    assert await store.recorded(NOW) == {"text": "paid"}


@pytest.mark.parametrize(
    "key",
    [
        NOW._replace(path="a[k]/m"),
        NOW._replace(attempt=2),
        NOW._replace(ordinal=1),
        NOW._replace(request_hash="other"),
        NOW._replace(execution_id="x2"),
    ],
    ids=str,
)
async def test_nothing_else_is_found(store: MemoryStore, key: CallKey) -> None:
    lending, reuse = Lending(store), GoesOn("a[k]/n")
    lending.lend("x1", reuse)
    assert await lending.recorded(key) is None


async def test_ones_own_calls_come_first(store: MemoryStore) -> None:
    lending, reuse = Lending(store), GoesOn("a[k]/n")
    lending.lend("x1", reuse)
    await lending.record(NOW, {"text": "own"})
    assert await lending.recorded(NOW) == {"text": "own"}


async def test_who_has_ended_is_lent_nothing_any_more(store: MemoryStore) -> None:
    lending = Lending(store)
    reuse: Any = GoesOn("a[k]/n")
    lending.lend("x1", reuse)
    del reuse
    assert await lending.recorded(NOW) is None
