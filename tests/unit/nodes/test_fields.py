"""Data fields that mean more than their value."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.nodes.fields import as_expression, expression_field, graph_field, limited_field
from planwave.nodes.node_type import NodeData
from planwave.nodes.sockets import fields_of


class Data(NodeData):
    when: str = expression_field("value")
    body: dict[str, Any] | None = graph_field("item", "index")
    inner: dict[str, Any] | None = graph_field(names_of="inputs")
    most: int | None = limited_field("loop_items")


def test_what_a_field_is_stands_in_its_schema_and_is_read_from_there() -> None:
    marks = {field.json_name: field.extra for field in fields_of(Data)}
    assert marks == {
        "when": {"expression": True, "names": ["value"]},
        "body": {"graph": True, "names": ["item", "index"]},
        "inner": {"graph": True, "names": [], "namesOf": "inputs"},
        "most": {"limit": "loop_items"},
    }
    schema = Data.model_json_schema()["properties"]
    assert schema["body"]["names"] == ["item", "index"]
    assert [field.json_name for field in fields_of(Data) if field.required] == ["when"]


@pytest.mark.parametrize(
    ("written", "resolved"),
    [("value.go", "{{ value.go }}"), ("{{ value.go }}", "{{ value.go }}"), ("a {{ b }}", "a {{ b }}")],
)  # fmt: skip
def test_an_expression_may_be_written_without_its_braces(written: str, resolved: str) -> None:
    assert as_expression(written) == resolved
