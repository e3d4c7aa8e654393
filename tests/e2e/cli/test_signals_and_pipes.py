"""The ``planwave`` command as a process: signals, closed and full outputs, and no trace of Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import (
    isolated_directory,
    read_until,
    run_command,
    start_command,
    start_console_script,
)
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    NoReply,
    ReplyStep,
    TextReply,
    fake_llm_in_thread,
    schema_of,
)
from tests.support.processes.forked_process import run_forked

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


def answer(body: dict[str, Any]) -> str | ReplyStep:
    return json.dumps(PLAN) if schema_of(body) is not None else "done"


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    with fake_llm_in_thread(reply_to=answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def kept() -> dict[str, Any]:
    return json.loads(run_command("ls", "--json").stdout)


def written(name: str, document: Any) -> str:
    Path(name).write_text(json.dumps(document), "utf-8")
    return name


@pytest.mark.slow
def test_ctrl_c_while_running_stops_durably_and_says_how_to_go_on(
    llm: FakeLLMServer,
) -> None:
    llm.add(TextReply(json.dumps(PLAN)), TextReply("done"), NoReply())
    with start_console_script("run", "Compare", "--max-parallel", "1") as process:
        read_until(process.stdout, "started    right")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    (file,) = Path("storage").glob("*.json")
    document = json.loads(file.read_text("utf-8"))
    assert document["status"] == "cancelled"
    assert [n["status"] for n in document["nodes"]] == ["completed", "cancelled", "cancelled"]
    assert document["node_results"] == {"left": "done"}
    assert f"planwave show {document['execution_id']}" in err
    assert f"planwave retry {document['execution_id']}" in err
    assert "cancelled · 1 of 3 steps completed" in out
    assert "Traceback" not in err
    assert "cancelled" in run_command("show", document["execution_id"]).stdout


@pytest.mark.slow
def test_a_termination_signal_stops_as_durably_as_ctrl_c(llm: FakeLLMServer) -> None:
    llm.add(TextReply(json.dumps(PLAN)), NoReply(), NoReply())
    with start_command("run", "Compare", "--json") as process:
        read_until(process.stderr, "started    right")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 143
    assert json.loads(out)["status"] == "cancelled"


def test_ctrl_c_while_planning_leaves_nothing_behind(llm: FakeLLMServer) -> None:
    llm.add(NoReply())
    with start_command("run", "Compare") as process:
        read_until(process.stdout, "planning with")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "stopped while planning" in err
    assert "Traceback" not in err
    assert kept() == {"executions": [], "plans": []}


def test_ctrl_c_while_a_change_is_written_says_when_it_is_written_then(llm: FakeLLMServer) -> None:
    ask = {"id": "ask", "type": "approval", "data": {"prompt": "Go on?"}}
    run_command("exec", written("g.json", {"nodes": [ask], "edges": []}))
    (execution_id,) = [each["execution_id"] for each in kept()["executions"]]
    llm.add(NoReply())
    with start_command("replan", "last", "add a note") as process:
        read_until(process.stdout, "A model writes the change")
        asked_by = time.monotonic() + 60
        while not llm.requests:  # else the next process would wait for the reply that never comes
            assert time.monotonic() < asked_by
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    told = " ".join(err.split())
    assert f"the change of {execution_id} is written once it goes on" in told
    assert f"planwave resume {execution_id}" in told
    note = {"id": "note", "name": "Note", "type": "text", "data": {"text": "Noted"}}
    added = {"answer": "Adds it.", "operations": [{"op": "add_node", "node": note}]}
    llm.add(*[TextReply(json.dumps(added))] * 2)
    resumed = run_command("resume", execution_id)
    assert resumed.returncode == 0, resumed.stderr
    shown = json.loads(run_command("show", execution_id, "--json").stdout)
    assert [each["note"] for each in shown["changes"]] == ["Adds it."]
    assert (shown["status"], shown["node_results"]["note"]) == ("paused", "Noted")


STUBBORN = """
import asyncio
from planwave.nodes.registry import default_registry

class Stubborn:
    node_type = "stubborn"
    async def execute(self, data, inputs, context):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                print("will not stop", flush=True)

