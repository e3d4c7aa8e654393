"""What a type may look at to say what its results follow from."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.readonly import ReadonlyRuntime
from planwave.executor.program import Program
from planwave.executor.values import GraphValues
from planwave.graph.model import DataValue
from tests.support.engine.generic_nodes import GenericCatalog
from tests.support.graph.fake_catalog import parse_graph


def onlooker(kept: Any = None) -> ReadonlyRuntime:
    """At the second of two nodes, the first of which gave 1."""
    host = NodeHost("x1", None, None, None, None, None)
    program = Program(parse_graph("a b c", "a>b", "b>c"), GenericCatalog({}))
    values = GraphValues(program, variables={"goal": "g"})
    values.outputs[0] = {"output": DataValue("any", 1)}
    return ReadonlyRuntime(values, 1, host, kept)


async def test_it_sees_what_the_node_would() -> None:
    seen = onlooker()
    assert seen.get_node("b").id == "b"
    assert [edge.source for edge in seen.incoming_edges("b")] == ["a"]
    assert [edge.target for edge in seen.outgoing_edges("b")] == ["c"]
    assert [arrival.value.value for arrival in seen.arrivals("b")] == [1]
    assert seen.variables == {"goal": "g"}
    assert seen.catalogue.type_info("step") is not None
    told = await seen.resolve({"x": "{{ goal }} {{ input }} {{ more }}"}, {"more": "m"})
    assert told == {"x": "g 1 m"}


async def test_of_a_node_that_ran_it_finds_what_that_kept_and_makes_nothing() -> None:
    async def makes() -> Any:
        raise AssertionError("made")

    assert await onlooker({"v": 7}).once("v", makes) == 7
    with pytest.raises(NodeError, match="find 'w'"):
        await onlooker({"v": 7}).once("w", makes)


async def test_of_a_node_that_would_run_now_it_makes_a_value_for_this_once() -> None:
    made: list[int] = []

    async def makes() -> Any:
        made.append(1)
        return len(made)

    seen = onlooker()
    assert [await seen.once("v", makes), await seen.once("v", makes)] == [1, 2]


async def test_it_runs_makes_and_keeps_nothing() -> None:
    seen = onlooker()
    with pytest.raises(NodeError, match="run 'k'"):
        await seen.run_graph("k", parse_graph("n"), {})
    with pytest.raises(NodeError, match="resolve 'help'"):
        await seen.resolve_links("b", "help")
    seen.cache_set("of", "key", 1)
    assert seen.cache_get("of", "key") is None
