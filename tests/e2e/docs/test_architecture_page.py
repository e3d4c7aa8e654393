"""docs/architecture.md names modules that exist, and docs/glossary.md stays short."""

from __future__ import annotations

import re

from tests.support.paths import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
GLOSSARY = (ROOT / "docs/glossary.md").read_text("utf-8")


def table_rows(text: str) -> list[str]:
    """Return the rows of all tables, without heads and rules."""
    lines = text.splitlines()
    return [
        line
        for number, line in enumerate(lines)
        if line.startswith("| ") and lines[number + 1 : number + 2] != ["|---|---|"]
    ]


def test_named_modules_exist() -> None:
    _, _, body = PAGE.partition("## The way of one execution")
    paths = set(re.findall(r"`([a-z_]+(?:/[a-z0-9_]+)+\.(?:py|j2)|[a-z_/]+/)`", body))
    assert len(paths) > 60
    homes = (ROOT / "planwave", ROOT)  # a path of a test begins with its folder
    assert [
        path for path in sorted(paths) if not any((each / path).exists() for each in homes)
    ] == []


def test_the_table_of_changes_has_no_row_more_or_less() -> None:
    table = PAGE.partition("## To change X, open Y")[2].partition("\n## ")[0]
    assert len(table_rows(table)) == 123


def test_glossary_has_at_most_sixty_one_sentence_terms() -> None:
    rows = table_rows(GLOSSARY)
    assert 40 <= len(rows) <= 60
    assert [row for row in rows if not row.endswith(". |")] == []
