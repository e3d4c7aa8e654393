"""What every store promises of access tokens, whatever it is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planwave.errors import NotFound
from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.records import PlanRecord
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-02T00:00:00.000000Z"
TOKEN = AccessTokenRecord(
    "t1", "Shop \U0001f30a", "d1", ("chat", "read"), ("f1", "f2"), AT, 3, 4, LATER
)
OTHER = AccessTokenRecord("t2", "Other", "d2", ("run",), ("f1",), LATER)


async def save_flows(store: Store) -> None:
    for plan_id in ("f1", "f2"):
        record = PlanRecord(plan_id, AT, "", "F", "h1", {"nodes": []}, name=f"F {plan_id}")
        await store.save_plan(record)


async def test_tokens_round_trip_newest_first(store: Store) -> None:
    await save_flows(store)
    await store.access_tokens.create(TOKEN)
    await store.access_tokens.create(OTHER)
    assert list(await store.access_tokens.all()) == [OTHER, TOKEN]


async def test_a_token_is_for_flows_only(store: Store) -> None:
    await save_flows(store)
    await store.save_plan(PlanRecord("p1", AT, "", "A plan", "h1", {"nodes": []}))
    for plan_id in ("p1", "nobody"):
        with pytest.raises(NotFound, match=plan_id):
            await store.access_tokens.create(replace(TOKEN, flows=("f1", plan_id)))
    assert await store.access_tokens.all() == []


async def test_deleted_token_is_gone(store: Store) -> None:
    await save_flows(store)
    await store.access_tokens.create(TOKEN)
    await store.access_tokens.create(replace(OTHER, created_at=AT))
    assert await store.access_tokens.delete("t1")
    assert not await store.access_tokens.delete("t1")
    assert [each.token_id for each in await store.access_tokens.all()] == ["t2"]


async def test_tokens_outlive_the_process(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await save_flows(store)
    await store.access_tokens.create(TOKEN)
    await store.close()
    again = SqliteStore.open(tmp_path)
    assert list(await again.access_tokens.all()) == [TOKEN]
    await again.close()
