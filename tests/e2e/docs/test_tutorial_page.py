"""docs/tutorial.md is true: every block is run in its order, against the composition root."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.cli.doc_page import LEFT_OUT, Command, PageReader, blocks, commands
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
TASKS = {
    "tea": "Say in one sentence how tea keeps a person awake.",
    "coffee": "Say in one sentence how coffee keeps a person awake.",
    "recommend": "Recommend one of the two, with the reason.",
}
PLAN = planner_reply(
    *(reply_node(name, description=task) for name, task in TASKS.items()),
    edges=[reply_edge("tea", "recommend"), reply_edge("coffee", "recommend")],
    title="Tea or coffee for a night shift",
)
REPLIES = {
    TASKS["recommend"]: (
        "Drink tea: its effect lasts until the morning, and you sleep well afterwards."
    ),
    TASKS["coffee"]: (
        "Coffee has about 95 mg of caffeine a cup, and its effect comes within half an hour."
    ),
    TASKS["tea"]: "Tea has about 40 mg of caffeine a cup, and its effect comes slowly.",
}


@pytest.mark.slow
def test_every_block_runs_and_prints_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = set[str]()
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources, plan=PLAN, replies=REPLIES)
        for block in blocks(PAGE):
            if block["kind"] == "console":
                for command in commands(block["text"]):
                    reader.follow(command)
                    programs.add(command.line.split()[0])
            elif block["file"]:
                (tmp_path / block["file"]).write_text(block["text"], "utf-8")
    assert programs == {"planwave", "python", "curl"}


def test_every_block_is_a_file_or_a_command_but_the_installation() -> None:
    assert len(blocks(PAGE)) * 2 == len(re.findall(r"^```", PAGE, re.M))
    installation, *others = blocks(PAGE)
    assert installation["kind"] == "sh"
    assert [b[0] for b in others if (b["kind"] == "console") != (b["file"] is None)] == []


def test_false_output_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources)
        reader.follow(Command("planwave --version", LEFT_OUT))
        with pytest.raises(AssertionError, match="the page"):
            reader.follow(Command("planwave --version", "planwave 9.9"))
