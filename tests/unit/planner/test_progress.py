"""What the scanner tells of a reply while it is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.planner.progress import PlanProgress, PlanScanner
from tests.support.llm.planner_replies import DIAMOND_REPLY, planner_reply, reply_edge, reply_node


def told(text: str, size: int = 10_000) -> list[PlanProgress]:
    scanner = PlanScanner()
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    return [progress for piece in pieces for progress in scanner.feed(piece)]


def parts(text: str, size: int = 10_000) -> list[tuple[str, Any]]:
    keys = {"title": "title", "node": "id", "edge": "target"}
    return [(p.kind, p.data[keys[p.kind]]) for p in told(text, size)]


EXPECTED = [
    ("title", "A plan"),
    *(("node", name) for name in "abcd"),
    *(("edge", name) for name in "bcdd"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_title_nodes_and_edges_are_told_in_order_however_the_text_is_cut(size: int) -> None:
    assert parts(DIAMOND_REPLY, size) == EXPECTED


def test_a_node_is_told_with_its_last_brace_and_not_before() -> None:
    scanner = PlanScanner()
    start = '{"nodes": [{"id": "a", "name": "A", "data": {"x": [{}]}'
    assert list(scanner.feed(start)) == []
    assert list(scanner.feed("}")) == [PlanProgress("node", {"id": "a", "name": "A"})]


def test_what_is_told_of_a_node_leaves_its_data_out() -> None:
    text = planner_reply(
        reply_node("a", type="llm", provider="p", model="m", data={"api_key": "sk-1"})
    )
    (_, progress) = told(text)
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
    told_now = told(planner_reply(tricky, edges=[reply_edge("a", "a")], title='x"}]'), 1)
    assert told_now[0].data == {"title": 'x"}]'}
    assert told_now[1].data["name"] == tricky["name"]
    assert told_now[2].kind == "edge"


@given(st.text(max_size=60), st.integers(1, 9))
def test_any_text_is_survived(text: str, size: int) -> None:
    told(text, size)
    told('{"nodes": [{"id":' + text, size)


@given(st.text(), st.text(), st.integers(1, 9))
def test_any_name_and_title_come_through(name: str, title: str, size: int) -> None:
    first, second = told(planner_reply(reply_node("a", name=name), title=title), size)
    assert first.data == {"title": title}
    assert second.data["name"] == name


@pytest.mark.timeout(60)
def test_a_reply_of_full_size_in_tiny_pieces_is_read_once() -> None:
    text = planner_reply(*(reply_node(f"n{i}", description="x" * 400) for i in range(600)))
    assert len(text) > 250_000
    assert len(told(text, 4)) == 601
    assert len(told(planner_reply(reply_node("a", description="\\" * 250_000)), 4)) == 2
