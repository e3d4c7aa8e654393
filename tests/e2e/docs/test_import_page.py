"""docs/import.md is true: its files are converted and run, its tables have what there is."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from planwave.foreign_formats import NOUNS
from planwave.interop.importing.importer import KINDS
from tests.support.cli.doc_page import PageReader, blocks, commands
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "import.md").read_text("utf-8")
REPLIES = {
    "Greet Ada.": "Good morning, Ada.",
    "Write: Offer Ada a chair.": "Dear Ada, the price of the chair is 20.",
    "Check the price in:": "The price is right.",
}


@pytest.mark.timeout(300)
def test_every_file_is_imported_and_run_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources, replies=REPLIES)
        for block in blocks(PAGE):
            if block["file"]:
                (tmp_path / block["file"]).write_text(block["text"], "utf-8")
                continue
            for command in commands(block["text"]):
                reader.follow(command)
    assert len(blocks(PAGE)) * 2 == len(re.findall(r"^```", PAGE, re.M))


def test_the_table_of_formats_has_every_format_that_can_be_imported() -> None:
    _, _, table = PAGE.partition("## The formats")
    named = set(re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)) - {"format", "---"}
    assert named == {NOUNS[kind].partition(" ")[2] for kind in KINDS} - {"planwave graph"}
