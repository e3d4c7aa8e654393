"""docs/scale-out.md: other processes read what a service keeps in PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks
from tests.support.cli.in_process_command import invoke
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/scale-out.md").read_text("utf-8")
GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}], "edges": []}


def test_the_program_lists_the_executions_of_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", database_url)
    Path("graph.json").write_text(json.dumps(GRAPH), "utf-8")
    stored = json.loads(invoke("exec", "graph.json", "--json").stdout)
    (program,) = (
        each["text"] for each in blocks(PAGE) if each["text"].startswith("import planwave")
    )
    body = "\n".join(f"    {line}" for line in program.splitlines() if line != "import planwave")
    source = f"import asyncio, planwave\n\nasync def main():\n{body}\n\nasyncio.run(main())\n"
    done = subprocess.run(
        [sys.executable, "-c", source.replace("postgresql://…", database_url)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ},
    )
    assert done.stdout == f"{stored['execution_id']} completed\n"


def test_the_check_of_the_tables_says_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", database_url)
    (shown,) = (each["text"] for each in blocks(PAGE) if "planwave migrate --check" in each["text"])
    command, expected = shown.splitlines()
    done = invoke(*command.split()[2:])
    where = f"PostgreSQL database {database_url.rpartition('/')[2]} on 127.0.0.1"
    assert done.stdout.strip() == expected.replace(
        "PostgreSQL database planwave on db.internal", where
    )
