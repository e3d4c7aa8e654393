"""``planwave flow``: the same by itself and through a service that holds the storage directory."""

from __future__ import annotations

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
from planwave.storage.lock import DirectoryLock
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


def test_flow_is_saved_listed_shown_run_and_removed(name: str) -> None:
    created = invoke_ok("flow", "save", name, "-", "--description", "why", stdin=STARTS)
    assert (created["name"], created["description"], created["revision"]) == (name, "why", 1)
    assert created["graph"] == STARTS
    listed = {each["plan_id"]: each for each in invoke_ok("flow", "ls")["flows"]}
    assert (listed[created["plan_id"]]["version"], listed[created["plan_id"]]["node_count"]) == (
        created["version"],
        2,
    )
    assert invoke_ok("flow", "show", name) == created
    done = invoke_ok("flow", "run", name, "--input", "hello")
    assert done["node_results"]["echo"] == "heard hello"
    assert (done["plan_id"], done["flow_version"]) == (created["plan_id"], created["version"])
    assert (done["plan_id"], done["title"], done["user_prompt"]) == (None, name, "why")
    run = next(
        x for x in invoke_ok("ls")["executions"] if x["execution_id"] == done["execution_id"]
    )
    assert (run["plan_id"], run["flow_version"]) == (created["plan_id"], created["version"])
    assert invoke_ok("flow", "rm", name) == {"removed": created["plan_id"], "name": name}
    assert refused("flow", "show", name)["error"]["code"] == "not-found"
    assert invoke_ok("show", done["execution_id"])["plan_id"] == created["plan_id"]


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


def test_saving_again_makes_versions_and_any_version_runs(name: str) -> None:
    first = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    assert invoke_ok("flow", "save", f" {name} ", "-", stdin=STARTS) == first
    second = invoke_ok("flow", "save", first["plan_id"], "-", stdin=saying("now {{ input }}"))
    assert (second["plan_id"], second["name"], second["revision"]) == (first["plan_id"], name, 2)
    newest = invoke_ok("flow", "run", name, "--input", "x")
    assert newest["node_results"]["echo"] == "now x"
    older = invoke_ok("flow", "run", name, "--input", "x", "--version", first["version"][:12])
    assert (older["node_results"]["echo"], older["flow_version"]) == ("heard x", first["version"])
    assert invoke_ok("flow", "show", name, "--version", first["version"]) == first
    shown = planwave("flow", "show", first["plan_id"]).stdout
    assert f"Version   {second['version']}" in shown
    assert f"✓ {second['version']}" in shown
    assert f"  {first['version']}" in shown
    assert "Wave 2" in shown
    assert refused("flow", "run", name, "--version", "xyz")["error"]["code"] == "not-found"


@pytest.mark.parametrize(
    "given", ["hello", "s=hello", '{"s": {"output": "hello"}}', '{"output": "hello"}']
)
def test_flow_inputs_have_the_forms_of_exec(name: str, given: str) -> None:
    invoke_ok("flow", "save", name, "-", stdin=STARTS)
    done = invoke_ok("flow", "run", name, "--input", given)
    assert done["node_results"]["echo"] == "heard hello"


def test_plan_is_saved_as_flow_by_plan_or_execution_id(name: str) -> None:
    run = invoke_ok("exec", "-", "--input", "hi", stdin=STARTS)
    plan = invoke_ok("show", run["plan_id"])
    for output in (run["plan_id"], run["execution_id"], run["plan_id"][:-1]):
        created = invoke_ok("flow", "save", f"{name} {output}", "--plan", output)
        assert (created["version"], created["graph"]["nodes"]) == (plan["hash"], STARTS["nodes"])
    flow = invoke_ok("flow", "save", name, "-", stdin=saying("x"))
    of_a_flow = invoke_ok("flow", "run", name)["execution_id"]
    assert refused("flow", "save", name, "--plan", of_a_flow)["error"]["message"] == (
        f"execution {of_a_flow} ran a flow, not a plan"
    )
    again = invoke_ok("flow", "save", name, "--plan", run["plan_id"])
    assert (again["plan_id"], again["revision"]) == (flow["plan_id"], 2)


def test_renamed_flow_keeps_its_id_and_versions(name: str) -> None:
    first = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    renamed = invoke_ok("flow", "rename", name, f"new {name}")
    assert (renamed["name"], renamed["plan_id"]) == (f"new {name}", first["plan_id"])
    assert renamed["version"] == first["version"]
    assert invoke_ok("flow", "show", f"new {name}") == renamed
    done = planwave("flow", "rename", f"new {name}", name)
    assert f"Renamed new {name} to {name}" in done.stdout
    assert "one line of text" in refused("flow", "rename", name, "a\nb")["error"]["message"]
    assert refused("flow", "rename", f"new {name}", "x")["error"]["code"] == "not-found"


def test_flow_commands_print_results_and_next_commands(name: str) -> None:
    done = planwave("flow", "save", name, "-", stdin=STARTS)
    flow = invoke_ok("flow", "show", name)
    assert f"✓ Saved {name} as revision 1, version {flow['version']}\n" in done.stdout
    assert f"Run it with: planwave flow run '{name}'\n" in done.stdout
    line = next(x for x in planwave("flow", "ls").stdout.splitlines() if name in x)
    assert line.startswith(f"{flow['plan_id']}  ")
    assert "revision 1" in line
    ran = planwave("flow", "run", name, "--input", "you")
    assert ran.exit_code == 0
    assert "heard you" in ran.stdout
    shown = planwave("show", invoke_ok("show", "last")["execution_id"]).stdout
    assert f"Flow      {flow['plan_id']}" in shown
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


def test_ambiguous_flow_name_needs_an_id(name: str, storage: Path) -> None:
    first = invoke_ok("flow", "save", name, "-", stdin=STARTS)
    other = invoke_ok("flow", "save", f"{name}!", "-", stdin=STARTS)
    assert invoke_ok("flow", "show", name) == first
    assert invoke_ok("flow", "show", other["plan_id"]) == other
    hint = refused("flow", "show", first["plan_id"][:2])["error"]["hint"]
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
