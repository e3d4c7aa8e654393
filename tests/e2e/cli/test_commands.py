"""The ``planwave`` command as people use it: real SDKs, a scripted provider on loopback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planwave.cli import context
from planwave.cli.backends.local import LocalBackend
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
)
from tests.support.cli.terminal import typed
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    ReplyStep,
    TextReply,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)

HEAVY = (
    "openai",
    "anthropic",
    "pydantic_ai",
    "mcp",
    "fastapi",
    "xllamacpp",
    "jinja2",
    "minijinja",
    "aiofiles",
)
PLAN: dict[str, Any] = {
    "title": "Two ways compared",
    "nodes": [
        {"id": "left", "name": "Left way", "description": "Describe the left way."},
        {"id": "right", "name": "Right way", "description": "Describe the right way."},
        {"id": "join", "name": "Recommend", "description": "Recommend one."},
    ],
    "edges": [
        {"source": "left", "target": "join", "channel": "flow"},
        {"source": "right", "target": "join", "channel": "flow"},
    ],
}
TEXT_GRAPH = {
    "nodes": [
        {"id": "begin", "type": "start"},
        {"id": "shout", "type": "text", "data": {"text": "{{ input | upper }}!"}},
    ],
    "edges": [{"source": "begin", "target": "shout", "data": {"channel": "flow"}}],
}
FAULTY_GRAPH = {
    "nodes": [{"id": "a", "type": "text"}, {"id": "b", "type": "no-such-type"}],
    "edges": [{"source": "a", "target": "nowhere", "data": {"channel": "flow"}}],
}


def answer(body: dict[str, Any]) -> str | ReplyStep:
    """Plan where a plan is asked for, else answer the task."""
    if schema_of(body) is not None:
        return json.dumps(PLAN)
    requested = prompt_of(body)
    if "Recommend one." in requested:
        return "**Take the left way.**"
    return "About the left." if "left way." in requested else "About the right."


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    with fake_llm_in_thread(reply_to=answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def written(name: str, document: Any) -> str:
    Path(name).write_text(json.dumps(document), "utf-8")
    return name


def test_goal_is_planned_run_shown_and_stored(llm: FakeLLMServer) -> None:
    done = invoke("run", "Compare two ways")
    assert done.exit_code == 0, done.output
    out = done.stdout
    assert (
        out.index("Wave 1, 2 at the same time") < out.index("Forecast") < out.index("wave 1 of 2")
    )
    assert "completed  join  Recommend" in out
    assert "**Take the left way.**" in out
    assert "✓ completed · 3 of 3 steps completed" in out
    assert "\x1b" not in out
    (document,) = Path("storage").glob("*.json")
    assert str(document) in out
    stored = json.loads(document.read_text("utf-8"))
    assert stored["node_results"]["join"] == "**Take the left way.**"
    assert len(llm.requests) == 4
    joined = prompt_of(llm.requests[-1].body)
    assert "From Left way (left):\nAbout the left.\n\nFrom Right way (right):\n" in joined


def test_json_goes_to_stdout_and_progress_to_stderr(llm: FakeLLMServer) -> None:
    for args in (["--json", "run", "Compare"], ["run", "Compare", "--json"]):
        done = invoke(*args)
        assert done.exit_code == 0
        result = json.loads(done.stdout)
        assert result["status"] == "completed"
        assert Path(result["document_path"]).is_file()
        assert "wave 1 of 2" in done.stderr


def test_printed_plan_can_be_edited_and_run(llm: FakeLLMServer) -> None:
    done = invoke("plan", "Compare two ways", "--json")
    assert done.exit_code == 0
    plan = json.loads(done.stdout)
    assert (plan["title"], plan["user_prompt"]) == ("Two ways compared", "Compare two ways")
    assert [step["name"] for step in plan["nodes"]] == ["Left way", "Right way", "Recommend"]
    plan["title"] = "Edited"
    plan["nodes"][0]["data"]["userPrompt"] = "Say hello"
    assert invoke("check", written("plan.json", plan)).exit_code == 0
    done = invoke("exec", "plan.json", "--scheduling", "waves", "--max-parallel", "1")
    assert done.exit_code == 0, done.output
    assert done.stdout.lstrip().startswith("Edited")
    assert llm.max_open_requests == 1


def test_fork_warns_of_new_prompt_that_leaves_out_its_inputs(llm: FakeLLMServer) -> None:
    assert invoke("run", "Compare two ways").exit_code == 0
    done = invoke("fork", "last", "--set", "join.userPrompt=Pick one")
    assert done.exit_code == 0, done.output
    assert "what 'left', 'right' gives never reaches the model" in done.stderr
    assert "add {{ input }} to data.userPrompt" in done.stderr
    done = invoke("fork", "last", "--set", "join.userPrompt=Pick one of {{ input }}")
    assert (done.exit_code, "warning" in done.stderr) == (0, False)


def test_fork_with_a_plan_pays_only_for_the_new_step(llm: FakeLLMServer) -> None:
    assert invoke("run", "Compare two ways").exit_code == 0
    plan = json.loads(invoke("show", "last", "--json").stdout)["graph"]
    plan["nodes"].append(
        {"id": "sum", "type": "text", "name": "Sum", "data": {"text": "Sum: {{ input }}"}}
    )
    flow = {"channel": "flow"}
    plan["edges"].append({"id": "more", "source": "join", "target": "sum", "data": flow})
    calls = len(llm.requests)
    done = invoke("fork", "last", "--plan", written("new.json", plan), "--dry-run")
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        ["3 steps would be reused, at no cost: left, right, join", "1 step would run: sum"],
    )
    done = invoke("fork", "last", "--plan", "new.json", "--dry-run", "--json")
    preview = {"reused": ["left", "right", "join"], "runs": ["sum"], "undecided": []}
    assert json.loads(done.stdout) == preview
    done = invoke("fork", "last", "--plan", "new.json")
    assert done.exit_code == 0, done.output
    assert "Sum: " in done.stdout
    assert len(llm.requests) == calls
    for wrong, code in (("[]", 3), ("flowchart TD\n  a --> b", 3)):
        Path("wrong.json").write_text(wrong, "utf-8")
        assert invoke("fork", "last", "--plan", "wrong.json").exit_code == code


def test_fork_in_words_is_shown_and_pays_only_for_what_is_new(llm: FakeLLMServer) -> None:
    assert invoke("run", "Compare two ways").exit_code == 0
    node = {"id": "sum", "name": "Sum", "type": "text", "data": {"text": "Sum: {{ input }}"}}
    adds = {"op": "add_node", "node": {**node, "depends_on": ["join"]}}
    reply = json.dumps({"answer": "Adds a sum.", "operations": [adds]})
    llm.add(TextReply(reply))
    done = invoke("fork", "last", "--replan", "add a sum")
    assert done.exit_code == 2, done.output
    assert "+ node sum" in done.stdout
    assert (
        "nothing was started: a person has to take the proposal, as --yes is missing" in done.stderr
    )
    assert len(json.loads(invoke("ls", "--json").stdout)["executions"]) == 1
    llm.add(TextReply(reply))
    done = invoke("fork", "last", "--replan", "add a sum", "--dry-run")
    assert done.stdout.splitlines()[-2:] == [
        "3 steps would be reused, at no cost: left, right, join",
        "1 step would run: sum",
    ]
    llm.add(TextReply(reply))
    calls = len(llm.requests)
    done = invoke("fork", "last", "--replan", "add a sum", "--yes")
    assert done.exit_code == 0, done.output
    assert "Sum: " in done.stdout
    assert len(llm.requests) == calls + 1, "only the change itself is paid for"
    execute_graph(TEXT_GRAPH)
    agent = {"id": "more", "name": "More", "type": "agent", "description": "Write it out"}
    reply = reply.replace(json.dumps(adds["node"]), json.dumps(agent))
    for command in (["fork", "last", "--replan"], ["replan", "last"]):
        llm.add(TextReply(reply), TextReply(reply), TextReply(reply))
        done = invoke(*command, "do what the text says", "--yes")
        assert done.exit_code == 2, "what was asked for did not happen"
        assert "as it reaches something new" in done.stderr, "a model"
        told = invoke_json(*command, "do what the text says", "--yes", code=2)["error"]
        assert told["code"] == "decision-required"
        assert "more" in {each["id"] for each in told["proposal"]["graph"]["nodes"]}
        code, seen = typed([*command, "do what the text says", "--yes"], [("[y/N] ", "n\n")])
        assert (code, "Nothing was started." in seen) == (0, True), "a person has decided"
    assert len(invoke_json("ls")["executions"]) == 3


def test_fork_in_words_is_refused_before_a_model_is_asked(llm: FakeLLMServer) -> None:
    execute_graph(approval_graph())
    done = invoke("fork", "last", "--replan", "add a sum")
    assert done.exit_code != 0
    assert "planwave replan" in done.output
    done = invoke("fork", "last", "--replan", "x", "--plan", "plan.json")
    assert (done.exit_code, "--plan and --replan" in done.output) == (2, True)
    assert llm.requests == []


def test_graph_runs_without_provider_and_takes_input() -> None:
    done = invoke("exec", written("g.json", TEXT_GRAPH), "--input", "hello")
    assert done.exit_code == 0, done.output
    assert "HELLO!" in done.stdout
    done = invoke("exec", "-", "--input", "begin=from stdin", stdin=json.dumps(TEXT_GRAPH))
    assert "FROM STDIN!" in done.stdout


def test_large_result_is_stored_as_artifact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert invoke("exec", written("g.json", TEXT_GRAPH), "--input", "x" * 300).exit_code == 0
    assert list(Path("storage").glob("artifacts/**/*.*")) == []
    monkeypatch.setenv("PLANWAVE_LIMIT_NODE_RESULT_BYTES", "200")
    assert invoke("exec", "g.json", "--input", "x" * 300).exit_code == 0
    stored = [file for file in Path("storage/artifacts").rglob("*") if file.is_file()]
    assert stored
    assert invoke("show", "last", "--node", "shout").stdout == "X" * 300 + "!\n"


def test_executions_are_listed_and_shown_by_last_prefix_and_node() -> None:
    assert invoke("exec", written("g.json", {"title": "Shouting", **TEXT_GRAPH})).exit_code == 0
    listed = invoke("ls")
    assert "✓ completed" in listed.stdout
    assert "Shouting" in listed.stdout
    execution_id = json.loads(invoke("ls", "--json").stdout)["executions"][0]["execution_id"]
    for name in ("last", execution_id, execution_id[:18]):
        shown = invoke("show", name)
        assert shown.exit_code == 0, shown.output
        assert execution_id in shown.stdout
    assert invoke("show", "last", "--node", "shout").stdout == "!\n"
    assert json.loads(invoke("show", "last", "--json").stdout)["status"] == "completed"
    assert invoke("ls", "--status", "failed").exit_code == 0


def test_empty_storage_is_reported_and_not_created() -> None:
    listed = invoke("ls")
    assert (listed.exit_code, listed.stderr) == (0, "")
    assert "Nothing has been planned or run in storage yet" in listed.stdout
    assert "--storage DIR" in listed.stdout
    assert json.loads(invoke("ls", "--json").stdout) == {"executions": [], "plans": []}
    shown = invoke("show", "last")
    assert shown.exit_code == 2
    assert "nothing has run here yet" in shown.stderr
    assert "--storage DIR" in shown.stderr
    assert not Path("storage").exists()


def test_storage_option_selects_the_directory() -> None:
    done = invoke("--storage", "elsewhere", "exec", written("g.json", TEXT_GRAPH))
    assert done.exit_code == 0
    assert list(Path("elsewhere").glob("*.json"))
    assert "completed" in invoke("ls", "--storage", "elsewhere").stdout


def test_faulty_graph_lists_all_errors_and_exits_3() -> None:
    file = written("bad.json", FAULTY_GRAPH)
    for command in ("check", "exec"):
        done = invoke(command, file)
        assert done.exit_code == 3
        assert "[unknown-node-type]" in done.stderr
        assert "[dangling-edge]" in done.stderr
        assert "/edges/0/target" in done.stderr
    shown = json.loads(invoke("check", file, "--json").stdout)
    assert shown["ok"] is False
    assert {each["code"] for each in shown["diagnostics"]} >= {"unknown-node-type", "dangling-edge"}
    assert json.loads(invoke("ls", "--json").stdout) == {"executions": [], "plans": []}


@pytest.mark.parametrize("source", ["", "nonsense", "[1]", '{"nodes": NaN}', "{" * 5000])
def test_unreadable_plan_is_rejected(source: str) -> None:
    Path("bad.json").write_text(source)
    for command in ("check", "exec"):
        done = invoke(command, "bad.json")
        assert done.exit_code == 3
        assert "Traceback" not in done.output
        assert "fault in planwave" not in done.output


def test_on_failure_option_stops_or_continues(llm: FakeLLMServer) -> None:
    aside = {"id": "aside", "name": "Aside", "description": "Independent of the left way."}
    plan = {**PLAN, "nodes": [*PLAN["nodes"], aside]}
    plan["edges"] = [*PLAN["edges"], {"source": "right", "target": "aside", "channel": "flow"}]
    for policy, status in (("stop", "cancelled"), ("continue", "completed")):
        llm.add(TextReply(json.dumps(plan)), ErrorReply(400, "invalid_request_error", "no"))
        args = ("--max-parallel", "1", "--scheduling", "waves", "--json", "--on-failure", policy)
        done = invoke("run", "Compare", *args)
        assert done.exit_code == 1
        nodes = {n["id"]: n["status"] for n in json.loads(done.stdout)["nodes"]}
        assert (nodes["left"], nodes["join"], nodes["aside"]) == ("failed", "blocked", status)


def test_plan_for_unavailable_provider_is_not_started() -> None:
    graph = {
        "nodes": [
            {"id": "a", "type": "agent", "data": {"provider": "anthropic", "userPrompt": "hi"}}
        ],
        "edges": [],
    }
    for command in ("exec", "check"):
        done = invoke(command, written("g.json", graph))
        assert done.exit_code == 4, done.output
        assert "ANTHROPIC_API_KEY" in done.stderr
    assert json.loads(invoke("ls", "--json").stdout)["executions"] == []


@pytest.mark.parametrize(
    "args",
    [
        ["run", "goal", "--scheduling", "sideways"],
        ["run", "goal", "--max-parallel", "0"],
        ["show", "0000"],
    ],
)
def test_invalid_usage_exits_2(llm: FakeLLMServer, args: list[str]) -> None:
    done = invoke(*args)
    assert done.exit_code == 2, done.output
    assert done.stderr
    assert "Traceback" not in done.output
    assert llm.requests == []


def test_invalid_settings_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("planwave.toml").write_text("storage_dir = [")
    done = invoke("ls")
    assert done.exit_code == 2
    assert "planwave.toml" in done.stderr


def test_locked_storage_rejects_runs_and_allows_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    from planwave.storage.sqlite.store import SqliteStore

    monkeypatch.setattr(context, "LOCK_WAIT_S", 0.1)
    store = SqliteStore.open(Path("storage"))
    try:
        done = invoke("exec", written("g.json", TEXT_GRAPH))
        assert done.exit_code == 1
        assert "locked" in done.stderr
        assert invoke("ls").exit_code == 0
    finally:
        asyncio.run(store.close())


def test_doctor_reports_providers_and_storage(llm: FakeLLMServer) -> None:
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    assert "✓ openai" in done.stdout
    assert "ANTHROPIC_API_KEY" in done.stdout
    assert "sk-test" not in done.output
    found = json.loads(invoke("doctor", "--json").stdout)
    assert found["ok"] is True
    stored = {"directory": "storage", "ok": True, "state": "not made yet", "hint": None}
    assert found["storage"] == stored


def heavy_libraries(*args: str, among: tuple[str, ...]) -> str:
    """Run a command in a process of its own; return which of these libraries it has loaded."""
    script = (
        "import sys; from planwave.main import main\n"
        "try: main()\n"
        f"finally: print('LOADED', [m for m in {among!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.strip()


@pytest.mark.slow
@pytest.mark.parametrize("args", [["ls"], ["show", "last"]])
def test_quick_commands_load_no_heavy_library(args: list[str]) -> None:
    assert invoke("exec", written("g.json", TEXT_GRAPH)).exit_code == 0
    assert heavy_libraries(*args, among=(*HEAVY, "httpx2", "markdown_it")) == "LOADED []"


@pytest.mark.slow
def test_no_command_loads_the_opentelemetry_sdk_without_tracing() -> None:
    among = ("opentelemetry.sdk", "opentelemetry.exporter", "planwave.service.tracing")
    document = written("g.json", TEXT_GRAPH)
    assert heavy_libraries("exec", document, among=among).endswith("LOADED []")


@pytest.mark.slow
@pytest.mark.parametrize("args", [["--help"], ["run", "--help"]])
def test_help_loads_no_heavy_library(args: list[str]) -> None:
    own = (f"planwave.{name}" for name in ("nodes.library", "planner.planner", "service.library"))
    heavy = (*HEAVY, "sqlalchemy", "httpx2", *own)
    assert heavy_libraries(*args, among=heavy) == "LOADED []"


ADDS_A_SUM = json.dumps(
    {
        "answer": "Adds a sum.",
        "operations": [
            {
                "op": "add_node",
                "node": {"id": "sum", "name": "Sum", "type": "text", "data": {"text": "Sum"}},
            },
            {"op": "add_edge", "edge": {"source": "join", "target": "sum", "channel": "flow"}},
        ],
    }
)


def test_refine_shows_a_change_and_takes_it_only_when_told(llm: FakeLLMServer) -> None:
    assert invoke("plan", "Compare two ways").exit_code == 0
    llm.add(TextReply(ADDS_A_SUM))
    done = invoke("refine", "last", "add a sum")
    assert done.exit_code == 0, done.output
    assert "Adds a sum." in done.stdout
    assert "+ node sum" in done.stdout
    assert "/data/text\n    + Sum" in done.stdout, "what a step does is shown, not only its type"
    accept = re.search(r"planwave (refine \S+ --accept \S+)", done.output)
    assert accept is not None, done.output
    revisions = json.loads(invoke("revisions", "last", "--json").stdout)["revisions"]
    assert [each["revision"] for each in revisions] == [1]
    for option in (["--dry-run"], ["--provider", "openai"], ["--model", "gpt-4o"]):
        done = invoke(*accept[1].split(), *option)
        assert (done.exit_code, option[0] in done.stderr) == (2, True), done.output
    done = invoke(*accept[1].split())
    assert "is at revision 2" in done.output
    revisions = json.loads(invoke("revisions", "last", "--json").stdout)["revisions"]
    assert [each["author"] for each in revisions] == ["person", "planner"]
    again = ADDS_A_SUM.replace('"sum"', '"more"')
    llm.add(TextReply(again), TextReply(again))
    assert json.loads(invoke("refine", "last", "more", "--dry-run", "--json").stdout)["proposal"]
    done = invoke("refine", "last", "add more", "--yes", "--json")
    assert json.loads(done.stdout)["revision"] == 3
    llm.add(TextReply('{"answer": "No coffee here.", "operations": []}'))
    done = invoke("refine", "last", "make coffee")
    assert (done.exit_code, "No coffee here." in done.stderr) == (2, True)
    assert invoke("refine", "last").exit_code == 2


def test_refine_takes_what_reaches_something_new_from_a_person_alone(
    llm: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANWAVE_ALLOWED_NODE_TYPES", "agent,fetch")
    assert invoke("plan", "Compare two ways").exit_code == 0
    data = {"url": "https://elsewhere.example/"}
    node = {"id": "get", "name": "Get", "type": "fetch", "data": data, "depends_on": ["join"]}
    reply = json.dumps({"answer": "Gets it.", "operations": [{"op": "add_node", "node": node}]})
    llm.add(TextReply(reply), TextReply(reply), TextReply(reply))
    done = invoke("refine", "last", "get it", "--yes")
    assert done.exit_code == 0, done.output
    assert "! host elsewhere.example" in done.stdout
    assert "--yes takes nothing that reaches something new.\nThe plan is as it was." in done.stdout
    kept = json.loads(invoke("refine", "last", "get it", "--yes", "--json").stdout)
    assert (kept["revision"], kept["proposal"]["additions"][0]["kind"]) == (1, "host")
    code, seen = typed(["refine", "last", "get it", "--yes"], [("[y/N] ", "n\n")])
    assert code == 0, seen
    assert "new. Make this the newest revision?" in " ".join(seen.split())
    accept = re.search(r"planwave (refine \S+ --accept \S+)", " ".join(seen.split()))
    assert accept is not None, seen
    assert "is at revision 2" in invoke(*accept[1].split()).output


def test_replan_changes_a_run_that_waits_and_shows_what_was_changed(llm: FakeLLMServer) -> None:
    execute_graph(approval_graph())
    node = {"id": "sum", "name": "Sum", "type": "text", "data": {"text": "Sum"}}
    reply = json.dumps({"answer": "Adds a sum.", "operations": [{"op": "add_node", "node": node}]})
    llm.add(TextReply(reply))
    done = invoke("replan", "last", "add a sum", "--dry-run")
    assert done.exit_code == 0, done.output
    assert "+ node sum" in done.stdout
    assert "changes" not in invoke_json("show", "last")
    llm.add(TextReply(reply))
    done = invoke("replan", "last", "add a sum")
    assert done.stdout.index("Adds a sum.") < done.stdout.index("+ node sum"), done.output
    shown = invoke_json("show", "last")
    assert [(each["by"], each["note"]) for each in shown["changes"]] == [("person", "Adds a sum.")]
    assert (shown["status"], shown["node_results"]["sum"]) == ("paused", "Sum")
    assert shown["usage"]["calls"] == 1, "the call of the proposal is not of the run"
    llm.add(TextReply(json.dumps({"answer": "There is one already.", "operations": []})))
    done = invoke("replan", "last", "add a sum")
    assert (done.exit_code, "is not changed: There is one already." in done.stderr) == (2, True)


def test_replan_asks_no_model_where_somebody_else_has_changed_the_run_first(
    llm: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute_graph(approval_graph())
    graph = invoke_json("show", "last")["graph"]
    graph["nodes"].append({"id": "costs", "type": "text", "data": {"text": "the costs"}})
    replan = LocalBackend.replan

    async def overtaken(self: LocalBackend, execution_id: str, *args: Any) -> Any:
        await self.revise(execution_id, graph, "came first")
        return await replan(self, execution_id, *args)

    monkeypatch.setattr(LocalBackend, "replan", overtaken)
    told = invoke_json("replan", "last", "add a sum", code=2)["error"]
    assert told["code"] == "plan-changed"
    assert "read the execution again" in told["hint"]
    shown = invoke_json("show", "last")
    assert [each["note"] for each in shown["changes"]] == ["came first"]
    assert llm.requests == []


def test_replan_says_what_is_wrong_with_a_change_that_is_refused(llm: FakeLLMServer) -> None:
    execute_graph(approval_graph())
    nodes = [{"id": each, "name": each, "type": "code", "data": {"code": "1"}} for each in "xy"]
    operations = [{"op": "add_node", "node": each} for each in nodes]
    llm.add(*[TextReply(json.dumps({"answer": "Computes.", "operations": operations}))] * 6)
    done = invoke("replan", "last", "compute it")
    (refused,) = invoke_json("show", "last")["refused_changes"]
    assert len(refused["diagnostics"]) > 1
    assert done.exit_code == 3, done.output
    assert "is not changed: " in done.stderr
    told = " ".join(done.stderr.split())
    for each in refused["diagnostics"]:
        assert each["message"] in told
        assert each.get("hint", "") in told
    assert refused["error"].get("hint", "") in told


def test_replan_asks_a_person_about_a_change_that_reaches_something_new(llm: FakeLLMServer) -> None:
    execute_graph(approval_graph())
    agent = {"id": "more", "name": "More", "type": "agent", "description": "Write it out"}
    operations = [{"op": "add_node", "node": agent}]
    llm.add(TextReply(json.dumps({"answer": "Writes more.", "operations": operations})))
    done = invoke("replan", "last", "do what the draft says", "--yes")
    assert "! " in done.stdout, "what is new is shown"
    assert "planwave answer" in done.output
    shown = invoke_json("show", "last")
    assert (shown["status"], "changes" in shown) == ("paused", False)
    (asked,) = [each for each in shown["requests"] if each["request"]["kind"] == "plan-change"]
    done = invoke("answer", "last", asked["request_id"], "--decision", "reject")
    refused = invoke_json("show", "last")["refused_changes"]
    assert [each["error"]["code"] for each in refused] == ["change-rejected"]
    assert len(llm.requests) == 1, "nothing of the change has run"


def test_replan_of_an_ended_run_starts_a_fork_with_that_plan(llm: FakeLLMServer) -> None:
    assert invoke("run", "Compare two ways").exit_code == 0
    node = {"id": "sum", "name": "Sum", "type": "text", "data": {"text": "Sum: {{ input }}"}}
    adds = {"op": "add_node", "node": {**node, "depends_on": ["join"]}}
    reply = json.dumps({"answer": "Adds a sum.", "operations": [adds]})
    llm.add(TextReply(reply))
    done = invoke("replan", "last", "add a sum")
    assert done.exit_code == 2, done.output
    said = done.stdout
    assert said.index("has ended: what is proposed is a fork of it") < said.index("+ node sum")
    assert "a person has to take the proposal, as --yes is missing" in done.stderr
    llm.add(TextReply(reply))
    done = invoke("replan", "last", "add a sum", "--dry-run")
    assert done.stdout.splitlines()[-2:] == [
        "3 steps would be reused, at no cost: left, right, join",
        "1 step would run: sum",
    ]
    llm.add(TextReply(reply))
    assert "graph" in invoke_json("replan", "last", "add a sum", "--dry-run")
    parent = invoke_json("show", "last")["execution_id"]
    assert len(invoke_json("ls")["executions"]) == 1
    llm.add(TextReply(reply))
    calls = len(llm.requests)
    done = invoke("replan", "last", "add a sum", "--yes")
    assert done.exit_code == 0, done.output
    assert f"a fork of {parent}" in done.stdout
    assert "Sum: " in done.stdout
    assert len(llm.requests) == calls + 1, "only the change itself is paid for"
    fork = invoke_json("show", "last")
    assert (fork["parent"]["execution_id"], fork["status"]) == (parent, "completed")


def test_replan_without_words_replaces_what_failed(llm: FakeLLMServer) -> None:
    bad = {"id": "bad", "type": "transform", "data": {"expression": "{{ input.missing.deep }}"}}
    edge = {"source": "draft", "target": "bad", "data": {"channel": "flow"}}
    draft = {"id": "draft", "type": "text", "data": {"text": "A draft."}}
    failed = invoke_json(
        "exec", "-", stdin=json.dumps({"nodes": [draft, bad], "edges": [edge]}), code=1
    )
    node = {"id": "good", "name": "Good", "type": "text", "data": {"text": "Good: {{ input }}"}}
    operations = [
        {"op": "remove_node", "id": "bad"},
        {"op": "add_node", "node": {**node, "depends_on": ["draft"]}},
    ]
    llm.add(TextReply(json.dumps({"answer": "Another way.", "operations": operations})))
    done = invoke("replan", "last", "--yes")
    assert done.exit_code == 0, done.output
    assert "Good: A draft." in done.stdout
    (asked,) = [prompt_of(each.body) for each in llm.requests]
    error = next(each for each in failed["nodes"] if each["path"] == "bad")["error_detail"]
    assert f"- bad: {error['code']}: {error['message']}"[:100] in asked
    done = invoke("replan", "last")
    assert done.exit_code == 2
    assert "has failed" in done.stderr
    assert len(llm.requests) == 1, "nobody is asked where nothing failed"


def test_refine_asks_at_a_terminal_below_all_that_would_be_taken(llm: FakeLLMServer) -> None:
    assert invoke("plan", "Compare two ways").exit_code == 0
    words = " ".join(f"word{number}" for number in range(60))
    longer = ADDS_A_SUM.replace('"Sum"}', f'"{words}"}}')
    for line, revision in (("\n", 1), ("y\n", 2)):
        llm.add(TextReply(longer))
        code, seen = typed(["refine", "last", "add a sum"], [("[y/N] ", line)])
        assert code == 0, seen
        before, _, after = seen.partition("Make this the newest revision?")
        assert "word59" in before, "nothing is cut off at the edge of the terminal"
        assert ("--accept" in after, "is at revision 2" in after) == (revision == 1, revision == 2)
        revisions = json.loads(invoke("revisions", "last", "--json").stdout)["revisions"]
        assert len(revisions) == revision
