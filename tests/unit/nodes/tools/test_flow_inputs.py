"""The arguments of flows as tools: each has a type, and text that is the JSON of a declared type is read as that."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.start import Start
from planwave.nodes.registry import Registry
from planwave.nodes.subgraphs import prepare
from planwave.nodes.tools.flow_inputs import ANY_VALUE, declared_inputs, input_schema
from planwave.service.flows.flow_tools import read_texts

REGISTRY = Registry(LIBRARY)
ENTRIES = [name for name in REGISTRY.names() if REGISTRY.type_info(name).entry]  # type: ignore[union-attr]


def schema_of(*nodes: dict[str, Any]) -> dict[str, Any]:
    document: Any = {"nodes": list(nodes), "edges": []}
    return input_schema(prepare(read_graph(document)[0], REGISTRY), REGISTRY)


@pytest.mark.parametrize("node_type", ENTRIES)
@pytest.mark.parametrize("count", [1, 2])
def test_every_argument_of_every_entry_type_has_a_type(node_type: str, count: int) -> None:
    nodes = [{"id": f"n{number}", "type": node_type, "data": {}} for number in range(count)]
    schema = schema_of(*nodes)
    assert schema["properties"]
    for name, argument in schema["properties"].items():
        assert argument["type"], name
        assert "array" not in argument["type"] or "items" in argument


def test_a_start_node_declares_the_type_of_its_input() -> None:
    declared = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "integer"}},
    }
    start = {"id": "s", "type": "start", "description": "What to do.", "data": {"schema": declared}}
    schema = schema_of(start)
    assert schema["required"] == ["input"]
    assert schema["properties"]["input"] == {
        "type": "object", "properties": {"a": {"type": "integer"}}, "description": "What to do.",
    }  # fmt: skip


NUMBER, TEXT = {"type": "number"}, {"type": "string"}


@pytest.mark.parametrize(
    ("argument", "sent", "read"),
    [
        (NUMBER, "3", 3), (NUMBER, "x", "x"), (NUMBER, 3, 3), (TEXT, "3", "3"), (TEXT, '"a"', '"a"'),
        ({"type": "boolean"}, "true", True), ({"type": "array"}, "[1]", [1]), ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": ["string", "null"]}, "null", "null"), ({"enum": [1, 2]}, "2", 2), ({"enum": ["1", 2]}, "1", "1"),
        (ANY_VALUE, "3", 3), (ANY_VALUE, "three", "three"), (ANY_VALUE, '"3"', '"3"'), (ANY_VALUE, "007", "007"),
        (ANY_VALUE, "12345678901234567890", 12345678901234567890), ({**ANY_VALUE, "description": "d"}, "[]", []),
    ],
)  # fmt: skip
def test_text_is_read_as_the_declared_type(argument: Any, sent: Any, read: Any) -> None:
    schema = {"type": "object", "properties": {"a": argument}}
    found = read_texts(schema, {"a": sent, "other": sent})
    assert found == {"a": read, "other": sent}
    assert type(found["a"]) is type(read)


class Careless(Start):
    """An entry type of somebody's own, which reads a field that its nodes may lack."""

    node_type = "careless"

    def input_schema(self, data: Any) -> dict[str, Any]:
        return {"type": "string", "maxLength": data["longest"]}


def test_a_type_that_cannot_say_its_inputs_hides_nothing_else() -> None:
    document = {"nodes": [{"id": "s", "type": "careless", "data": {}}], "edges": []}
    assert declared_inputs(document, Registry([*LIBRARY, Careless()])) is None
    document["nodes"][0]["data"] = {"longest": 3}
    declared = declared_inputs(document, Registry([*LIBRARY, Careless()]))
    assert declared is not None
    assert declared["properties"]["input"]["maxLength"] == 3
