"""A graph as one node: what goes in, by name and type, and what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.nodes.inner import Inner
from tests.fakes.nested import StoredFlows, Work, document, faults_of, findings_of, node, ran
from tests.fakes.node_context import services_with
from tests.fakes.virtual_loop import virtual_time


def around(value: Any, into: str = "input", **data: Any) -> dict[str, Any]:
    """Give a graph in which ``n`` is an inner node that is fed a value at one handle."""
    return document(
        node("s", "start", initialInput=value),
        node("n", "inner", **data),
        edges=[("s", "n", "output", into)],
    )


async def values_of(graph: dict[str, Any], *types: Any, **options: Any) -> Any:
    result = await ran(graph, *types, **options)
    if result.error is not None:
        return result.error["code"], result.error["message"]
    return {handle: value.value for handle, value in result.outputs["n"].items()}


ECHO = document(node("in", "start"), node("t", "end"), edges=[("in", "t")])


@virtual_time
async def test_an_entry_node_gets_the_input_as_it_is() -> None:
    assert await values_of(around({"a": [1]}, graph=ECHO)) == {"output": {"a": [1]}}


@virtual_time
async def test_without_an_input_the_graph_begins_by_itself() -> None:
    inside = document(
        node("in", "start", initialInput="own"), node("t", "end"), edges=[("in", "t")]
    )
    assert await values_of(document(node("n", "inner", graph=inside))) == {"output": "own"}


@virtual_time
async def test_named_inputs_are_variables_everywhere_in_it() -> None:
    inside = document(
        node("a", "text", text="x"),
        node("b", "text", text="{{ who }}{{ input }}"),
        edges=[("a", "b")],
    )
    graph = around("Ada", "who", graph=inside, inputs={"who": "text"})
    assert await values_of(graph) == {"output": "Adax"}


@virtual_time
async def test_without_an_input_an_entry_node_gets_the_named_ones() -> None:
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
async def test_an_input_is_taken_as_the_type_it_is_declared_with(
    value: Any, kind: str, result: Any
) -> None:
    inside = document(node("p", "parser", template="{{ x }}"))
    given = await values_of(around(value, "x", graph=inside, inputs={"x": kind}))
    assert given == {"output": result}


@pytest.mark.parametrize(
    ("value", "kind"), [("five", "number"), ([1], "boolean"), (1.5, "integer")]
)
@virtual_time
async def test_a_value_of_another_type_is_refused_with_both(value: Any, kind: str) -> None:
    code, message = await values_of(around(value, "x", graph=ECHO, inputs={"x": kind}))
    assert code == "type-mismatch"
    assert f"input 'x' takes {kind}, but got" in message


SPLIT = document(
    node("t", "text", text="go"),
    node("which", "if", conditions=[{"operator": "equal", "value": "go"}]),
    node("yes", "text", text="went"),
    node("no", "text", text="stayed"),
    edges=[("t", "which"), ("which", "yes", "condition-0"), ("which", "no", "false")],
)


@virtual_time
async def test_outputs_name_nodes_or_their_handles_and_carry_what_these_gave() -> None:
    outputs = {"start": "t", "taken": "which.condition-0", "other": "which.false", "no": "no"}
    graph = document(node("n", "inner", graph=SPLIT, outputs=outputs))
    assert await values_of(graph) == {"output": "went", "start": "go", "taken": "go"}


@virtual_time
async def test_what_follows_an_output_without_a_value_is_skipped() -> None:
    graph = document(
        node("n", "inner", graph=SPLIT, outputs={"no": "no", "yes": "yes"}),
        node("a", "end"), node("b", "end"),
        edges=[("n", "a", "no"), ("n", "b", "yes")],
    )  # fmt: skip
    result = await ran(graph)
    assert (result.status, "a" in result.outputs) == ("completed", False)
    assert result.outputs["b"]["output"].value == "went"


@virtual_time
async def test_ids_with_dots_are_told_from_handles() -> None:
    inside = document(node("a.b", "text", text="dotted"), node("a", "text", text="plain"))
    outputs = {"one": "a.b", "two": "a.b.output", "three": "a.output"}
    graph = document(node("n", "inner", graph=inside, outputs=outputs))
    given = await values_of(graph)
    assert (given["one"], given["two"], given["three"]) == ("dotted", "dotted", "plain")


@virtual_time
async def test_a_failure_inside_fails_the_node() -> None:
    inside = document(node("b", "work", fails=True, value="it"))
    code, message = await values_of(document(node("n", "inner", graph=inside)), Work())
    assert code == "nested-run-failed"
    assert "it went wrong" in message


# -- flows


@virtual_time
async def test_a_stored_flow_is_run_in_the_version_named_or_its_newest() -> None:
    versions = [document(node("t", "text", text=f"version {n}")) for n in range(2)]
    flows = StoredFlows(greet=versions)
    services, _ = services_with(lambda _: [], flows=flows)
    newest = document(node("n", "inner", flow={"id": "greet"}))
    assert await values_of(newest, services=services) == {"output": "version 1"}
    first = document(node("n", "inner", flow={"id": "greet", "version": "0"}))
    assert await values_of(first, services=services) == {"output": "version 0"}
    assert flows.asked == [("greet", None), ("greet", "0")]


@virtual_time
async def test_a_flow_that_is_not_there_fails_the_node() -> None:
    services, _ = services_with(lambda _: [], flows=StoredFlows())
    graph = document(node("n", "inner", flow={"id": "none"}))
    code, message = await values_of(graph, services=services)
    assert (code, "no flow 'none'" in message) == ("unknown-flow", True)


@virtual_time
async def test_a_run_that_knows_no_flows_says_so() -> None:
    code, message = await values_of(document(node("n", "inner", flow={"id": "greet"})))
    assert code == "no-flows"
    assert "names a stored flow, and this run knows none" in message


# -- findings


@pytest.mark.parametrize(
    ("data", "fault"),
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
def test_what_is_wrong_is_found(data: dict[str, Any], fault: tuple[str, str]) -> None:
    assert faults_of(document(node("n", "inner", **data))) == [fault]


def test_a_wire_into_no_input_is_found_and_names_are_known_inside() -> None:
    inside = document(node("t", "text", text="{{ who }} {{ whom }}"))
    graph = around("Ada", "who", graph=inside, inputs={"who": "text"})
    (found,) = findings_of(graph)
    assert (found.code, found.pointer) == (
        "template-undefined", "/nodes/1/data/graph/nodes/0/data/text",
    )  # fmt: skip
    assert "who" in str(found.hint).split(", ")
    (found,) = findings_of(around("Ada", "what", graph=ECHO))
    assert (found.code, found.pointer) == ("unknown-handle", "/nodes/1/data/inputs")


def test_an_edge_that_leaves_through_no_output_is_found() -> None:
    inner = node("n", "inner", graph=ECHO, outputs={"short": "t"})
    graph = document(inner, node("x", "end"), edges=[("n", "x", "shrot", "input")])
    (found,) = findings_of(graph)
    assert (found.code, found.pointer) == ("unknown-handle", "/nodes/0/data/outputs")
    assert found.hint == "did you mean 'short'?"
    for handle in ("short", "output"):
        graph = document(inner, node("x", "end"), edges=[("n", "x", handle, "input")])
        assert findings_of(graph) == []


def test_names_that_cannot_be_read_are_not_missed_inside() -> None:
    inside = document(node("t", "text", text="{{ who }}"))
    assert faults_of(document(node("n", "inner", graph=inside, inputs=["who"]))) == [
        ("invalid-data", "/nodes/0/data/inputs")
    ]


@virtual_time
async def test_the_example_greets() -> None:
    result = await ran(Inner.example)
    outputs = {handle: value.value for handle, value in result.outputs["greet"].items()}
    assert outputs == {"output": "Hello Ada, welcome!", "short": "Hello Ada"}
