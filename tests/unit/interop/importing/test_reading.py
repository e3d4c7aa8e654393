from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import planwave.interop.importing
from planwave.interop.importing.importer import import_text
from planwave.interop.importing.reading import json_of

PACKAGE = Path(planwave.interop.importing.__file__).parent
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("text", [DEEP, "[" * 40 + "]" * 40, "NaN", "[Infinity]", "", "{", "'a'"])
def test_a_text_that_no_graph_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        json_of(text)


@pytest.mark.parametrize("value", [None, 0, 1.5, "a", [], {"a": [{"b": [True]}]}])
def test_json_is_read(value: object) -> None:
    assert json_of(json.dumps(value)) == value


def test_no_converter_reads_json_in_another_way() -> None:
    """A text of a file may be nested so deep that ``json.loads`` raises ``RecursionError``."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path.name != "reading.py"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "loads"
    ]
    assert found == []


def test_parameters_of_a_request_that_are_nested_too_deep_lose_it() -> None:
    nodes = [
        {"id": "u", "type": "user_input", "data": {}},
        {"id": "r", "type": "fetch", "data": {"url": "https://a.example/", "params": DEEP}},
    ]
    imported = import_text(json.dumps({"nodes": nodes, "edges": []}), "magic-agents")
    outcomes = {each["source_kind"]: each["outcome"] for each in imported.report["nodes"]}
    assert outcomes["fetch"] == "placeholder"
