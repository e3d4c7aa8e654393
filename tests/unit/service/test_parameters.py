"""Which wires fed a node's parameters, as explain tells it of real executions."""

from __future__ import annotations

from typing import Any

import planwave
from planwave.events import Event
from planwave.nodes.library import LIBRARY
from planwave.service.explain import explain
from planwave.service.parameters import wired_parameters, describe_sources
from planwave.storage.memory import MemoryStore
from tests.fakes.node_context import services_with

FLOW, LINK = {"channel": "flow"}, {"channel": "link"}


def text(node_id: str, value: str) -> dict[str, Any]:
    return {"id": node_id, "type": "text", "data": {"text": value}}


def wire(edge_id: str, source: str, target: str, handle: str, data: dict[str, str]) -> Any:
    return {
        "id": edge_id,
        "source": source,
        "target": target,
        "targetHandle": handle,
        "data": data,
    }


async def told_of(nodes: list[dict[str, Any]], *edges: dict[str, Any]) -> list[Event]:
    """Run a graph with a model that repeats its prompt, and give all that is stored of it."""
    store = MemoryStore()
    services, _ = services_with(lambda request: [request.prompt])
    graph = {"nodes": nodes, "edges": list(edges)}
    built = planwave.build(graph, registry=planwave.Registry(LIBRARY))
    result = await planwave.run(built, services=services, store=store)
    return list(await store.events(result.execution_id))


async def test_a_flow_wire_is_named_with_the_written_value_it_beat() -> None:
    found = explain(
        await told_of(
            [text("a", "wired"), text("b", "written")], wire("e", "a", "b", "text", FLOW)
        ),
        "b",
    )
    assert found["parameters"] == {
        "text": {"channel": "flow", "edge": "e", "source": "a", "over": ["inline"]}
    }
    assert found["reason"].endswith(
        " Its 'text' came by the flow from 'a', which beats what is written in it."
    )


async def test_a_link_is_named_like_a_flow_wire() -> None:
    nodes = [text("l", "linked"), {"id": "b", "type": "text", "data": {"text": "written"}}]
    events = await told_of(nodes, wire("k", "l", "b", "text", LINK))
    assert explain(events, "b")["parameters"] == {
        "text": {"channel": "link", "edge": "k", "source": "l", "over": ["inline"]}
    }
    (done,) = [e for e in events if e.type == "node.completed" and e.path == "b"]
    assert done.data["outputs"]["output"]["value"] == "linked"


async def test_all_that_a_linked_model_brings_is_named_with_where_it_came_in() -> None:
    nodes = [
        {"id": "m", "type": "model", "data": {"model": "n", "temperature": 1}},
        {"id": "ask", "type": "llm", "data": {"prompt": "Hi", "model": "m", "temperature": 0.5}},
    ]
    found = explain(await told_of(nodes, wire("k", "m", "ask", "model", LINK)), "ask")
    linked = {"channel": "link", "edge": "k", "source": "m"}
    assert found["parameters"] == {
        "temperature": {**linked, "handle": "model", "over": ["inline"]},
        "provider": {**linked, "handle": "model", "over": []},
        "model": {**linked, "over": ["inline"]},
    }
    assert "Its 'provider' came by the link from 'm' into 'model'." in found["reason"]
    assert found["prompt"]["model"] == "n"


async def test_it_is_told_of_nodes_inside_nodes_too() -> None:
    number = {"id": "n", "type": "number", "data": {"value": "{{ item }}"}}
    inside = {"nodes": [number, text("t", "")], "edges": [wire("k", "n", "t", "text", LINK)]}
    loop = {"id": "l", "type": "loop", "data": {"items": [7], "body": inside}}
    found = explain(await told_of([loop]), "l[0]/t")
    assert found["parameters"] == {
        "text": {"channel": "link", "edge": "k", "source": "n", "over": ["inline"]}
    }


async def test_nothing_is_said_where_no_wire_leads_into_a_parameter() -> None:
    found = explain(await told_of([text("a", "x")]), "a")
    assert "parameters" not in found


def event(seq: int, kind: str, **data: Any) -> Event:
    return Event("x", seq, "2026-01-01T00:00:00+00:00", kind, "n", 1, data)


def test_only_the_last_attempt_counts() -> None:
    fields = {"a": {"channel": "flow", "edge": "e", "source": "s", "over": []}}
    wired = event(2, "node.event", event_type="wired", data={"fields": fields})
    events = [event(1, "node.started"), wired]
    assert wired_parameters(events, "n") == fields
    assert wired_parameters(events, "other") == {}
    assert wired_parameters([*events, event(3, "node.started")], "n") == {}
    assert list(describe_sources(fields)) == ["Its 'a' came by the flow from 's'."]


def test_all_that_lost_is_told() -> None:
    fed = {"channel": "link", "edge": "e", "source": "s", "over": ["flow", "inline"]}
    assert list(describe_sources({"a": fed})) == [
        "Its 'a' came by the link from 's', which beats the flow and what is written in it."
    ]
