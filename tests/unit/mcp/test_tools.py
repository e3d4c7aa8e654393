"""What is read of a server's tools; the list comes from a server that may be hostile."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import Tool, ToolAnnotations

from planwave.mcp.tools import ServerTool, read_tools
from planwave.nodes.agents.server_schemas import usable_schema

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


def listed(name: str = "act", **fields: Any) -> Tool:
    return Tool(**{"name": name, "input_schema": OBJECT, **fields})


def read_one(tool: Tool) -> ServerTool:
    (read,) = read_tools([tool]).tools.values()
    return read


@pytest.mark.parametrize(
    ("hints", "reads_only", "is_repeatable"),
    [
        (None, False, False),
        ({}, False, False),
        ({"read_only_hint": True}, True, False),
        ({"idempotent_hint": True}, False, True),
        ({"read_only_hint": False, "destructive_hint": False}, False, False),
        ({"read_only_hint": True, "destructive_hint": True}, False, False),
    ],
)
def test_a_server_says_what_its_tools_do(
    hints: dict[str, bool] | None, reads_only: bool, is_repeatable: bool
) -> None:
    read = read_one(listed(annotations=None if hints is None else ToolAnnotations(**hints)))
    assert (read.reads_only, read.is_repeatable) == (reads_only, is_repeatable)


def test_the_key_of_a_call_is_no_argument_for_models() -> None:
    text = {"type": "string"}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"a": text, "idempotency_key": text},
        "required": ["a", "idempotency_key"],
    }
    read = read_one(listed(input_schema=schema))
    assert read.parameters == {"type": "object", "properties": {"a": text}, "required": ["a"]}
    assert (read.takes_key, read.is_repeatable) == (True, False)


def test_descriptions_are_cut_and_hold_nothing_that_cannot_be_seen() -> None:
    hidden = "a\x1b[31m\u200bb\U000e0041\n\tc"
    assert read_one(listed(description=hidden)).description == "a[31mb\n\tc"
    assert read_one(listed(description="x" * 5_000)).description == "x" * 4_000 + "…"
    assert read_one(listed(title="Act")).description == "Act"


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (listed("n" * 129), "has no usable name"),
        (listed("a\nb"), "has no usable name"),
        (listed(input_schema={"type": "array"}), "is no object"),
        (listed(input_schema={}), "is no object"),
    ],
)
def test_a_tool_that_cannot_be_used_is_left_out_with_a_reason(tool: Tool, problem: str) -> None:
    found = read_tools([tool, listed("good")])
    assert list(found.tools) == ["good"]
    assert len(found.problems) == 1
    assert problem in found.problems[0]
    assert len(found.problems[0]) < 300


def test_a_schema_that_is_adapted_is_noted_with_the_name_of_its_tool() -> None:
    odd = {**OBJECT, "properties": {"a": {"pattern": "(?=a)"}}}
    found = read_tools([listed("odd", input_schema=odd), listed("good")], usable_schema)
    assert found.tools["odd"].parameters == {**OBJECT, "properties": {"a": {}}}
    assert found.tools["good"].parameters == OBJECT
    assert found.problems == ()
    assert found.notes == (
        "the tool 'odd' is offered without the parts of its schema that planwave cannot check "
        "(/properties/a/pattern); the server checks its arguments itself",
    )


def test_a_name_that_is_listed_twice_is_used_once() -> None:
    found = read_tools([listed(description="1"), listed(description="2")])
    assert found.tools["act"].description == "1"
    assert found.problems == ("the tool 'act' is listed twice",)


def test_a_tool_is_another_one_when_the_server_describes_it_differently() -> None:
    assert read_one(listed()) == read_one(listed())
    assert read_one(listed()) != read_one(listed(output_schema=OBJECT))


@pytest.mark.parametrize(
    "change",
    [
        {"description": "Another."},
        {"input_schema": {**OBJECT, "required": ["a"]}},
        {"output_schema": OBJECT},
        {"annotations": ToolAnnotations(read_only_hint=True)},
        {"title": "Act"},
    ],
)
def test_whatever_a_server_says_of_a_tool_is_in_its_fingerprint(change: dict[str, Any]) -> None:
    same = {"properties": {}, "type": "object"}
    assert read_one(listed()).fingerprint == read_one(listed(input_schema=same)).fingerprint
    assert read_one(listed()).fingerprint != read_one(listed(**change)).fingerprint
