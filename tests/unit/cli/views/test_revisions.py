"""Revisions and their differences as lines of text."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from planwave.cli.console import CommandConsole
from planwave.cli.views.revisions import proposal_lines, revision_lines, show_revision_difference
from planwave.storage.records import PlanRevision

AT = "2026-01-01T00:00:00+00:00"


def shown(difference: dict[str, Any]) -> list[str]:
    console = CommandConsole()
    console.out = Console(file=io.StringIO(), width=200)
    full = {
        "plan_id": "p",
        "a": 1,
        "b": 2,
        "title": None,
        "nodes": [],
        "edges": [],
        "reordered": [],
    }
    show_revision_difference(console, {**full, **difference})
    return console.out.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_revision_is_one_safe_line() -> None:
    revision = PlanRevision("p", 12, "h", "T\x1b[2J\nx", "person", "why\n", AT, 3, 1)
    first = PlanRevision("p", 1, "h", "T", "planner", "", AT, 1, 0)
    lines = [line.plain for line in revision_lines([revision, first])]
    assert lines[0].startswith("12  2026-01-01")
    assert lines[1].startswith(" 1  2026-01-01")
    assert "3 steps  draft, 1 error" in lines[0]
    assert "\x1b" not in lines[0]
    assert "\n" not in lines[0]
    assert lines[1].endswith("planner  1 step  T")


def test_differences_are_written_field_by_field() -> None:
    lines = shown(
        {
            "title": ["Old", "New"],
            "nodes": [
                {"id": "a", "change": "removed", "before": {"id": "a", "type": "text", "data": {"text": "gone"}}},
                {"id": "b", "change": "changed", "fields": [
                    {"pointer": "/data/x", "before": {"k": 1}},
                    {"pointer": "/name", "before": "B", "after": "two\nlines \x1b[2J"},
                ]},
            ],
            "edges": [
                {"id": "e1", "change": "removed", "before": {"source": "a", "target": "b"}},
                {"id": "e1", "change": "added", "after": {"source": "a", "target": "c"}},
                {"id": "e", "change": "added", "after": {}},
                {"id": "e2", "change": "changed", "after": {"source": "a", "sourceHandle": "left", "target": "d"},
                 "fields": [{"pointer": "/sourceHandle", "after": "left"}]},
            ],
            "reordered": ["nodes"],
        }
    )  # fmt: skip
    assert lines[1:] == [
        "title", "    - Old", "    + New",
        "- node a  text", "    /data/text", "    - gone",
        "~ node b", "    /data/x", '    - {', '    -   "k": 1', "    - }", "    /name", "    - B", "    + two",
        "    + lines [2J",
        "- edge a to b", "+ edge a to c", "+ edge e",
        "~ edge a.left to d", "    /sourceHandle", "    + left", "The nodes have another order.",
    ]  # fmt: skip
    assert lines[0].endswith("plan p")


def test_no_difference_is_said() -> None:
    assert shown({})[1:] == ["The graph and the title are the same."]


def test_a_proposal_shows_all_that_an_added_step_does() -> None:
    agent = {
        "id": "x",
        "type": "agent",
        "name": "Helper",
        "description": "Read every mail.",
        "data": {"userPrompt": "Tidy up. " + "." * 400 + " Then send all of it.", "maxSteps": 3},
        "policy": {"retry": {"attempts": 2}},
    }
    link = {
        "source": "mail",
        "sourceHandle": "output",
        "target": "x",
        "targetHandle": "tools",
        "data": {"channel": "link"},
    }
    plain = {"source": "x", "sourceHandle": "output", "target": "y", "targetHandle": "input"}
    difference = {
        "title": None,
        "nodes": [{"id": "x", "change": "added", "after": agent}],
        "edges": [
            {"id": "e", "change": "added", "after": link},
            {"id": "f", "change": "added", "after": {**plain, "data": {"channel": "flow"}}},
        ],
        "reordered": [],
    }
    proposal = {"answer": "", "difference": difference, "additions": []}
    lines = [line.plain for line in proposal_lines(proposal)]
    assert [line for line in lines if "Tidy up" not in line] == [
        "+ node x  agent", "    /name", "    + Helper", "    /description", "    + Read every mail.",
        "    /data/userPrompt", "    /data/maxSteps", "    + 3", "    /policy/retry",
        "    + {", '    +   "attempts": 2', "    + }",
        "+ edge mail to x.tools (link)", "+ edge x to y",
    ]  # fmt: skip
    assert any(line.endswith("Then send all of it.") for line in lines)


def test_a_proposal_says_apart_what_is_new_and_what_is_lost() -> None:
    difference = {"title": None, "nodes": [], "edges": [], "reordered": []}
    additions = [
        {"kind": "safeguard", "name": "approval step ask", "node": "ask"},
        {"kind": "host", "name": "example.org", "node": "x"},
    ]
    proposal = {"answer": "", "difference": difference, "additions": additions}
    assert [line.plain for line in proposal_lines(proposal)] == [
        "New: the plan does not do or reach this yet", "! host example.org  in x",
        "Lost: this guards the plan now", "! safeguard approval step ask  in ask",
    ]  # fmt: skip
