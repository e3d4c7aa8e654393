"""A template that reads a node of a branch that was not taken: the error, its hint, and the way out."""

from __future__ import annotations

from typing import Any

import pytest

import planwave
from planwave.errors import ExecutionFailed
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.nodes.nested_graphs import graph_document, node_document, with_long_render_time

REGISTRY = Registry(LIBRARY)


def branches(taken: str, text: str) -> dict[str, Any]:
    """Return a graph of two branches that meet in a merge, and a text after it."""
    case = node_document("case", "conditional", condition=taken)
    return graph_document(
        case,
        node_document("a", "text", text="from a"),
        node_document("b", "text", text="from b"),
        node_document("both", "merge"),
        node_document("say", "text", text=text),
        edges=[
            ("case", "a", "a"), ("case", "b", "b"), ("a", "both"), ("b", "both"), ("both", "say"),
        ],
    )  # fmt: skip


async def outcome(graph: dict[str, Any]) -> Any:
    try:
        result = await with_long_render_time(planwave.run(graph, registry=REGISTRY))
    except ExecutionFailed as failed:
        (failure,) = failed.failures
        return failure.code, failure.hint
    return result.outputs["say"]["output"].value


@pytest.mark.parametrize(
    "text",
    [
        '{{ nodes["b"].output }}',
        '{{ nodes["b"].output | upper }} {{ 1 + 1 }}',
        '{% if true %}{{ nodes["b"].output | default("none") }}{% endif %}',
        '{{ nodes["b"].output.deep.er | default("none") | upper }}{{ 1 + 1 }}',
    ],
)
async def test_a_branch_that_was_not_taken_has_no_output_and_the_hint_names_the_way_out(
    text: str,
) -> None:
    code, hint = await outcome(branches("a", text))
    assert code == "template-undefined"
    assert "node 'b' did not run" in hint
    assert "'merge'" in hint
    assert "{{ input | first }}" in hint


@pytest.mark.parametrize("taken", ["a", "b"])
async def test_the_way_out_of_the_hint_works(taken: str) -> None:
    assert await outcome(branches(taken, "{{ input | first }}")) == f"from {taken}"


async def test_a_template_that_is_a_path_and_a_default_has_the_default() -> None:
    assert await outcome(branches("a", '{{ nodes["b"].output | default("none") }}')) == "none"


async def test_an_undefined_part_of_a_node_that_ran_has_another_hint() -> None:
    code, hint = await outcome(branches("a", '{{ nodes["a"].output.x }}'))
    assert code == "template-undefined"
    assert "did not run" not in hint
