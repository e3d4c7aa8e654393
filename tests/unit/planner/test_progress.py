"""The parts of a plan that are reported while a model writes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.planner.progress import PlanProgress, PlanScanner, ReadSteps
from planwave.planner.small_models import read_small_reply, read_steps
from tests.support.llm.planner_replies import DIAMOND_REPLY, planner_reply, reply_edge, reply_node


def reported(
    text: str, size: int = 10_000, read_steps: ReadSteps | None = None
) -> list[PlanProgress]:
    scanner = PlanScanner(read_steps)
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    fed = [progress for piece in pieces for progress in scanner.feed(piece)]
    return [*fed, *scanner.finish()]


def parts(text: str, size: int = 10_000) -> list[tuple[str, Any]]:
    return parts_of(reported(text, size))


def parts_of(progress: list[PlanProgress]) -> list[tuple[str, Any]]:
    keys = {"title": "title", "node": "id", "edge": "target"}
    return [(p.kind, p.data[keys[p.kind]]) for p in progress]


EXPECTED = [
    ("title", "A plan"),
    *(("node", name) for name in "abcd"),
    *(("edge", name) for name in "bcdd"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_title_nodes_and_edges_are_reported_in_order_for_any_chunk_size(size: int) -> None:
    assert parts(DIAMOND_REPLY, size) == EXPECTED


def test_a_node_is_reported_with_its_closing_brace() -> None:
    scanner = PlanScanner()
    start = '{"nodes": [{"id": "a", "name": "A", "data": {"x": [{}]}'
    assert list(scanner.feed(start)) == []
    assert list(scanner.feed("}")) == [PlanProgress("node", {"id": "a", "name": "A"})]


def test_a_complete_node_is_reported_before_an_incomplete_one_ends() -> None:
    scanner = PlanScanner()
    start = '{"nodes": [{"id": "a"}, {"id": "b", "data": {"x": {}'
    assert list(scanner.feed(start)) == [PlanProgress("node", {"id": "a"})]
    assert list(scanner.feed("}}]}")) == [PlanProgress("node", {"id": "b"})]


def test_the_title_is_reported_before_the_first_node_ends() -> None:
    scanner = PlanScanner()
    assert list(scanner.feed('{"title": "Half')) == []
    assert list(scanner.feed('", "nodes": [')) == [PlanProgress("title", {"title": "Half"})]


STEPS: dict[str, Any] = {
    "title": "Compare",
    "n1": {"name": "Read X", "depends_on": [], "task": "Read X } now."},
    "n2": {"name": "Read Y", "depends_on": [], "task": "Read Y."},
    "n3": {"name": "Read X", "depends_on": ["n1", "n2"], "task": "Use n1."},
    "final": {"name": "Report", "depends_on": ["n3"], "task": "Report on Read Y."},
}


def test_a_positional_reply_is_reported_step_by_step() -> None:
    scanner = PlanScanner(read_steps)
    written = {name: json.dumps({name: step})[1:-1] for name, step in STEPS.items()}
    assert list(scanner.feed("{" + written["title"])) == [
        PlanProgress("title", {"title": "Compare"})
    ]
    assert list(scanner.feed("," + written["n1"][:-1])) == []
    (first,) = scanner.feed("}")
    assert (first.kind, first.data["id"], first.data["name"]) == ("node", "read_x", "Read X")
    assert [p.data["id"] for p in scanner.feed("," + written["n2"])] == ["read_y"]
    assert [(p.kind, p.data.get("target")) for p in scanner.feed("," + written["n3"])] == [
        ("node", None),
        ("edge", "read_x_2"),
        ("edge", "read_x_2"),
    ]


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_the_reported_steps_equal_those_of_the_finished_plan(size: int) -> None:
    progress = reported(json.dumps(STEPS), size, read_steps)
    plan = read_small_reply(STEPS)
    assert [p.data for p in progress if p.kind == "node"] == plan["nodes"]
    assert sorted(map(str, (p.data for p in progress if p.kind == "edge"))) == sorted(
        map(str, plan["edges"])
    )


CHANGE = json.dumps(
    {
        "answer": "Takes another source.",
        "operations": [
            {"op": "remove_node", "id": "old"},
            {"op": "add_node", "node": {"id": "new", "name": "New", "type": "agent", "depends_on": ["a"], "data": {"x": 1}}},
            {"op": "add_edge", "edge": {"source": "new", "target": "end"}},
            {"op": "update_node", "id": "end", "set": {"description": "Say it", "data": {"model": "m"}}},
            {"op": "remove_edge", "source": "a", "target": "end", "source_handle": "output"},
            {"op": "rename", "id": "end", "to": "report"},
        ],
    }
)  # fmt: skip
CHANGED = [
    ("operation", {"op": "remove_node", "id": "old"}),
    ("node", {"id": "new", "name": "New", "type": "agent"}),
    ("edge", {"source": "a", "target": "new", "channel": "flow"}),
    ("edge", {"source": "new", "target": "end"}),
    ("operation", {"op": "update_node", "id": "end", "set": {"description": "Say it", "data": {"model": "m"}}}),
    ("operation", {"op": "remove_edge", "source": "a", "target": "end", "source_handle": "output"}),
    ("operation", {"op": "rename", "id": "end", "to": "report"}),
]  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_the_operations_of_a_change_are_reported_in_order_for_any_chunk_size(size: int) -> None:
    assert [(each.kind, each.data) for each in reported(CHANGE, size)] == CHANGED


def test_an_operation_is_reported_with_its_closing_brace() -> None:
    scanner = PlanScanner()
    start = '{"answer": "", "operations": [{"op": "add_node", "node": {"id": "a", "data": {}}'
    assert list(scanner.feed(start)) == []
    assert list(scanner.feed("}")) == [PlanProgress("node", {"id": "a"})]


def test_values_that_no_plan_holds_are_not_reported() -> None:
    fields = {"data": {"headers": {"Authorization": "Bearer k-1"}, "url": "https://a.example/"}}
    operation = {"op": "update_node", "id": "a", "set": fields}
    (told,) = reported(json.dumps({"operations": [operation]}))
    assert "k-1" not in str(told.data)
    assert told.data["set"]["data"]["url"] == "https://a.example/"


def test_malformed_operations_are_reported_as_far_as_they_can_be_read() -> None:
    text = '{"operations": ["x", {"op": "add_node", "node": 1}, {"op": "add_edge"}, {"id": {}}]}'
    assert [each.data for each in reported(text)] == [{"op": "add_node"}, {"op": "add_edge"}, {}]


def test_malformed_steps_are_not_reported() -> None:
    assert reported('{"n1": {"name": 1}, "n2": [{}], "final": 3}', 3, read_steps) == []
    assert parts_of(reported(DIAMOND_REPLY, 3, read_steps)) == EXPECTED


def test_a_reported_node_has_no_data() -> None:
    text = planner_reply(
        reply_node("a", type="llm", provider="p", model="m", data={"api_key": "sk-1"})
    )
    (_, progress) = reported(text)
    assert progress.data == {
        "id": "a",
        "name": "A",
        "description": "Do a.",
        "type": "llm",
        "provider": "p",
        "model": "m",
    }


@pytest.mark.parametrize(
    "text",
    [
        f'Here is "the plan:\n```json\n{DIAMOND_REPLY}\n```',
        json.dumps(json.loads(DIAMOND_REPLY), indent=2),
    ],
)
def test_prose_fences_and_layout_do_not_matter(text: str) -> None:
    assert parts(text, 5) == EXPECTED


def test_brackets_quotes_and_titles_inside_strings_are_text() -> None:
    tricky = reply_node("a", name='} ] "title": \\" {', description="\\\\")
    progress = reported(planner_reply(tricky, edges=[reply_edge("a", "a")], title='x"}]'), 1)
    assert progress[0].data == {"title": 'x"}]'}
    assert progress[1].data["name"] == tricky["name"]
    assert progress[2].kind == "edge"


@given(st.text(max_size=60), st.integers(1, 9))
def test_any_text_is_scanned_without_an_error(text: str, size: int) -> None:
    for begin in ("", '{"nodes": [{"id":'):
        whole = reported(begin + text, size)
        assert {each.kind for each in whole} <= {"title", "node", "edge"}
        assert [each.data for each in whole] == [each.data for each in reported(begin + text, 99)]


@given(st.text(), st.text(), st.integers(1, 9))
def test_any_name_and_title_are_reported_unchanged(name: str, title: str, size: int) -> None:
    first, second = reported(planner_reply(reply_node("a", name=name), title=title), size)
    assert first.data == {"title": title}
    assert second.data["name"] == name


@pytest.mark.timeout(60)
def test_a_large_reply_in_tiny_chunks_is_scanned_in_linear_time() -> None:
    text = planner_reply(*(reply_node(f"n{i}", description="x" * 400) for i in range(600)))
    assert len(text) > 250_000
    assert len(reported(text, 4)) == 601
    assert len(reported(planner_reply(reply_node("a", description="\\" * 250_000)), 4)) == 2
