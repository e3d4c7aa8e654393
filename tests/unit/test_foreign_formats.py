"""Formats are told by the shape of a document, and planwave's own files are never taken for others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from planwave.foreign_formats import NOUNS, formats_of, is_flowchart, other_diagram, unwrap
from tests.support.interop.imports import OWN
from tests.support.paths import ROOT

_KINDS = {"magic_agents": "magic-agents"}
_FILES = [
    path for path in sorted(OWN.rglob("*.*")) if path.parent.name not in ("hostile", "mermaid")
]
_EXAMPLES = sorted((ROOT / "planwave" / "nodes" / "examples").glob("*.json"))


def loaded(path: Path) -> Any:
    text = path.read_text("utf-8-sig")
    return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.name)
def test_each_file_is_of_one_format(path: Path) -> None:
    folder = path.parent.name
    assert formats_of(loaded(path)) == (_KINDS.get(folder, folder),)


@pytest.mark.parametrize("path", _EXAMPLES, ids=lambda path: path.stem)
def test_planwaves_own_graphs_are_of_no_other_format(path: Path) -> None:
    assert formats_of(loaded(path)) == ("planwave",)


def test_documents_that_say_nothing_are_of_no_format() -> None:
    nothing: list[Any] = [None, 1, "x", [], {}, {"nodes": []}, {"nodes": [], "edges": []}, [[]]]
    assert all(formats_of(each) == () for each in nothing)


def test_a_document_is_found_in_what_its_program_puts_around_it() -> None:
    workflow = {"nodes": [{"id": "a"}], "connections": []}
    for wrapped, pointer in (
        ({"graph": workflow}, "/graph"),
        ({"workflow": workflow, "id": 1}, "/workflow"),
        ([workflow], "/0"),
        (workflow, ""),
    ):
        assert unwrap(wrapped) == (workflow, pointer)
        assert formats_of(wrapped) == ("agentflow",)


def test_a_document_of_two_formats_names_both() -> None:
    both = {"nodes": [{"id": "a", "dependencies": []}], "connections": []}
    assert formats_of(both) == ("agiraph", "agentflow")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flowchart TD\n a --> b", True),
        ("graph LR; a-->b", True),
        ("---\ntitle: x\n---\n%% note\nflowchart LR\n", True),
        ("sequenceDiagram\n A->>B: x", False),
        ("graphite is a mineral", False),
        ("", False),
    ],
)
def test_flowcharts_are_told_by_their_first_word(text: str, expected: bool) -> None:
    assert is_flowchart(text) is expected


def test_other_diagrams_are_named() -> None:
    assert other_diagram("%% x\nsequenceDiagram\n") == "sequenceDiagram"
    assert other_diagram("flowchart TD") is None
    assert other_diagram("hello") is None


def test_every_format_has_a_noun_with_an_article() -> None:
    assert all(noun.startswith(("a ", "an ")) for noun in NOUNS.values())
