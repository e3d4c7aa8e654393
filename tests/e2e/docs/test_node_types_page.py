"""docs/node-types.md says what the node types say of themselves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tools import gen_node_docs
from tools.gen_node_docs import DOCUMENT, kind_of, main, reference, shown

REGISTRY = Registry(LIBRARY)


def section(name: str) -> str:
    """What the page says of a type."""
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", reference(), re.M | re.S)
    assert found
    return found[1]


def test_page_is_up_to_date() -> None:
    assert DOCUMENT.read_text("utf-8") == reference(), "bring it up to date: make generate"


@pytest.mark.parametrize("name", REGISTRY.names())
def test_type_section_has_purpose_ports_parameters_and_example(name: str) -> None:
    output = section(name)
    about = REGISTRY.describe(name)
    assert about["purpose"] in output
    fields = about["schema"].get("properties", {})
    rows = set(re.findall(r"^\| `([^`]+)` \|", output, re.M))
    ports = {port.name for port in REGISTRY.implementation(name).inputs}
    assert rows >= {*fields, *ports, *(port["name"] for port in about["outputs"])}
    examples = re.findall(r"^```json\n(.*?)^```", output, re.M | re.S)
    assert [json.loads(example) for example in examples] == [about["example"]] * bool(
        about["example"]
    )


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "integer 1 …"),
        ({"type": "number", "minimum": 0, "maximum": 2}, "number 0 … 2"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 9}, "number above 0, up to 9"),
        ({"type": "integer", "exclusiveMinimum": 0}, "integer above 0"),
        ({"type": "integer", "maximum": 5}, "integer … 5"),
        ({"enum": ["a", 1]}, '`"a"` or `1`'),
        ({"const": "x"}, '`"x"`'),
        ({"type": "array", "items": {"$ref": "#/$defs/Condition"}}, "list of `Condition`"),
        ({"type": "array", "items": {}}, "list"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "object of text"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"oneOf": [{"type": "string"}, {"type": "boolean"}]}, "text or boolean"),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}], "template": True}, "boolean"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}], "template": True}, "text"),
        ({}, "any"),
    ],
)
def test_parameter_type_in_words(schema: dict[str, Any], words: str) -> None:
    assert kind_of(schema) == words


def test_short_json_is_on_one_line() -> None:
    short = {"a": [1, 2]}
    assert shown(short) == '{"a": [1, 2]}'
    long = {"nodes": [{"id": "x" * 60}, {"id": "y" * 60}], "none": []}
    assert json.loads(shown(long)) == long
    assert shown(long).splitlines()[2] == f'    {{"id": "{"x" * 60}"}},'
    assert max(map(len, shown(long).splitlines())) <= 100


def test_outdated_page_is_detected_and_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_node_docs, "ROOT", tmp_path)
    monkeypatch.setattr(gen_node_docs, "DOCUMENT", tmp_path / "page.md")
    assert main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().out
    assert not (tmp_path / "page.md").exists()
    assert main([]) == 0
    assert main(["--check"]) == 0
    assert (tmp_path / "page.md").read_text("utf-8") == reference()
