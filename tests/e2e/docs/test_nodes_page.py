"""docs/nodes.md is true: every block is run in its order, as a reader would who follows the page."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from pydantic.alias_generators import to_camel

from planwave.graph.model import Effect, Join, OnError, Policy, Retry
from planwave.graph.reading.policy import read_policy
from planwave.settings import Limits
from tests.support.cli.doc_page import LEFT_OUT, Command, blocks, commands
from tests.support.nodes.node_packages import install_entry_points, run_command
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "nodes.md").read_text("utf-8")


def follow(command: Command, where: Path) -> None:
    """Run a command of the page; its output has to be what the page says."""
    if command.line == "pip install -e .":
        install_entry_points(where, where / "site")
        return
    done = run_command(shlex.split(command.line), where, where / "site")
    assert done.returncode == 0, (command.line, done.stdout, done.stderr)
    pattern = ".*?".join(map(re.escape, command.output.strip().split(LEFT_OUT)))
    assert re.fullmatch(pattern, done.stdout.strip(), re.S), (command.line, done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_block_runs_and_prints_its_output(tmp_path: Path) -> None:
    followed: list[str] = []
    for block in blocks(PAGE):
        if block["kind"] == "console":
            for command in commands(block["text"]):
                follow(command, tmp_path)
                followed.append(command.line.split()[0])
        else:
            (tmp_path / block["file"]).write_text(block["text"], "utf-8")
    assert {"python", "pip", "planwave", "pytest"} == set(followed)


def test_every_block_is_a_file_or_a_command() -> None:
    assert len(blocks(PAGE)) * 2 == len(re.findall(r"^```", PAGE, re.M))
    for block in blocks(PAGE):
        assert (block["kind"] == "console") == (block["file"] is None), block[0]
        assert block["kind"] in ("python", "console", "toml", "json")


def test_every_try_file_is_run() -> None:
    files = [block["file"] for block in blocks(PAGE) if (block["file"] or "").startswith("try_")]
    lines = [c.line for b in blocks(PAGE) if b["kind"] == "console" for c in commands(b["text"])]
    assert [f"python {file}" for file in files] == [x for x in lines if x.startswith("python ")]


def test_the_table_of_policies_has_every_field() -> None:
    section = PAGE.partition("\n## Policies\n")[2].partition("\n`flaky.py`")[0]
    retry = [f"retry.{to_camel(field.name)}" for field in dataclasses.fields(Retry)]
    others = [to_camel(name) for name in Policy._fields if name != "retry"]
    rows = re.findall(r"^\| `([^`]+)` \|", section, re.M)
    assert sorted(rows) == sorted([*retry, *others])
    for row in rows:
        outer, _, inner = row.partition(".")
        document = {outer: {inner: None} if inner else None}
        assert read_policy(document, "")[1] == [], "documents spell it in another way"
    for choices in (OnError, Join, Effect):
        assert all(f'`"{choice}"`' in section for choice in get_args(choices))
    assert f"1 … {Limits().policy_attempts}." in section


def test_package_has_the_files_of_the_page() -> None:
    written = {block["file"]: block["text"] for block in blocks(PAGE) if block["file"]}
    build = tomllib.loads(written["pyproject.toml"])["tool"]["hatch"]["build"]
    assert set(build["targets"]["wheel"]["only-include"]) <= written.keys()
    assert {node["type"] for node in json.loads(written["flow.json"])["nodes"]} > {"explain"}


def test_false_block_is_detected(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text("print(2)", "utf-8")
    follow(Command("python two.py", "2\n"), tmp_path)
    with pytest.raises(AssertionError, match="two"):
        follow(Command("python two.py", "3\n"), tmp_path)
