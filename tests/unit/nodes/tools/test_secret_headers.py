"""One mechanism for headers with secrets: every type that has them has the same field and the same rules."""

from __future__ import annotations

import pytest

from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.nodes.node_checks import check_node

REGISTRY = Registry(LIBRARY).with_providers(None, secrets={"crm"})
TYPES = [
    name
    for name in REGISTRY.names()
    if "secretHeaders" in REGISTRY.type_info(name).data_fields  # type: ignore[union-attr]
]
BASE = {
    "fetch": {"url": "https://api.test/"},
    "http_tool": {"name": "t", "description": "d", "url": "https://api.test/"},
    "sse": {"url": "https://api.test/"},
}


@pytest.mark.parametrize("name", TYPES)
def test_every_type_with_such_headers_has_the_same_rules(name: str) -> None:
    facts = REGISTRY.type_info(name)
    assert facts is not None
    assert "secretHeaders" in facts.policy_fields
    assert "secretHeaders" not in facts.plan_fields
    field = REGISTRY.schema(name)["properties"]["secretHeaders"]
    assert field == REGISTRY.schema("http_tool")["properties"]["secretHeaders"]
    found = {
        text: [each.code for each in check_node(name, data, registry=REGISTRY)]
        for text, header in (
            ("Bearer {crm}", "X-Key"),
            ("{crn}", "X-Key"),
            ("x", "X-Key"),
            ("{crm}", "Host"),
        )
        if (data := {**BASE[name], "secretHeaders": {header: text}})
    }
    assert {text: [c for c in codes if c != "unused-tool"] for text, codes in found.items()} == {
        "Bearer {crm}": [],
        "{crn}": ["unknown-secret"],
        "x": ["invalid-data"],
        "{crm}": ["invalid-data"],
    }


def test_the_types_with_such_headers() -> None:
    assert TYPES == ["fetch", "http_tool", "sse"]
