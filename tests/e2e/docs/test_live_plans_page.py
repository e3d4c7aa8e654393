"""docs/live-plans.md is true: its commands lead from nothing to a changed run, and to a fork of that."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.doc_page import PageReader, blocks, commands
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "live-plans.md").read_text("utf-8")


def change(answer: str, node_id: str, task: str, after: str, *edges: tuple[str, str]) -> str:
    """Return the reply of a model that adds an agent."""
    node = {"id": node_id, "name": node_id.title(), "type": "agent", "description": task}
    wired = [
        {"op": "add_edge", "edge": {"source": source, "target": target, "channel": "flow"}}
        for source, target in edges
    ]
    added = {"op": "add_node", "node": {**node, "depends_on": [after]}}
    return json.dumps({"answer": answer, "operations": [added, *wired]})


COSTS, FRENCH = "Name the price of a year.", "Write the text in French."
REPLIES = {
    "also cover the running costs": change(
        "Adds a step for the running costs.", "costs", COSTS, "draft", ("costs", "letter")
    ),
    "and the letter in French, too": change(
        "Adds a step that translates the letter.", "french", FRENCH, "letter"
    ),
    FRENCH: "Cher voisin, une pompe à chaleur apporte la chaleur dans la maison.",
    "Make a letter of all that is found.": (
        "Dear neighbour, a heat pump moves warmth into the house, for about 900 EUR a year."
    ),
    COSTS: "About 900 EUR a year.",
    "Say in two sentences what a heat pump is.": "It moves warmth into the house.",
}


def test_the_commands_lead_to_a_run_that_is_changed_while_it_waits_and_after_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources, replies=REPLIES)
        for block in blocks(PAGE):
            if block["file"]:
                (tmp_path / block["file"]).write_text(block["text"], "utf-8")
            for command in commands(block["text"]) if block["kind"] == "console" else ():
                reader.follow(command)
        fork: dict[str, Any] = json.loads(reader.run("planwave show last --json"))
        parent_id = fork["parent"]["execution_id"]
        parent: dict[str, Any] = json.loads(reader.run(f"planwave show {parent_id} --json"))
    assert [each["note"] for each in parent["changes"]] == ["Adds a step for the running costs."]
    reused = {each["path"]: each["reused"] is not None for each in fork["nodes"]}
    assert reused == {
        "draft": True, "check": True, "letter": True, "costs": True, "french": False,
    }  # fmt: skip
