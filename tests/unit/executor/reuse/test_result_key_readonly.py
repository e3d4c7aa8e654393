"""What a type may look at to say what its results follow from."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.executor.node_api.host import NodeHost
from planwave.executor.program import Program
from planwave.executor.reuse.result_key import ReadonlyRuntime
from planwave.executor.stored_runs import NO_ONCE_VALUES
from planwave.executor.values import GraphValues
from planwave.graph.model import DataValue
from tests.support.engine.generic_nodes import GenericNodeTypes
from tests.support.graph.fake_node_types import parse_graph


def readonly_runtime(once_values: Any = NO_ONCE_VALUES) -> ReadonlyRuntime:
    """The runtime of the second of two nodes, the first of which returned 1."""
    host = NodeHost("x1", None, None, None, None, None)
    program = Program(parse_graph("a b c", "a>b", "b>c"), GenericNodeTypes({}))
    values = GraphValues(program, variables={"goal": "g"})
    values.outputs[0] = {"output": DataValue("any", 1)}
    return ReadonlyRuntime(values, 1, host, once_values)


async def test_it_gives_the_lookups_of_the_node() -> None:
    runtime = readonly_runtime()
    assert runtime.get_node("b").id == "b"
    assert [edge.source for edge in runtime.incoming_edges("b")] == ["a"]
    assert [edge.target for edge in runtime.outgoing_edges("b")] == ["c"]
    assert [arrival.value.value for arrival in runtime.arrivals("b")] == [1]
    assert runtime.variables == {"goal": "g"}
    assert runtime.catalogue.type_info("step") is not None
    resolved = await runtime.resolve({"x": "{{ goal }} {{ input }} {{ more }}"}, {"more": "m"})
    assert resolved == {"x": "g 1 m"}


async def test_it_finds_the_once_values_of_a_node_and_computes_others_without_storing_them() -> (
    None
):
    calls: list[int] = []

    async def makes() -> Any:
        calls.append(1)
        return len(calls)

    runtime = readonly_runtime({"kept": 7})
    assert [await runtime.once("v", makes), await runtime.once("v", makes)] == [1, 2]
    assert await runtime.once("kept", makes) == 7


async def test_it_runs_no_graph_resolves_no_link_and_caches_nothing() -> None:
    runtime = readonly_runtime()
    with pytest.raises(NodeError, match="run 'k'"):
        await runtime.run_graph("k", parse_graph("n"), {})
    with pytest.raises(NodeError, match="resolve 'help'"):
        await runtime.resolve_links("b", "help")
    runtime.cache_set("of", "key", 1)
    assert runtime.cache_get("of", "key") is None
