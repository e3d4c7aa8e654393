"""Messages of the command line, whole, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def written(*nodes: dict[str, Any], edges: tuple[dict[str, Any], ...] = ()) -> str:
    """Write a graph into a file; return the name of the file."""
    Path("graph.json").write_text(json.dumps({"nodes": nodes, "edges": edges}))
    return "graph.json"


def flow(source: str, target: str, **handles: str) -> dict[str, Any]:
    return {"source": source, "target": target, "data": {"channel": "flow"}, **handles}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (
            {"type": "transform", "data": {"expression": "{{ 10 / 0 }}"}},
            'num: data.expression: division by zero in "10 / 0"',
        ),
        (
            {"type": "number", "data": {"value": "{{ 'foo' ~ '=bar' }}"}},
            "num: data.value: 'foo=bar' is not a number",
        ),
        (
            {"type": "transform", "data": {"expression": "{{ ('foo' ~ '=bar') | float }}"}},
            "num: data.expression: 'foo=bar' is not a number",
        ),
    ],
)
def test_failed_calculation_names_the_field_and_the_value(
    node: dict[str, Any], message: str
) -> None:
    done = invoke("exec", written({"id": "num", **node}))
    assert done.exit_code == 1
    assert f"✗ {message}\n" in done.output


def test_unclosed_comment_is_located() -> None:
    node = {"id": "note", "type": "text", "data": {"text": "one\ntwo {# three"}}
    done = invoke("check", written(node))
    assert "node 'note': data.text: {# in line 2, column 5 is never closed" in done.output
