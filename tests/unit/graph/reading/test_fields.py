"""Repeated ids are reported once each, with all their places."""

from __future__ import annotations

from planwave.graph.reading.fields import duplicate_ids


def test_each_repeated_id_is_one_finding() -> None:
    found = duplicate_ids(["a", "b", "a", "c", "b", "a", "", ""], "nodes")
    assert [(d.node, d.edge, d.pointer) for d in found] == [
        ("a", None, "/nodes/2/id"),
        ("b", None, "/nodes/4/id"),
    ]
    assert "3 times: /nodes/0/id, /nodes/2/id, /nodes/5/id" in found[0].message


def test_pointers_are_those_of_the_document() -> None:
    [found] = duplicate_ids(["x", "x"], "edges", [3, 8])
    assert (found.edge, found.pointer) == ("x", "/edges/8/id")


def test_many_pointers_are_not_all_listed() -> None:
    [found] = duplicate_ids(["x"] * 1000, "nodes")
    assert "1000 times" in found.message
    assert len(found.message) < 250
