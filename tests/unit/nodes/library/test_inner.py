"""A graph as one node: named and typed inputs, and outputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.nodes.nested_graphs import (
    FakeFlowStore,
    diagnostics_of,
    errors_of,
    graph_document,
    node_document,
    run_to_end,
    values_or_error,
)
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time


async def values_of(graph: dict[str, Any], *types: Any, **options: Any) -> Any:
    """Return the outputs of the node ``n`` by handle, or the error that ended the run."""
    return values_or_error(await run_to_end(graph, *types, **options))


def around(value: Any, into: str = "input", **data: Any) -> dict[str, Any]:
    """Return a graph in which ``n`` is an inner node with a value at one handle."""
    return graph_document(
        node_document("s", "start", initialInput=value),
        node_document("n", "inner", **data),
        edges=[("s", "n", "output", into)],
    )


ECHO = graph_document(node_document("in", "start"), node_document("t", "end"), edges=[("in", "t")])


@virtual_time
async def test_an_entry_node_gets_the_input_unchanged() -> None:
    assert await values_of(around({"a": [1]}, graph=ECHO)) == {"output": {"a": [1]}}


@virtual_time
async def test_without_an_input_the_entry_node_uses_its_own_value() -> None:
    inside = graph_document(
        node_document("in", "start", initialInput="own"),
        node_document("t", "end"),
        edges=[("in", "t")],
    )
    assert await values_of(graph_document(node_document("n", "inner", graph=inside))) == {
        "output": "own"
    }


@virtual_time
async def test_named_inputs_are_variables_of_the_nested_graph() -> None:
    inside = graph_document(
        node_document("a", "text", text="x"),
        node_document("b", "text", text="{{ who }}{{ input }}"),
        edges=[("a", "b")],
    )
    graph = around("Ada", "who", graph=inside, inputs={"who": "text"})
    assert await values_of(graph) == {"output": "Adax"}


@virtual_time
async def test_without_an_input_an_entry_node_gets_the_named_inputs() -> None:
    graph = around(5, "n_items", graph=ECHO, inputs={"n_items": "integer"})
    assert await values_of(graph) == {"output": {"n_items": 5}}


@pytest.mark.parametrize(
    ("value", "kind", "result"),
    [
        (5, "text", "5"),
        ({"a": 1}, "text", '{"a":1}'),
        (5, "number", 5),
        (True, "text", "true"),
        ("5", "any", "5"),
        ([1], "json", [1]),
    ],
)
@virtual_time
async def test_an_input_is_converted_to_its_declared_type(
    value: Any, kind: str, result: Any
) -> None:
    inside = graph_document(node_document("p", "parser", template="{{ x }}"))
    outputs = await values_of(around(value, "x", graph=inside, inputs={"x": kind}))
    assert outputs == {"output": result}


@pytest.mark.parametrize(
    ("value", "kind"), [("five", "number"), ([1], "boolean"), (1.5, "integer")]
)
@virtual_time
async def test_an_input_of_another_type_fails_the_node_with_both_types(
    value: Any, kind: str
) -> None:
    code, message = await values_of(around(value, "x", graph=ECHO, inputs={"x": kind}))
    assert code == "type-mismatch"
    assert f"input 'x' takes {kind}, but got" in message


SPLIT = graph_document(
    node_document("t", "text", text="go"),
    node_document("which", "if", conditions=[{"operator": "equal", "value": "go"}]),
    node_document("yes", "text", text="went"),
    node_document("no", "text", text="stayed"),
    edges=[("t", "which"), ("which", "yes", "condition-0"), ("which", "no", "false")],
)


@virtual_time
async def test_outputs_name_nodes_or_handles_and_carry_their_values() -> None:
    outputs = {"start": "t", "taken": "which.condition-0", "other": "which.false", "no": "no"}
    graph = graph_document(node_document("n", "inner", graph=SPLIT, outputs=outputs))
    assert await values_of(graph) == {"output": "went", "start": "go", "taken": "go"}


@virtual_time
async def test_nodes_after_an_output_without_a_value_are_skipped() -> None:
    graph = graph_document(
        node_document("n", "inner", graph=SPLIT, outputs={"no": "no", "yes": "yes"}),
        node_document("a", "end"), node_document("b", "end"),
        edges=[("n", "a", "no"), ("n", "b", "yes")],
    )  # fmt: skip
    result = await run_to_end(graph)
    assert (result.status, "a" in result.outputs) == ("completed", False)
    assert result.outputs["b"]["output"].value == "went"


@virtual_time
async def test_ids_with_dots_are_distinguished_from_handles() -> None:
    inside = graph_document(
        node_document("a.b", "text", text="dotted"), node_document("a", "text", text="plain")
    )
    outputs = {"one": "a.b", "two": "a.b.output", "three": "a.output"}
    graph = graph_document(node_document("n", "inner", graph=inside, outputs=outputs))
    outputs = await values_of(graph)
    assert (outputs["one"], outputs["two"], outputs["three"]) == ("dotted", "dotted", "plain")


# -- flows


@virtual_time
async def test_a_stored_flow_runs_in_the_named_or_the_live_revision() -> None:
    revisions = [graph_document(node_document("t", "text", text=f"text {n}")) for n in (1, 2)]
    flows = FakeFlowStore(greet=revisions)
    services, _ = services_with(lambda _: [], flows=flows)
    newest = graph_document(node_document("n", "inner", flow={"id": "greet"}))
    assert await values_of(newest, services=services) == {"output": "text 2"}
    first = graph_document(node_document("n", "inner", flow={"id": "greet", "revision": 1}))
    assert await values_of(first, services=services) == {"output": "text 1"}
    # Twice each: the result depends on the flow that there is when the node begins.
    assert flows.requests == [("greet", None)] * 2 + [("greet", 1)] * 2


@virtual_time
async def test_an_unknown_flow_fails_the_node() -> None:
    services, _ = services_with(lambda _: [], flows=FakeFlowStore())
    graph = graph_document(node_document("n", "inner", flow={"id": "none"}))
    code, message = await values_of(graph, services=services)
    assert (code, "no flow 'none'" in message) == ("unknown-flow", True)


@virtual_time
async def test_a_run_without_stored_flows_fails_the_node() -> None:
    code, message = await values_of(
        graph_document(node_document("n", "inner", flow={"id": "greet"}))
    )
    assert code == "no-flows"
    assert "names a stored flow, but this run has no stored flows" in message


# -- findings


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        ({}, ("missing-required-input", "/nodes/0/data/graph")),
        ({"graph": ECHO, "flow": {"id": "f"}}, ("conflicting-field", "/nodes/0/data/flow")),
        ({"graph": ECHO, "inputs": {"x": "text"}}, ("missing-required-input", "/nodes/0/data/inputs/x")),
        ({"graph": ECHO, "inputs": {"x": "word"}}, ("invalid-data", "/nodes/0/data/inputs/x")),
        ({"graph": ECHO, "inputs": {"nodes": "any"}}, ("invalid-data", "/nodes/0/data/inputs/nodes")),
        ({"graph": ECHO, "outputs": {"x": "ghost"}}, ("unknown-handle", "/nodes/0/data/outputs/x")),
        ({"graph": ECHO, "outputs": {"x": "ghost.output"}}, ("unknown-handle", "/nodes/0/data/outputs/x")),
        ({"graph": ECHO, "outputs": {"x": "t.summary"}}, ("unknown-handle", "/nodes/0/data/outputs/x")),
        ({"graph": ECHO, "outputs": {"error": "t"}}, ("invalid-data", "/nodes/0/data/outputs/error")),
    ],
)  # fmt: skip
def test_invalid_data_are_found(data: dict[str, Any], finding: tuple[str, str]) -> None:
    assert errors_of(graph_document(node_document("n", "inner", **data))) == [finding]


def test_a_wire_into_no_input_is_found_and_names_are_known_in_the_nested_graph() -> None:
    inside = graph_document(node_document("t", "text", text="{{ who }} {{ whom }}"))
    graph = around("Ada", "who", graph=inside, inputs={"who": "text"})
    (found,) = diagnostics_of(graph)
    assert (found.code, found.pointer) == (
        "template-undefined", "/nodes/1/data/graph/nodes/0/data/text",
    )  # fmt: skip
    assert "who" in str(found.hint).split(", ")
    (found,) = diagnostics_of(around("Ada", "what", graph=ECHO))
    assert (found.code, found.pointer) == ("unknown-handle", "/nodes/1/data/inputs")


def test_an_edge_through_no_output_is_found() -> None:
    inner = node_document("n", "inner", graph=ECHO, outputs={"short": "t"})
    graph = graph_document(inner, node_document("x", "end"), edges=[("n", "x", "shrot", "input")])
    (found,) = diagnostics_of(graph)
    assert (found.code, found.pointer) == ("unknown-handle", "/edges/0/sourceHandle")
    assert found.hint == "did you mean 'short'?"
    for handle in ("short", "output"):
        graph = graph_document(
            inner, node_document("x", "end"), edges=[("n", "x", handle, "input")]
        )
        assert diagnostics_of(graph) == []


def test_unreadable_inputs_cause_no_findings_in_the_nested_graph() -> None:
    inside = graph_document(node_document("t", "text", text="{{ who }}"))
    assert errors_of(graph_document(node_document("n", "inner", graph=inside, inputs=["who"]))) == [
        ("invalid-data", "/nodes/0/data/inputs")
    ]
