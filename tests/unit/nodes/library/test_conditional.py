from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.model import LINK, DataValue, Node
from planwave.nodes.library.conditional import Conditional
from tests.support.graph.builders import make_edge
from tests.support.nodes.nested_graphs import graph_document, node_document, result_key_of
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("c", "conditional", "C")


async def chosen(data: dict[str, Any], *handles: str) -> str:
    """Return the handle chosen by a node whose edges leave through the given ones."""
    edges = [make_edge("c", f"t{n}", source_handle=h) for n, h in enumerate(handles)]
    edges.append(make_edge("c", "user", source_handle="linked", channel=LINK))
    context = context_for(NODE, edges=edges)
    result, _ = await result_and_events(Conditional().execute(data, make_inputs({"k": 1}), context))
    ((handle, value),) = result.outputs.items()
    assert value == DataValue("any", {"k": 1})
    return handle


@pytest.mark.parametrize(
    ("data", "handles", "handle"),
    [
        ({"condition": "yes"}, ["no", "yes"], "yes"),
        ({"condition": " yes\n"}, ["no", "yes"], "yes"),
        ({"condition": 7}, ["7"], "7"),
        ({"condition": "a", "outputHandles": ["a", "b"]}, [], "a"),
        ({"condition": "", "defaultHandle": "other"}, ["yes"], "other"),
        ({"condition": "what", "defaultHandle": "other"}, ["yes"], "other"),
        ({"condition": "other", "defaultHandle": "other"}, [], "other"),
        ({"condition": "c", "outputHandles": ["a", "b"], "defaultHandle": "b"}, ["c"], "b"),
    ],
)
async def test_the_condition_names_the_handle(
    data: dict[str, Any], handles: list[str], handle: str
) -> None:
    assert await chosen(data, *handles) == handle


@pytest.mark.parametrize("edge", ["true", "false"])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("condition", ["true", "false"])
async def test_a_branch_of_true_and_false_without_an_edge_ends(
    condition: str, edge: str, listed: bool
) -> None:
    data = {"condition": condition} | ({"outputHandles": [edge]} if listed else {})
    assert await chosen(data, edge, "error") == condition


@pytest.mark.parametrize(
    ("data", "handles", "message"),
    [
        (
            {"condition": "maybe"},
            ["no", "yes", "no"],
            "names the handle 'maybe'; there are no, yes",
        ),
        ({"condition": "  "}, ["no"], "names no handle; there are no"),
        ({"condition": "yes"}, [], "names the handle 'yes'; no edge leaves the node"),
        ({"condition": "error"}, ["error", "yes"], "names the handle 'error'; there are yes"),
        ({"condition": "linked"}, ["yes"], "names the handle 'linked'; there are yes"),
        ({"condition": "c", "outputHandles": ["a"]}, ["c"], "names the handle 'c'; there are a"),
    ],
)
async def test_a_condition_that_names_no_handle_fails_with_the_handles(
    data: dict[str, Any], handles: list[str], message: str
) -> None:
    with pytest.raises(NodeError) as caught:
        await chosen(data, *handles)
    assert caught.value.code == "unknown-handle"
    assert caught.value.message == f"the condition of 'c' {message}"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("data", "outputs", "found"),
    [
        ({"outputHandles": ["a", "b"]}, ["a", "b", "error"], []),
        ({"outputHandles": ["a", "b"]}, ["c"], [("unknown-handle", "/sourceHandle")]),
        ({"outputHandles": ["a", "b"], "defaultHandle": "b"}, ["b"], []),
        (
            {"outputHandles": ["a", "b"], "defaultHandle": "c"},
            [],
            [("invalid-data", "/data/defaultHandle")],
        ),
        ({"defaultHandle": "c"}, ["x"], []),
    ],
)
def test_edges_and_the_default_are_checked_against_the_declared_handles(
    data: dict[str, Any], outputs: list[str], found: list[tuple[str, str]]
) -> None:
    data = {"condition": "{{ goal }}", **data}
    assert locations(check_node("conditional", data, outputs=outputs)) == found


@pytest.mark.parametrize(
    ("data", "effect"),
    [
        ({}, "fails"),
        ({"outputHandles": ["yes", "no"]}, "fails"),
        ({"defaultHandle": "no"}, "always chooses 'no'"),
    ],
)
def test_a_condition_without_braces_that_names_no_output_is_a_warning(
    data: dict[str, Any], effect: str
) -> None:
    (found,) = check_node("conditional", {"condition": "score > 3", **data}, outputs=["yes", "no"])
    assert (found.code, found.severity, found.pointer, found.hint) == (
        "literal-condition",
        "warning",
        "/data/condition",
        "write {{ score > 3 }}",
    )
    assert found.message == (
        "node 'n': data.condition is the text 'score > 3', which is no output and is not evaluated without "
        f"braces: the node {effect}"
    )


@pytest.mark.parametrize(
    ("data", "wires"),
    [
        ({"condition": "yes"}, []),
        ({"condition": " no "}, []),
        ({"condition": "other", "defaultHandle": "other"}, []),
        ({"condition": "{{ input.score > 3 }}"}, ["input"]),
        ({"condition": "score > 3"}, ["condition"]),
    ],
)
def test_a_condition_that_names_an_output_or_is_evaluated_is_no_warning(
    data: dict[str, Any], wires: list[str]
) -> None:
    assert check_node("conditional", data, inputs=wires, outputs=["yes", "no"]) == []


def test_a_long_condition_without_braces_is_not_repeated_in_the_hint() -> None:
    (found,) = check_node("conditional", {"condition": "input.a == " + "b" * 80})
    assert found.hint == "put {{ and }} around it"
    assert check_node("conditional", {"condition": "true"}) == []


@pytest.mark.parametrize("name", ["", " ", " a", "error", "{x}"])
def test_invalid_handle_names_are_errors(name: str) -> None:
    data = {"condition": "{{ goal }}", "outputHandles": ["a", name], "defaultHandle": name}
    found = locations(check_node("conditional", data))
    assert ("invalid-data", "/data/outputHandles/1") in found
    assert ("invalid-data", "/data/defaultHandle") in found


async def test_the_handles_may_be_wired() -> None:
    node = Node("c", "conditional", "C")
    inputs = make_inputs("x", ("outputHandles", ["a"]), ("condition", "a"))
    result, _ = await result_and_events(Conditional().execute({}, inputs, context_for(node)))
    assert list(result.outputs) == ["a"]


# -- what a result follows from


def branching(*handles: str, **data: Any) -> dict[str, Any]:
    """A graph that branches, with an edge for each of these handles."""
    ends = [node_document(f"to-{handle}", "void") for handle in handles]
    edges = [("c", f"to-{handle}", handle) for handle in handles]
    return graph_document(
        node_document("c", "conditional", condition="a", **data), *ends, edges=edges
    )


async def test_the_result_key_contains_the_edges_if_they_decide_the_handle() -> None:
    there = await result_key_of(branching("a", "z", defaultHandle="z"), "c")
    assert there != await result_key_of(branching("z", defaultHandle="z"), "c")
    assert there == await result_key_of(branching("a", "b", "z", defaultHandle="z"), "c")


async def test_without_a_matching_edge_there_is_no_result_key() -> None:
    with pytest.raises(NodeError) as refused:
        await result_key_of(branching("b"), "c")
    assert refused.value.code == "unknown-handle"
