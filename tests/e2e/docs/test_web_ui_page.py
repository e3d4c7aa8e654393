"""docs/web-ui.md is true: its commands run, and its keys, screens and make targets exist."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.cli.doc_page import PageReader, blocks, commands
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "web-ui.md").read_text("utf-8")
SOURCES = "\n".join(
    path.read_text("utf-8")
    for path in sorted((ROOT / "web" / "src").rglob("*.ts*"))
    if ".test." not in path.name
)
SESSIONS = [block["text"] for block in blocks(PAGE) if block["kind"] == "console"]
TOKEN = "export PLANWAVE_TOKEN="


@pytest.mark.parametrize("session", SESSIONS)
def test_commands_run_and_print_their_output(
    session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources)
        for command in commands(session):
            if command.line.startswith(TOKEN):
                monkeypatch.setenv("PLANWAVE_TOKEN", "a long random text")
            else:
                reader.follow(command)


def test_make_targets_exist() -> None:
    (block,) = (block["text"] for block in blocks(PAGE) if block["kind"] == "sh")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = [line.split()[1] for line in block.splitlines()]
    assert named
    assert set(named) <= set(targets)


def test_keys_are_those_of_the_page() -> None:
    _, rows = PAGE.split("| where | keys | action |\n")
    table = [row for row in rows.partition("\n\n")[0].splitlines() if not row.startswith("|--")]
    actions = {row.strip("| ").split(" | ")[-1] for row in table}
    registered = set(re.findall(r'\bdoes: "([^"]+)"', SOURCES))
    assert registered
    assert registered - actions == set(), "name these keys in docs/web-ui.md"
    computed = {action for action in actions if "," in action}
    assert actions - registered == computed


def test_screens_are_those_of_the_navigation() -> None:
    screens = dict(re.findall(r"^\*\*([^*]+)\*\* \(`(/[a-z]*)", PAGE, re.MULTILINE))
    navigation = re.findall(r'\{ to: "([^"]+)", label: "([^"]+)"', SOURCES)
    assert navigation
    assert {label: path for path, label in navigation}.items() <= screens.items()
