"""The ``planwave`` command as people use it: real SDKs, a scripted provider on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    ReplyStep,
    TextReply,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)

HEAVY = ("openai", "anthropic", "pydantic_ai", "mcp", "fastapi", "xllamacpp", "jinja2", "minijinja")
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
    asked = prompt_of(body)
    if "Recommend one." in asked:
        return "**Take the left way.**"
    return "About the left." if "left way." in asked else "About the right."


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    with fake_llm_in_thread(reply_to=answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def planwave(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), input=stdin, obj=cli_factories())


def written(name: str, document: Any) -> str:
    Path(name).write_text(json.dumps(document), "utf-8")
    return name


def test_a_goal_is_planned_run_shown_and_kept(llm: FakeLLMServer) -> None:
    done = planwave("run", "Compare two ways")
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
    kept = json.loads(document.read_text("utf-8"))
    assert kept["node_results"]["join"] == "**Take the left way.**"
    assert len(llm.requests) == 4
    joined = prompt_of(llm.requests[-1].body)
    assert "From Left way (left):\nAbout the left.\n\nFrom Right way (right):\n" in joined


def test_with_json_stdout_is_one_object_and_progress_goes_to_stderr(llm: FakeLLMServer) -> None:
    for args in (["--json", "run", "Compare"], ["run", "Compare", "--json"]):
        done = planwave(*args)
        assert done.exit_code == 0
        result = json.loads(done.stdout)
        assert result["status"] == "completed"
        assert Path(result["document_path"]).is_file()
        assert "wave 1 of 2" in done.stderr


def test_a_printed_plan_can_be_edited_and_run(llm: FakeLLMServer) -> None:
    done = planwave("plan", "Compare two ways", "--json")
    assert done.exit_code == 0
    plan = json.loads(done.stdout)
    assert (plan["title"], plan["user_prompt"]) == ("Two ways compared", "Compare two ways")
    assert [step["name"] for step in plan["nodes"]] == ["Left way", "Right way", "Recommend"]
    plan["title"] = "Edited"
    plan["nodes"][0]["data"]["userPrompt"] = "Say hello"
    assert planwave("check", written("plan.json", plan)).exit_code == 0
    done = planwave("exec", "plan.json", "--scheduling", "waves", "--max-parallel", "1")
    assert done.exit_code == 0, done.output
    assert done.stdout.lstrip().startswith("Edited")
    assert llm.max_open_requests == 1


def test_a_plan_alone_is_kept_and_shown_later(llm: FakeLLMServer) -> None:
    assert planwave("plan", "Compare two ways").exit_code == 0
    plan_id = json.loads(planwave("ls", "--json").stdout)["plans"][0]["plan_id"]
    shown = planwave("show", plan_id[:20])
    assert shown.exit_code == 0
    assert "Compare two ways" in shown.stdout
    assert "Wave 2" in shown.stdout
    assert json.loads(planwave("show", plan_id, "--json").stdout)["status"] == "draft"


def test_a_graph_runs_without_any_provider_and_takes_input() -> None:
    done = planwave("exec", written("g.json", TEXT_GRAPH), "--input", "hello")
    assert done.exit_code == 0, done.output
    assert "HELLO!" in done.stdout
    done = planwave("exec", "-", "--input", "begin=from stdin", stdin=json.dumps(TEXT_GRAPH))
    assert "FROM STDIN!" in done.stdout


def test_a_result_above_the_limit_is_kept_whole_beside_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert planwave("exec", written("g.json", TEXT_GRAPH), "--input", "x" * 300).exit_code == 0
    assert list(Path("storage").glob("artifacts/**/*.*")) == []
    monkeypatch.setenv("PLANWAVE_LIMIT_NODE_RESULT_BYTES", "200")
    assert planwave("exec", "g.json", "--input", "x" * 300).exit_code == 0
    kept = [file for file in Path("storage/artifacts").rglob("*") if file.is_file()]
    assert kept
    assert planwave("show", "last", "--node", "shout").stdout == "X" * 300 + "!\n"


def test_what_ran_is_listed_and_shown_by_last_prefix_and_step() -> None:
    assert planwave("exec", written("g.json", {"title": "Shouting", **TEXT_GRAPH})).exit_code == 0
    listed = planwave("ls")
    assert "✓ completed" in listed.stdout
    assert "Shouting" in listed.stdout
    execution_id = json.loads(planwave("ls", "--json").stdout)["executions"][0]["execution_id"]
    for name in ("last", execution_id, execution_id[:18]):
        shown = planwave("show", name)
        assert shown.exit_code == 0, shown.output
        assert execution_id in shown.stdout
    assert planwave("show", "last", "--node", "shout").stdout == "!\n"
    assert json.loads(planwave("show", "last", "--json").stdout)["status"] == "completed"
    assert planwave("ls", "--status", "failed").exit_code == 0


def test_before_anything_ran_ls_and_show_say_so_and_write_nothing() -> None:
    listed = planwave("ls")
    assert (listed.exit_code, listed.stderr) == (0, "")
    assert "Nothing has been planned or run in storage yet" in listed.stdout
    assert json.loads(planwave("ls", "--json").stdout) == {"executions": [], "plans": []}
    shown = planwave("show", "last")
    assert shown.exit_code == 2
    assert "nothing has run here yet" in shown.stderr
    assert not Path("storage").exists()


def test_storage_is_where_the_option_says() -> None:
    done = planwave("--storage", "elsewhere", "exec", written("g.json", TEXT_GRAPH))
    assert done.exit_code == 0
    assert list(Path("elsewhere").glob("*.json"))
    assert "completed" in planwave("ls", "--storage", "elsewhere").stdout


def test_a_faulty_graph_is_listed_whole_and_exits_3() -> None:
    file = written("bad.json", FAULTY_GRAPH)
    for command in ("check", "exec"):
        done = planwave(command, file)
        assert done.exit_code == 3
        assert "[unknown-node-type]" in done.stderr
        assert "[dangling-edge]" in done.stderr
        assert "/edges/0/target" in done.stderr
    shown = json.loads(planwave("check", file, "--json").stdout)
    assert shown["ok"] is False
    assert {each["code"] for each in shown["diagnostics"]} >= {"unknown-node-type", "dangling-edge"}
    assert json.loads(planwave("ls", "--json").stdout) == {"executions": [], "plans": []}


@pytest.mark.parametrize("source", ["", "nonsense", "[1]", '{"nodes": NaN}', "{" * 5000])
def test_what_is_no_plan_is_refused_with_a_sentence(source: str) -> None:
    Path("bad.json").write_text(source)
    for command in ("check", "exec"):
        done = planwave(command, "bad.json")
        assert done.exit_code == 3
        assert "Traceback" not in done.output
        assert "fault in planwave" not in done.output


def test_a_plan_no_model_can_repair_exits_3(llm: FakeLLMServer) -> None:
    llm.add(*[TextReply("I would rather not.")] * 3)
    done = planwave("run", "Compare")
    assert done.exit_code == 3
    assert "no valid plan after 3 attempt(s)" in done.stderr
    assert json.loads(planwave("ls", "--json").stdout) == {"executions": [], "plans": []}


def test_a_failed_step_exits_1_names_the_reason_and_keeps_the_rest(llm: FakeLLMServer) -> None:
    llm.add(
        TextReply(json.dumps(PLAN)), ErrorReply(400, "invalid_request_error", "this will not do")
    )
    done = planwave("run", "Compare", "--max-parallel", "1")
    assert done.exit_code == 1
    assert "this will not do" in done.stdout
    assert "✗ failed" in done.stdout
    statuses = {
        n["id"]: n["status"] for n in json.loads(planwave("show", "last", "--json").stdout)["nodes"]
    }
    assert statuses == {"left": "failed", "right": "completed", "join": "blocked"}


def test_failures_end_a_run_early_where_asked(llm: FakeLLMServer) -> None:
    aside = {"id": "aside", "name": "Aside", "description": "Independent of the left way."}
    plan = {**PLAN, "nodes": [*PLAN["nodes"], aside]}
    plan["edges"] = [*PLAN["edges"], {"source": "right", "target": "aside", "channel": "flow"}]
    for policy, status in (("stop", "cancelled"), ("continue", "completed")):
        llm.add(TextReply(json.dumps(plan)), ErrorReply(400, "invalid_request_error", "no"))
        args = ("--max-parallel", "1", "--scheduling", "waves", "--json", "--on-failure", policy)
        done = planwave("run", "Compare", *args)
        assert done.exit_code == 1
        nodes = {n["id"]: n["status"] for n in json.loads(done.stdout)["nodes"]}
        assert (nodes["left"], nodes["join"], nodes["aside"]) == ("failed", "blocked", status)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--provider", "anthropic"], "ANTHROPIC_API_KEY"),
        (["--provider", "nobody"], "nobody"),
        (["--provider", "local", "--model", "no-such-model"], "no-such-model"),
    ],
)
def test_a_provider_that_cannot_be_used_exits_4_and_says_how_to_enable_it(
    llm: FakeLLMServer, args: list[str], says: str
) -> None:
    done = planwave("run", "Compare", *args)
    assert done.exit_code == 4
    assert says in done.stderr
    assert "→" in done.stderr
    assert llm.requests == []


def test_a_plan_for_an_unavailable_provider_is_not_started() -> None:
    graph = {
        "nodes": [
            {"id": "a", "type": "agent", "data": {"provider": "anthropic", "userPrompt": "hi"}}
        ],
        "edges": [],
    }
    for command in ("exec", "check"):
        done = planwave(command, written("g.json", graph))
        assert done.exit_code == 4, done.output
        assert "ANTHROPIC_API_KEY" in done.stderr
    assert json.loads(planwave("ls", "--json").stdout)["executions"] == []


def test_a_refused_key_exits_4(llm: FakeLLMServer) -> None:
    llm.add(ErrorReply(401, "invalid_api_key", "bad key"))
    done = planwave("plan", "Compare")
    assert done.exit_code == 4
    assert "openai" in done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["run"],
        ["run", "  "],
        ["run", "x" * 40_000],
        ["run", "goal", "--scheduling", "sideways"],
        ["run", "goal", "--max-parallel", "0"],
        ["exec", "no-such-file.json"],
        ["check", "."],
        ["show", "0000"],
        ["frobnicate"],
        ["--no-such-option"],
    ],
)
def test_wrong_usage_exits_2_with_a_sentence(llm: FakeLLMServer, args: list[str]) -> None:
    done = planwave(*args)
    assert done.exit_code == 2, done.output
    assert done.stderr
    assert "Traceback" not in done.output
    assert llm.requests == []


def test_an_unusable_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("planwave.toml").write_text("storage_dir = [")
    done = planwave("ls")
    assert done.exit_code == 2
    assert "planwave.toml" in done.stderr


def test_an_error_with_json_is_an_object_too() -> None:
    done = planwave("show", "nope", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"]["code"] == "not-found"


def test_a_directory_in_use_is_said_so_but_can_be_read() -> None:
    import asyncio

    from planwave.storage.sqlite.store import SqliteStore

    store = SqliteStore.open(Path("storage"))
    try:
        done = planwave("exec", written("g.json", TEXT_GRAPH))
        assert done.exit_code == 1
        assert "locked" in done.stderr
        assert planwave("ls").exit_code == 0
    finally:
        asyncio.run(store.close())


def test_doctor_says_what_works_and_how_to_enable_the_rest(llm: FakeLLMServer) -> None:
    done = planwave("doctor")
    assert done.exit_code == 0, done.output
    assert "✓ openai" in done.stdout
    assert "ANTHROPIC_API_KEY" in done.stdout
    assert "sk-test" not in done.output
    found = json.loads(planwave("doctor", "--json").stdout)
    assert found["ok"] is True
    kept = {"directory": "storage", "ok": True, "state": "not made yet", "hint": None}
    assert found["storage"] == kept


def test_version_and_help_answer() -> None:
    assert planwave("--version").stdout.startswith("planwave ")
    for args in (
        [],
        ["run"],
        ["plan"],
        ["exec"],
        ["check"],
        ["ls"],
        ["show"],
        ["doctor"],
        ["model", "pull"],
    ):
        done = planwave(*args, "--help")
        assert done.exit_code == 0
        assert "Usage: planwave" in " ".join(done.stdout.split())


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


@pytest.mark.parametrize("args", [["ls"], ["show", "last"]])
def test_quick_commands_load_no_heavy_library(args: list[str]) -> None:
    assert planwave("exec", written("g.json", TEXT_GRAPH)).exit_code == 0
    assert heavy_libraries(*args, among=(*HEAVY, "httpx2", "markdown_it")) == "LOADED []"


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"]])
def test_help_loads_no_heavy_library(args: list[str]) -> None:
    own = (f"planwave.{name}" for name in ("nodes.library", "planner.planner", "service.library"))
    heavy = (*HEAVY, "sqlalchemy", "httpx2", *own)
    assert heavy_libraries(*args, among=heavy) == "LOADED []"
