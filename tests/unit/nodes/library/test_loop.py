"""A graph once for every item: order, how many at a time, what becomes of failures."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

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
async def test_results_are_in_the_order_of_the_items() -> None:
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
async def test_parallel_items_run_at_once_and_the_next_starts_when_one_ends() -> None:
    work, began = WorkNode(), asyncio.get_running_loop().time()
    await run_node("loop", work, items=[5, 1, 1, 1, 1], parallel=2, body=body(seconds=ITEM))
    assert work.max_running == 2
    assert asyncio.get_running_loop().time() - began == 5, "no batch waits for its slowest"


@virtual_time
async def test_item_and_index_are_variables_of_the_body_and_its_nested_graphs() -> None:
    inner = graph_document(node_document("deep", "text", text="{{ index }}{{ item }}"))
    inside = graph_document(node_document("in", "inner", graph=inner))
    outputs = await run_node("loop", items=["a", "b"], body=inside)
    assert outputs == {"output": ["0a", "1b"]}


@virtual_time
async def test_a_nested_loop_has_its_own_item_and_index() -> None:
    inner = node_document(
        "each", "loop", items="{{ item }}", body=body(value="{{ index }}:{{ item }}")
    )
    outputs = await run_node(
        "loop", WorkNode(), items=[["a", "b"], ["c"]], body=graph_document(inner)
    )
    assert outputs == {"output": [["0:a", "1:b"], ["0:c"]]}


@virtual_time
async def test_the_entry_node_of_the_body_gets_the_item() -> None:
    inside = graph_document(
        node_document("in", "start"),
        node_document("t", "text", text="<{{ input }}>"),
        edges=[("in", "t")],
    )
    assert await run_node("loop", items=["a", "b"], body=inside) == {"output": ["<a>", "<b>"]}


@pytest.mark.parametrize("items", ["[1, 2]", " [1,\n2] ", "{{ '[1, 2]' }}"])
@virtual_time
async def test_items_may_be_the_json_text_of_a_list(items: str) -> None:
    outputs = await run_node("loop", WorkNode(), items=items, body=body(value=ITEM))
    assert outputs == {"output": [1, 2]}


def wired(*sources: dict[str, Any], handle: str = "input", **data: Any) -> dict[str, Any]:
    """Return a graph in which a loop gets its items or its body through edges."""
    edges = [(source["id"], "n", "output", handle) for source in sources]
    return graph_document(*sources, node_document("n", "loop", **data), edges=edges)


@pytest.mark.parametrize(
    ("graph", "items"),
    [
        (wired(node_document("s", "start", initialInput=["a", "b"]), body=body(value=ITEM)), ["a", "b"]),
        (
            wired(node_document("a", "text", text="a"), node_document("b", "text", text="b"), body=body(value=ITEM)),
            ["a", "b"],
        ),
        (
            wired(
                node_document("s", "start", initialInput=[1, 2]), handle="items",
                items=["written"], body=body(value=ITEM),
            ),
            [1, 2],
        ),
    ],
    ids=["one input", "several inputs", "wire into items"],
)  # fmt: skip
@virtual_time
async def test_items_come_from_the_wire_into_items_or_from_the_inputs(
    graph: dict[str, Any], items: list[Any]
) -> None:
    result = await run_to_end(graph, WorkNode())
    assert result.outputs["n"]["output"].value == items


@pytest.mark.parametrize(
    ("items", "shown"),
    [
        ("one, two", "the text 'one, two'"), ('{"a": 1}', "an object"), ("[1, 2", "the text '[1, 2'"),
        ({"a": 1}, "an object"), (5, "5"), (True, "true"),
    ],
)  # fmt: skip
@virtual_time
async def test_items_that_are_no_list_fail_the_node(items: Any, shown: str) -> None:
    assert await run_node("loop", WorkNode(), items=items, body=body()) == (
        "not-a-list", f"node 'n' failed: loop 'n' needs a list of items, got {shown}",
    )  # fmt: skip


@virtual_time
async def test_no_items_give_an_empty_list() -> None:
    work = WorkNode()
    assert await run_node("loop", work, items=[], body=body()) == {"output": []}
    outputs = await run_node("loop", work, items=[], body=body(), onItemError="skip")
    assert outputs == {"output": [], "errors": []}
    assert work.values == []


@virtual_time
async def test_a_failing_item_cancels_the_others_and_fails_the_loop() -> None:
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
async def test_failing_items_are_skipped_or_null_and_listed_in_errors(
    on_error: str, output: list[Any]
) -> None:
    inside = body(value="{{ item.n }}", fails="{{ item.bad }}", seconds="{{ item.takes }}")
    items = [{"n": n, "bad": n % 2 == 1, "takes": 9 - n} for n in range(5)]
    outputs = await run_node("loop", WorkNode(), items=items, body=inside, onItemError=on_error)
    assert outputs["output"] == output
    assert [error["index"] for error in outputs["errors"]] == [1, 3]
    error = outputs["errors"][0]["error"]
    assert (error["node"], error["code"]) == ("n[1]/b", "node-failed")
    assert "1 went wrong" in error["message"]
    assert "nested" not in str(error)


@virtual_time
async def test_the_error_of_an_item_is_that_of_the_node_however_deep_it_is() -> None:
    inner = body(value="{{ item.n }}", fails="{{ item.bad }}")
    middle = graph_document(node_document("m", "loop", items="{{ item }}", body=inner))
    outputs = await run_node(
        "loop",
        WorkNode(),
        items=[[{"n": 0, "bad": False}], [{"n": 1, "bad": True}]],
        body=middle,
        onItemError="null",
    )
    (error,) = outputs["errors"]
    assert (error["index"], error["error"]["node"]) == (1, "n[1]/m[0]/b")
    assert error["error"]["code"] == "node-failed"


@virtual_time
async def test_each_item_may_wait_for_an_approval() -> None:
    inside = graph_document(
        node_document("t", "text", text="{{ item }}"), node_document("ask", "approval", prompt="Keep {{ item }}?"),
        node_document("kept", "work", value="{{ input }}"), node_document("not", "work", value=None),
        edges=[("t", "ask"), ("ask", "kept", "approve"), ("ask", "not", "reject")],
    )  # fmt: skip
    work, shown_values = WorkNode(), []

    def decide(request: Any) -> str:
        shown_values.append(request["value"])
        return "reject" if request["value"] == "b" else "approve"

    graph = graph_document(
        node_document("n", "loop", items=["a", "b", "c"], parallel=2, body=inside)
    )
    result = await run_with_answers(graph, decide, work)
    assert result.error is None
    assert result.outputs["n"]["output"].value == ["a", None, "c"]
    assert shown_values == ["a", "b", "c"]
    assert sorted(map(str, work.values)) == ["None", "a", "c"], "each item ran once"


TEXT = node_document("t", "text", text="{{ item }}!")


@pytest.mark.parametrize(
    ("graph", "nodes", "error"),
    [
        (graph_document(TEXT, node_document("u", "end"), edges=[("t", "u")]), 2, None),
        (graph_document(TEXT, node_document("u", "end"), edges=[("t", "u")]), 1, "limit nodes is 1, met 2"),
        (
            graph_document(node_document("x", "nonsense")), 9,
            "data.body of 'n' cannot run: node 'x' has the unknown type",
        ),
        ({}, 9, "data.body of 'n' cannot run: 2 errors: (1) field 'nodes' is missing; (2) field"),
        ([1], 9, "data.body has to be an object"),
    ],
)  # fmt: skip
@virtual_time
async def test_a_body_from_a_wire_is_checked_before_the_first_item_runs(
    graph: Any, nodes: int, error: str | None
) -> None:
    services, _ = services_with(lambda _: [], limits=Limits(nodes=nodes))
    source = node_document("g", "start", initialInput=graph)
    loop = wired(source, handle="body", items=["a"], onItemError="null")
    result = await run_to_end(loop, services=services)
    if error is None:
        assert result.outputs["n"]["output"].value == ["a!"]
    else:
        assert result.error is not None
        assert result.error["message"].startswith("node 'n' failed: ")
        assert error in result.error["message"]


@virtual_time
async def test_more_items_than_allowed_fail_the_loop_before_any_item_runs() -> None:
    work = WorkNode()
    result = await run_node("loop", work, items=[1, 2, 3], maxItems=2, body=body())
    assert result == ("limit-exceeded", "node 'n' failed: items of 'n': data.maxItems is 2, met 3")
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
    ("data", "finding"),
    [
        ({"items": [1]}, ("missing-required-input", "/nodes/0/data/body")),
        ({"body": body(), "flow": {"id": "f"}, "items": []}, ("conflicting-field", "/nodes/0/data/flow")),
        ({"body": body()}, ("missing-required-input", "/nodes/0/data/items")),
        ({"body": body(), "items": [], "parallel": 101}, ("invalid-data", "/nodes/0/data/parallel")),
        ({"body": [], "items": []}, ("invalid-data", "/nodes/0/data/body")),
        ({"flow": {"revision": 1}, "items": []}, ("invalid-data", "/nodes/0/data/flow")),
        ({"body": graph_document(), "items": []}, ("empty-graph", "/nodes/0/data/body/nodes")),
        ({"body": {}, "items": []}, ("missing-field", "/nodes/0/data/body/nodes")),
    ],
)  # fmt: skip
def test_invalid_data_are_found(data: dict[str, Any], finding: tuple[str, str]) -> None:
    assert finding in errors_of(graph_document(node_document("n", "loop", **data)), WorkNode())


def test_an_edge_from_errors_needs_an_error_policy_that_fills_it() -> None:
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


def test_a_maximum_over_the_limit_is_found_before_the_run() -> None:
    graph = graph_document(node_document("n", "loop", items=[1], body=body(), maxItems=7))
    assert errors_of(graph, WorkNode(), limits=Limits(loop_items=7)) == []
    assert errors_of(graph, WorkNode(), limits=Limits(loop_items=6)) == [
        ("limit-exceeded", "/nodes/0/data/maxItems")
    ]


GROWS = graph_document(node_document("t", "transform", expression="{{ value + 1 }}"))


def texts(text: str) -> dict[str, Any]:
    return graph_document(node_document("t", "text", text=text))


def while_below(limit: str) -> dict[str, Any]:
    return graph_document(node_document("w", "while", condition=f"value < {limit}", body=GROWS))


def inner(graph: dict[str, Any]) -> dict[str, Any]:
    return graph_document(node_document("in", "inner", graph=graph))


@pytest.mark.parametrize(
    ("inside", "warned"),
    [
        (texts("the same for any item"), True),
        (texts("{{ goal }}, item"), True),
        (texts("{{ item.name | upper }}"), False),
        (texts("{% if index %}x{% endif %}"), False),
        (texts("{{ {'a': 1}[item] }}"), False),
        (texts("{{ {'item': 1} }} {{ goal.item }}"), True),
        (texts("{% for item in [1, 2] %}{{ item }}{% endfor %}"), True),
        (
            graph_document(
                node_document("s", "start"), node_document("t", "end"), edges=[("s", "t")]
            ),
            False,
        ),
        (inner(texts("{{item}}")), False),
        (while_below("item"), False),
        (inner(while_below("index")), False),
        (while_below("3"), True),
        (graph_document(node_document("t", "nonsense")), False),
    ],
)
def test_a_body_that_never_reads_its_item_is_a_warning(inside: Any, warned: bool) -> None:
    found = diagnostics_of(graph_document(node_document("n", "loop", items=[1], body=inside)))
    warnings = [(each.pointer, each.severity) for each in found if each.code == "unused-item"]
    assert warnings == ([("/nodes/0/data/body", "warning")] if warned else [])
