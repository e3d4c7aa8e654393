"""``planwave edit``, ``revisions`` and ``diff PLAN@N``, alone and through a service."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory
from tests.support.server.running_server import running_server

GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "a", "type": "text", "name": "a", "data": {"text": "one"}, "ui": {"x": 1}},
        {"id": "b", "type": "text", "name": "b", "data": {"text": "{{ input }}"}},
    ],
    "edges": [{"id": "e1", "source": "a", "target": "b",
               "data": {"channel": "flow", "note": [1, None]}}],
}  # fmt: skip
FAULTY = {"nodes": [{"id": "a", "type": "no-such-type"}], "edges": []}
TOKEN = "hush-hush-hush"


@pytest.fixture(scope="module", params=["alone", "served"])
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A storage directory that nobody holds, or a service that says where it is."""
    directory = tmp_path_factory.mktemp("storage")
    if request.param == "alone":
        yield directory
        return
    with running_server(directory=directory, token=TOKEN) as running:
        lock = DirectoryLock(directory)
        lock.write_owner({"pid": os.getpid(), "url": running.base_url, "token": TOKEN})
        yield directory
        lock.release()


@pytest.fixture(autouse=True)
def working_directory(storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(storage))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


def planwave(*args: str, stdin: Any = None) -> Result:
    given = stdin if isinstance(stdin, str) or stdin is None else json.dumps(stdin)
    return CliRunner().invoke(app, list(args), obj=cli_factories(), input=given)


