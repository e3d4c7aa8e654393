"""A graph once for every item: order, how many at a time, what becomes of failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.nodes.library.loop import Loop
from planwave.nodes.spec import spec_of
from planwave.settings import Limits
from tests.support.nodes.nested_graphs import (
    WorkNode,
    diagnostics_of,
    errors_of,
    graph_document,
    node_document,
    run_node,
    run_to_end,
    run_with_answers,
)
from tests.support.nodes.node_context import services_with
from tests.support.virtual_loop import virtual_time

ITEM = "{{ item }}"


def body(**data: Any) -> dict[str, Any]:
    return graph_document(node_document("b", "work", **data))


@virtual_time
async def test_results_come_in_the_order_of_the_items_whoever_is_first() -> None:
    inside = body(value="{{ item.name }}", seconds="{{ item.takes }}")
    items = [
        {"name": "slow", "takes": 9},
        {"name": "quick", "takes": 1},
        {"name": "mid", "takes": 5},
    ]
    assert await run_node("loop", WorkNode(), items=items, body=inside) == {
        "output": ["slow", "quick", "mid"]
    }


@virtual_time
async def test_so_many_items_are_at_work_at_a_time_and_the_next_starts_with_the_first_end() -> None:
    work, began = WorkNode(), asyncio.get_running_loop().time()
    await run_node("loop", work, items=[5, 1, 1, 1, 1], parallel=2, body=body(seconds=ITEM))
    assert work.max_running == 2
    assert asyncio.get_running_loop().time() - began == 5, "no batch waits for its slowest"


@virtual_time
async def test_item_and_index_are_seen_in_all_of_the_body_and_in_graphs_in_it() -> None:
    inner = graph_document(node_document("deep", "text", text="{{ index }}{{ item }}"))
    inside = graph_document(node_document("in", "inner", graph=inner))
    given = await run_node("loop", items=["a", "b"], body=inside)
    assert given == {"output": ["0a", "1b"]}


@virtual_time
async def test_a_loop_in_a_loop_has_names_of_its_own() -> None:
    inner = node_document(
        "each", "loop", items="{{ item }}", body=body(value="{{ index }}:{{ item }}")
    )
    given = await run_node(
        "loop", WorkNode(), items=[["a", "b"], ["c"]], body=graph_document(inner)
    )
    assert given == {"output": [["0:a", "1:b"], ["0:c"]]}


@virtual_time
async def test_an_entry_node_of_the_body_gets_the_item() -> None:
    inside = graph_document(
        node_document("in", "start"),
        node_document("t", "text", text="<{{ input }}>"),
        edges=[("in", "t")],
    )
    assert await run_node("loop", items=["a", "b"], body=inside) == {"output": ["<a>", "<b>"]}


@pytest.mark.parametrize(
    ("inside", "result"),
    [
        (graph_document(node_document("b", "work", value="x"), node_document("e", "end"), edges=[("b", "e")]), "x"),
        (graph_document(node_document("b", "work", value="x"), node_document("c", "work", value="y")), {"b": "x", "c": "y"}),
        (
            graph_document(
                node_document("b", "work", value="x"), node_document("c", "work", value="y"), node_document("e", "end"),
                edges=[("b", "e")],
            ),
            "x",
        ),
    ],
)  # fmt: skip
@virtual_time
async def test_what_a_body_comes_to(inside: dict[str, Any], result: Any) -> None:
    assert await run_node("loop", WorkNode(), items=[1], body=inside) == {"output": [result]}


@virtual_time
async def test_only_what_completed_of_the_last_nodes_counts() -> None:
    conditions = [{"operator": "equal", "value": "go"}]
    inside = graph_document(
        node_document("t", "text", text="{{ item }}"), node_document("which", "if", conditions=conditions),
        node_document("yes", "text", text="went"),
        edges=[("t", "which"), ("which", "yes", "condition-0")],
    )  # fmt: skip
    given = await run_node("loop", items=["go", "stay"], body=inside)
    assert given == {"output": ["went", None]}


@virtual_time
async def test_items_are_the_input_where_none_are_named() -> None:
    graph = graph_document(
        node_document("start", "start", initialInput=["a", "b"]), node_document("n", "loop", body=body(value=ITEM)),
        edges=[("start", "n")],
    )  # fmt: skip
    result = await run_to_end(graph, WorkNode())
    assert result.outputs["n"]["output"].value == ["a", "b"]


@virtual_time
async def test_several_inputs_are_the_list_of_them_and_a_wire_into_items_beats_all() -> None:
    graph = graph_document(
        node_document("a", "text", text="a"), node_document("b", "text", text="b"),
        node_document("l", "start", initialInput=[1, 2]),
        node_document("n", "loop", body=body(value=ITEM)), node_document("m", "loop", body=body(value=ITEM)),
        edges=[("a", "n"), ("b", "n"), ("a", "m"), ("l", "m", "output", "items")],
    )  # fmt: skip
    result = await run_to_end(graph, WorkNode())
    assert result.outputs["n"]["output"].value == ["a", "b"]
    assert result.outputs["m"]["output"].value == [1, 2]


@pytest.mark.parametrize("items", ["[1, 2]", " [1,\n2] ", "{{ '[1, 2]' }}"])
@virtual_time
async def test_the_json_text_of_a_list_is_read(items: str) -> None:
    given = await run_node("loop", WorkNode(), items=items, body=body(value=ITEM))
    assert given == {"output": [1, 2]}


@pytest.mark.parametrize("items", ["one, two", '{"a": 1}', {"a": 1}, 5, True, "[1, 2"])
@virtual_time
async def test_what_is_no_list_is_refused(items: Any) -> None:
    code, message = await run_node("loop", WorkNode(), items=items, body=body())
    assert code == "not-a-list"
    assert "loop 'n' needs a list of items, got" in message


@virtual_time
async def test_no_items_give_an_empty_list() -> None:
    work = WorkNode()
    assert await run_node("loop", work, items=[], body=body()) == {"output": []}
    given = await run_node("loop", work, items=[], body=body(), onItemError="skip")
    assert given == {"output": [], "errors": []}
    assert work.values == []


@virtual_time
async def test_a_failing_item_ends_the_others_and_the_loop() -> None:
    work = WorkNode()
    inside = body(value="{{ item.n }}", fails="{{ item.bad }}", seconds="{{ item.takes }}")
    items = [{"n": n, "bad": n == 1, "takes": 1 if n == 1 else 60} for n in range(5)]
    code, message = await run_node("loop", work, items=items, parallel=3, body=inside)
    assert code == "nested-run-failed"
    assert message == "node 'n[1]/b' failed: 1 went wrong"
    assert work.values == [0, 1, 2], "no further item was begun"
    assert (work.cancelled, work.running) == (2, 0)


@pytest.mark.parametrize(
    ("on_error", "output"), [("skip", [0, 2, 4]), ("null", [0, None, 2, None, 4])]
)
@virtual_time
async def test_failing_items_are_left_out_or_null_and_told(
    on_error: str, output: list[Any]
) -> None:
    inside = body(value="{{ item.n }}", fails="{{ item.bad }}", seconds="{{ item.takes }}")
    items = [{"n": n, "bad": n % 2 == 1, "takes": 9 - n} for n in range(5)]
    given = await run_node("loop", WorkNode(), items=items, body=inside, onItemError=on_error)
    assert given["output"] == output
    assert [error["index"] for error in given["errors"]] == [1, 3]
    assert given["errors"][0]["error"]["code"] == "nested-run-failed"
    assert "1 went wrong" in given["errors"][0]["error"]["message"]


@virtual_time
async def test_people_may_be_asked_about_each_item() -> None:
    inside = graph_document(
        node_document("t", "text", text="{{ item }}"), node_document("ask", "approval", prompt="Keep {{ item }}?"),
        node_document("kept", "work", value="{{ input }}"), node_document("not", "work", value=None),
        edges=[("t", "ask"), ("ask", "kept", "approve"), ("ask", "not", "reject")],
    )  # fmt: skip
    work, asked = WorkNode(), []

    def decide(request: Any) -> str:
        asked.append(request["value"])
        return "reject" if request["value"] == "b" else "approve"

    graph = graph_document(
        node_document("n", "loop", items=["a", "b", "c"], parallel=2, body=inside)
    )
    result = await run_with_answers(graph, decide, work)
    assert result.error is None
    assert result.outputs["n"]["output"].value == ["a", None, "c"]
    assert asked == ["a", "b", "c"]
    assert sorted(map(str, work.values)) == ["None", "a", "c"], "each item ran once"


@virtual_time
async def test_a_body_that_cannot_run_is_no_matter_of_an_item() -> None:
    graph = graph_document(
        node_document("g", "start", initialInput=graph_document(node_document("x", "nonsense"))),
        node_document("n", "loop", items=[1, 2], onItemError="null"),
        edges=[("g", "n", "output", "body")],
    )
    result = await run_to_end(graph)
    assert result.error is not None
    assert result.error["code"] == "graph-invalid"
    assert "data.body of 'n' cannot run: node 'x' has the unknown type" in result.error["message"]


@pytest.mark.parametrize(
    ("brought", "message"),
    [
        ({}, "data.body of 'n' cannot run: field 'nodes' is missing"),
        ([1], "data.body has to be an object"),
    ],
)
@virtual_time
async def test_what_a_wire_brings_and_is_no_graph_is_told_with_its_place(
    brought: Any, message: str
) -> None:
    graph = graph_document(
        node_document("g", "start", initialInput=brought),
        node_document("n", "loop", items=[1]),
        edges=[("g", "n", "output", "body")],
    )
    result = await run_to_end(graph)
    assert result.error is not None
    assert result.error["message"].startswith(f"node 'n' failed: {message}")


@pytest.mark.parametrize(("items", "kind"), [({"a": 1}, "an object"), (True, "true"), (5, "5")])
@virtual_time
async def test_what_is_no_list_is_told_in_words_of_json(items: Any, kind: str) -> None:
    told = await run_node("loop", WorkNode(), items=items, body=body())
    assert told == (
        "not-a-list", f"node 'n' failed: loop 'n' needs a list of items, got {kind}",
    )  # fmt: skip


@virtual_time
async def test_a_graph_that_a_wire_brings_is_checked_and_run() -> None:
    graph = graph_document(
        node_document(
            "g",
            "start",
            initialInput=graph_document(node_document("t", "text", text="{{ item }}!")),
        ),
        node_document("n", "loop", items=["a"]),
        edges=[("g", "n", "output", "body")],
    )
    result = await run_to_end(graph)
    assert result.outputs["n"]["output"].value == ["a!"]


@virtual_time
async def test_limits_hold_for_a_graph_that_a_wire_brings() -> None:
    two = graph_document(
        node_document("t", "text", text="{{ item }}"), node_document("u", "text", text="x")
    )
    graph = graph_document(
        node_document("g", "start", initialInput=two), node_document("n", "loop", items=["a"]),
        edges=[("g", "n", "output", "body")],
    )  # fmt: skip
    for most, code in ((2, None), (1, "graph-invalid")):
        services, _ = services_with(lambda _: [], limits=Limits(nodes=most))
        result = await run_to_end(graph, services=services)
        assert (result.error and result.error["code"]) == code
    assert "limit nodes is 1, met 2" in str(result.error)


@virtual_time
async def test_more_items_than_the_node_or_the_limits_allow_are_refused_before_any_runs() -> None:
    work = WorkNode()
    told = await run_node("loop", work, items=[1, 2, 3], maxItems=2, body=body())
    assert told == ("limit-exceeded", "node 'n' failed: items of 'n': data.maxItems is 2, met 3")
    services, _ = services_with(lambda _: [], limits=Limits(loop_items=2))
    result = await run_to_end(
        graph_document(node_document("n", "loop", items=[1, 2, 3], body=body())),
        work,
        services=services,
    )
    assert result.error is not None
    assert result.error["code"] == "limit-exceeded"
    assert "limit loop_items for items of 'n' is 2, met 3" in result.error["message"]
    assert work.values == []


# -- findings


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"items": [1]}, ("missing-required-input", "/nodes/0/data/body")),
        ({"body": body(), "flow": {"id": "f"}, "items": []}, ("conflicting-field", "/nodes/0/data/flow")),
        ({"body": body()}, ("missing-required-input", "/nodes/0/data/items")),
        ({"body": body(), "items": [], "parallel": 101}, ("invalid-data", "/nodes/0/data/parallel")),
        ({"body": [], "items": []}, ("invalid-data", "/nodes/0/data/body")),
        ({"flow": {"name": "f"}, "items": []}, ("invalid-data", "/nodes/0/data/flow/id")),
        ({"body": graph_document(), "items": []}, ("empty-graph", "/nodes/0/data/body/nodes")),
        ({"body": {}, "items": []}, ("missing-field", "/nodes/0/data/body/nodes")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found(data: dict[str, Any], fault: tuple[str, str]) -> None:
    assert fault in errors_of(graph_document(node_document("n", "loop", **data)), WorkNode())


def test_a_good_loop_has_no_findings_and_an_edge_from_errors_needs_errors() -> None:
    def graph(on_error: str) -> dict[str, Any]:
        return graph_document(
            node_document("n", "loop", items=[1], body=body(value=ITEM), onItemError=on_error),
            node_document("e", "end"),
            edges=[("n", "e", "errors")],
        )

    assert diagnostics_of(graph("skip"), WorkNode()) == []
    (found,) = diagnostics_of(graph("fail"), WorkNode())
    assert (found.code, found.severity, found.pointer) == (
        "unknown-handle", "warning", "/nodes/0/data/onItemError",
    )  # fmt: skip


def test_more_items_than_the_limits_allow_are_found_before_a_run() -> None:
    graph = graph_document(node_document("n", "loop", items=[1], body=body(), maxItems=7))
    assert errors_of(graph, WorkNode(), limits=Limits(loop_items=7)) == []
    assert errors_of(graph, WorkNode(), limits=Limits(loop_items=6)) == [
        ("limit-exceeded", "/nodes/0/data/maxItems")
    ]


@virtual_time
async def test_the_example_shouts() -> None:
    result = await run_to_end(spec_of(Loop()).example)
    assert result.outputs["shout"]["output"].value == ["0: ONE!", "1: TWO!", "2: THREE!"]


GROWS = graph_document(node_document("t", "transform", expression="{{ value + 1 }}"))


@pytest.mark.parametrize(
    ("inside", "warned"),
    [
        (graph_document(node_document("t", "text", text="the same for any item")), True),
        (graph_document(node_document("t", "text", text="{{ goal }}, item")), True),
        (graph_document(node_document("t", "text", text="{{ item.name | upper }}")), False),
        (graph_document(node_document("t", "text", text="{% if index %}x{% endif %}")), False),
        (graph_document(node_document("t", "text", text="{{ {'a': 1}[item] }}")), False),
        (
            graph_document(node_document("t", "text", text="{{ {'item': 1} }} {{ goal.item }}")),
            True,
        ),
        (
            graph_document(
                node_document("t", "text", text="{% for item in [1, 2] %}{{ item }}{% endfor %}")
            ),
            True,
        ),
        (
            graph_document(
                node_document("s", "start"), node_document("t", "end"), edges=[("s", "t")]
            ),
            False,
        ),
        (
            graph_document(
                node_document(
                    "in", "inner", graph=graph_document(node_document("t", "text", text="{{item}}"))
                )
            ),
            False,
        ),
        (graph_document(node_document("w", "while", condition="value < item", body=GROWS)), False),
        (
            graph_document(
                node_document(
                    "in",
                    "inner",
                    graph=graph_document(
                        node_document("w", "while", condition="value < index", body=GROWS)
                    ),
                )
            ),
            False,
        ),
        (graph_document(node_document("w", "while", condition="value < 3", body=GROWS)), True),
        (graph_document(node_document("t", "nonsense")), False),
    ],
)
def test_a_body_that_never_reads_its_item_is_warned_of(inside: Any, warned: bool) -> None:
    found = diagnostics_of(graph_document(node_document("n", "loop", items=[1], body=inside)))
    told = [(each.pointer, each.severity) for each in found if each.code == "unused-item"]
    assert told == ([("/nodes/0/data/body", "warning")] if warned else [])
