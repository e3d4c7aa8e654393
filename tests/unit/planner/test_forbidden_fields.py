"""Fields that a plan may not set are reported, and their values are redacted."""

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
    allowed, redacted, findings = redact_forbidden(reply(**{field: "sk-live-123", "prompt": "ok"}))
    assert allowed == reply(prompt="ok")
    assert redacted == reply(**{field: REDACTED, "prompt": "ok"})
    assert [f.code for f in findings] == ["forbidden-field"]
    assert findings[0].pointer == f"/nodes/0/data/{field}"
    assert field in findings[0].message
    assert "sk-live-123" not in json.dumps([redacted, [f.as_json() for f in findings]])


def test_forbidden_fields_are_found_at_any_depth_and_all_at_once() -> None:
    servers = [{"env": {"A": "s1"}}, {"deep": [{"secret": "s2"}]}]
    _, redacted, findings = redact_forbidden(reply(servers=servers))
    assert [f.pointer for f in findings] == [
        "/nodes/0/data/servers/0/env",
        "/nodes/0/data/servers/1/deep/0/secret",
    ]
    assert "s1" not in json.dumps(redacted)
    assert "s2" not in json.dumps(redacted)


def test_a_plan_cannot_lower_a_side_effect_class() -> None:
    value = {"nodes": [{"id": "a", "policy": {"effect": "none", "join": "any"}}]}
    allowed, _, findings = redact_forbidden(value)
    assert allowed == {"nodes": [{"id": "a", "policy": {"join": "any"}}]}
    assert [f.pointer for f in findings] == ["/nodes/0/policy/effect"]


def test_other_fields_pass_unchanged() -> None:
    value = reply(maxTokens=5, prompt="my password is secret", effect="sound", tokens=[1])
    allowed, redacted, findings = redact_forbidden(value)
    assert allowed is value
    assert redacted is value
    assert findings == []
