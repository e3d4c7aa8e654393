from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema_rs
import pytest
from pydantic import AliasChoices, Field

from planwave.graph.protocols import ReusableResult
from planwave.nodes.authoring.node_type import NodeData, NodeType, template
from planwave.nodes.library import LIBRARY
from planwave.nodes.sockets import SOCKET_STYLES
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


SCHEMA = data_schema(spec_of(Oven()).model)


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
def test_the_schema_accepts_the_same_data_as_the_check(data: dict[str, object], fits: bool) -> None:
    assert jsonschema_rs.is_valid(SCHEMA, data) == fits


def test_the_schema_has_title_default_template_and_aliases() -> None:
    degrees, steps = SCHEMA["properties"]["degrees"], SCHEMA["properties"]["steps"]
    assert (degrees["title"], degrees["template"]) == ("Degrees", True)
    assert (steps["default"], steps["template"]) == (None, True)
    assert SCHEMA["properties"]["time"]["sameAs"] == "minutes"
    assert SCHEMA["required"] == ["degrees"]


def test_the_example_is_part_of_the_types_document() -> None:
    assert as_document(spec_of(Oven()), SOCKET_STYLES)["example"] == Oven.example


@pytest.mark.parametrize("cls", LIBRARY, ids=lambda cls: cls.node_type)
def test_the_document_of_every_type_of_the_library_is_json(cls: type[NodeType]) -> None:
    assert json.loads(json.dumps(as_document(spec_of(cls()), SOCKET_STYLES)))["node_type"]


def test_every_type_of_the_library_has_an_example_file_and_every_file_a_type() -> None:
    folder = resources.files("planwave.nodes").joinpath("examples")
    files = {item.name.removesuffix(".json") for item in folder.iterdir()}
    assert {cls.node_type for cls in LIBRARY} == files
    assert all(spec_of(cls()).example["nodes"] for cls in LIBRARY)


def test_methods_with_their_former_names_work_with_a_warning() -> None:
    class Old:
        node_type = "old"

        async def execute(self, data: object, inputs: object, context: object) -> Any: ...

        def find_faults(self, data: object, view: object) -> Any:
            return ["checked"]

        async def follows_from(self, data: object, inputs: object, context: object) -> Any:
            return "clock"

    implementation: Any = Old()
    with pytest.warns(DeprecationWarning, match="find_faults|follows_from"):
        spec = spec_of(implementation)
    assert spec.needs_check_empty
    assert implementation.check(None, None) == ["checked"]
    assert isinstance(implementation, ReusableResult)


def test_a_method_with_the_current_name_has_priority_over_a_former_one() -> None:
    class Both(Oven):
        def check(self, data: object, view: object) -> Any:
            return ["present"]

        def find_faults(self, data: object, view: object) -> Any:
            return ["former"]

    assert spec_of(Both()).implementation.check(None, None) == ["present"]

    class Bare(NodeType):
        node_type = "bare"

        async def run(self, data: object, inputs: object, context: object) -> None: ...

    assert as_document(spec_of(Bare()), SOCKET_STYLES)["example"] == {}


def test_a_method_that_is_none_is_none() -> None:
    class Linked(Oven):
        execute = None

        async def materialize(self, data: object, output_handle: str, context: object) -> None: ...

    info = spec_of(Linked()).type_info
    assert (info.executes, info.materializes) == (False, True)
