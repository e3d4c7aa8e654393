from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import GraphInvalid, UnavailableProvider
from planwave.graph.model import Policy, Retry
from planwave.graph.reading.documents import read_graph
from planwave.service.plans.policies import apply_policies
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

GRAPH, _ = read_graph(
    {
        "nodes": [
            {
                "id": "a",
                "type": "text",
                "policy": {"timeoutS": 9, "retry": {"attempts": 3, "backoffS": 1}},
            },
            {"id": "b", "type": "text"},
        ],
        "edges": [],
    }
)


def faults(policies: Any, limits: Limits | None = None) -> list[tuple[str, str]]:
    with pytest.raises(GraphInvalid) as caught:
        apply_policies(GRAPH, policies, limits)
    return [(found.code, found.pointer) for found in caught.value.diagnostics]


def test_without_policies_the_graph_is_the_same() -> None:
    assert apply_policies(GRAPH, None) is GRAPH
    assert apply_policies(GRAPH, {}) is GRAPH


def test_a_named_field_takes_the_place_of_the_nodes_own_and_the_others_stay() -> None:
    changed = apply_policies(GRAPH, {"a": {"timeoutS": 2, "onError": "continue"}})
    a, b = changed.nodes
    assert a.policy == Policy(retry=Retry(3, 1), timeout_s=2, on_error="continue")
    assert b is GRAPH.nodes[1]
    assert GRAPH.nodes[0].policy.timeout_s == 9


def test_null_takes_a_field_away() -> None:
    a, _ = apply_policies(GRAPH, {"a": {"timeoutS": None, "retry": None}}).nodes
    assert (a.policy, a.policy_document) == (Policy(), None)


def test_what_was_changed_is_written_with_the_graph() -> None:
    changed = apply_policies(GRAPH, {"b": {"join": "any"}})
    again, _ = read_graph(changed.to_document())
    assert again.nodes[1].policy == Policy(join="any")


def test_every_fault_is_told_with_its_place() -> None:
    wrong: dict[str, Any] = {
        "a": {"timeoutS": -1, "retries": 2},
        "b/c": {"join": "any"},
        "b": ["any"],
    }
    assert faults(wrong) == [
        ("unknown-field", "/policies/a/retries"),
        ("invalid-field", "/policies/a/timeoutS"),
        ("unknown-node", "/policies/b~1c"),
        ("invalid-field", "/policies/b"),
    ]


def test_values_are_held_to_the_limits_of_all_json() -> None:
    long: dict[str, Any] = {"a": {"onError": "default", "default": {"handle": "x", "value": "yy"}}}
    apply_policies(GRAPH, long, Limits(string_bytes=8))
    long["a"]["default"]["value"] = "y" * 9
    assert faults(long, Limits(string_bytes=8)) == [("limit-exceeded", "/policies/a/default/value")]


async def test_an_execution_carries_the_policies_it_was_given_and_its_plan_does_not() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id, policies={"a": {"timeoutS": 7}})
        await service.wait(record.execution_id)
        (node,) = (await service.document(record.execution_id))["graph"]["nodes"]
        assert node["policy"] == {"timeoutS": 7}
        stored = (await service.plan(plan.plan_id)).document
        assert "policy" not in stored["nodes"][0]
        assert (await service.state(record.execution_id)).plan_hash == stored["hash"]


async def test_policies_are_checked_with_the_graph_before_anything_is_made() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await service.create_plan("do it")
        for policy, code in (
            ({"onError": "continue"}, "error-unhandled"),
            ({"retry": {"attempts": 11}}, "limit-exceeded"),
        ):
            with pytest.raises(GraphInvalid) as caught:
                await service.create_execution(plan.plan_id, policies={"a": policy})
            assert [found.code for found in caught.value.diagnostics] == [code]
        assert await service.executions() == []


async def test_a_graph_becomes_a_plan_with_its_first_execution_and_not_before() -> None:
    source = '{"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}'
    async with Service(dependencies()) as service:
        plan = await service.read_plan(source)
        assert await service.plans() == []
        record = await service.create_execution(plan)
        assert record.plan_id == plan.plan_id
        assert [kept.plan_id for kept in await service.plans()] == [plan.plan_id]


async def test_a_graph_that_cannot_run_here_leaves_no_plan() -> None:
    agent = '{"id": "a", "type": "agent", "description": "x", "data": {"provider": "off"}}'
    async with Service(dependencies()) as service:
        plan = await service.read_plan(f'{{"nodes": [{agent}], "edges": []}}')
        with pytest.raises(UnavailableProvider):
            await service.create_execution(plan)
        assert await service.plans() == []
