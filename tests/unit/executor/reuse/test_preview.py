"""What a fork is said to reuse before it runs: branches, links, inputs, and a parent that is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from planwave.executor.node_api.host import NodeHost
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.reuse.preview import preview_of
from planwave.executor.reuse.reuse import ParentExecution, Reuse
from planwave.graph.model import Graph
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    GenericNode,
    GenericNodeTypes,
    result_with,
)
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time


class Dependent(GenericNode):
    """A type whose results depend on what is linked to its nodes."""

    async def result_depends_on(self, data: Any, inputs: Any, context: Any) -> Any:
        return [str(each) for each in await context.runtime.resolve_links(context.node_id, "link")]


class Types(GenericNodeTypes):
    """The generic types, one of them dependent."""

    def implementation(self, node_type: str) -> Any:
        made = super().implementation(node_type)
        return Dependent(made.behaviors) if node_type == "plain" else made


def host_of(graph: Graph) -> tuple[Program, NodeHost]:
    return Program(graph, Types({})), NodeHost("x1", {}, None, None, None, None)


async def previewed(
    before: Graph,
    after: Graph,
    behaviors: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
    rerun: tuple[str, ...] = (),
) -> tuple[list[str], ...]:
    """The lists of a preview of a fork of an execution of one graph with another graph."""
    harness = ExecutionHarness(before, behaviors, inputs=inputs)
    await harness.run()
    history = ParentHistory(harness.stored)
    program, host = host_of(before)
    parent = ParentExecution("x0", program, history, host, RunOptions(), inputs)
    program, host = host_of(after)
    reuse = Reuse("x0", [parent], rerun, {})
    return tuple(map(list, await preview_of(program, host, options, inputs, reuse)))


CHOICE = parse_graph("f x y z", "f.left>x", "f.right>y", "x>z", "y>z")


@pytest.mark.parametrize("scheduling", ["eager", "waves"])
@virtual_time
async def test_a_branch_that_a_reused_result_leaves_out_is_in_no_list(scheduling: Any) -> None:
    chosen = {"f": result_with(1, "left")}
    options = RunOptions(scheduling)
    found = await previewed(CHOICE, CHOICE, chosen, options=options)
    assert found == (["f", "x", "z"], [], [])
    found = await previewed(CHOICE, CHOICE, chosen, options=options, rerun=("f",))
    assert found == ([], ["f"], ["x", "y", "z"])
    more = parse_graph("f x y z o", "f.left>x", "f.right>y", "x>z", "y>z", "x>o")
    found = await previewed(CHOICE, more, chosen, options=options)
    assert found == (["f", "x", "z"], ["o"], [])


@virtual_time
async def test_what_is_linked_is_not_made_so_its_users_are_undecided() -> None:
    graph = parse_graph("a:plain g:vein b:plain", "g.link~a.link", "a>b")
    found = await previewed(graph, graph)
    assert found == ([], [], ["a", "b"])


@virtual_time
async def test_nodes_that_inputs_settle_are_in_no_list() -> None:
    graph = parse_graph("d:door a b", "d>a", "a>b")
    found = await previewed(
        graph, parse_graph("d:door a c", "d>a", "a>c"), inputs={"d": {"output": 1}}
    )
    assert found == (["a"], ["c"], [])


@virtual_time
async def test_without_a_parent_everything_runs() -> None:
    program, host = host_of(CHOICE)
    found = await preview_of(program, host, RunOptions(), None, None)
    assert found == ([], ["f"], ["x", "y", "z"])
