"""docs/python.md is true: it names what the package exports, and its blocks print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import planwave
from planwave import testing
from tests.support.cli.doc_page import blocks
from tests.support.paths import ROOT
from tests.support.processes.forked_process import run_forked

PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")


def test_names_of_the_page_are_those_of_the_package() -> None:
    named = re.findall(r"^::: planwave\.(\S+)$", PAGE, re.MULTILINE)
    of_testing = [f"testing.{name}" for name in testing.__all__]
    assert sorted(named) == sorted([*planwave.__all__, *of_testing])


def test_blocks_run_and_print_what_they_say(tmp_path: Path) -> None:
    shown = [block["text"] for block in blocks(PAGE) if block["kind"] == "python"]
    promised = re.findall(r"^ *print\(.*\)  # (.*)$", "\n".join(shown), re.MULTILINE)
    assert promised
    done = run_forked("-W", "error", "-c", "\n".join(shown), cwd=tmp_path)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.splitlines() == promised
