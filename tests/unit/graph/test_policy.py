"""Policies are read strictly, every fault with its pointer."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import DEFAULT_POLICY, Policy, Retry
from planwave.graph.policy import read_policy


def test_every_field_is_read() -> None:
    document = {
        "join": "any",
        "retry": {"attempts": 10, "backoffS": 0},
        "timeoutS": 0.5,
        "onError": "default",
        "default": {"handle": "output", "value": None},
        "effect": "once",
    }
    policy, faults = read_policy(document, "/p")
    assert faults == []
    default = {"handle": "output", "value": None}
    assert policy == Policy("any", Retry(10, 0), 0.5, "default", default, "once")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"join": None, "retry": None, "timeoutS": None, "onError": None, "default": None},
        {"retry": {}},
        {"retry": {"attempts": None, "backoffS": None}},
    ],
)
def test_what_is_left_out_or_null_has_its_default(document: dict[str, Any]) -> None:
    assert read_policy(document, "/p") == (DEFAULT_POLICY, [])


@pytest.mark.parametrize(
    ("document", "code", "pointer"),
    [
        ({"join": "some"}, "invalid-field", "/p/join"),
        ({"join": ["all"]}, "invalid-field", "/p/join"),
        ({"retry": 3}, "invalid-field", "/p/retry"),
        ({"retry": {"attempts": 0}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"attempts": 11}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"attempts": 2.0}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"attempts": True}}, "invalid-field", "/p/retry/attempts"),
        ({"retry": {"backoffS": -0.1}}, "invalid-field", "/p/retry/backoffS"),
        ({"retry": {"backoffS": "1"}}, "invalid-field", "/p/retry/backoffS"),
        ({"retry": {"max": 1}}, "unknown-field", "/p/retry/max"),
        ({"timeoutS": 0}, "invalid-field", "/p/timeoutS"),
        ({"timeoutS": False}, "invalid-field", "/p/timeoutS"),
        ({"onError": "ignore"}, "invalid-field", "/p/onError"),
        ({"onError": "default"}, "missing-field", "/p/default"),
        ({"onError": "default", "default": 1}, "invalid-field", "/p/default"),
        ({"onError": "default", "default": {"value": 1}}, "missing-field", "/p/default/handle"),
        ({"onError": "default", "default": {"handle": "o"}}, "missing-field", "/p/default/value"),
        (
            {"onError": "default", "default": {"handle": "", "value": 1}},
            "invalid-field",
            "/p/default/handle",
        ),
        (
            {"onError": "default", "default": {"handle": 1, "value": 1}},
            "invalid-field",
            "/p/default/handle",
        ),
        ({"default": {"handle": "o", "value": 1}}, "invalid-field", "/p/default"),
        ({"effect": "maybe"}, "invalid-field", "/p/effect"),
        ({"a/b": 1}, "unknown-field", "/p/a~1b"),
    ],
)
def test_a_fault_is_named_where_it_stands(
    document: dict[str, Any], code: str, pointer: str
) -> None:
    policy, faults = read_policy(document, "/p")
    assert [(d.code, d.pointer) for d in faults] == [(code, pointer)]
    assert policy == DEFAULT_POLICY


def test_all_faults_are_named_at_once() -> None:
    _, faults = read_policy({"join": 1, "timeoutS": -1, "effect": 2, "x": 3}, "")
    assert {d.pointer for d in faults} == {"/join", "/timeoutS", "/effect", "/x"}
