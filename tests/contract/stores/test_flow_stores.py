"""What every store promises of flows, whatever it is made of."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, NotFound, StoreError
from planwave.events import Event
from planwave.storage.records import ExecutionRecord, FlowRecord, FlowVersion, PageCursor
from planwave.storage.sqlite.sql_store import Store
from planwave.storage.sqlite.store import SqliteStore

GRAPH: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "t", "ui": {"x": 1.5, "none": None, "text": "ü\u0000\ud800"}}],
    "edges": [{"source": "a", "target": "a", "data": {"channel": "flow", "more": [1, [2]]}}],
}


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000000Z"


def flow(flow_id: str = "f1", second: int = 0, **changes: Any) -> FlowRecord:
    fields = {
        "flow_id": flow_id,
        "name": f"Flow {flow_id}",
        "description": f"what {flow_id} is for",
        "version": "v1",
        "revision": 1,
        "created_at": at(second),
        "updated_at": at(second),
        "node_count": 1,
    }
    return FlowRecord(**{**fields, **changes})


async def save(store: Store, *flows: FlowRecord) -> None:
    for each in flows:
        assert await store.flows.save(each, GRAPH)


async def test_flow_round_trips(store: Store) -> None:
    await save(store, flow())
    assert await store.flows.get("f1") == flow()
    assert await store.flows.version("f1", "v1") == FlowVersion("f1", "v1", 1, at(0), 1, GRAPH)
    assert await store.flows.get("other") is None
    assert await store.flows.version("f1", "other") is None
    assert await store.flows.version("other", "v1") is None


async def test_saved_graph_is_copied(store: Store) -> None:
    graph = {"nodes": [{"id": "a", "ui": {"x": 1}}], "edges": []}
    assert await store.flows.save(flow(), graph)
    graph["nodes"][0]["ui"]["x"] = 2
    stored = await store.flows.version("f1", "v1")
    assert stored is not None
    assert stored.graph == {"nodes": [{"id": "a", "ui": {"x": 1}}], "edges": []}


async def test_every_version_is_kept_once(store: Store) -> None:
    first = flow()
    second = replace(first, version="v2", revision=2, updated_at=at(2), node_count=7)
    back = replace(first, revision=3, updated_at=at(3))
    await save(store, first)
    assert await store.flows.save(second, {"nodes": [], "edges": []}, after=1)
    assert (await store.flows.page())[0] == second
    assert await store.flows.save(back, {**GRAPH, "edges": []}, after=2)
    assert await store.flows.get("f1") == back
    assert list(await store.flows.versions("f1")) == [
        FlowVersion("f1", "v2", 2, at(2), 7),
        FlowVersion("f1", "v1", 1, at(0), 1),
    ]
    again = await store.flows.version("f1", "v1")
    assert again is not None
    assert again.graph == {**GRAPH, "edges": []}, "what its hash does not cover is that of the last"


async def test_update_without_graph_keeps_the_graph(store: Store) -> None:
    await save(store, flow())
    renamed = replace(flow(), name="New", description="", revision=2, updated_at=at(1))
    assert await store.flows.save(renamed, after=1)
    assert await store.flows.get("f1") == renamed
    assert [each.revision for each in await store.flows.versions("f1")] == [1]


async def test_stale_update_is_not_saved(store: Store) -> None:
    await save(store, flow())
    next_one = replace(flow(), version="v2", revision=2)
    assert await store.flows.save(next_one, GRAPH, after=1)
    late = replace(flow(), name="late", version="v3", revision=2)
    assert not await store.flows.save(late, GRAPH, after=1)
    assert not await store.flows.save(replace(flow(), name="new"), GRAPH)
    assert not await store.flows.save(flow("nobody"), GRAPH, after=1)
    assert await store.flows.get("f1") == next_one
    assert await store.flows.get("nobody") is None
    assert await store.flows.version("f1", "v3") is None


async def test_one_of_concurrent_updates_is_saved(store: Store) -> None:
    await save(store, flow())
    changes = [replace(flow(), name=f"n{n}", revision=2) for n in range(10)]
    async with asyncio.TaskGroup() as group:
        saved = [group.create_task(store.flows.save(change, after=1)) for change in changes]
    (stored,) = [n for n, each in enumerate(saved) if each.result()]
    assert await store.flows.get("f1") == changes[stored]


async def test_flows_are_listed_newest_first_in_stable_pages(store: Store) -> None:
    await save(store, flow("a", 1), flow("c", 2), flow("b", 2), flow("d", 0))
    pages: list[list[str]] = []
    before = None
    while page := [each.flow_id for each in await store.flows.page(before=before, limit=2)]:
        pages.append(page)
        before = page[-1]
    assert pages == [["c", "b"], ["a", "d"]]
    location = PageCursor(at(2), "bb")
    assert [each.flow_id for each in await store.flows.page(before=location)] == ["b", "a", "d"]
    assert await store.flows.page(limit=0) == []
    with pytest.raises(NotFound, match="'nobody'"):
        await store.flows.page(before="nobody")


@pytest.mark.parametrize("text", ["ÜBERSICHT", "übersicht", "50%_off", "STRASSE"])
async def test_search_ignores_case_and_wildcards(store: Store, text: str) -> None:
    await save(store, flow("hit", name="Übersicht", description="50%_off in der Straße"))
    await save(store, flow("miss", name="Ubersicht", description="50 off Strase"))
    assert [each.flow_id for each in await store.flows.page(text=text)] == ["hit"]
    renamed = flow("hit", name="Other", description="", revision=2)
    assert await store.flows.save(renamed, after=1)
    assert await store.flows.page(text=text) == []


async def test_versions_are_paged(store: Store) -> None:
    await save(store, flow(), flow("f2", version="other"))
    for revision in (2, 3, 4):
        record = flow(version=f"v{revision}", revision=revision, updated_at=at(revision))
        assert await store.flows.save(record, GRAPH, after=revision - 1)
    first = await store.flows.versions("f1", limit=2)
    location = PageCursor(first[-1].created_at, first[-1].version)
    rest = await store.flows.versions("f1", before=location)
    assert [each.version for each in [*first, *rest]] == ["v4", "v3", "v2", "v1"]
    assert await store.flows.versions("nobody") == []


async def run_of(store: Store, name: str, flow_id: str | None, *kinds: str) -> None:
    record = ExecutionRecord(
        name, None, "t", "g", "starting", at(0), flow_id=flow_id, flow_version="v1"
    )
    received = [
        Event(name, seq, at(seq), f"execution.{kind}", None, None, {})
        for seq, kind in enumerate(("created", *kinds), 1)
    ]
    await store.create_execution(record, received)


async def test_execution_has_flow_and_is_found_by_it(store: Store) -> None:
    for name, of in {"a": "f1", "b": "f2", "c": "f1", "d": None}.items():
        await run_of(store, name, of)
    record = await store.execution("a")
    assert record is not None
    assert (record.flow_id, record.flow_version) == ("f1", "v1")
    assert [x.execution_id for x in await store.executions(flow_id="f1")] == ["c", "a"]
    assert [x.execution_id for x in await store.executions(flow_id="f1", before="c")] == ["a"]
    assert await store.executions(flow_id="f1", status="completed") == []


async def test_deleted_flow_is_gone_and_its_executions_stay(
    store: Store,
) -> None:
    await save(store, flow(), flow("f2"))
    await run_of(store, "x1", "f1", "completed")
    await store.flows.delete("f1")
    assert await store.flows.get("f1") is None
    assert await store.flows.version("f1", "v1") is None
    assert await store.flows.versions("f1") == []
    assert [each.flow_id for each in await store.flows.page()] == ["f2"]
    assert [x.flow_id for x in await store.executions()] == ["f1"]
    with pytest.raises(NotFound, match="'f1'"):
        await store.flows.delete("f1")


@pytest.mark.parametrize("kinds", [(), ("started",), ("started", "paused")])
async def test_flow_in_use_is_not_deleted(store: Store, kinds: tuple[str, ...]) -> None:
    await save(store, flow())
    await run_of(store, "done", "f1", "completed")
    await run_of(store, "x1", "f1", *kinds)
    with pytest.raises(Conflict, match="x1") as refused:
        await store.flows.delete("f1")
    assert (refused.value.code, await store.flows.get("f1")) == ("flow-in-use", flow())
    end = Event("x1", len(kinds) + 2, at(9), "execution.cancelled", None, None, {})
    await store.append("x1", 1, [end])
    await store.flows.delete("f1")
    await store.delete_execution("x1")
    assert await store.executions(flow_id="f1", status="cancelled") == []


@pytest.mark.parametrize("value", [float("nan"), object(), b"x"])
async def test_invalid_json_is_rejected(store: Store, value: Any) -> None:
    with pytest.raises(StoreError) as refused:
        await store.flows.save(flow(), {"nodes": [value], "edges": []})
    assert refused.value.code == "not-json"
    assert await store.flows.get("f1") is None


async def test_invalid_unicode_in_names_is_replaced(store: Store) -> None:
    await save(store, flow(name="a\ud800b", description="\ud83c\udf0a"))
    stored = await store.flows.get("f1")
    assert stored is not None
    assert (stored.name, stored.description) == ("a\ufffdb", "\U0001f30a")


async def test_closed_store_rejects_flows(store: Store) -> None:
    await store.close()
    for refusing in (store.flows.save(flow(), GRAPH), store.flows.delete("f1")):
        with pytest.raises(StoreError) as refused:
            await refusing
        assert refused.value.code == "store-closed"


async def test_flows_are_there_after_reopening(tmp_path: Path) -> None:
    before = SqliteStore.open(tmp_path)
    await save(before, flow())
    await before.close()
    again = SqliteStore.open(tmp_path, read_only=True)
    stored = await again.flows.version("f1", "v1")
    assert stored is not None
    assert (await again.flows.page(), stored.graph) == ([flow()], GRAPH)
    with pytest.raises(StoreError) as refused:
        await again.flows.delete("f1")
    assert refused.value.code == "store-read-only"
    await again.close()


async def test_saving_a_flow_changes_nothing_about_its_publishing(store: Store) -> None:
    await save(store, replace(flow(), published=("model",)))
    kept = await store.flows.get("f1")
    assert kept is not None
    assert kept.published == (), "saving publishes nothing"
    assert await store.flows.publish("f1", ("model", "tool"))
    assert await store.flows.save(flow(revision=2, name="Other"), after=1)
    kept = await store.flows.get("f1")
    assert kept is not None
    assert (kept.name, kept.published) == ("Other", ("model", "tool"))
    assert not await store.flows.publish("unknown", ("model",))


async def test_published_flows_are_listed_by_what_they_are_published_as(store: Store) -> None:
    await save(store, flow("f1", 1), flow("f2", 2), flow("f3", 3))
    await store.flows.publish("f1", ("model", "tool"))
    await store.flows.publish("f2", ("tool",))
    await store.flows.publish("f3", ("model",))
    await store.flows.publish("f3", ())

    async def listed(published: str) -> list[str]:
        return [each.flow_id for each in await store.flows.page(published=published)]

    assert await listed("model") == ["f1"]
    assert await listed("tool") == ["f2", "f1"]
    assert await listed("mod") == []
    await store.flows.delete("f1")
    assert await listed("model") == []
