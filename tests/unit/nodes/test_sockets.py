from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, Field

from planwave.graph.model import FLOW, LINK, Port
from planwave.nodes.node_type import NodeData, template
from planwave.nodes.sockets import (
    FIELD_SIDE,
    DataField,
    fields_of,
    socket_type,
    value_type,
    with_field_ports,
)


@pytest.mark.parametrize(
    ("annotation", "socket"),
    [
        (str, "text"),
        (str | None, "text"),
        (bool, "boolean"),
        (int, "integer"),
        (float | None, "number"),
        (int | str, "any"),
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
        DataField("jsonOutput", "boolean", False, False, others=("json_mode",)),
    )
    assert fields_of(None) == ()


def test_field_sockets_stand_between_fixed_and_open_ports_one_for_each_channel() -> None:
    declared = (Port("{name}"), Port("input"))
    ports = with_field_ports(declared, fields_of(_Data)[:1])
    assert ports == (
        Port("input"),
        Port("maxTokens", "integer", channel=FLOW, side=FIELD_SIDE),
        Port("maxTokens", "integer", channel=LINK, side=FIELD_SIDE),
        Port("{name}"),
    )


def test_a_declared_port_beats_the_field_of_its_name() -> None:
    assert with_field_ports((Port("prompt", "json"),), fields_of(_Data)[1:2]) == (
        Port("prompt", "json"),
    )
