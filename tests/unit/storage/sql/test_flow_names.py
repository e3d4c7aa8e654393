"""The names of flows: when two are the same, and which graphs name a flow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.storage.records import PlanRecord
from planwave.storage.sql.flow_names import graphs_that_name, name_key
from planwave.storage.sqlite.memory import MemoryStore

AT = "2026-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("Triage", "TRIAGE", True),
        ("Straße", "STRASSE", True),
        ("\u00e9", "e\u0301", True),
        ("\u0390", "\u03aa\u0301", True),
        ("İ", "i", False),
        ("a b", "a  b", False),
        ("o", "0", False),
        ("\ud800", "\ufffd", True),
    ],
)
def test_names_are_the_same_without_regard_to_case(one: str, other: str, are_same: bool) -> None:
    assert (name_key(one) == name_key(other)) == are_same


@pytest.mark.parametrize(
    ("data", "is_named"),
    [
        ({"flow": {"id": "f"}}, True),
        ({"flow": {"name": "triage"}}, True),
        ({"flow": {"name": "TRIAGE", "revision": 3}}, True),
        ({"body": {"nodes": [{"id": "x", "data": {"flow": {"id": "f"}}}]}}, True),
        ({"list": [[{"flow": {"id": "f"}}]]}, True),
        ({"flow": {"id": "g", "name": "other"}}, False),
        ({"flow": "f"}, False),
        ({"flow": {"id": None, "name": 3}}, False),
        ({"text": json.dumps({"flow": {"id": "f"}})}, False),
        ({"other": {"id": "f", "name": "Triage"}}, False),
    ],
)
async def test_graphs_that_name_a_flow_are_found_at_any_depth(
    data: dict[str, Any], is_named: bool
) -> None:
    store = MemoryStore()
    document = {"nodes": [{"id": "n", "data": data}], "edges": []}
    await store.save_plan(PlanRecord("p", AT, "", "Outer", "h", document))
    own = {"nodes": [{"id": "n", "data": {"flow": {"id": "f"}}}]}
    await store.save_plan(PlanRecord("f", AT, "", "Own", "h", own, name="Triage"))
    found = await store._read(lambda connection: list(graphs_that_name(connection, "f", "Triage")))
    assert [title for title, _ in found] == (["Outer"] if is_named else [])
    await store.close()
