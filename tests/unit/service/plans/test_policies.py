from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import GraphInvalid
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


def test_no_policies_keep_the_graph() -> None:
    assert apply_policies(GRAPH, None) is GRAPH
    assert apply_policies(GRAPH, {}) is GRAPH


def test_given_policy_fields_override_those_of_the_node() -> None:
    changed = apply_policies(GRAPH, {"a": {"timeoutS": 2, "onError": "continue"}})
    a, b = changed.nodes
    assert a.policy == Policy(retry=Retry(3, 1), timeout_s=2, on_error="continue")
    assert b is GRAPH.nodes[1]
    assert GRAPH.nodes[0].policy.timeout_s == 9


def test_null_removes_a_policy_field() -> None:
    a, _ = apply_policies(GRAPH, {"a": {"timeoutS": None, "retry": None}}).nodes
    assert (a.policy, a.policy_document) == (Policy(), None)


def test_changed_policy_round_trips() -> None:
    changed = apply_policies(GRAPH, {"b": {"join": "any"}})
    again, _ = read_graph(changed.to_document())
    assert again.nodes[1].policy == Policy(join="any")


def test_all_errors_are_listed_with_pointers() -> None:
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


def test_policy_values_are_limited() -> None:
    long: dict[str, Any] = {"a": {"onError": "default", "default": {"handle": "x", "value": "yy"}}}
    apply_policies(GRAPH, long, Limits(string_bytes=8))
    long["a"]["default"]["value"] = "y" * 9
    assert faults(long, Limits(string_bytes=8)) == [("limit-exceeded", "/policies/a/default/value")]


async def test_policies_are_checked_before_creation() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await service.plans.create("do it")
        for policy, codes in (
            ({"onError": "continue"}, ["error-unhandled"]),
            ({"retry": {"attempts": 11}}, ["unused-retry", "limit-exceeded"]),
            ({"retry": {"attempts": 2, "on": "rate-limited"}}, ["invalid-field"]),
        ):
            with pytest.raises(GraphInvalid) as caught:
                await service.executions.create(plan.plan_id, policies={"a": policy})
            assert [found.code for found in caught.value.diagnostics] == codes
        assert await service.executions.list() == []
