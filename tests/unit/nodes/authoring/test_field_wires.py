"""Wires into data fields: priority, the recorded event, and errors."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import AliasChoices, Field

from planwave.errors import NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, Arrival, DataValue, Edge, Node, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import fields_of
from planwave.nodes.authoring.field_wires import FieldBundle, FieldWires, WiredValue, wired_event
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeType
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events


class LampData(NodeData):
    color: str = "white"
    watts: int | None = None
    is_on: bool = Field(False, validation_alias=AliasChoices("isOn", "lit", "burning"))


KIT = Port("color", "kit", channel=LINK)
PLAIN = FieldWires(fields_of(LampData), (INPUT,))
KITTED = FieldWires(fields_of(LampData), (INPUT, KIT))


def linked_context(**artefacts: Any) -> FlowContext:
    """Return the context of a node with one link into each handle; a tuple makes several."""
    edges: list[Edge] = []
    links: dict[tuple[str, str], list[Any]] = {}
    for handle, artifact in artefacts.items():
        several = artifact if type(artifact) is tuple else (artifact,)
        links["n", handle] = list(several)
        edges += [
            make_edge(f"l{i}", "n", channel=LINK, target_handle=handle, edge_id=f"{handle}{i}")
            for i in range(len(several))
        ]
    return context_for(Node("n", "lamp", "N"), edges=edges, links=links)


async def read_wires(
    wires: FieldWires, data: dict[str, Any], inputs: Inputs, context: FlowContext
) -> dict[str, WiredValue]:
    assert wires.has_wires(inputs, context)
    return await wires.read(data, inputs, context)


async def test_a_flow_wire_overrides_the_written_value_and_a_link_overrides_both() -> None:
    inputs = make_inputs("in", ("color", "red"), ("watts", 5))
    found = await read_wires(PLAIN, {"color": "blue"}, inputs, linked_context(watts=7))
    assert found == {
        "color": WiredValue("red", "flow", "e1", "s1", "color", ("inline",)),
        "watts": WiredValue(7, "link", "watts0", "l0", "watts", ("flow",)),
    }
    assert PLAIN.apply({"color": "blue"}, found) == {"color": "red", "watts": 7}
    assert [a.target_handle for a in PLAIN.unwired(inputs).arrivals] == ["input"]


@pytest.mark.parametrize("spelling", ["isOn", "lit", "burning"])
async def test_a_wire_overrides_a_field_written_under_any_of_its_names(spelling: str) -> None:
    data = {spelling: False, "watts": 3}
    found = await read_wires(PLAIN, data, make_inputs(("isOn", True)), linked_context())
    assert found["isOn"].overridden == ("inline",)
    assert PLAIN.apply(data, found) == {"isOn": True, "watts": 3}


async def test_a_bundle_sets_several_fields_and_wires_into_them_override_it() -> None:
    bundle = FieldBundle("kit", {"color": "red", "watts": 5, "isOn": True})
    inputs = make_inputs(("color", "green"), ("watts", 6))
    found = await read_wires(KITTED, {"isOn": False}, inputs, linked_context(color=bundle))
    assert found == {
        "color": WiredValue("red", "link", "color0", "l0", "color", ("flow",)),
        "watts": WiredValue(6, "flow", "e1", "s1", "watts", ("link",)),
        "isOn": WiredValue(True, "link", "color0", "l0", "color", ("inline",)),
    }


async def test_a_link_into_a_field_overrides_the_bundle() -> None:
    context = linked_context(color=FieldBundle("kit", {"watts": 5}), watts=9)
    found = await read_wires(KITTED, {}, Inputs(), context)
    assert found == {"watts": WiredValue(9, "link", "watts0", "l0", "watts", ())}


async def test_a_plain_value_on_the_handle_of_a_bundle_sets_that_field() -> None:
    found = await read_wires(KITTED, {}, Inputs(), linked_context(color=DataValue("any", "red")))
    assert found["color"] == WiredValue("red", "link", "color0", "l0", "color", ())


@pytest.mark.parametrize(
    ("wires", "inputs", "artefacts", "words"),
    [
        (
            PLAIN,
            make_inputs(("watts", "many")),
            {},
            "node 'n': data.watts takes integer, but the flow edge from 's0' brings text",
        ),
        (
            PLAIN,
            make_inputs(("isOn", None)),
            {},
            "node 'n': data.isOn takes boolean, but the flow edge from 's0' brings null",
        ),
        (
            PLAIN,
            Inputs(),
            {"watts": 2.5},
            "node 'n': data.watts takes integer, but the link edge from 'l0' brings number",
        ),
        (
            PLAIN,
            Inputs(),
            {"color": FieldBundle("kit", {})},
            "node 'n': data.color takes text, but the link edge from 'l0' brings kit",
        ),
        (
            KITTED,
            Inputs(),
            {"color": FieldBundle("other", {})},
            "node 'n': data.color takes kit, but the link edge from 'l0' brings other",
        ),
        (
            KITTED,
            Inputs(),
            {"color": FieldBundle("kit", {"watts": "x"})},
            "node 'n': data.watts takes integer, but the link edge from 'l0' into 'color' brings text",
        ),
        (
            KITTED,
            Inputs(),
            {"color": FieldBundle("kit", {"size": 1, "shade": 2})},
            "node 'n': the kit that 'l0' gives sets size, shade, which this type of node does not",
        ),
    ],
)
async def test_a_value_of_the_wrong_type_is_rejected_with_node_field_and_both_types(
    wires: FieldWires, inputs: Inputs, artefacts: dict[str, Any], words: str
) -> None:
    with pytest.raises(NodeError, match=re.escape(words)) as caught:
        await read_wires(wires, {}, inputs, linked_context(**artefacts))
    assert caught.value.code == "type-mismatch"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("inputs", "artefacts", "words"),
    [
        (make_inputs(("watts", 1), ("watts", 2)), {}, "takes one value, 2 lead into it"),
        (Inputs(), {"watts": (1, 2)}, "takes one link, 2 lead into it"),
    ],
)
async def test_several_wires_of_one_channel_into_one_field_are_rejected(
    inputs: Inputs, artefacts: dict[str, Any], words: str
) -> None:
    with pytest.raises(NodeError, match=words) as caught:
        await read_wires(PLAIN, {}, inputs, linked_context(**artefacts))
    assert caught.value.code == "too-many-inputs"


def test_wires_to_other_handles_set_no_field() -> None:
    assert not PLAIN.has_wires(make_inputs("in", ("lit", True)), linked_context(tools=1))
    assert not FieldWires((), (INPUT,)).has_wires(make_inputs("in"), linked_context(color="x"))


def test_the_wired_event_names_the_source_of_each_field() -> None:
    found = {
        "color": WiredValue("red", "link", "e1", "kit", "color", ("flow", "inline")),
        "watts": WiredValue(5, "link", "e1", "kit", "color"),
    }
    event = wired_event(found, "lamp", linked_context())
    assert event.event_type == "wired"
    assert event.data == {
        "fields": {
            "color": {
                "channel": "link", "edge": "e1", "source": "kit", "over": ["flow", "inline"]
            },
            "watts": {
                "channel": "link", "edge": "e1", "source": "kit", "handle": "color", "over": []
            },
        }
    }  # fmt: skip


class Typed(NodeType):
    """Outputs the values at its declared ports."""

    node_type = "typed"
    inputs = (Port("n", "number"), Port("item-{i}", "integer"), Port("d", "date"), Port("{x}"))

    async def run(self, data: None, inputs: Inputs, context: FlowContext) -> Any:
        return [[a.target_handle, a.value.value] for a in inputs.arrivals]


@pytest.mark.parametrize("value", [("n", 2), ("n", 2.5), ("item-3", 4), ("free", "x"), ("d", "x")])
async def test_declared_ports_accept_values_of_coercible_types(value: Any) -> None:
    result, _ = await result_and_events(Typed().execute({}, make_inputs(value), linked_context()))
    assert result.outputs["output"].value == [list(value)]


@pytest.mark.parametrize(
    ("handle", "value", "words"),
    [
        ("n", "2", "input 'n' takes number, but the flow edge from 's0' brings text"),
        ("item-3", 2.5, "input 'item-3' takes integer, but the flow edge from 's0' brings number"),
    ],
)
async def test_declared_ports_reject_values_of_other_types(
    handle: str, value: Any, words: str
) -> None:
    with pytest.raises(NodeError, match=re.escape(f"node 'n': {words}")) as caught:
        await result_and_events(Typed().execute({}, make_inputs((handle, value)), linked_context()))
    assert caught.value.code == "type-mismatch"


async def test_a_declared_text_port_converts_other_values_to_text() -> None:
    class Loud(NodeType):
        node_type = "loud"
        inputs = (Port("input", "text", multiple=True),)

        async def run(self, data: None, inputs: Inputs, context: FlowContext) -> Any:
            return [list(a.value) for a in inputs.arrivals]

    named = Arrival("e", "s", "S", "output", "input", DataValue("date", "today"))
    inputs = Inputs((*make_inputs(5, {"a": 1}, None).arrivals, named))
    result, _ = await result_and_events(Loud().execute({}, inputs, linked_context()))
    assert result.outputs["output"].value == [
        ["text", "5"], ["text", '{"a":1}'], ["text", ""], ["date", "today"],
    ]  # fmt: skip
