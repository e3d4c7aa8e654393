"""Data fields that mean more than their value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, Field

from planwave.expressions.json_text import to_text
from planwave.graph.model import FLOW, LINK, DataValue, Port
from planwave.nodes.authoring.data_fields import (
    FIELD_PORT_SIDE,
    DataField,
    accepts,
    as_expression,
    coerce,
    expression_field,
    fields_of,
    graph_field,
    limited_field,
    socket_type,
    value_type,
    with_field_ports,
)
from planwave.nodes.authoring.node_type import NodeData, template


@pytest.mark.parametrize(
    ("annotation", "socket"),
    [
        (str, "text"),
        (str | None, "text"),
        (bool, "boolean"),
        (int, "integer"),
        (float | None, "number"),
        (int | str, "any"),
        (int | float, "number"),
        (Literal["a", "b"], "text"),
        (Literal["a", 1], "any"),
        (list[int], "json"),
        (dict[str, Any], "json"),
        (Mapping[str, int], "json"),
        (BaseModel, "json"),
        (Any, "any"),
        (object, "any"),
    ],
)
def test_python_types_have_socket_types(annotation: Any, socket: str) -> None:
    assert socket_type(annotation) == socket


def test_true_is_boolean_and_not_a_number() -> None:
    assert [value_type(v) for v in (True, 1, 1.0, "", None, [])] == [
        "boolean", "integer", "number", "text", "json", "json",
    ]  # fmt: skip


class _Data(NodeData):
    max_tokens: int
    prompt: str | None = template(None)
    json_output: bool = Field(False, validation_alias=AliasChoices("jsonOutput", "json_mode"))


def test_fields_are_named_as_in_json() -> None:
    assert fields_of(_Data) == (
        DataField("maxTokens", "integer", True, False),
        DataField("prompt", "text", False, True, True, {"template": True}),
        DataField("jsonOutput", "boolean", False, False, aliases=("json_mode",)),
    )
    assert fields_of(None) == ()


def test_each_field_gets_a_port_per_channel_between_fixed_and_open_ports() -> None:
    declared = (Port("{name}"), Port("input"))
    ports = with_field_ports(declared, fields_of(_Data)[:1])
    assert ports == (
        Port("input"),
        Port("maxTokens", "integer", channel=FLOW, side=FIELD_PORT_SIDE),
        Port("maxTokens", "integer", channel=LINK, side=FIELD_PORT_SIDE),
        Port("{name}"),
    )


def test_a_declared_port_replaces_the_ports_of_the_field_with_its_name() -> None:
    assert with_field_ports((Port("prompt", "json"),), fields_of(_Data)[1:2]) == (
        Port("prompt", "json"),
    )


TABLE = {
    ("text", "text"), ("text", "integer"), ("text", "number"), ("text", "boolean"), ("text", "json"),
    ("integer", "integer"), ("number", "number"), ("number", "integer"), ("boolean", "boolean"),
    ("json", "json"), ("date", "date"),
}  # fmt: skip
KINDS = ("text", "integer", "number", "boolean", "json", "date")


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_the_coercion_table(target: str, source: str) -> None:
    assert accepts(target, source) == ((target, source) in TABLE)
    assert accepts("any", source)
    assert accepts(target, "any")


@pytest.mark.parametrize("socket", ["text", "integer", "number", "boolean", "json", "any"])
@pytest.mark.parametrize("value", ["x", "", 3, 2.5, True, None, [1], {"a": "é"}])
@pytest.mark.parametrize("called", ["any", "text", "other"])
def test_coercion_uses_the_actual_type_of_a_value(socket: str, value: Any, called: str) -> None:
    content, refused = coerce(socket, DataValue(called, value))
    kind = value_type(value)
    if accepts(socket, kind):
        assert refused is None
        assert content == (to_text(value) if socket == "text" else value)
    else:
        assert refused == ("null" if value is None else kind)


def test_a_socket_type_outside_json_accepts_values_declared_with_it() -> None:
    assert coerce("date", DataValue("date", "2026-01-01")) == ("2026-01-01", None)
    assert coerce("date", DataValue("any", "2026-01-01")) == ("2026-01-01", None)
    assert coerce("date", DataValue("text", "2026-01-01"))[1] == "text"


def test_null_is_accepted_by_nullable_fields() -> None:
    assert coerce("number", DataValue("json", None), nullable=True) == (None, None)
    assert coerce("text", DataValue("json", None), nullable=True) == (None, None)
    assert coerce("text", DataValue("json", None)) == ("", None)


def test_a_declared_link_port_replaces_only_the_link_port_of_its_field() -> None:
    ports = with_field_ports((Port("prompt", "special", channel=LINK),), fields_of(_Data)[1:2])
    assert ports == (
        Port("prompt", "special", channel=LINK),
        Port("prompt", "text", channel=FLOW, side=FIELD_PORT_SIDE),
    )


class Data(NodeData):
    when: str = expression_field("value")
    body: dict[str, Any] | None = graph_field("item", "index")
    inner: dict[str, Any] | None = graph_field(names_of="inputs")
    most: int | None = limited_field("loop_items")


def test_the_kind_of_a_field_is_stored_in_its_schema() -> None:
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