def invoke_ok(*args: str, stdin: Any = None) -> Any:
    done = planwave(*args, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def plan_id() -> str:
    """The plan of an execution that has ended."""
    return invoke_ok("exec", "-", stdin=GRAPH)["plan_id"]


def editor(directory: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the editor be a program that has the text as ``text`` and writes it back."""
    file = directory / "editor.py"
    file.write_text(
        f"import sys\npath = sys.argv[1]\ntext = open(path).read()\n{code}\nopen(path, 'w').write(text)\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} {file}")


def test_edited_graph_is_a_new_revision(
    plan_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "assert 'ui' not in text\ntext = text.replace('one', 'two').replace('a to b', 'Made by hand')"
    editor(tmp_path, code, monkeypatch)
    changed = invoke_ok("edit", plan_id, "--note", "why")
    assert (changed["revision"], changed["title"]) == (2, "Made by hand")
    assert changed["nodes"][0]["data"] == {"text": "two"}
    assert changed["nodes"][0]["ui"] == {"x": 1}, "where a node is drawn is not lost"
    assert changed["edges"][0]["data"] == GRAPH["edges"][0]["data"]
    newest, first = invoke_ok("revisions", plan_id)["revisions"]
    assert (newest["revision"], newest["author"], newest["note"]) == (2, "person", "why")
    assert (first["revision"], first["author"]) == (1, "api")
    listed = planwave("revisions", plan_id).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["2", "1"]
    assert "why" in listed[0]
    assert len(invoke_ok("revisions", plan_id, "--limit", "1")["revisions"]) == 1


def test_unchanged_text_changes_nothing(
    plan_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor(tmp_path, "", monkeypatch)
    assert "Nothing was changed." in planwave("edit", plan_id).stdout
    editor(tmp_path, "import json\ntext = json.dumps(json.loads(text))", monkeypatch)
    assert "Nothing was changed." in planwave("edit", plan_id).stdout
    assert invoke_ok("edit", plan_id)["revision"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("text = text.replace('\"text\",', '\"txt\",')", "unknown-node-type"),
        ("text = text[:-5]", "✗ not JSON: Expecting ',' delimiter at line "),
        ("text = '[]'", "a graph must be an object"),
        (
            'import re; text = re.sub(\'"title": "[^"]*"\', \'"title": 5\', text)',
            "title must be a string",
        ),
    ],
)
def test_text_with_errors_is_kept_in_a_file(
    plan_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    editor(tmp_path, code, monkeypatch)
    done = planwave("edit", plan_id)
    assert done.exit_code == 3
    assert message in done.stderr
    (kept,) = tmp_path.glob("planwave-edit-*.json")
    assert str(kept) in done.stderr.replace("\n", "")
    assert len(invoke_ok("revisions", plan_id)["revisions"]) == 1


def test_equal_errors_of_an_edited_text_show_their_hint_once_each(
    plan_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [{"id": each, "type": "no-such-type"} for each in "ab"]
    editor(tmp_path, f"text = {json.dumps(json.dumps({'nodes': nodes, 'edges': []}))}", monkeypatch)
    hints = [line for line in planwave("edit", plan_id).stderr.splitlines() if "→" in line]
    assert len(hints) == 1
    assert hints[0].strip().startswith("→ the text is kept in ")


def test_draft_with_errors_is_kept_on_demand(plan_id: str) -> None:
    refused = planwave("edit", plan_id, "--file", "-", stdin=FAULTY)
    assert refused.exit_code == 3
    draft = invoke_ok("edit", plan_id, "--file", "-", "--draft", stdin=FAULTY)
    assert [each["code"] for each in draft["diagnostics"]] == ["unknown-node-type"]
    done = planwave("edit", plan_id, "--file", "-", "--draft", stdin={**FAULTY, "edges": [
        {"id": "e", "source": "a", "target": "zz", "data": {"channel": "flow"}}]})  # fmt: skip
    assert "a draft with 2 errors, which cannot be executed" in done.stdout.replace("\n", " ")
    assert "draft, 2 errors" in planwave("revisions", plan_id).stdout
    shown = planwave("show", plan_id)
    assert "A draft with 2 errors" in shown.stdout
    assert "no-such-type" in shown.stderr
    assert invoke_ok("show", plan_id)["revision"] == 3
    formless = planwave(
        "edit", plan_id, "--file", "-", "--draft", stdin={"nodes": [{}], "edges": []}
    )
    assert formless.exit_code == 3
    assert "a node needs id" in formless.stderr


def test_revision_is_restored(plan_id: str) -> None:
    invoke_ok("edit", plan_id, "--file", "-", "--draft", stdin=FAULTY)
    back = invoke_ok("revisions", plan_id, "--restore", "1")
    assert (back["revision"], back["diagnostics"]) == (3, [])
    newest = invoke_ok("revisions", plan_id)["revisions"][0]
    assert (newest["author"], newest["note"]) == ("person", "revision 1 restored")
    assert "is at revision 4" in planwave("revisions", plan_id, "--restore", "2").stdout
    missing = planwave("revisions", plan_id, "--restore", "9")
    assert (missing.exit_code, "no revision 9" in missing.stderr) == (2, True)


def test_revisions_are_compared(plan_id: str) -> None:
    second = {"title": "New", "nodes": [{**GRAPH["nodes"][0], "data": {"text": "two\nlines"}},
                                        {"id": "c", "type": "text", "data": {"text": ""}}],
              "edges": []}  # fmt: skip
    invoke_ok("edit", plan_id, "--file", "-", stdin=second)
    found = invoke_ok("diff", f"{plan_id}@1", f"{plan_id}@2")
    assert [(each["id"], each["change"]) for each in found["nodes"]] == [
        ("b", "removed"), ("a", "changed"), ("c", "added"),
    ]  # fmt: skip
    shown = planwave("diff", f"{plan_id}@1", plan_id).stdout
    for line in ("title", "+ New", "- node b", "~ node a", "/data/text", "- one", "+ two",
                 "+ lines", "+ node c", "- edge a to b"):  # fmt: skip
        assert line in shown, shown
    back = invoke_ok("diff", plan_id, f"{plan_id}@1")
    assert (back["a"], back["b"]) == (2, 1)
    same = planwave("diff", f"{plan_id}@2", f"{plan_id}@2").stdout
    assert "The graph and the title are the same." in same
    other = invoke_ok("exec", "-", stdin={**GRAPH, "nodes": GRAPH["nodes"][:1], "edges": []})[
        "plan_id"
    ]
    for b, message in ((f"{other}@1", "two plans"), (f"{plan_id}@7", "no revision 7")):
        refused = planwave("diff", f"{plan_id}@1", b)
        assert (refused.exit_code, message in refused.stderr) == (2, True), refused.stderr


def test_plan_that_changed_meanwhile_is_not_overwritten(
    plan_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: Path
) -> None:
    """The other editor is served by the same backend: it changes the plan while this one is open."""
    from planwave.cli.commands import revisions

    edit_text = revisions.edit_text

    async def slow(text: str, ending: str) -> str:
        edited = await edit_text(text, ending)
        backend: Any = opened[-1]
        plan = await backend.plans.get(plan_id)
        await backend.plans.edit(plan_id, [revisions.SetTitle("Theirs"),
                                          revisions.ReplaceGraph({"nodes": [], "edges": []})],
                                expected={plan.hash})  # fmt: skip
        return edited

    opened: list[Any] = []
    read = revisions._EditSession.edit  # pyright: ignore[reportPrivateUsage]

    async def edit(self: Any, backend: Any, plan: Any) -> None:
        opened.append(backend)
        await read(self, backend, plan)

    monkeypatch.setattr(revisions, "edit_text", slow)
    monkeypatch.setattr(revisions._EditSession, "edit", edit)  # pyright: ignore[reportPrivateUsage]
    editor(tmp_path, "text = text.replace('one', 'mine')", monkeypatch)
    done = planwave("edit", plan_id)
    assert (done.exit_code, "has changed" in done.stderr) == (2, True), done.stderr
    (kept,) = tmp_path.glob("planwave-edit-*.json")
    assert "mine" in kept.read_text()
    assert invoke_ok("revisions", plan_id)["revisions"][0]["title"] == "Theirs"


def test_a_fork_becomes_a_revision_unless_the_plan_was_changed_since(
    plan_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(x for x in invoke_ok("ls")["executions"] if x["plan_id"] == plan_id)
    fork = invoke_ok("fork", first["execution_id"], "--set", "a.text=two")
    again = invoke_ok("fork", fork["execution_id"], "--set", "a.text=three")
    promoted = invoke_ok("promote", fork["execution_id"], "--note", "why")
    assert (promoted["revision"], promoted["nodes"][0]["data"]) == (2, {"text": "two"})
    assert promoted["nodes"][0]["ui"] == {"x": 1}
    listed = invoke_ok("revisions", plan_id)["revisions"][0]
    assert (listed["author"], listed["note"]) == ("person", "why")
    done = planwave("promote", again["execution_id"], "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["code"] == "plan-changed"
    assert invoke_ok("show", plan_id)["revision"] == 2
    forced = invoke_ok("promote", again["execution_id"], "--force")
    assert (forced["revision"], forced["nodes"][0]["data"]) == (3, {"text": "three"})
