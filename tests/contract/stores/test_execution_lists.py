"""What every store finds of executions: words, labels, orders, and what was spent on them."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NotFound
from planwave.events import Event, fold
from planwave.events.usage import UsageTotal
from planwave.ids import new_id
from planwave.storage.execution_facts import (
    SEARCHED_CHARS,
    ExecutionFacts,
    Spend,
    facts_of,
    planning_spend,
)
from planwave.storage.records import (
    NO_LABELS,
    ExecutionLabels,
    ExecutionOrder,
    ExecutionRecord,
    ExecutionSort,
    PageCursor,
    PlanRecord,
)
from planwave.storage.search_signatures import signature_of
from planwave.storage.sql import lists
from planwave.storage.sql.store import Store

LONG = " ".join(f"word{n}" for n in range(400))


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}.000000+00:00"


async def keep(
    store: Store, second: int, result: str = "", title: str = "A title", **usage: Any
) -> str:
    """Keep an execution of one step that has ended, and what lists show of it; return its id."""
    own = new_id()
    record = ExecutionRecord(own, None, title, "The goal ÄÖ", "starting", at(second))
    task = "Find a café in Alfama"
    node: dict[str, Any] = {
        "id": "a",
        "type": "agent",
        "name": "Find",
        "description": task,
        "data": {},
    }
    data = {"goal": "The goal ÄÖ", "title": title, "graph": {"nodes": [node], "edges": []}}
    kinds: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.created", None, data),
        ("execution.started", None, {}),
        ("node.started", "a", {"wave": 1}),
        ("usage", "a", {"provider": "openai", "model": "m1", **usage}),
        ("node.completed", "a", {"outputs": {"output": {"type": "text", "value": result}}}),
        ("execution.completed", None, {}),
    ]
    events = [
        Event(own, seq, at(second + (seq == len(kinds))), kind, path, path and 1, data)
        for seq, (kind, path, data) in enumerate(kinds, 1)
    ]
    await store.create_execution(record, events)
    facts = facts_of(events, fold(events), record)
    assert await store.set_document_seqs({own: len(events)}, {own: facts}) == []
    return own


async def found(store: Store, text: str, **filters: Any) -> list[str]:
    return [each.execution_id for each in await store.executions(text=text, **filters)]


@pytest.mark.parametrize("size", ["short", "long"])
async def test_words_of_results_tasks_titles_and_ids_find_executions(
    store: Store, size: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = LONG if size == "long" else ""
    lisbon = await keep(store, 1, f"Go to Lissabon, by Straße 28. {more}")
    other = await keep(store, 2, f"Something else. {more}", title="Überraschung")
    for text in (
        "lissabon",
        "LISSABON straße",
        "sabo",
        "28. go",
        lisbon,
        lisbon[:20],
        lisbon.upper(),
    ):
        assert await found(store, text) == [lisbon], text
    assert await found(store, "überraschung") == [other]
    assert await found(store, "alfama CAFÉ") == [other, lisbon]
    assert await found(store, "äö") == [other, lisbon]
    assert await found(store, "el") == [other]
    for text in ("lisbon", "lissabon überraschung", "100%", "lissab_n", "☂", "'"):
        assert await found(store, text) == [], text
    counted = await store.count_executions(text="alfama")
    assert counted == {"completed": 2}
    monkeypatch.setattr(lists, "COUNTED_MATCHES", 1)
    assert await store.count_executions(text="alfama café") == {"completed": 1}
    assert sum((await store.count_executions()).values()) >= 2
    await store.delete_execution(lisbon)
    assert await found(store, "lissabon") == []


@pytest.mark.parametrize("nearest", [1, 3, 5, 100])
async def test_however_many_are_looked_at_first_the_same_is_found_in_the_same_order(
    store: Store, nearest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "NEAREST", nearest)
    moments = (1, 2, 2, 3, 3, 3, 4)  # several at one time
    own = [
        await keep(store, second, "Tea, green" if second == 3 else "Tea, mint")
        for second in moments
    ]
    newest = [record.execution_id for record in await store.executions()]
    assert sorted(newest) == sorted(own)
    for text, chosen in (("tea", newest), ("green tea", newest[1:4]), ("tea coffee", [])):
        listed: list[str] = []
        before = None
        while page := await store.executions(text=text, before=before, limit=2):
            listed += [record.execution_id for record in page]
            before = PageCursor(page[-1].created_at, page[-1].execution_id)
        assert listed == chosen, text
        counted = await store.count_executions(text=text)
        assert counted == ({"completed": len(chosen)} if chosen else {})
    monkeypatch.setattr(lists, "COUNTED_MATCHES", 2)
    assert await store.count_executions(text="mint") == {"completed": 2}


async def test_a_running_execution_is_found_by_title_goal_and_id(store: Store) -> None:
    own = new_id()
    record = ExecutionRecord(own, None, "Tea", "The goal of tea", "starting", at(1))
    await store.create_execution(
        record, [Event(own, 1, at(1), "execution.created", None, None, {})]
    )
    for text in ("TEA goal", own):
        assert await found(store, text) == [own]
    assert await found(store, "coffee") == []


async def test_what_is_searched_is_bounded(store: Store) -> None:
    own = await keep(store, 1, "start " + "x" * 100_000 + " finish")
    assert await found(store, "start") == [own]
    assert await found(store, "finish") == []
    record = await store.execution(own)
    assert record is not None
    facts = facts_of(*_story_of(await store.events(own)), record)
    assert len(facts.text) <= SEARCHED_CHARS


def _story_of(events: list[Event]) -> Any:
    return events, fold(events)


async def test_a_partial_outcome_is_listed_with_what_failed_and_with_nothing_else(
    store: Store,
) -> None:
    own, other = new_id(), await keep(store, 2)
    record = ExecutionRecord(own, None, "Tea", "The goal", "starting", at(1))
    nodes = [{"id": each, "type": "text", "data": {}} for each in "ab"]
    error = {"code": "boom", "message": "it broke"}
    outputs = {"output": {"type": "text", "value": "done"}}
    kinds: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.created", None, {"graph": {"nodes": nodes, "edges": []}}),
        ("node.completed", "a", {"outputs": outputs}),
        ("node.failed", "b", {"error": error}),
        ("execution.failed", None, {"error": error, "failures": ["b"]}),
    ]
    events = [
        Event(own, seq, at(1), kind, path, path and 1, data)
        for seq, (kind, path, data) in enumerate(kinds, 1)
    ]
    await store.create_execution(record, events)
    facts = facts_of(events, fold(events), record)
    assert await store.set_document_seqs({own: len(events)}, {own: facts}) == []
    assert {each.execution_id: each.outcome for each in await store.executions()} == {
        own: "partial", other: None
    }  # fmt: skip


async def test_labels_are_changed_field_by_field_found_and_deleted(store: Store) -> None:
    own, other = await keep(store, 1, LONG), await keep(store, 2, LONG)
    await store.label_execution(own, {"name": "Täglich", "tags": ("trip", "to do")})
    await store.label_execution(own, {"note": "Ask Ada", "starred": True})
    record = await store.execution(own)
    assert record is not None
    assert record.labels == ExecutionLabels("Täglich", ("trip", "to do"), "Ask Ada", True)
    for text in ("TÄGLICH", "ada", "to do"):
        assert await found(store, text) == [own]
    assert [each.execution_id for each in await store.executions(tag="to do")] == [own]
    assert await store.executions(tag="to") == []
    assert [each.execution_id for each in await store.executions(starred=True)] == [own]
    assert [each.execution_id for each in await store.executions(starred=False)] == [other]
    assert await store.count_executions(starred=True, tag="trip") == {"completed": 1}
    await store.label_execution(own, {"name": None, "tags": (), "note": "", "starred": False})
    record = await store.execution(own)
    assert record is not None
    assert record.labels == NO_LABELS
    await store.label_execution(other, {"starred": True})
    await store.delete_execution(other)
    assert await store.executions(starred=True) == []
    with pytest.raises(NotFound):
        await store.label_execution(other, {"starred": True})


@pytest.mark.parametrize("by", ["created", "duration", "cost", "tokens", "name"])
@pytest.mark.parametrize("descending", [True, False])
async def test_lists_are_sorted_and_paged_in_any_order(
    store: Store, by: ExecutionOrder, descending: bool
) -> None:
    first = await keep(store, 1, input_tokens=5, cost_usd=0.5, title="b")
    second = await keep(store, 2, input_tokens=9, cost_usd=0.1, title="C")
    third = await keep(store, 3, input_tokens=1, title="a")
    await store.label_execution(first, {"name": "D"})
    growing = {
        "created": [first, second, third],
        "duration": [first, second, third],  # all took as long
        "cost": [third, second, first],
        "tokens": [third, first, second],
        "name": [third, second, first],
    }[by]
    sort = ExecutionSort(by, descending)
    wanted = growing[::-1] if descending else growing
    assert [each.execution_id for each in await store.executions(sort=sort)] == wanted
    paged: list[str] = []
    before = None
    while page := await store.executions(sort=sort, before=before, limit=1):
        paged.append(page[0].execution_id)
        before = sort.cursor_after(page[0])
    assert paged == wanted


async def test_a_list_of_a_time_ends_before_its_last_moment(store: Store) -> None:
    _, second, _ = [await keep(store, n) for n in (1, 2, 3)]
    listed = await store.executions(since=at(2), until=at(3))
    assert [each.execution_id for each in listed] == [second]


async def test_facts_are_stored_with_the_projection(store: Store) -> None:
    own = await keep(store, 1, input_tokens=3, output_tokens=4, cost_usd=0.25)
    record = await store.execution(own)
    assert record is not None
    assert (record.tokens, record.cost_usd, record.duration_s) == (7, 0.25, 1.0)


def usage(cost: float | None, tokens: int = 10) -> UsageTotal:
    return UsageTotal(1, tokens, 0, cost)


async def test_spend_is_summed_by_day_flow_and_model_with_planning_apart(store: Store) -> None:
    plan = PlanRecord("p1", at(0), "g", "t", "h", {"nodes": [], "edges": []}, name="Trip")
    planned = planning_spend(
        "p1", at(0), "openai", "big", [{"input_tokens": 100, "output_tokens": 1, "cost_usd": 1.0}]
    )
    assert planned is not None
    await store.save_plan(plan, [planned])
    runs = [
        Spend("run", "x1", "2026-01-01", "p1", "openai", "m1", usage(0.5), 0),
        Spend("run", "x1", "2026-01-02", "p1", "openai", "m1", usage(0.25), 0),
        Spend("run", "x2", "2026-01-02", None, "local", "m2", usage(None), 1),
    ]
    for _ in range(2):  # a projection may be made again
        await store.spend.add(runs)
    days = await store.spend.sums("day", "2026-01-01", "2026-01-02", 10)
    assert [(each.key, each.cost_usd, each.unpriced) for each in days] == [
        ("2026-01-02", 0.25, 1),
        ("2026-01-01", 1.5, 0),
    ]
    assert (days[1].planning_cost_usd, days[1].planning_tokens, days[1].subjects) == (1.0, 101, 2)
    models = await store.spend.sums("model", "2026-01-01", "2026-01-02", 2)
    assert [each.key for each in models] == ["openai/big", "openai/m1"]
    flows = await store.spend.sums("flow", "2026-01-01", "2026-01-02", 10)
    assert [(each.key, each.name, each.cost_usd) for each in flows] == [
        ("p1", "Trip", 1.75),
        ("", None, None),
    ]
    [total] = await store.spend.sums(None, "2026-01-01", "2026-01-02", 1)
    assert (total.calls, total.cost_usd, total.subjects) == (4, 1.75, 3)
    assert await store.spend.sums(None, "2025-01-01", "2025-12-31", 1) == []
    planning = await store.spend.planning({"p1", "p2"})
    assert planning == {"p1": UsageTotal(1, 100, 1, 1.0)}


async def test_spend_stays_when_its_execution_is_deleted(store: Store) -> None:
    own = await keep(store, 1, input_tokens=3, cost_usd=0.25)
    await store.delete_execution(own)
    [total] = await store.spend.sums(None, "2026-01-01", "2026-01-01", 1)
    assert total.cost_usd == 0.25
    facts = ExecutionFacts(1, None, None, "late", signature_of("late"), ())
    assert await store.set_document_seqs({own: 9}, {own: facts}) == [own]
    assert await found(store, "late") == []
