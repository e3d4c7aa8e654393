"""A secret that comes back in every spelling: no file, no backup and no output of a command holds it."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from pathlib import Path

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke
from tests.support.secret_spellings import CANARY, SPELLINGS, shows

MODULE = """
import logging
import planwave
from tests.support.secret_spellings import CANARY, SPELLINGS

SPELLED = {name: spell(CANARY) for name, spell in SPELLINGS.items()}

@planwave.node("pw_results", effect="read")
def results(context):
    for name, text in SPELLED.items():
        context.emit("log", {"message": f"{name}: {text}", "level": "warning"})
        logging.getLogger("leaky").warning("%s: %s", name, text)
    return {name: {"deep": [text], text: name} for name, text in SPELLED.items()}

@planwave.node("pw_fails", effect="read")
def fails(context):
    text = list(SPELLED.values())[int(context.node_id[1:])]
    try:
        try:
            raise ValueError(f"https://u:{text}@service.example/?key={text}")
        except ValueError as error:
            raise ConnectionError({"authorization": text}) from error
    except ConnectionError as error:
        raise RuntimeError(repr(error.__cause__), repr(text), text.encode()) from error
"""
NODES = [{"id": "results", "type": "pw_results", "data": {}}] + [
    {"id": f"n{number}", "type": "pw_fails"} for number in range(len(SPELLINGS))
]


def files(directory: Path) -> dict[str, str]:
    """Give all that is stored below a directory, as text."""
    found = {
        str(path): path.read_bytes().decode("utf-8", "replace")
        for path in directory.rglob("*")
        if path.is_file()
    }
    with sqlite3.connect(directory / "planwave.db") as database:
        found["dump"] = "\n".join(database.iterdump())
    return found


def test_no_file_and_no_output_holds_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("CRM_TOKEN", CANARY)
    monkeypatch.setenv("PLANWAVE_SECRETS", json.dumps({"crm": {"env": "CRM_TOKEN", "hosts": []}}))
    Path("pw_leaky.py").write_text(MODULE)
    Path("graph.json").write_text(json.dumps({"nodes": NODES, "edges": []}))
    shown = {}
    for command in (
        "exec graph.json", "exec graph.json --json", "show last", "show last --json", "watch last",
        "show last --node results", "explain last", "explain last n1 --json", "ls --json",
        "backup b.tar",
    ):  # fmt: skip
        done = invoke(*command.split(), "--import", "pw_leaky")
        shown[command] = done.output
    assert json.loads(invoke("ls", "--json").stdout)["executions"][0]["status"] == "failed"
    assert shown["show last"].count("✓ completed") == 1
    for name in SPELLINGS:  # as a note of the log
        assert f"! {name}: " in shown["exec graph.json"]
    with tarfile.open("b.tar") as archive:
        archive.extractall("restored", filter="data")
    found = {**shown, **files(Path("storage")), **files(Path("restored"))}
    assert sum("[secret crm]" in text for text in found.values()) >= 8
    leaks = {where: shows(text) for where, text in found.items()}
    assert {where: spelled for where, spelled in leaks.items() if spelled} == {}
