"""``examples/live_plans`` does what its README says: runs whose plan is changed while they work."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks, commands
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    ReplyStep,
    TextReply,
    fake_llm_in_thread,
    prompt_of,
)
from tests.support.paths import ROOT

README = (ROOT / "examples" / "live_plans" / "README.md").read_text("utf-8")
QUESTION = "Is a heat pump worth it in an old house?"
COSTS = {"id": "costs", "name": "Costs", "type": "agent", "description": "Name the running costs.", "depends_on": ["question"]}  # fmt: skip
WIDENED = json.dumps({
    "answer": "Adds the running costs.",
    "operations": [
        {"op": "add_node", "node": COSTS},
        {"op": "add_edge", "edge": {"source": "costs", "target": "report", "channel": "flow"}},
    ],
})  # fmt: skip


TOTAL = {"id": "total_2", "name": "Total", "type": "transform", "data": {"expression": "{{ input.price * 3 }}"}, "depends_on": ["price"]}  # fmt: skip
REPAIRED = json.dumps({
    "answer": "Reads the field that the reply has.",
    "operations": [
        {"op": "remove_node", "id": "total"},
        {"op": "add_node", "node": TOTAL},
        {"op": "add_edge", "edge": {"source": "total_2", "target": "letter", "channel": "flow"}},
    ],
})  # fmt: skip


class Model:
    """Writes the change; the findings about the background are ready once the new step is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.changes: list[str] = []
        self._widened = asyncio.Event()

    def answer(self, body: dict[str, Any]) -> str | ReplyStep:
        prompt = prompt_of(body)
        if "There is a plan already" in prompt:
            self.changes.append(prompt)
            return REPAIRED if "total" in prompt else WIDENED
        name = next(name for words, name in TASKS.items() if words in prompt)
        self.asked.append(name)
        if name == "background":
            return TextReply("It depends on the house.", hold_until=self._widened)
        if name == "costs":
            self._widened.set()
        return '{"price": 4}' if name == "price" else f"All about {name}."


TASKS = {
    "What does a kettle cost": "price",
    "five short points": "background",
    "What speaks for it": "arguments",
    "Write a report": "report",
    "Name the running costs": "costs",
}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Model, FakeLLMServer]]:
    isolated_directory(tmp_path, monkeypatch)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    made = Model()
    with fake_llm_in_thread(reply_to=made.answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield made, server


def lines_of(number: int) -> list[list[str]]:
    """Return the commands of a block of the README."""
    block = [each for each in blocks(README) if each["kind"] == "console"][number]
    return [shlex.split(each.line) for each in commands(block["text"])]


def test_a_research_is_widened_by_the_script_while_it_works(
    model: tuple[Model, FakeLLMServer],
) -> None:
    ((_, script, question),) = lines_of(0)
    done = subprocess.run(
        [sys.executable, script, question],
        input="also cover the running costs\ny\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said.index("Adds the running costs.") < said.index(
        "The run goes on with the changed plan."
    )
    assert said[-2:] == ["completed: report", "All about report."]
    assert sorted(model[0].asked) == ["arguments", "background", "costs", "report"]
    (change,) = invoke_json("show", "last", "--storage", "runs")["changes"]
    assert change["note"] == "in words: also cover the running costs"


def test_readme_names_the_commands_for_two_terminals(model: tuple[Model, FakeLLMServer]) -> None:
    run, replan = lines_of(1)
    assert invoke("check", run[2]).exit_code == 0
    assert (run[:2], run[3:]) == (["planwave", "exec"], ["--input", QUESTION])
    assert replan == ["planwave", "replan", "last", "also cover the running costs"]


def test_a_run_repairs_itself_after_a_failed_step(model: tuple[Model, FakeLLMServer]) -> None:
    execute, logs = lines_of(2)
    done = invoke(*execute[1:])
    assert done.exit_code == 0, done.output
    assert "Three kettles cost 12 dollars." in done.stdout
    assert model[0].asked == ["price"], "nothing is paid for again"
    (shown,) = model[0].changes
    assert "input.cost" in shown
    document = invoke_json("show", "last")
    (change,) = document["changes"]
    assert [(each["path"], each["status"]) for each in change["dropped"]] == [("total", "failed")]
    assert document["status"] == "completed"
    assert "Plan changed" in invoke(*logs[1:]).stdout.replace("plan changed", "Plan changed")
