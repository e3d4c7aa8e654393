"""Graphs built in Python: what is accepted, the message and the images of the entry node."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import planwave
from planwave.errors import InputError
from planwave.graph.plan import Plan, graph_hash
from planwave.graph.reading.documents import read_graph


class Order(BaseModel):
    sku: str
    due: date


GRAPH = {"nodes": [{"id": "t", "type": "text", "data": {"text": "hello"}}], "edges": []}
GOAL_HINT = (
    "to plan and run a goal call planwave.run_goal_sync(…); planwave.plan_sync(…) only plans it"
)
GRAPH_HINT = (
    'pass {"nodes": […], "edges": […]}, its JSON or YAML text, a planwave.GraphBuilder or a Plan'
)
FILE_HINT = "pass the text of the file: Path('plan.json').read_text('utf-8')"


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        ("write a poem", "'write a poem' is not a graph", GOAL_HINT),
        (None, "None is not a graph", GRAPH_HINT),
        (3, "3 is not a graph", GRAPH_HINT),
        ([1, 2], "[1, 2] is not a graph", GRAPH_HINT),
        ("x" * 100, f"'{'x' * 59}… is not a graph", GOAL_HINT),
        ("plan.json", "'plan.json' is not a graph", FILE_HINT),
        ("graph.yaml", "'graph.yaml' is not a graph", FILE_HINT.replace("plan.json", "graph.yaml")),
        (
            "plan: a trip with nodes: three",
            "'plan: a trip with nodes: three' is not a graph",
            GOAL_HINT,
        ),
        (Path("plan.json"), f"{Path('plan.json')!r} is not a graph", FILE_HINT),
    ],
)
def test_what_is_not_a_graph_is_refused_with_what_to_call(
    spec: Any, message: str, hint: str
) -> None:
    with pytest.raises(InputError) as caught:
        planwave.run_sync(spec)
    assert (caught.value.code, caught.value.message) == ("not-a-graph", message)
    assert caught.value.hint == hint


YAML = "# one step\nnodes:\n- {id: a, type: text, data: {text: hello}}\nedges: []\n"


@pytest.mark.parametrize("text", [YAML, YAML.encode(), f"$schema: https://a.test/s\n{YAML}"])
def test_yaml_text_is_a_graph(text: str | bytes) -> None:
    assert planwave.run_sync(text).text == "hello"


def test_a_plan_is_run_with_its_goal_and_title() -> None:
    graph, _ = read_graph(
        {"nodes": [{"id": "t", "type": "text", "data": {"text": "for {{ goal }}"}}], "edges": []}
    )
    plan = Plan("p", "a reason", "A title", graph, graph_hash(graph), "2026-01-01T00:00:00Z")
    result = planwave.Executor().execute(plan).wait()
    assert result.text == "for a reason"
    assert (result.document["user_prompt"], result.document["title"]) == ("a reason", "A title")


def test_a_message_may_be_of_models() -> None:
    g = planwave.GraphBuilder()
    start = g.node("start")
    orders = [Order(sku="a", due=date(2026, 2, 3))]
    assert planwave.run_sync(g, orders)[start] == [{"sku": "a", "due": "2026-02-03"}]


def test_images_come_in_beside_the_message() -> None:
    entry = {"id": "u", "type": "user_input"}
    url = "https://example.com/a.png"
    built = planwave.build({"nodes": [entry], "edges": []})
    outputs = planwave.run_sync(built, "look", images=[url]).outputs["u"]
    assert (outputs["message"].value, outputs["images"].value) == ("look", [url])


def test_images_for_an_entry_node_without_them_are_refused() -> None:
    entry = {"id": "s", "type": "start"}
    with pytest.raises(InputError, match="takes no images") as caught:
        planwave.run({"nodes": [entry], "edges": []}, "look", images=["https://example.com/a"])
    assert caught.value.hint == "use an entry node of the type 'user_input'"
