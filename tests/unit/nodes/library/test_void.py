"""``void`` discards its input."""

from __future__ import annotations

import pytest

import planwave
from planwave.errors import GraphInvalid
from planwave.graph.model import Node
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.void import Void
from planwave.nodes.registry import Registry
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

REGISTRY = Registry(LIBRARY)


async def test_void_gives_no_outputs_and_no_events() -> None:
    context = context_for(Node("v", "void", "V"))
    result, events = await result_and_events(
        Void().execute({}, make_inputs("x", {"a": 1}), context)
    )
    assert (dict(result.outputs), events) == ({}, [])


async def test_a_run_that_ends_in_void_completes_without_text() -> None:
    result = await planwave.run(dict(REGISTRY.spec("void").example), registry=REGISTRY)
    assert result.status == "completed"
    assert dict(result.outputs["nowhere"]) == {}
    assert result.text == ""


def test_an_edge_from_void_is_an_error() -> None:
    graph = graph_document(
        node_document("v", "void"), node_document("e", "end"), edges=[("v", "e")]
    )
    with pytest.raises(GraphInvalid) as caught:
        planwave.build(graph, registry=REGISTRY)
    errors = [d.code for d in caught.value.diagnostics if d.severity == "error"]
    assert errors == ["unknown-handle"]
