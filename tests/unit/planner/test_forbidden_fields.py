"""Fields that a plan may not set are refused, and their values are seen by nobody."""

from __future__ import annotations

import json

import pytest

from planwave.planner.forbidden_fields import REDACTED, redact_forbidden


def reply(**data: object) -> dict[str, object]:
    return {"nodes": [{"id": "a", "data": data}], "edges": []}


@pytest.mark.parametrize(
    "field",
    ["api_key", "apiKey", "API-KEY", "base_url", "baseUrl", "command", "auto_approve", "password"],
)
def test_a_forbidden_field_is_reported_without_its_value(field: str) -> None:
    left, kept, faults = redact_forbidden(reply(**{field: "sk-live-123", "prompt": "ok"}))
    assert left == reply(prompt="ok")
    assert kept == reply(**{field: REDACTED, "prompt": "ok"})
    assert [f.code for f in faults] == ["forbidden-field"]
    assert faults[0].pointer == f"/nodes/0/data/{field}"
    assert field in faults[0].message
    assert "sk-live-123" not in json.dumps([kept, [f.as_json() for f in faults]])


def test_forbidden_fields_are_found_at_any_depth_and_all_at_once() -> None:
    servers = [{"env": {"A": "s1"}}, {"deep": [{"secret": "s2"}]}]
    _, kept, faults = redact_forbidden(reply(servers=servers))
    assert [f.pointer for f in faults] == [
        "/nodes/0/data/servers/0/env",
        "/nodes/0/data/servers/1/deep/0/secret",
    ]
    assert "s1" not in json.dumps(kept)
    assert "s2" not in json.dumps(kept)


def test_a_plan_cannot_lower_a_side_effect_class() -> None:
    value = {"nodes": [{"id": "a", "policy": {"effect": "none", "join": "any"}}]}
    left, _, faults = redact_forbidden(value)
    assert left == {"nodes": [{"id": "a", "policy": {"join": "any"}}]}
    assert [f.pointer for f in faults] == ["/nodes/0/policy/effect"]


def test_other_fields_pass_unchanged() -> None:
    value = reply(maxTokens=5, prompt="my password is secret", effect="sound", tokens=[1])
    left, kept, faults = redact_forbidden(value)
    assert left is value
    assert kept is value
    assert faults == []
