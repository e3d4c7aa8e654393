"""``planwave edit`` at a terminal: errors are shown until the graph is legal or given up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.cli.commands import revisions
from planwave.service.service import Service
from planwave.storage.records import PlanRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.cli.fake_factories import fake_factories
from tests.support.cli.scripted_prompter import ScriptedPrompter
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a", "one"), text_node("b", "{{ input }}"), edges=[("a", "b")])


class Typist:
    """Edits a text in steps, and types an answer after each."""

    def __init__(self, edits: list[tuple[str, str]], answers: list[str | None]) -> None:
        self._edits = edits
        self.answers = answers
        self.seen: list[str] = []

    def __call__(self, text: str) -> str:
        self.seen.append(text)
        before, after = self._edits.pop(0)
        assert before in text
        return text.replace(before, after)


def edit(
    typist: Typist, monkeypatch: pytest.MonkeyPatch, *options: str
) -> tuple[Result, list[PlanRecord]]:
    """Edit a plan; return the output, and the plan as it is stored then."""

    class Kept(MemoryStore):
        async def close(self) -> None:
            """Stay readable and writable."""

    store = Kept()
    made = asyncio.run(Service(dependencies(CHAIN, store=store)).plans.create("goal"))

    def prompter(console: Any) -> Any:
        return ScriptedPrompter(typist.answers, console, typist)

    monkeypatch.setattr(revisions, "terminal_prompter", prompter)
    composed = fake_factories(service=lambda _: Service(dependencies(CHAIN, store=store)))
    done = CliRunner().invoke(app, ["edit", made.plan_id, *options], obj=composed)
    stored = asyncio.run(store.plan(made.plan_id))
    assert stored is not None
    return done, [stored]


@pytest.fixture(autouse=True)
def kept_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_errors_are_shown_until_the_graph_is_legal(monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist([('"text",', '"txt",'), ('"txt",', '"number",'), ('"number",', '"text",'),
                     ("one", "two")], ["", "", ""])  # fmt: skip
    done, (plan,) = edit(typist, monkeypatch)
    assert done.exit_code == 0, done.output
    assert "Nothing was changed." in done.stdout
    assert (plan.document["revision"], plan.hash) == (1, plan.document["hash"])
    assert done.stderr.count("unknown-node-type") == 2, "of two nodes, in the first text"
    assert '"txt"' in typist.seen[1], "the editor opens with the text as it was left"


def test_legal_graph_is_stored(monkeypatch: pytest.MonkeyPatch, kept_texts: Path) -> None:
    typist = Typist([('"one"', "1"), ('"text": 1', '"text": "two"')], [""])
    done, (plan,) = edit(typist, monkeypatch, "--note", "why")
    assert done.exit_code == 0, done.output
    assert "is at revision 2" in done.stdout
    assert (plan.author, plan.note) == ("person", "why")
    assert plan.document["nodes"][0]["data"] == {"text": "two"}
    assert not list(kept_texts.glob("planwave-edit-*"))


@pytest.mark.parametrize("answer", ["q", None])
def test_given_up_text_is_kept_in_a_file(
    monkeypatch: pytest.MonkeyPatch, kept_texts: Path, answer: str | None
) -> None:
    typist = Typist([('"text",', '"mine",')], [answer])
    done, (plan,) = edit(typist, monkeypatch)
    assert done.exit_code == 0, done.output
    assert plan.document["revision"] == 1
    (kept,) = kept_texts.glob("planwave-edit-*.json")
    assert '"mine"' in kept.read_text()
    assert str(kept) in done.stdout.replace("\n", "")


def test_draft_is_stored_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    done, (plan,) = edit(Typist([('"text",', '"txt",')], ["d"]), monkeypatch)
    assert done.exit_code == 0, done.output
    assert "a draft with 2 errors, which cannot be executed" in done.stdout
    assert {each["code"] for each in plan.document["diagnostics"]} == {"unknown-node-type"}


def test_text_that_is_no_json_cannot_be_a_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist([('"title"', '!"title"'), ('!"title"', '"title"')], ["d", ""])
    done, (plan,) = edit(typist, monkeypatch)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("invalid-json") == 2
    assert json.loads(typist.seen[0])["title"] == plan.title
    assert plan.document["revision"] == 1
