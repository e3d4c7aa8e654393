"""``planwave flow``: the same by itself and through a service that holds the storage directory."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.cli.backends.lock_owner import lock_owner
from planwave.client import Client
from planwave.storage.lock import DirectoryLock
from planwave.storage.records import InputSet
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory
from tests.support.server.running_server import running_server

STARTS: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start", "name": "s", "data": {}, "ui": {"position": {"x": 1}}},
        {"id": "echo", "type": "text", "name": "Echo", "data": {"text": "heard {{ input }}"}},
    ],
    "edges": [
        {
            "id": "e1",
            "source": "s",
            "sourceHandle": "output",
            "target": "echo",
            "targetHandle": "input",
            "data": {"channel": "flow", "note": [1, None]},
        }
    ],
}
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


@pytest.fixture
def name() -> str:
    """A name no other test uses."""
    return f"flow {uuid4()}"


def planwave(*args: str, stdin: Any = None) -> Result:
    given = None if stdin is None else json.dumps(stdin)
    return CliRunner().invoke(app, list(args), obj=cli_factories(), input=given)


def invoke_ok(*args: str, stdin: Any = None) -> Any:
    done = planwave(*args, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*args: str, code: int = 2, stdin: Any = None) -> dict[str, Any]:
    done = planwave(*args, "--json", stdin=stdin)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def saying(text: str) -> dict[str, Any]:
    """A graph that says another text."""
    start, echo = STARTS["nodes"]
    return {**STARTS, "nodes": [start, {**echo, "data": {"text": text}}]}


def test_an_imported_flow_says_where_it_comes_from_and_so_does_its_document_elsewhere(
    name: str,
) -> None:
    task = {"id": "a", "name": "Facts", "description": "Find facts.", "dependencies": []}
    source = {"title": "Note", "nodes": [task]}
    done = invoke_ok("import", "-", "--save-flow", name, stdin=source)
    plan = invoke_ok("show", done["saved"])
    assert plan["imported_from"]["report"] == done["report"]
    moved = invoke_ok("flow", "save", f"{name} moved", "-", "--draft", stdin=plan)
    assert invoke_ok("show", moved["plan_id"])["imported_from"] == plan["imported_from"]


def test_flow_is_saved_listed_shown_run_and_removed(name: str) -> None:
    created = invoke_ok("flow", "save", name, "-", "--description", "why", stdin=STARTS)
    assert (created["name"], created["description"], created["revision"]) == (name, "why", 1)
    assert created["graph"] == STARTS
    listed = {each["plan_id"]: each for each in invoke_ok("flow", "ls")["flows"]}
    summary = listed[created["plan_id"]]
    assert (summary["revision"], summary["draft"], summary["node_count"]) == (1, None, 2)
    assert invoke_ok("flow", "show", name) == created
    done = invoke_ok("flow", "run", name, "--input", "hello")
    assert done["node_results"]["echo"] == "heard hello"
    assert (done["plan_id"], done["revision"]) == (created["plan_id"], 1)
    assert (done["plan_hash"], done["flow"]) == (created["hash"], name)
    assert (done["title"], done["user_prompt"]) == (name, "why")
    run = next(
        x for x in invoke_ok("ls")["executions"] if x["execution_id"] == done["execution_id"]
    )
    assert (run["plan_id"], run["revision"], run["flow"]) == (created["plan_id"], 1, name)
    assert invoke_ok("flow", "rm", name) == {"removed": created["plan_id"], "name": name}
    assert refused("flow", "show", name)["error"]["code"] == "not-found"
    assert refused("show", created["plan_id"])["error"]["code"] == "not-found"
    assert invoke_ok("show", done["execution_id"])["plan_id"] == created["plan_id"]


TRIP: dict[str, Any] = {
    "nodes": [
        {
            "id": "s",
            "type": "start",
            "data": {
                "schema": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
            },
        },
        {"id": "t", "type": "text", "data": {"text": "{{ city }} for {{ days }}"}},
    ],
    "edges": [],
}


def save_inputs(storage: Path, plan_id: str, name: str, inputs: dict[str, Any]) -> None:
    """Save inputs of a flow: by the service that holds the directory, or in the directory itself."""
    if (owner := lock_owner(storage)) is not None and owner.url is not None:
        with Client(owner.url, token=TOKEN) as client:
            client.save_input_set(plan_id, name, inputs)
        return

    async def save() -> None:
        store, at = SqliteStore.open(storage), "2026-01-01T00:00:00.000000+00:00"
        await store.input_sets.save(InputSet(plan_id, name, inputs, at, at), name, most=9)
        await store.close()

    asyncio.run(save())


@pytest.mark.parametrize(
    "inputs", [{"city": "Porto", "days": 2}, {"s": {"output": {"city": "Porto", "days": 2}}}]
)
def test_a_run_begins_with_saved_inputs_and_input_changes_some(
    name: str, storage: Path, inputs: dict[str, Any]
) -> None:
    plan_id = invoke_ok("flow", "save", name, "-", stdin=TRIP)["plan_id"]
    run = ("flow", "run", name, "--inputs")
    error = refused(*run, "weekend", code=2)["error"]
    assert error["hint"] == "none are saved yet"
    save_inputs(storage, plan_id, "weekend", inputs)
    assert invoke_ok(*run, "weekend")["node_results"]["t"] == "Porto for 2"
    done = invoke_ok(*run, "weekend", "--input", "days=3")
    assert done["node_results"]["t"] == "Porto for 3"
    done = invoke_ok(*run, "weekend", "--input", '{"s": {"output": {"city": "Faro"}}}')
    assert done["node_results"]["t"] == "Faro for 2"
    error = refused(*run, "weekand", code=2)["error"]
    assert (error["code"], error["hint"]) == (
        "not-found", "did you mean 'weekend'? the names are weekend",
    )  # fmt: skip
    fields = {"properties": {"city": {"type": "string"}, "days": {"type": "string"}}}
    text_days = {
        **TRIP,
        "nodes": [{**TRIP["nodes"][0], "data": {"schema": fields}}, TRIP["nodes"][1]],
    }
    invoke_ok("flow", "save", name, "-", stdin=text_days)
    assert refused(*run, "weekend", code=2)["error"]["code"] == "invalid-inputs"
    assert invoke_ok(*run, "weekend", "--input", "days=two")["node_results"]["t"] == "Porto for two"


def test_inputs_are_saved_listed_used_and_deleted(name: str) -> None:
    plan_id = invoke_ok("flow", "save", name, "-", stdin=TRIP)["plan_id"]
    own = ("flow", "inputs", name)
    assert invoke_ok(*own) == {"input_sets": []}
    assert f"No inputs of {name} are saved yet." in planwave(*own).stdout
    saved = invoke_ok(*own, "--save", "weekend", "--input", "city=Porto", "--input", "days=2")
    assert (saved["name"], saved["inputs"], saved["issues"]) == (
        "weekend", {"city": "Porto", "days": 2}, [],
    )  # fmt: skip
    assert "Saved Alps" in planwave(*own, "--save", "Alps", "--input", "city=Chur").stdout
    assert [each["name"] for each in invoke_ok(*own)["input_sets"]] == ["Alps", "weekend"]
    assert "weekend  city=Porto  days=2" in planwave(*own).stdout
    run = ("flow", "run", name, "--inputs")
    assert invoke_ok(*run, "weekend")["node_results"]["t"] == "Porto for 2"
    assert (
        refused(*own, "--save", "bad", "--input", "days=two")["error"]["code"] == "invalid-inputs"
    )
    assert invoke_ok(*own, "--delete", "Alps") == {"removed": "Alps", "plan_id": plan_id}
    assert refused(*own, "--delete", "Alps")["error"]["hint"] == "the names are weekend"
    fields = {"properties": {"town": {"type": "string"}}, "required": ["town"]}
    other = {
        "nodes": [
            {**TRIP["nodes"][0], "data": {"schema": fields}},
            {**TRIP["nodes"][1], "data": {"text": "{{ town }}"}},
        ],
        "edges": [],
    }
    invoke_ok("flow", "save", name, "-", stdin=other)
    assert "does not fit any more" in planwave(*own).stdout


@pytest.mark.parametrize(
    "options",
    [["--save", "a"], ["--input", "city=Porto"], ["--save", "a", "--input", "x", "--delete", "a"]],
)
def test_inputs_are_saved_with_a_name_and_values(name: str, options: list[str]) -> None:
    assert refused("flow", "inputs", name, *options)["error"]["code"] == "usage"


def test_flow_is_published_as_what_is_named(name: str) -> None:
    created = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    shown = invoke_ok("flow", "publish", name)
    assert (shown["model"], shown["tool"], shown["hooks"]) == (False, False, [])
    assert invoke_ok("flow", "publish", name, "--model")["model"]
    both = invoke_ok("flow", "publish", created["plan_id"], "--tool")
    assert (both["model"], both["tool"]) == (True, True)
    assert "Published as a model and as a tool" in planwave("flow", "show", name).stdout
    assert f"{name}  (as a model and as a tool)" in planwave("flow", "ls").stdout
    assert invoke_ok("flow", "show", name)["published"] == ["model", "tool"]
    assert refused("flow", "publish", name, "--hook")["error"]["code"] == "invalid-trigger"
    assert refused("flow", "publish", name, "--none", "--tool")["error"]["code"] == "usage"
    left = invoke_ok("flow", "publish", name, "--no-model")
    assert (left["model"], left["tool"]) == (False, True)
    assert "Published as nothing" in planwave("flow", "publish", name, "--none").stdout
    assert invoke_ok("flow", "publish", name) == shown


def test_truncated_list_is_marked_on_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (name, f"{name} too"):
        invoke_ok("flow", "save", each, "-", stdin=STARTS)
    assert "older" not in planwave("flow", "ls", "-n", "1").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    cut, whole = (planwave("flow", "ls", "-n", limit).stdout for limit in ("1", "1000"))
    assert "More: planwave flow ls --limit 10\n" in cut
    assert cut.count("revision") == 1
    assert whole.count("revision") >= 2
    assert "older" not in whole


def test_saving_again_makes_revisions_and_any_revision_runs(name: str) -> None:
    first = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    assert invoke_ok("flow", "save", f" {name} ", "-", stdin=STARTS) == first
    second = invoke_ok("flow", "save", first["plan_id"], "-", stdin=saying("now {{ input }}"))
    assert (second["plan_id"], second["name"], second["revision"]) == (first["plan_id"], name, 2)
    newest = invoke_ok("flow", "run", name, "--input", "x")
    assert newest["node_results"]["echo"] == "now x"
    older = invoke_ok("flow", "run", name, "--input", "x", "--revision", "1")
    assert (older["node_results"]["echo"], older["revision"]) == ("heard x", 1)
    assert invoke_ok("flow", "show", name, "--revision", "1") == {**first, "live_revision": 2}
    shown = planwave("flow", "show", first["plan_id"]).stdout
    assert "\nRevision  2, " in shown
    assert "Wave 2" in shown
    listed = shown[shown.index("\nRevisions\n") :].splitlines()[2:]
    assert [line.split()[0] for line in listed] == ["2", "1"]
    for command in ("run", "show"):
        error = refused("flow", command, name, "--revision", "3")["error"]
        assert (error["code"], error["message"].endswith("has no revision 3")) == (
            "not-found",
            True,
        )
        assert refused("flow", command, name, "--revision", "0")["error"]["code"] == "usage"


def test_draft_of_a_flow_is_shown_and_never_run(name: str) -> None:
    made = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    drafted = planwave("edit", made["plan_id"], "--file", "-", "--draft", stdin=FAULTY)
    assert drafted.exit_code == 0, drafted.output
    shown = invoke_ok("flow", "show", name)
    assert {**shown, "draft": None} == made
    draft = invoke_ok("flow", "show", name, "--revision", "2")
    assert [node["type"] for node in draft["graph"]["nodes"]] == ["no-such-type"]
    assert "draft, 1 error" in planwave("flow", "show", name).stdout
    assert invoke_ok("flow", "run", name, "--input", "x")["revision"] == 1
    done = planwave("flow", "run", name, "--revision", "2", "--json")
    assert done.exit_code == 3, done.output
    (summary,) = [x for x in invoke_ok("flow", "ls")["flows"] if x["name"] == name]
    assert (summary["revision"], summary["node_count"], summary["draft"]) == (1, 2, shown["draft"])
    assert (shown["draft"]["revision"], shown["draft"]["error_count"]) == (2, 1)
    (line,) = [x for x in planwave("flow", "ls").stdout.splitlines() if name in x]
    assert line.endswith("has 1 error")


def test_a_flow_is_edited_compared_restored_and_approved_by_its_name(name: str) -> None:
    made = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    edited = invoke_ok("edit", name.upper(), "--file", "-", stdin=saying("newer"))
    assert (edited["plan_id"], edited["revision"]) == (made["plan_id"], 2)
    listed = invoke_ok("revisions", name)
    assert listed == invoke_ok("revisions", made["plan_id"])
    assert [each["revision"] for each in listed["revisions"]] == [2, 1]
    compared = invoke_ok("diff", f"{name}@1", f"{name}@2")
    assert [each["id"] for each in compared["nodes"]] == ["echo"]
    approved = invoke_ok("revisions", name, "--approve", "2")
    assert (approved["live_revision"], approved["approval"] is None) == (2, False)
    assert "2 steps  approved" in planwave("revisions", name).stdout
    assert invoke_ok("revisions", name, "--restore", "1")["revision"] == 3
    for command in ("edit", "revisions"):
        error = refused(command, f"{name}x")["error"]
        assert (error["code"], f"did you mean the flow {name!r}?" in error["hint"]) == (
            "not-found",
            True,
        )
    assert (
        refused("revisions", name, "--restore", "1", "--approve", "1")["error"]["code"] == "usage"
    )


def test_only_an_approved_revision_runs_where_approval_is_required(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("PLANWAVE_REQUIRE_APPROVAL", "true")
    saved = planwave("flow", "save", name, "-", stdin=STARTS)
    assert "Callers start it once it is approved" in saved.stdout
    assert refused("flow", "run", name, "--input", "x")["error"]["code"] == "not-approved"
    (listed,) = invoke_ok("flow", "ls")["flows"]
    assert (listed["live_revision"], listed["draft"]["revision"]) == (None, 1)
    assert planwave("flow", "ls").stdout.rstrip().endswith("is not approved")
    assert "callers start revision 1" in planwave("revisions", name, "--approve", "1").stdout
    assert invoke_ok("flow", "run", name, "--input", "x")["node_results"]["echo"] == "heard x"
    invoke_ok("flow", "save", name, "-", stdin=saying("newer"))
    assert invoke_ok("flow", "run", name, "--input", "x")["revision"] == 1
    refused("flow", "run", name, "--revision", "2", "--input", "x")
    invoke_ok("revisions", name, "--approve", "2")
    assert invoke_ok("flow", "run", name, "--input", "x")["revision"] == 2


@pytest.mark.parametrize(
    "given", ["hello", "s=hello", '{"s": {"output": "hello"}}', '{"output": "hello"}']
)
def test_flow_inputs_have_the_forms_of_exec(name: str, given: str) -> None:
    invoke_ok("flow", "save", name, "-", stdin=STARTS)
    done = invoke_ok("flow", "run", name, "--input", given)
    assert done["node_results"]["echo"] == "heard hello"


def test_plan_gets_a_name_by_plan_or_execution_id(name: str) -> None:
    for output in ("plan_id", "execution_id"):
        run = invoke_ok("exec", "-", "--input", "hi", stdin=STARTS)
        plan = invoke_ok("show", run["plan_id"])
        flow = invoke_ok("flow", "save", f"{name} {output}", "--plan", run[output])
        assert (flow["plan_id"], flow["hash"]) == (plan["plan_id"], plan["hash"])
        assert flow["graph"]["nodes"] == STARTS["nodes"]
        invoke_ok("flow", "publish", flow["plan_id"], "--tool")
        shown = invoke_ok("show", run["plan_id"])
        assert (shown["name"], shown["published"]) == (f"{name} {output}", ["tool"])
        assert (shown["description"], shown["live_revision"]) == (flow["description"], 1)
        facts = planwave("show", run["plan_id"]).stdout.splitlines()
        assert f"Flow  {name} {output}" in [
            " ".join(f.split()).replace(" ", "  ", 1) for f in facts
        ]
    started = invoke_ok("flow", "run", f"{name} plan_id", "--input", "x")
    assert (started["flow"], run["flow"]) == (f"{name} plan_id", None)


def test_plan_that_has_a_name_is_copied_under_another(name: str) -> None:
    flow = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    execution = invoke_ok("flow", "run", name)["execution_id"]
    for new, given in ((f"{name} 2", flow["plan_id"]), (f"{name} 3", execution)):
        copied = invoke_ok("flow", "save", new, "--plan", given)
        assert copied["plan_id"] != flow["plan_id"]
        assert (copied["name"], copied["hash"]) == (new, flow["hash"])
        origin = {"plan_id": flow["plan_id"], "revision": 1}
        assert invoke_ok("show", copied["plan_id"])["origin"] == origin
    assert invoke_ok("flow", "show", name) == flow


def test_graph_of_a_plan_becomes_a_revision_of_a_flow_of_the_name(name: str) -> None:
    run = invoke_ok("exec", "-", "--input", "hi", stdin=STARTS)
    flow = invoke_ok("flow", "save", name, "-", stdin=saying("x"))
    again = invoke_ok("flow", "save", name.upper(), "--plan", run["plan_id"])
    assert (again["plan_id"], again["name"], again["revision"]) == (flow["plan_id"], name, 2)
    assert again["graph"]["nodes"] == STARTS["nodes"]
    assert invoke_ok("show", run["plan_id"])["name"] is None


def test_renamed_flow_keeps_its_id_and_revisions(name: str) -> None:
    first = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    renamed = invoke_ok("flow", "rename", name, f"new {name}")
    assert renamed == {**first, "name": f"new {name}"}
    assert invoke_ok("flow", "show", f"NEW {name}") == renamed
    done = planwave("flow", "rename", f"new {name}", name)
    assert f"Renamed new {name} to {name}" in done.stdout
    assert "one line of text" in refused("flow", "rename", name, "a\nb")["error"]["message"]
    assert refused("flow", "rename", f"new {name}", "x")["error"]["code"] == "not-found"
    assert invoke_ok("flow", "rename", name, name.upper())["name"] == name.upper()


def test_name_of_another_flow_is_taken_in_any_letters(name: str) -> None:
    other = invoke_ok("flow", "save", f"{name} Größe", "-", stdin=STARTS)
    invoke_ok("flow", "save", name, "-", stdin=STARTS)
    for wanted in (f"{name} Größe", f"{name.upper()} GRÖSSE", f"{name} gro\u0308ße"):
        error = refused("flow", "rename", name, wanted)["error"]
        assert error["code"] == "name-taken"
        assert other["plan_id"] in error["message"]
    assert invoke_ok("flow", "show", name)["name"] == name


@pytest.fixture
def used(name: str) -> dict[str, Any]:
    """A flow of the name, to which a publication, a token and another graph lead."""
    flow: dict[str, Any] = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    invoke_ok("flow", "publish", name, "--model")
    invoke_ok("tokens", "create", f"token of {name}", "--flow", name, "--scope", "run")
    calls = {"id": "c", "type": "inner", "data": {"flow": {"name": name}}}
    invoke_ok("flow", "save", f"caller of {name}", "-", stdin={"nodes": [calls], "edges": []})
    return flow


def token_names() -> list[str]:
    return [each["name"] for each in invoke_ok("tokens")["tokens"]]


@pytest.mark.parametrize("args", [["rm"], ["rm", "--keep-plan"], ["rename"]])
def test_flow_in_use_keeps_its_name_unless_forced(
    name: str, used: dict[str, Any], args: list[str]
) -> None:
    given = [*args, name, *([f"new {name}"] if args == ["rename"] else [])]
    error = refused("flow", *given)["error"]
    assert error["code"] == "flow-in-use"
    listed = ("published as a model", f"'token of {name}'", f"the graph 'caller of {name}'")
    assert [each for each in listed if each not in error["message"]] == []
    assert "force" in error["hint"]
    kept = invoke_ok("flow", "show", name)
    assert kept == {**used, "published": ["model"]}
    assert f"token of {name}" in token_names()
    invoke_ok("flow", *given, "--force")
    assert refused("flow", "show", name)["error"]["code"] == "not-found"
    assert f"token of {name}" not in token_names()
    if args == ["rename"]:
        assert invoke_ok("flow", "show", f"new {name}") == {**used, "name": f"new {name}"}


def test_name_is_taken_away_and_the_plan_stays(name: str) -> None:
    flow = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    invoke_ok("flow", "save", name, "-", stdin=saying("x"))
    removed = planwave("flow", "rm", name, "--keep-plan")
    assert f"✓ Removed the name {name}; the plan stays ({flow['plan_id']})\n" in removed.stdout
    assert refused("flow", "show", name)["error"]["code"] == "not-found"
    assert refused("flow", "show", flow["plan_id"])["error"]["code"] == "not-found"
    plan = invoke_ok("show", flow["plan_id"])
    assert (plan["name"], plan["revision"]) == (None, 2)
    again = invoke_ok("flow", "save", name, "--plan", flow["plan_id"])
    assert (again["plan_id"], again["revision"]) == (flow["plan_id"], 2)


def test_flow_commands_print_results_and_next_commands(name: str) -> None:
    done = planwave("flow", "save", name, "-", stdin=STARTS)
    flow = invoke_ok("flow", "show", name)
    assert f"✓ Saved {name} as revision 1\n" in done.stdout
    assert f"Run it with: planwave flow run '{name}'\n" in done.stdout
    line = next(x for x in planwave("flow", "ls").stdout.splitlines() if name in x)
    assert line.startswith(f"{flow['plan_id']}  ")
    assert "revision 1" in line
    ran = planwave("flow", "run", name, "--input", "you")
    assert ran.exit_code == 0
    assert "heard you" in ran.stdout
    shown = planwave("show", invoke_ok("show", "last")["execution_id"]).stdout
    assert f"Plan      {flow['plan_id']}\nFlow      {name}\n" in shown
    assert f"✓ Removed {name} ({flow['plan_id']})\n" in planwave("flow", "rm", name).stdout


def test_faulty_graph_is_not_saved(name: str) -> None:
    done = planwave("flow", "save", name, "-", "--json", stdin=FAULTY)
    assert done.exit_code == 3
    found = json.loads(done.stdout)
    codes = [
        (each["code"], each["pointer"].removeprefix("/graph")) for each in found["diagnostics"]
    ]
    assert codes == [("unknown-node-type", "/nodes/0/type")]
    assert "stdin: " in done.stderr
    assert planwave("flow", "save", name, "-", stdin=[]).exit_code == 3
    assert refused("flow", "show", name)["error"]["code"] == "not-found"
    stored = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    assert planwave("flow", "save", name, "-", stdin=FAULTY).exit_code == 3
    assert invoke_ok("flow", "show", name) == stored


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["save", "x"], "from a file or from a plan"),
        (["save", "x", "-", "--plan", "last"], "from a file or from a plan"),
        (["save", "x", "no-such-file.json"], "no file"),
        (["save", "x", "--plan", "no-such-plan"], "no-such-plan"),
        (["save", "a\nb", "-"], "one line of text"),
        (["show", "nobody"], "no flow called 'nobody'"),
        (["rm", "nobody"], "no flow called 'nobody'"),
        (["run", "nobody"], "no flow called 'nobody'"),
    ],
)
def test_invalid_flow_command_is_reported(args: list[str], says: str) -> None:
    error = refused("flow", *args, stdin=STARTS)["error"]
    assert says in error["message"]
    assert error["hint"]


def test_flow_is_found_by_its_exact_name_or_the_start_or_end_of_its_id(name: str) -> None:
    first = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    other = invoke_ok("flow", "save", f"{name}!", "-", stdin=STARTS)
    assert invoke_ok("flow", "show", name) == first
    assert invoke_ok("flow", "show", other["plan_id"]) == other
    hint = refused("flow", "show", first["plan_id"][:4])["error"]["hint"]
    assert other["plan_id"] in hint
    assert first["plan_id"] in hint


def test_invalid_inputs_start_no_execution(name: str) -> None:
    invoke_ok("flow", "save", name, "-", stdin=STARTS)
    before = invoke_ok("ls")["executions"]
    assert "zz" in refused("flow", "run", name, "--input", '{"zz": {"x": 1}}')["error"]["message"]
    assert invoke_ok("ls")["executions"] == before


def test_token_is_never_printed(name: str) -> None:
    for args in (["save", name, "-"], ["ls"], ["show", name], ["run", name], ["rm", name]):
        assert TOKEN not in planwave("flow", *args, stdin=STARTS).output


def test_tokens_are_created_listed_and_revoked(name: str) -> None:
    flow = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    made = invoke_ok("tokens", "create", name, "--flow", name, "--scope", "chat", "--days", "1")
    assert made["token"].startswith("pw_")
    assert (made["scopes"], made["flows"]) == (["chat"], [flow["plan_id"]])
    assert made["expires_at"] > made["created_at"]
    listed = [each for each in invoke_ok("tokens")["tokens"] if each["name"] == name]
    assert listed == [{key: value for key, value in made.items() if key != "token"}]
    shown = planwave("tokens").stdout
    assert name in shown
    assert made["token"] not in shown
    assert invoke_ok("tokens", "revoke", made["token_id"]) == {
        "revoked": made["token_id"], "name": name,
    }  # fmt: skip
    assert refused("tokens", "revoke", made["token_id"])["error"]["code"] == "not-found"
    assert refused("tokens", "create", "x", "--flow", "none", "--scope", "run")


def test_links_are_created_listed_and_revoked(name: str) -> None:
    invoke_ok("flow", "save", name, "-", stdin=STARTS)
    own_id = invoke_ok("flow", "run", name, "--input", '{"s": {"output": "x"}}')["execution_id"]
    made = invoke_ok("link", own_id, "--steps", "--days", "2")
    assert (made["kind"], made["execution_id"], len(made["key"])) == ("run", own_id, 22)
    assert made["url"].endswith(f"/links/{made['key']}")
    listed = [each for each in invoke_ok("tokens")["links"] if each["execution_id"] == own_id]
    known = {field: value for field, value in made.items() if field not in ("key", "url")}
    assert listed == [known]
    shown = planwave("tokens").stdout
    assert f"shows the steps of {own_id}" in shown
    assert made["key"] not in shown
    assert "/links/" in planwave("link", own_id).output
    assert invoke_ok("tokens", "revoke", made["link_id"]) == {
        "revoked": made["link_id"], "name": None,
    }  # fmt: skip
    assert refused("tokens", "revoke", made["link_id"])["error"]["code"] == "not-found"
    assert refused("link", own_id, "--request", "r1", "--steps")["error"]["code"] == "usage"
    assert refused("link", own_id, "--request", "r1")["error"]["code"] == "not-found"


def test_save_takes_a_graph_with_errors_as_a_draft(name: str) -> None:
    graph = {"nodes": [{"id": "s", "type": "placeholder", "data": {"kind": "slack"}}], "edges": []}
    assert "no counterpart here" in str(refused("flow", "save", name, "-", code=3, stdin=graph))
    done = planwave("flow", "save", name, "-", "--draft", stdin=graph)
    assert done.exit_code == 0, done.output
    assert "It has 1 error: nothing starts it" in done.output
    flow = invoke_ok("flow", "save", name, "-", "--draft", stdin=graph)
    assert (flow["revision"], flow["live_revision"], flow["draft"]["error_count"]) == (1, None, 1)
    run = planwave("flow", "run", name, "--json")
    assert run.exit_code != 0
    sound = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    assert (sound["revision"], sound["live_revision"]) == (2, 2)
