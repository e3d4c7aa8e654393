from __future__ import annotations

import jsonschema_rs
import pytest
from pydantic import AliasChoices, Field

from planwave.nodes.authoring.node_type import NodeData, NodeType, template
from planwave.nodes.spec import as_document, data_schema, spec_of


class OvenData(NodeData):
    degrees: int = template()
    program: str = template("bake")
    steps: list[str] | None = template(None)
    minutes: int = Field(30, validation_alias=AliasChoices("minutes", "time"))


class Oven(NodeType):
    node_type = "oven"
    Data = OvenData
    example = {"nodes": [{"id": "o", "type": "oven", "data": {"degrees": 180}}], "edges": []}  # noqa: RUF012

    async def run(self, data: OvenData, inputs: object, context: object) -> None: ...


SCHEMA = data_schema(spec_of(Oven()))


@pytest.mark.parametrize(
    ("data", "fits"),
    [
        ({"degrees": 180}, True),
        ({"degrees": "{{ input }}"}, True),
        ({"degrees": "{% if input %}5{% endif %}"}, True),
        ({"degrees": "hot"}, False),
        ({"degrees": 1, "steps": ["a"]}, True),
        ({"degrees": 1, "steps": None}, True),
        ({"degrees": 1, "steps": "{{ input }}"}, True),
        ({"degrees": 1, "steps": "a"}, False),
        ({"degrees": 1, "minutes": "{{ input }}"}, False),
        ({"degrees": 1, "time": 5}, True),
        ({"degrees": 1, "time": "5"}, False),
        ({"degrees": 1, "other": 5}, False),
        ({}, False),
    ],
)
def test_the_schema_takes_what_a_check_takes(data: dict[str, object], fits: bool) -> None:
    assert jsonschema_rs.is_valid(SCHEMA, data) == fits


def test_a_field_keeps_what_its_schema_says_of_it() -> None:
    degrees, steps = SCHEMA["properties"]["degrees"], SCHEMA["properties"]["steps"]
    assert (degrees["title"], degrees["template"]) == ("Degrees", True)
    assert (steps["default"], steps["template"]) == (None, True)
    assert SCHEMA["properties"]["time"]["sameAs"] == "minutes"
    assert SCHEMA["required"] == ["degrees"]


def test_the_example_is_told_with_the_type() -> None:
    assert as_document(spec_of(Oven()))["example"] == Oven.example

    class Bare(NodeType):
        node_type = "bare"

        async def run(self, data: object, inputs: object, context: object) -> None: ...

    assert as_document(spec_of(Bare()))["example"] == {}
