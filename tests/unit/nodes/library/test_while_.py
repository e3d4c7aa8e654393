"""A graph again and again: when it ends, and what each round is given."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.settings import Limits
from tests.support.nodes.nested_graphs import (
    WorkNode,
    errors_of,
    graph_document,
    node_document,
    result_key_of,
    run_node,
    run_to_end,
)
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time

NEXT = graph_document(node_document("b", "parser", template="{{ value.next }}"))


def chain(rounds: int) -> Any:
    """A value that is gone through in so many rounds of ``NEXT``."""
    value: Any = {"goes": False, "left": "done"}
    for number in range(rounds):
        value = {"goes": True, "next": value, "number": number}
    return value


@pytest.mark.parametrize("rounds", [0, 1, 5])
@virtual_time
async def test_rounds_run_while_the_condition_holds(rounds: int) -> None:
    outputs = await run_node("while", condition="value.goes", initial=chain(rounds), body=NEXT)
    assert outputs == {"output": {"goes": False, "left": "done"}, "iterations": rounds}


@virtual_time
async def test_each_round_gets_the_previous_value_and_its_index() -> None:
    work = WorkNode()
    inside = graph_document(
        node_document("b", "parser", template="{{ value.next }}"),
        node_document("w", "work", value="{{ index }}"),
    )
    inside["nodes"].append(node_document("e", "end"))
    inside["edges"] = graph_document(edges=[("b", "e")])["edges"]
    outputs = await run_node(
        "while", work, condition="{{ value.goes }}", initial=chain(3), body=inside
    )
    assert outputs["iterations"] == 3
    assert work.values == [0, 1, 2]


@virtual_time
async def test_the_entry_node_of_the_body_gets_the_value_and_the_input_is_the_first() -> None:
    inside = graph_document(
        node_document("in", "start"),
        node_document("b", "parser", template="{{ input.next }}"),
        edges=[("in", "b")],
    )
    graph = graph_document(
        node_document("s", "start", initialInput=chain(2)),
        node_document("n", "while", condition="value.goes", body=inside),
        edges=[("s", "n")],
    )
    result = await run_to_end(graph)
    assert result.outputs["n"]["output"].value == {"goes": False, "left": "done"}
    assert result.outputs["n"]["iterations"].value == 2


@virtual_time
async def test_without_input_the_first_value_is_the_empty_text() -> None:
    outputs = await run_node("while", condition="'false'", body=NEXT)
    assert outputs == {"output": "", "iterations": 0}


@virtual_time
async def test_the_condition_may_read_the_input_of_the_node() -> None:
    graph = graph_document(
        node_document("s", "start", initialInput={"go": False}),
        node_document("n", "while", condition="input.go", body=NEXT, initial="kept"),
        edges=[("s", "n")],
    )
    result = await run_to_end(graph)
    assert result.outputs["n"]["output"].value == "kept"


@pytest.mark.parametrize(
    ("value", "rounds"), [(True, 1), (False, 0), ("true", 1), (" False ", 0), ("TRUE\n", 1)]
)
@virtual_time
async def test_true_and_false_may_be_text(value: Any, rounds: int) -> None:
    initial = {"goes": value, "next": {"goes": False}}
    outputs = await run_node("while", condition="value.goes", initial=initial, body=NEXT)
    assert outputs["iterations"] == rounds


@pytest.mark.parametrize("value", [1, 0, None, "yes", "", [], {"a": 1}, 0.5])
@virtual_time
async def test_a_condition_of_another_type_fails_the_node(value: Any) -> None:
    code, message = await run_node(
        "while", condition="value.goes", initial={"goes": value}, body=NEXT
    )
    assert code == "not-a-boolean"
    assert "the condition of 'n' gives neither true nor false, but" in message


async def test_a_condition_may_use_comparisons_and_filters() -> None:
    twice = graph_document(node_document("t", "text", text="{{ value }}{{ value }}"))
    outputs = await run_node(
        "while", condition="value | length < 10 and index < 9", initial="ab", body=twice
    )
    assert outputs == {"output": "ab" * 8, "iterations": 3}


@virtual_time
async def test_a_failing_round_fails_the_node() -> None:
    inside = graph_document(node_document("b", "work", fails=True, value="it"))
    code, message = await run_node("while", WorkNode(), condition="'true'", body=inside)
    assert code == "nested-run-failed"
    assert "it went wrong" in message


@virtual_time
async def test_more_rounds_than_allowed_fail_the_node() -> None:
    data = {"condition": "value.goes", "initial": chain(3), "body": NEXT}
    assert (await run_node("while", **data, maxIterations=3))["iterations"] == 3
    assert await run_node("while", **data, maxIterations=2) == (
        "limit-exceeded",
        "node 'n' failed: rounds of 'n': data.maxIterations is 2, met 3",
    )
    services, _ = services_with(lambda _: [], limits=Limits(loop_rounds=2))
    result = await run_to_end(
        graph_document(node_document("n", "while", **data)), services=services
    )
    assert result.error is not None
    assert "limit loop_rounds for rounds of 'n' is 2, met 3" in result.error["message"]


@virtual_time
async def test_the_default_maximum_is_a_hundred_rounds() -> None:
    work = WorkNode()
    code, message = await run_node(
        "while", work, condition="'true'", body=graph_document(node_document("b", "work"))
    )
    assert (code, len(work.values)) == ("limit-exceeded", 100)
    assert "data.maxIterations is 100, met 101" in message


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        ({"body": NEXT}, ("missing-required-input", "/nodes/0/data/condition")),
        ({"condition": "value"}, ("missing-required-input", "/nodes/0/data/body")),
        ({"condition": "", "body": NEXT}, ("invalid-data", "/nodes/0/data/condition")),
        ({"condition": "value <", "body": NEXT}, ("template-syntax", "/nodes/0/data/condition")),
        ({"condition": "value | nope", "body": NEXT}, ("template-forbidden", "/nodes/0/data/condition")),
        ({"condition": "{{ value", "body": NEXT}, ("template-syntax", "/nodes/0/data/condition")),
        ({"condition": "item > 1", "body": NEXT}, ("template-undefined", "/nodes/0/data/condition")),
        ({"condition": "input.go", "body": NEXT}, ("template-undefined", "/nodes/0/data/condition")),
        ({"condition": "value.x and index < 3 and goal", "body": NEXT}, None),
    ],
)  # fmt: skip
def test_invalid_data_are_found(data: dict[str, Any], finding: tuple[str, str] | None) -> None:
    assert errors_of(graph_document(node_document("n", "while", **data))) == (
        [] if finding is None else [finding]
    )


@virtual_time
async def test_an_invalid_wired_condition_fails_the_node_with_its_field() -> None:
    graph = graph_document(
        node_document("g", "text", text="value <"),
        node_document("n", "while", initial=1, body=NEXT),
        edges=[("g", "n", "output", "condition")],
    )
    result = await run_to_end(graph)
    assert result.error is not None
    assert result.error["message"].startswith("node 'n' failed: data.condition: ")


@pytest.mark.parametrize(
    ("condition", "counts"),
    [
        ('nodes["x"].output', {"x"}),
        ("{{ nodes.x.output }}", {"x"}),
        ('nodes["x"].output < nodes["y"].output', {"x", "y"}),
        ("nodes[value].output", {"x", "y", "m"}),
        ("value < 3", set[str]()),
    ],
)
async def test_the_result_key_contains_the_nodes_that_the_condition_names(
    condition: str, counts: set[str]
) -> None:
    body = graph_document(node_document("n", "text", text="{{ value }}"))
    graph = graph_document(
        node_document("x", "text", text="x"), node_document("y", "text", text="y"), node_document("m", "text", text="m"),
        node_document("w", "while", initial=1, condition=condition, body=body),
        edges=[("x", "m"), ("y", "m"), ("m", "w", "output", "nowhere")],
    )  # fmt: skip
    results: dict[str, Any] = {"x": 1, "y": 1}
    before = await result_key_of(graph, "w", **results, m=1)
    for node_id in ("x", "y"):
        changed = await result_key_of(graph, "w", **{**results, node_id: 2}, m=1)
        assert (changed != before) is (node_id in counts)
