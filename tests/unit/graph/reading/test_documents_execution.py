"""The document of an execution is read as its graph, in every way a graph is given."""

from __future__ import annotations

import json
from typing import Any

import pytest

import planwave
from planwave.graph.checking.checker import read_and_check
from planwave.graph.reading.documents import read_graph
from planwave.nodes.registry import default_registry
from planwave.service.plans.documents import check_source, plan_from_graph
from planwave.settings import Limits

GRAPH = {
    "nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}, {"id": "b", "type": "end"}],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}


async def execution_document() -> dict[str, Any]:
    """Run the graph, and return what is stored of the run."""
    run = planwave.run(GRAPH)
    async for _ in run:
        pass
    document: dict[str, Any] = run.result().document
    return document


@pytest.mark.parametrize("as_text", [False, True])
async def test_the_graph_of_a_stored_execution_is_read(as_text: bool) -> None:
    stored = {**await execution_document(), "title": "Its title", "user_prompt": "Its goal"}
    source: Any = json.dumps(stored) if as_text else stored
    expected, _ = read_graph(GRAPH)
    graph, findings = read_graph(source)
    assert graph.nodes == expected.nodes
    assert [(found.code, found.severity) for found in findings] == [("execution-document", "info")]
    assert read_and_check(source, default_registry())[0] == graph
    report = check_source(source, default_registry(), Limits())
    assert report.can_run
    plan = plan_from_graph(report, plan_id="p", created_at="", forecast=lambda *_: {})
    assert (plan.title, plan.user_prompt) == ("Its title", "Its goal")
    assert planwave.build(source).graph.nodes == expected.nodes


def test_errors_of_its_graph_are_found_at_their_place() -> None:
    broken = {"execution_id": "x", "graph": {**GRAPH, "nodes": [{"id": "a"}]}, "results": {}}
    report = check_source(broken, default_registry(), Limits())
    assert ("missing-field", "/nodes/0/type") in [(d.code, d.pointer) for d in report.diagnostics]


@pytest.mark.parametrize("document", [{**GRAPH, "graph": 1}, {"graph": GRAPH}, {"execution_id": 1}])
def test_another_document_is_none_of_an_execution(document: dict[str, Any]) -> None:
    report = check_source(document, default_registry(), Limits())
    assert not report.can_run
