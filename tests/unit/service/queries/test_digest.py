"""Digests say how far executions are, and cost little where many are listed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from planwave.events import Event, fold
from planwave.service.queries.digest import DigestCache, digest_of, pending_requests
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.engine.golden_events import NAMES, golden_documents, golden_events

AT = "2026-01-01T00:00:00.000000+00:00"
IDS = [f"01911111-0000-7000-8000-00000000000{n}" for n in range(3)]


class CountingStore(MemoryStore):
    reads = 0

    async def events(self, execution_id: str, **how: Any) -> Any:
        self.reads += 1
        return await super().events(execution_id, **how)


def created(execution_id: str, **data: Any) -> Event:
    return Event(execution_id, 1, AT, "execution.created", None, None, data)


async def stored(*events: list[Event]) -> tuple[CountingStore, list[ExecutionRecord]]:
    store = CountingStore()
    for each in events:
        record = ExecutionRecord(each[0].execution_id, None, "T", "goal", "starting", AT)
        await store.create_execution(record, each)
    return store, await store.executions()


@pytest.mark.parametrize("name", NAMES)
def test_every_node_that_runs_is_in_the_wave_in_which_it_was_started(name: str) -> None:
    for document in golden_documents(name):
        events = golden_events(document)
        state = fold(events)
        digest = digest_of(state)
        assert digest.steps == sum(map(sum, (wave.values() for wave in digest.waves)))
        assert len(digest.waves) <= state.waves.total
        started = Counter(
            (node.wave, node.status)
            for node in state.nodes.values()
            if node.wave is not None and "/" not in node.path
        )
        for (wave, status), count in started.items():
            assert digest.waves[wave - 1][status] >= count


async def test_a_digest_is_kept_until_the_execution_goes_on() -> None:
    store, records = await stored([created(IDS[0], graph={"nodes": [], "edges": []})])
    digests = DigestCache(store, lambda _: None)
    first = await digests.of(records)
    assert await digests.of(records) == first
    assert store.reads == 1
    started = Event(IDS[0], 2, AT, "execution.started", None, None, {})
    await store.append(IDS[0], 1, [started])
    await digests.of(await store.executions())
    assert store.reads == 2


async def test_a_live_execution_is_not_read() -> None:
    events = [created(IDS[0], parent={"execution_id": "other", "retry": True})]
    store, records = await stored(events)
    digest = (await DigestCache(store, lambda _: fold(events)).of(records))[IDS[0]]
    assert digest.parent == {"execution_id": "other", "retry": True}
    assert store.reads == 0


async def test_what_needs_too_many_events_is_told_the_next_time() -> None:
    store, records = await stored(*([created(each)] for each in IDS))
    digests = DigestCache(store, lambda _: None)
    assert len(await digests.of(records, most_events=2)) == 2
    assert len(await digests.of(records, most_events=2)) == 3


async def test_requests_come_by_deadline_then_by_age_without_timers() -> None:
    def asks(number: int, second: int, **data: Any) -> Event:
        at = f"2026-01-01T00:00:{second:02d}.000000+00:00"
        data = {"request": {"kind": "approval"}, **data, "request_id": f"r{number}"}
        return Event(IDS[0], number, at, "node.waiting", f"n{number}", 1, data)

    graph = {"nodes": [{"id": "n2", "type": "approval", "name": "Check"}], "edges": []}
    events = [
        created(IDS[0], graph=graph),
        asks(2, 9),
        asks(3, 1),
        asks(4, 1, timeout_s=60),
        asks(5, 2, timeout_s=10),
        asks(6, 3, request={"kind": "timer"}),
    ]
    store, records = await stored(events)
    found = pending_requests(records, await DigestCache(store, lambda _: None).of(records))
    assert [each.request.request_id for each in found] == ["r5", "r4", "r3", "r2"]
    assert found[0].deadline == "2026-01-01T00:00:12.000000+00:00"
    assert [each.node_name for each in found[-2:]] == ["n3", "Check"]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (None, ""),
        ({"ask": {"output": "Lisbon"}}, "Lisbon"),
        ({"ask": {"output": {"city": "Lisbon", "days": 3}}}, "city: Lisbon; days: 3"),
        ({"a": {"output": "one\n two"}, "b": {"output": [1, 2]}}, "one two; [1,2]"),
    ],
)
def test_inputs_tell_runs_of_one_flow_apart(inputs: Any, words: str) -> None:
    assert digest_of(fold([created(IDS[0], inputs=inputs)])).inputs == words


def test_long_inputs_are_shortened() -> None:
    state = fold([created(IDS[0], inputs={"ask": {"output": {"text": "word " * 10_000, "n": 1}}})])
    assert len(digest_of(state).inputs) <= 120


def test_a_digest_has_the_outcome() -> None:
    nodes = [{"id": each, "type": "text", "data": {}} for each in "ab"]
    error = {"code": "boom", "message": "it broke"}
    told: list[tuple[str, str | None, dict[str, Any]]] = [
        ("node.completed", "a", {"outputs": {"output": {"type": "text", "value": "x"}}}),
        ("node.failed", "b", {"error": error}),
        ("execution.failed", None, {"error": error, "failures": ["b"]}),
    ]
    first = created(IDS[0], graph={"nodes": nodes, "edges": []})
    events = [first] + [
        Event(IDS[0], seq, AT, kind, path, path and 1, data)
        for seq, (kind, path, data) in enumerate(told, 2)
    ]
    assert digest_of(fold(events)).outcome == "partial"
