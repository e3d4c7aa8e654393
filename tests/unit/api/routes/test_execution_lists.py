from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import Node
from planwave.service.queries import history
from planwave.storage.sql import lists
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


async def ran(calls: InProcessClient, text: str) -> str:
    """Run a graph of one text to its end; return the id of the execution."""
    graph = {"nodes": [{"id": "g", "type": "text", "data": {"text": text}}], "edges": []}
    made = await calls.post_json("/api/execute", {"graph": graph, "start": True}, 202)
    await calls.service.executions.wait(made["execution_id"])
    await calls.get_json(f"/api/executions/{made['execution_id']}")
    return made["execution_id"]


async def listed(calls: InProcessClient, **query: Any) -> list[str]:
    page = await calls.get_json("/api/executions", **query)
    return [each["execution_id"] for each in page["executions"]]


async def patch(calls: InProcessClient, own: str, body: dict[str, Any], status: int = 200) -> Any:
    answer = await calls.patch(f"/api/executions/{own}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_an_execution_is_found_by_words_of_its_result_and_by_its_id() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        lisbon, rome = await ran(calls, "Go to Alfama by tram."), await ran(calls, "See the Forum.")
        assert await listed(calls, q="ALFAMA tram") == [lisbon]
        assert await listed(calls, q=rome) == [rome]
        assert await listed(calls, q="tram forum") == []
        counts = (await calls.get_json("/api/executions", q="alfama", counts=True))["counts"]
        assert (counts["total"], counts["completed"], counts["at_least"]) == (1, 1, False)


async def test_of_very_many_with_some_words_the_newest_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (history, lists):
        monkeypatch.setattr(module, "COUNTED_MATCHES", 2)
    async with in_process_client(dependencies(CHAIN)) as calls:
        for place in ("Alfama", "Baixa", "Chiado"):
            await ran(calls, f"By tram to {place}.")
        for query, total, at_least in ((None, 3, False), ("tram", 2, True), ("chiado", 1, False)):
            more = {} if query is None else {"q": query}
            counts = (await calls.get_json("/api/executions", counts=True, **more))["counts"]
            assert (counts["total"], counts["at_least"]) == (total, at_least)
        assert len(await listed(calls, q="tram")) == 3


async def test_labels_are_changed_shown_and_listed() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        own, other = await ran(calls, "one"), await ran(calls, "two")
        labels = {"name": "Lisbon", "tags": ["trip"], "note": "Ask Ada", "starred": True}
        assert await patch(calls, own, labels) == labels
        assert await patch(calls, own, {"note": ""}) == {**labels, "note": ""}
        shown = await calls.get_json(f"/api/executions/{own}")
        assert (shown["name"], shown["starred"]) == ("Lisbon", True)
        assert await listed(calls, tag="trip", starred=True, q="lisbon") == [own]
        assert await listed(calls, starred=False) == [other]
        assert (await patch(calls, own, {"name": None}))["name"] is None
        refused = await patch(calls, own, {"tags": ["x" * 41]}, 422)
        assert refused["code"] == "invalid-body"
        await patch(calls, "019a0000-0000-7000-8000-00000000ffff", {"name": "x"}, 404)


async def test_lists_are_sorted_and_a_cursor_belongs_to_its_order() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        own = [await ran(calls, text) for text in ("one", "two", "three")]
        for execution_id, name in zip(own, ("b", "C", "a"), strict=True):
            await patch(calls, execution_id, {"name": name})
        assert await listed(calls, sort="name", order="asc") == [own[2], own[0], own[1]]
        page = await calls.get_json("/api/executions", sort="name", limit=2)
        assert [each["name"] for each in page["executions"]] == ["C", "b"]
        rest = await listed(calls, sort="name", limit=2, cursor=page["next_cursor"])
        assert rest == [own[2]]
        other = {"sort": "cost", "cursor": page["next_cursor"]}
        refused = await calls.expect_problem("GET", "/api/executions", 422, **other)
        assert refused["code"] == "invalid-cursor"
        assert await listed(calls, order="asc") == own
        assert await listed(calls, until="2020-01-01") == []


async def test_those_that_wait_are_listed_in_any_order() -> None:
    asks = make_graph(Node("a", "approval", "A", data={"prompt": "May I?"}))
    async with in_process_client(dependencies(asks)) as calls:
        own: list[str] = []
        for _ in range(3):
            plan = await calls.post_json("/api/plan", {"prompt": "ask"}, 201)
            body = {"plan_id": plan["plan_id"], "start": True}
            made = await calls.post_json("/api/execute", body, 202)
            await calls.service.executions.wait(made["execution_id"])
            own.append(made["execution_id"])
        assert await listed(calls, waiting=True) == own[::-1]
        page = await calls.get_json("/api/executions", waiting=True, order="asc", limit=2)
        assert [each["execution_id"] for each in page["executions"]] == own[:2]
        rest = await listed(calls, waiting=True, order="asc", cursor=page["next_cursor"])
        assert rest == own[2:]
