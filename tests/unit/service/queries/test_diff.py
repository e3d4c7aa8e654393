"""What differs between two executions, node by node, and never more than can be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.errors import NotFound
from planwave.events import Event, ExecutionState, fold
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult
from planwave.ids import new_id
from planwave.service.queries.diff import (
    DIFF_CHARS,
    LINE_CHARS,
    MAX_HANDLES,
    MAX_NODES,
    TEXT_CHARS,
    TEXT_LINES,
    VALUE_CHARS,
    diff,
    text_diff,
)
from planwave.service.service import Service
from tests.support.graph.builders import make_graph as nodes_of
from tests.support.graph.builders import text_node
from tests.support.graph.fake_node_types import parse_graph
from tests.support.service.dependencies import dependencies

AT = "2026-01-01T00:00:{:02}.000000+00:00"
USED = {"provider": "p", "model": "m", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5}


def text(value: Any, kind: str = "text") -> dict[str, Any]:
    return {"output": {"type": kind, "value": value}}


def state_of(
    nodes: str,
    told: list[tuple[str, str, dict[str, Any]]],
    name: str = "a",
    ends: str = "completed",
    data: dict[str, Any] | None = None,
) -> ExecutionState:
    """The state of an execution that took one second for each thing that is told."""
    graph = parse_graph(nodes).to_document()
    for node in graph["nodes"]:
        node["data"] = (data or {}).get(node["id"], {})
    events: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.created", None, {"graph": graph}),
        ("execution.started", None, {"waves": 1}),
        *told,
    ]
    if ends:
        events.append((f"execution.{ends}", None, {"failures": []}))
    return fold(
        Event(name, seq, AT.format(min(seq, 59)), kind, path, 1 if path else None, facts)
        for seq, (kind, path, facts) in enumerate(events, 1)
    )


def completed(path: str, outputs: dict[str, Any], duration_s: float = 1.0) -> Any:
    return "node.completed", path, {"outputs": outputs, "duration_s": duration_s}


def only(told: dict[str, Any]) -> dict[str, Any]:
    (node,) = told["nodes"]
    return node


def test_equal_executions_have_no_differences() -> None:
    a = state_of("x y", [completed("x", text("1")), completed("y", text("2"))])
    b = state_of(
        "x y",
        [completed("x", text("1"), 9.0), ("usage", "x", USED), completed("y", text("2"))],
        "b",
    )
    received = diff(a, b)
    assert received["counts"] == {"same": 2, "changed": 0, "only_a": 0, "only_b": 0}
    assert (received["a"], received["b"], received["nodes"], received["left_off"]) == (
        "a",
        "b",
        [],
        0,
    )
    assert received["status"] == ["completed", "completed"]
    assert received["duration_s"] == [3.0, 4.0]
    assert [used["input_tokens"] for used in received["usage"]] == [0, 10]
    assert [used["cost_usd"] for used in received["usage"]] == [None, 0.5]


def test_changed_output_has_both_values_and_a_diff() -> None:
    a = state_of("x", [("usage", "x", USED), completed("x", text("one\ntwo"), 2.0)])
    b = state_of("x", [completed("x", text("one\nthree"), 0.5)], "b")
    assert only(diff(a, b)) == {
        "path": "x",
        "change": "changed",
        "status": ["completed", "completed"],
        "duration_s": [2.0, 0.5],
        "usage": [a.nodes["x"].usage.as_json(), b.nodes["x"].usage.as_json()],
        "outputs": {
            "output": [
                {"type": "text", "value": "one\ntwo"},
                {"type": "text", "value": "one\nthree"},
            ]
        },
        "result": "@@ -1,2 +1,2 @@\n one\n-two\n+three",
    }


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (1, True), (0, None), ({"k": 1}, {"k": 2})])
def test_values_are_compared_as_json(a: Any, b: Any) -> None:
    states = state_of("x", [completed("x", text(a))]), state_of("x", [completed("x", text(b))], "b")
    (sides,) = only(diff(*states))["outputs"].values()
    assert repr([side["value"] for side in sides]) == repr([a, b])
    assert "result" not in only(diff(*states))


def test_missing_handle_is_null() -> None:
    a = state_of("x", [completed("x", {"yes": text("1")["output"]})])
    b = state_of("x", [completed("x", {"no": text(None)["output"]})], "b")
    assert only(diff(a, b))["outputs"] == {
        "yes": [{"type": "text", "value": "1"}, None],
        "no": [None, {"type": "text", "value": None}],
    }


def test_changed_status_has_the_error() -> None:
    error = {"code": "boom", "message": "it broke"}
    failed = ("node.failed", "x", {"error": error, "handled": False, "duration_s": 1.0})
    a, b = (
        state_of("x", [failed], ends="failed"),
        state_of("x", [completed("x", text("1"))], "b", ends=""),
    )
    received = diff(a, b)
    assert (received["status"], received["duration_s"]) == (["failed", "executing"], [2.0, None])
    node = only(received)
    assert (node["status"], node["error"]) == (["failed", "completed"], [error, None])
    assert (node["outputs"]["output"][0], "result" in node) == (None, False)


def test_changed_graph_fields_are_named() -> None:
    story = [completed("x", text("1"))]
    a, b = (
        state_of("x", story, data={"x": {"k": 1, "same": [0], "old": None}}),
        state_of("x:fork", story, "b", data={"x": {"k": True, "same": [0], "new": None}}),
    )
    assert only(diff(a, b))["written"] == ["type", "data.k", "data.old", "data.new"]


def test_nodes_of_one_side_are_listed_first_side_first() -> None:
    a = state_of("x y", [completed("x", text("1")), completed("x[1]/z", text("1"))])
    b = state_of("w x", [completed("x", text("1"))], "b")
    received = diff(a, b)
    assert received["counts"] == {"same": 1, "changed": 0, "only_a": 2, "only_b": 1}
    assert [(n["path"], n["change"]) for n in received["nodes"]] == [
        ("y", "only_a"),
        ("x[1]/z", "only_a"),
        ("w", "only_b"),
    ]
    assert [n["status"] for n in received["nodes"]] == [
        ["pending", None],
        ["completed", None],
        [None, "pending"],
    ]
    assert all("written" not in n for n in received["nodes"])


# -- bounds


def test_long_value_has_preview_and_hash() -> None:
    long = "x" * VALUE_CHARS
    a, b = (
        state_of("x", [completed("x", text(long + "a"))]),
        state_of("x", [completed("x", text([long, "b"]))], "b"),
    )
    first, second = only(diff(a, b))["outputs"]["output"]
    assert (first["preview"], first["chars"]) == (long + "…", VALUE_CHARS + 1)
    assert second["preview"].startswith('["xxx')
    assert len(first["sha256"]) == len(second["sha256"]) == 64
    assert first["sha256"] != second["sha256"]


def test_difference_has_a_bounded_size() -> None:
    names = [f"n{i}" for i in range(MAX_NODES + 50)]
    lines = ["\n".join(f"{side} {i}" for i in range(700)) for side in "ab"]

    def state(side: int) -> ExecutionState:
        outputs = {f"h{i}": {"type": "text", "value": lines[side]} for i in range(MAX_HANDLES + 5)}
        return state_of(" ".join(names), [completed(name, outputs) for name in names], "ab"[side])

    received = diff(state(0), state(1))
    assert (len(received["nodes"]), received["left_off"]) == (MAX_NODES, 50)
    assert received["counts"]["changed"] == MAX_NODES + 50
    assert all(len(node["outputs"]) == MAX_HANDLES for node in received["nodes"])
    assert len(json.dumps(received)) < 4_000_000


def test_long_lines_are_compared_by_sentence() -> None:
    sentences = [f"This is sentence number {i} of a long paragraph." for i in range(20)]
    changed = [*sentences[:9], "This one is new.", *sentences[10:]]
    received = text_diff(" ".join(sentences), " ".join(changed)).split("\n")
    assert [line for line in received if line[0] in "+-"] == [
        f"-{sentences[9]}",
        "+This one is new.",
    ]


def test_text_diff_is_truncated() -> None:
    received = text_diff("\n".join("a" * 90 for _ in range(400)), "b" * 10_000)
    assert received.endswith("\n…")
    assert len(received) < DIFF_CHARS + 2 * LINE_CHARS + 10
    longest = text_diff("a" * 10_000, "b" * 10_000).split("\n")
    assert [line[:2] for line in longest] == ["@@", "-a", "+b"]
    assert max(map(len, longest)) == 2 * LINE_CHARS + 1


@pytest.mark.parametrize("same", ["x" * TEXT_CHARS, "x\n" * TEXT_LINES])
def test_late_differences_are_mentioned(same: str) -> None:
    assert text_diff(same + "a", same + "b").startswith("they differ after 500 lines")


def test_errors_are_truncated() -> None:
    long = {"code": "boom", "message": "m" * 5_000}
    failed = ("node.failed", "x", {"error": long, "handled": False, "duration_s": 1.0})
    a, b = state_of("x", [failed], ends="failed"), state_of("x", [], "b")
    assert len(only(diff(a, b))["error"][0]["message"]) == VALUE_CHARS + 1


# -- from a store


class Counting:
    """Gives a new number each time."""

    node_type = "counting"
    given = 0

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        type(self).given += 1
        return ExecutionResult({"output": DataValue("integer", self.given)})


async def test_stored_executions_are_compared() -> None:
    from planwave.graph.model import Node

    graph = nodes_of(text_node("t"), Node("n", "counting", "N"))
    async with Service(dependencies(graph, types=[Counting()])) as service:
        plan = await service.plans.create("count")
        ids = [(await service.executions.execute(plan.plan_id)).execution_id for _ in range(2)]
        for execution_id in ids:
            await service.executions.wait(execution_id)
        received = await service.executions.diff(*ids)
        assert (received["a"], received["b"]) == tuple(ids)
        assert received["counts"] == {"same": 1, "changed": 1, "only_a": 0, "only_b": 0}
        assert only(received)["path"] == "n"
        assert (await service.executions.diff(ids[0], ids[0]))["counts"]["same"] == 2
        for pair in ((ids[0], new_id()), (new_id(), ids[0])):
            with pytest.raises(NotFound):
                await service.executions.diff(*pair)
