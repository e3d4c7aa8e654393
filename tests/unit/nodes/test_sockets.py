from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import planwave
from planwave.graph.model import Graph, Json, Node, Policy
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.nodes.spec import as_document, spec_of
from tests.support.graph.builders import make_edge

REGISTRY = Registry(LIBRARY)


def ports_of(
    node_type: str,
    data: Mapping[str, Json],
    *leaving: str,
    entering: tuple[str, ...] = (),
    policy: Policy = Policy(),  # noqa: B008 - immutable
) -> dict[str, Any]:
    node = Node("n", node_type, "N", data=data, policy=policy)
    edges = [
        *(make_edge("n", f"t{i}", source_handle=handle) for i, handle in enumerate(leaving)),
        *(make_edge(f"s{i}", "n", target_handle=handle) for i, handle in enumerate(entering)),
    ]
    return REGISTRY.node_ports(Graph((node,), tuple(edges))).get("n", {})


CASES: list[tuple[str, dict[str, Any], list[str], dict[str, str]]] = [
    ("conditional", {}, [], {"true": "True", "false": "False"}),
    ("conditional", {}, ["false", "error"], {"true": "True", "false": "False"}),
    ("conditional", {}, ["de", "en"], {"de": "de", "en": "en"}),
    (
        "conditional",
        {"outputHandles": ["de", "en"], "defaultHandle": "other"},
        ["fr"],
        {"de": "de", "en": "en", "other": "other"},
    ),
    ("if", {"conditions": [{}]}, [], {"condition-0": "True", "false": "False"}),
    ("if", {}, [], {"condition-0": "True", "false": "False"}),
    (
        "if",
        {"conditions": [{}, {}]},
        [],
        {"condition-0": "Condition 1", "condition-1": "Condition 2", "false": "Otherwise"},
    ),
    (
        "if",
        {"conditions": "{{ input }}"},
        ["condition-1", "condition-x", "condition-9999999"],
        {"condition-0": "Condition 1", "condition-1": "Condition 2", "false": "Otherwise"},
    ),
    (
        "switch",
        {"cases": ["de", 7, "x" * 99]},
        [],
        {"case-0": "de", "case-1": "7", "case-2": "x" * 40, "default": "Default"},
    ),
    ("switch", {"cases": "{{ input }}"}, [], {"case-0": "Case 1", "default": "Default"}),
    ("approval", {}, [], {"approve": "approve", "reject": "reject"}),
    ("approval", {"actions": ["ship", "", 7, "ship"]}, ["no"], {"ship": "ship"}),
    ("approval", {"actions": "{{ input }}"}, ["yes", "error"], {"yes": "yes"}),
    ("inner", {"outputs": {"short": "a.output"}}, [], {"output": "Data", "short": "short"}),
    ("inner", {"outputs": ["no", "object"]}, [], {"output": "Data"}),
]


@pytest.mark.parametrize(("node_type", "data", "leaving", "labels"), CASES)
def test_outputs_of_a_configured_node(
    node_type: str, data: dict[str, Any], leaving: list[str], labels: dict[str, str]
) -> None:
    outputs = ports_of(node_type, data, *leaving)["outputs"]
    assert {port["name"]: port["label"] for port in outputs} == labels
    assert [port["name"] for port in outputs] == list(labels)
    assert {port["side"] for port in outputs} == {"right"}


def test_inputs_of_a_nested_graph_have_their_types_and_fields_stay_sockets() -> None:
    data = {"inputs": {"city": "text", "days": "integer", "odd": ["no type"]}}
    inputs = ports_of("inner", data)["inputs"]
    flowing = [(port["name"], port["type"]) for port in inputs if port["side"] == "left"]
    assert flowing == [("input", "any"), ("city", "text"), ("days", "integer"), ("odd", "any")]
    at_the_bottom = {port["name"] for port in inputs if port["side"] == "bottom"}
    assert at_the_bottom == {"graph", "flow", "inputs", "outputs"}


def test_open_inputs_are_the_handles_of_the_edges() -> None:
    inputs = ports_of("parser", {"template": "x"}, entering=("topic", "input", "topic"))["inputs"]
    shown = [(port["name"], port["label"], port["multiple"]) for port in inputs]
    assert shown[0] == ("input", "Data", True)
    assert shown[-1] == ("topic", "Topic", True)
    assert not any("{" in port["name"] for port in inputs)


def test_a_node_that_continues_on_error_has_an_output_for_it() -> None:
    outputs = ports_of("text", {}, policy=Policy(on_error="continue"))["outputs"]
    assert [(port["name"], port["label"]) for port in outputs] == [
        ("output", "Data"),
        ("output", "Data"),
        ("error", "Error"),
    ]


def test_nodes_with_the_ports_of_their_type_are_not_listed() -> None:
    assert ports_of("text", {}) == ports_of("no_such_type", {}) == {}


def test_parameters_of_a_function_are_inputs_at_the_left() -> None:
    @planwave.node("measure")
    def measure(text: str, most: int = 3) -> int:
        return min(len(text), most)

    inputs = as_document(spec_of(measure), {})["inputs"]
    assert {port["name"]: port["side"] for port in inputs} == {"text": "left", "most": "left"}
