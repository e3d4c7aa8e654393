import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from planwave.cli import checking
from planwave.cli.app import app
from planwave.cli.checking import read_source
from planwave.errors import InputError, NotFound
from tests.fakes.composition import composed
from tests.fakes.service import graph_of, text_node

GOOD = graph_of(text_node("a"), text_node("b"), edges=[("a", "b")]).to_document()


def check(document: object, *args: str) -> Result:
    return CliRunner().invoke(
        app, ["check", "-", *args], input=json.dumps(document), obj=composed()
    )


def test_a_good_graph_is_said_to_run() -> None:
    done = check(GOOD)
    assert (done.exit_code, done.stdout) == (0, "✓ - can run: 2 nodes, no errors\n")
    assert json.loads(check(GOOD, "--json").stdout) == {"ok": True, "diagnostics": []}


def test_every_fault_is_listed_and_counted() -> None:
    done = check({"nodes": [{"id": "a", "type": "x"}, {"id": "a", "type": "text"}], "edges": []})
    assert done.exit_code == 3
    assert "duplicate-id" in done.stderr
    assert "it cannot run" in done.stderr


def test_a_graph_that_only_lacks_a_provider_exits_4() -> None:
    node = {"id": "a", "type": "agent", "data": {"provider": "off", "userPrompt": "x"}}
    done = check({"nodes": [node], "edges": []})
    assert done.exit_code == 4
    assert "unavailable-provider" in done.stderr


def test_a_missing_file_a_folder_and_a_huge_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFound, match="no file"):
        read_source(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_source(tmp_path)
    monkeypatch.setattr(checking, "MAX_FILE_BYTES", 10)
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="not a plan"):
        read_source(tmp_path / "big")
