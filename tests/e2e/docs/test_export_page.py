"""docs/export.md is true: its commands are run, what they write comes back, its tables have what there is."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path

import jsonschema_rs
import pytest

from planwave.graph.plan import graph_hash
from planwave.graph.reading.document_text import parse_document_text
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.drawing import Shape, shape_of
from planwave.interop.exporting.exporter import FORMATS
from planwave.interop.exporting.mermaid import SHAPES
from planwave.nodes.registry import default_registry
from tests.support.cli.doc_page import PageReader, blocks, commands
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "export.md").read_text("utf-8")


@pytest.mark.timeout(300)
def test_every_command_does_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources)
        for block in blocks(PAGE):
            if block["file"]:
                (tmp_path / block["file"]).write_text(block["text"], "utf-8")
                continue
            for command in commands(block["text"]):
                reader.follow(command)
    assert len(blocks(PAGE)) * 2 == len(re.findall(r"^```", PAGE, re.M))
    document = parse_document_text((tmp_path / "note.yaml").read_bytes())
    schema = json.loads((tmp_path / "planwave.schema.json").read_text("utf-8"))
    assert list(jsonschema_rs.Draft202012Validator(schema).iter_errors(document)) == []
    program: dict[str, object] = {}
    exec((tmp_path / "note.py").read_text("utf-8"), program)  # noqa: S102 - planwave wrote it
    builder = program["graph"]
    graph = {name: document[name] for name in ("nodes", "edges")}
    made = read_graph(getattr(builder, "document")())[0]  # noqa: B009 - it is of any type
    assert graph_hash(made) == graph_hash(read_graph(graph)[0])


def test_the_tables_have_every_format_and_every_outline() -> None:
    assert re.findall(r"^\| `([a-z][a-z-]+)` \|", PAGE, re.M) == list(FORMATS)
    registry = default_registry()
    shown = re.findall(r"^\| [a-z ]+ \| `id(.*?)` \| (.*) \|$", PAGE, re.M)
    by_marks = {f'{before}"…"{after}': shape for shape, (before, after) in SHAPES.items()}
    assert [by_marks[marks] for marks, _ in shown] == [
        Shape.ENTRY, Shape.END, Shape.MODEL, Shape.BRANCH, Shape.PERSON, Shape.NESTED, Shape.GIVER, Shape.UNKNOWN,
        Shape.STEP,
    ]  # fmt: skip
    for marks, nodes in shown:
        for name in re.findall(r"`(\w+)`", nodes):
            assert shape_of(name, registry) is by_marks[marks], name
