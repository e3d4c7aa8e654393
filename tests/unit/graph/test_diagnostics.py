"""Findings as JSON."""

from __future__ import annotations

import re
from dataclasses import fields

from planwave.graph.diagnostics import Diagnostic, errors_in, sorted_by_location
from planwave.shapes.graphs import SuggestionResponse
from tests.support.paths import ROOT


def test_absent_fields_are_omitted_from_json() -> None:
    plain = Diagnostic("some-code", "error", "what")
    assert plain.as_json() == {
        "code": "some-code",
        "severity": "error",
        "message": "what",
        "pointer": "",
    }


def test_all_fields_are_in_json() -> None:
    remove: SuggestionResponse = {"label": "Remove it", "operations": []}
    full = Diagnostic("c", "info", "m", "/p", "n", "e", ("a", "b", "a"), "h", "f", remove)
    assert full.as_json() == {
        "code": "c", "severity": "info", "message": "m", "pointer": "/p", "node": "n",
        "edge": "e", "path": ["a", "b", "a"], "hint": "h", "fix": "f", "suggestion": remove,
    }  # fmt: skip
    assert full.as_json().keys() == {field.name for field in fields(Diagnostic)}


def test_only_errors_stop_a_graph() -> None:
    found = [
        Diagnostic("a", "info", ""),
        Diagnostic("b", "error", ""),
        Diagnostic("c", "warning", ""),
    ]
    assert [d.code for d in errors_in(found)] == ["b"]


def test_findings_are_sorted_by_pointer_and_the_sort_is_stable() -> None:
    places = ["/edges/2/id", "/nodes/10", "/edges", "/nodes/9/data", "/nodes/9", "", "/x/1"]
    ordered = sorted_by_location(Diagnostic("a", "error", "", place) for place in places)
    assert [found.pointer for found in ordered] == [
        "", "/x/1", "/nodes/9/data", "/nodes/9", "/nodes/10", "/edges", "/edges/2/id",
    ]  # fmt: skip


WHILE_RUNNING = {
    "approval-timeout", "bad-record", "broken-node-module", "empty-prompt", "foreign-node", "http-status",
    "interrupted",
    "invalid-arguments", "invalid-output", "invalid-response", "invalid-result", "invalid-tool", "max-steps",
    "nested-run-failed", "no-flows", "no-models", "no-outbound", "no-planner",
    "no-mcp", "no-memory", "no-value", "not-a-boolean", "not-a-list", "not-running",
    "provider-error", "rejected", "reserved-event", "result-not-json", "secret-refused",
    "tool-failed", "tool-timeout", "unknown-decision", "unknown-mcp-tool", "value-not-editable",
}  # fmt: skip
"""Codes that no check reports: of node errors, of nodes in the wrong builder, of broken modules."""
OF_OPERATIONS = {"invalid-title", "unknown-edge", "unknown-node"}
"""Codes of operations that cannot be applied to a plan."""
OF_CHANGES = {"frozen-input", "frozen-node", "nothing-changed", "used-id"}
"""Codes of changes that a graph that is being run cannot take; docs/errors.md has them."""


WITH_NAMES_OF_HEADERS = {"conversation.py", "fetch.py", "webhook.py", "webhook_reply.py"}
"""Modules whose texts look like codes."""


def test_every_code_is_documented() -> None:
    sources = [
        file.read_text("utf-8")
        for package in ("graph", "nodes")
        for file in sorted((ROOT / "planwave" / package).rglob("*.py"))
        if file.name not in WITH_NAMES_OF_HEADERS
    ]
    codes = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', "\n".join(sources)))
    _, _, section = (ROOT / "docs/semantics.md").read_text("utf-8").partition("## Findings")
    written = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", section.partition("\n## ")[0]))
    assert len(codes) > 30
    assert codes - WHILE_RUNNING - OF_OPERATIONS - OF_CHANGES <= written
    errors = (ROOT / "docs/errors.md").read_text("utf-8")
    assert all(f"| `{code}` |" in errors for code in OF_CHANGES)