default_registry().register(Stubborn())
from planwave.main import main
main()
"""


def test_a_second_ctrl_c_leaves_at_once() -> None:
    graph = {"nodes": [{"id": "s", "type": "stubborn"}], "edges": []}
    with start_command("exec", written("g.json", graph), program=STUBBORN) as process:
        read_until(process.stdout, "started    s")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout, "will not stop")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_run_quietly_and_durably(llm: FakeLLMServer) -> None:
    with start_command("run", "Compare") as process:
        read_until(process.stdout, "planning with")
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert run_command("ls").returncode == 0


@pytest.mark.parametrize("args", [["ls"], ["show", "last"], ["show", "last", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_news(args: list[str]) -> None:
    assert run_command("exec", written("g.json", TEXT_GRAPH)).returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    done = run_command(*args, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
@pytest.mark.parametrize("args", [["ls"], ["ls", "--json"]])
def test_a_reader_that_goes_away_is_no_news_to_the_console_script(args: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with start_console_script(*args, stdout=writer) as process:
        os.close(writer)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (1, "")


def test_errors_nobody_reads_end_a_command_as_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_command("check", "missing.json", stderr=writer)
    os.close(writer)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("args", [["ls"], ["ls", "--json"], ["--help"], ["exec", "g.json"]])
def test_an_output_that_is_full_is_one_sentence(args: list[str]) -> None:
    written("g.json", TEXT_GRAPH)
    with open("/dev/full", "w") as full:
        done = run_command(*args, stdout=full.fileno())
    assert done.returncode == 1
    check_says_full(done.stderr)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_that_is_full_is_one_sentence_of_the_console_script() -> None:
    with open("/dev/full", "w") as full, start_console_script("ls", stdout=full) as process:
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    check_says_full(errors)


def check_says_full(errors: str) -> None:
    assert errors.startswith("✗ the system refused: No space left on device\n  → check where")
    assert len(errors.splitlines()) == 2


CLOSED = """
import os, sys
for number in map(int, sys.argv.pop(1).split(",")):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-c", "from planwave.main import main; main()", *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "args", "code", "says"),
    [
        ("0", ["check", "-"], 2, "stdin is closed"),
        ("0", ["run", "-"], 2, "stdin is closed"),
        ("1", ["ls", "--json"], 0, ""),
        ("1,2", ["exec", "g.json", "--json"], 0, ""),
    ],
)
def test_a_stream_that_was_closed_is_no_fault(
    closed: str, args: list[str], code: int, says: str
) -> None:
    written("g.json", TEXT_GRAPH)
    command = [sys.executable, "-c", CLOSED, closed, *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "fault in planwave" not in done.stderr


def test_a_working_directory_that_is_gone_is_no_fault(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os; os.rmdir(os.getcwd()); from planwave.main import main; main()"
    done = run_forked("-c", script, "doctor", cwd=gone)
    assert "cannot be looked at" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("hangup")
def test_a_closed_terminal_stops_durably_unless_that_was_to_be_ignored(llm: FakeLLMServer) -> None:
    llm.add(TextReply(json.dumps(PLAN)), NoReply(), NoReply())
    with start_command("run", "Compare") as process:
        read_until(process.stdout, "started    right")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=120)
    assert process.returncode == 129
    document = json.loads(run_command("show", "last", "--json").stdout)
    assert document["status"] == "cancelled"
    assert document["nodes"][0]["cause"] == "stopped because the terminal was closed"


@pytest.mark.slow
def test_ctrl_c_with_json_is_an_object_too(llm: FakeLLMServer) -> None:
    llm.add(NoReply())
    with start_command("run", "Compare", "--json") as process:
        read_until(process.stderr, "planning with")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert json.loads(out)["error"]["code"] == "interrupted"


def test_a_person_who_waits_for_the_stop_is_told_how_to_leave_at_once() -> None:
    graph = {"nodes": [{"id": "s", "type": "stubborn"}], "edges": []}
    with start_command("exec", written("g.json", graph), program=STUBBORN) as process:
        read_until(process.stdout, "started    s")
        process.send_signal(signal.SIGINT)
        read_until(process.stdout, "stopping; press Ctrl-C again to exit at once")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
