"""The shape of a reply, and how each difference from it is named."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.planner.reply_schema import parse_reply
from tests.support.llm.planner_replies import reply_edge, reply_node


def only_fault(value: Any) -> tuple[str, str, str]:
    _, findings = parse_reply(value)
    assert len(findings) == 1, findings
    return findings[0].code, findings[0].pointer, findings[0].message


def with_node(**fields: Any) -> dict[str, Any]:
    return {"nodes": [{"id": "a", **fields}], "edges": []}


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), ([], "an array"), (4, "a number"), ("x", "text"), (True, "a boolean")],
)
def test_a_plan_must_be_an_object(value: Any, kind: str) -> None:
    code, _, message = only_fault(value)
    assert (code, message) == ("not-an-object", f"the plan must be an object, got {kind}")


@pytest.mark.parametrize(
    ("value", "code", "pointer", "words"),
    [
        ({"edges": []}, "missing-field", "/nodes", "'nodes' at the top of the plan"),
        ({"nodes": [{"id": "a"}]}, "missing-field", "/edges", "'edges'"),
        ({"nodes": [], "edges": []}, "empty-plan", "/nodes", "no nodes"),
        ({"nodes": {}, "edges": []}, "invalid-field", "/nodes", "an array, not an object"),
        ({"nodes": ["a"], "edges": []}, "invalid-field", "/nodes/0", "an object, not text"),
        ({"nodes": [{}], "edges": []}, "missing-field", "/nodes/0/id", "'id' at /nodes/0"),
        (with_node(name=5), "invalid-field", "/nodes/0/name", "text, not a number"),
        (with_node(data=[]), "invalid-field", "/nodes/0/data", "an object, not an array"),
        (with_node(id=7), "invalid-field", "/nodes/0/id", "text, not a number"),
        (with_node(__class__="os.system"), "unknown-field", "/nodes/0/__class__", "'__class__'"),
        (with_node(**{"a/b": 1}), "unknown-field", "/nodes/0/a~1b", "'a/b'"),
        ({**with_node(), "steps": []}, "unknown-field", "/steps", "'steps'"),
        (
            {"nodes": [{"id": "a"}], "edges": [{"source": "a", "channel": "flow"}]},
            "missing-field",
            "/edges/0/target",
            "'target' at /edges/0",
        ),
        ({"refusal": "I cannot assist", "nodes": []}, "refusal", "/refusal", "I cannot assist"),
        (
            {"error": {"type": "overloaded_error", "message": "Overloaded"}},
            "provider-error-reply",
            "/error",
            "Overloaded",
        ),
    ],
)
def test_a_difference_is_reported_with_its_pointer(
    value: Any, code: str, pointer: str, words: str
) -> None:
    found = only_fault(value)
    assert found[:2] == (code, pointer)
    assert words in found[2]


def test_all_differences_are_reported_together_with_their_node() -> None:
    value = {
        "nodes": [{"id": "a", "after": ["b"]}, {"id": "b", "description": 3}, {"name": "c"}],
        "edges": [{"from": "a", "to": "b"}],
    }
    _, findings = parse_reply(value)
    assert [(f.code, f.pointer, f.node) for f in findings] == [
        ("unknown-field", "/nodes/0/after", "a"),
        ("invalid-field", "/nodes/1/description", "b"),
        ("missing-field", "/nodes/2/id", None),
        ("missing-field", "/edges/0/source", None),
        ("missing-field", "/edges/0/target", None),
        ("unknown-field", "/edges/0/from", None),
        ("unknown-field", "/edges/0/to", None),
    ]
    assert "source" in (findings[-1].hint or "")
    assert "description" in (findings[0].hint or "")


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"nodes": [], "edges": [{}]},
        {"refusal": "No.", "nodes": []},
        {"error": "overloaded"},
    ],
)
def test_a_reply_without_nodes_gives_no_plan(value: Any) -> None:
    plan, findings = parse_reply(value)
    assert plan is None
    assert findings


def test_valid_parts_are_read_and_rejected_parts_are_listed() -> None:
    plan, _ = parse_reply(
        {
            "title": 5,
            "nodes": [
                {"id": "a", "name": 7, "data": {"x": 1}},
                "b",
                {"type": "llm", "kind": "llm"},
                {"id": "d", "kind": "llm"},
            ],
            "edges": [{"source": "a", "from": "a", "channel": []}, 3],
        }
    )
    assert plan is not None
    assert plan.title is None
    assert [(n.id, n.name, n.data) for n in plan.nodes] == [
        ("a", None, {"x": 1}), ("", None, None), ("", None, None), ("d", None, None),
    ]  # fmt: skip
    assert [(e.source, e.target) for e in plan.edges] == [("a", ""), ("", "")]
    assert plan.unread.lists == frozenset()
    assert plan.unread.entries == {
        ("nodes", 0): {"name"},
        ("nodes", 1): set(),
        ("nodes", 2): {"id", "kind"},
        ("nodes", 3): {"kind", "type"},
        ("edges", 0): {"target", "from", "channel"},
        ("edges", 1): set(),
    }


def test_an_invalid_list_is_listed_and_the_other_is_read() -> None:
    plan, _ = parse_reply({"nodes": {"a": {}}, "edges": [reply_edge("a", "b")]})
    assert plan is not None
    assert (plan.nodes, len(plan.edges), plan.unread.lists) == ([], 1, {"nodes"})


def test_both_spellings_and_null_are_read() -> None:
    plan, findings = parse_reply(
        {
            "title": None,
            "nodes": [
                reply_node("a", type=None, provider=None, model=None, data=None),
                reply_node("b"),
            ],
            "edges": [
                reply_edge("a", "b", source_handle="output", target_handle=None),
                {
                    "id": "e9",
                    "source": "a",
                    "sourceHandle": "output",
                    "target": "b",
                    "targetHandle": "input",
                    "type": "smooth",
                    "data": {"channel": "flow", "sourceType": "text"},
                },
            ],
        }
    )
    assert findings == []
    assert plan is not None
    assert plan.nodes[0].type is None
    assert plan.edges[0].source_handle == "output"
    assert plan.edges[1].wire_target_handle == "input"
