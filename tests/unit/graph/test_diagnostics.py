"""Findings as JSON."""

from __future__ import annotations

from planwave.graph.diagnostics import Diagnostic, errors_in


def test_fields_that_do_not_apply_are_left_out() -> None:
    plain = Diagnostic("some-code", "error", "what")
    assert plain.as_json() == {
        "code": "some-code",
        "severity": "error",
        "message": "what",
        "pointer": "",
    }


def test_all_fields_are_shown() -> None:
    full = Diagnostic("c", "info", "m", "/p", "n", "e", ("a", "b", "a"), "h", "f")
    assert full.as_json() == {
        "code": "c", "severity": "info", "message": "m", "pointer": "/p", "node": "n",
        "edge": "e", "path": ["a", "b", "a"], "hint": "h", "fix": "f",
    }  # fmt: skip


def test_only_errors_stop_a_graph() -> None:
    found = [
        Diagnostic("a", "info", ""),
        Diagnostic("b", "error", ""),
        Diagnostic("c", "warning", ""),
    ]
    assert [d.code for d in errors_in(found)] == ["b"]
