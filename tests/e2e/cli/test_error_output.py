"""What can go wrong on the way from a goal to a result: a code, a sentence, the way out, an exit code.

Everything is asked through the command line with ``--json``, as a program would.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.llm.fake_llm_server import (
    DroppedConnection,
    ErrorReply,
    FakeLLMServer,
    ReplyStep,
    TextReply,
    fake_llm_in_thread,
    schema_of,
)

PLAN: dict[str, Any] = {
    "title": "One step",
    "nodes": [{"id": "left", "name": "Left way", "description": "Describe the left way."}],
    "edges": [],
}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty directory, with no provider but what a test configures."""
    for name in list(os.environ):
        if name.startswith(("PLANWAVE_", "OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLANWAVE_MODEL_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("PLANWAVE_LIMIT_CALL_ATTEMPTS", "1")
    monkeypatch.setenv("NO_COLOR", "1")


def answer(body: dict[str, Any]) -> str | ReplyStep:
    return json.dumps(PLAN) if schema_of(body) is not None else "About the left."


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    with fake_llm_in_thread(reply_to=answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def printed_by(*args: str) -> tuple[int, dict[str, Any]]:
    """Run a command; give its exit code and the one object it prints."""
    done = CliRunner().invoke(app, [*args, "--json"], obj=cli_factories())
    assert "Traceback" not in done.output
    return done.exit_code, json.loads(done.stdout)


def test_an_unknown_provider_is_told_apart_and_what_there_is_is_listed(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by("run", "Compare", "--provider", "nobody")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-provider")
    assert error["message"].startswith(
        "unknown provider 'nobody'; available: openai; not available"
    )
    assert "anthropic (ANTHROPIC_API_KEY is not set)" in error["message"]
    assert "set ANTHROPIC_API_KEY in the environment" in error["hint"]
    assert "[providers.NAME]" in error["hint"]
    assert llm.requests == []


def test_an_unavailable_provider_says_how_to_enable_it_and_what_works_instead(
    llm: FakeLLMServer,
) -> None:
    exit_code, shown = printed_by("run", "Compare", "--provider", "anthropic")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unavailable-provider")
    assert error["message"] == "provider 'anthropic' is not available: ANTHROPIC_API_KEY is not set"
    assert error["hint"].startswith("set ANTHROPIC_API_KEY in the environment")
    assert "or use openai, which is available" in error["hint"]
    assert llm.requests == []


def test_an_unknown_model_is_answered_with_those_there_are(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by(
        "run", "Compare", "--provider", "openai", "--model", "no such model"
    )
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-model")
    assert "provider 'openai' has no model 'no such model'; it offers: gpt-" in error["message"]
    assert error["hint"] == "leave the model out to use the provider's default"
    assert llm.requests == []


def test_an_unknown_embedded_model_is_answered_with_those_there_are(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by(
        "run", "Compare", "--provider", "local", "--model", "no-such-model"
    )
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-model")
    assert error["message"] == "no embedded model is called 'no-such-model'"
    assert "qwen2.5-coder-1.5b" in error["hint"]


def test_a_model_the_provider_itself_does_not_know_is_an_unknown_model_too(
    llm: FakeLLMServer,
) -> None:
    llm.add(ErrorReply(404, "model_not_found", "The model gpt-9 does not exist"))
    exit_code, shown = printed_by("run", "Compare", "--model", "gpt-9")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-model")
    assert "openai (gpt-9) does not know this model" in error["message"]
    assert "check the model's name" in error["hint"]


@pytest.mark.parametrize("goal", ["", "  \n "])
def test_an_empty_goal_asks_for_one(llm: FakeLLMServer, goal: str) -> None:
    exit_code, shown = printed_by("run", goal)
    error = shown["error"]
    assert (exit_code, error["code"]) == (2, "empty-goal")
    assert error["message"] == "the goal is empty"
    assert "say what you want" in error["hint"]
    assert llm.requests == []


def test_an_overlong_goal_names_the_limit_and_how_to_raise_it(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by("run", "x" * 40_000)
    error = shown["error"]
    assert (exit_code, error["code"]) == (2, "limit-exceeded")
    assert error["message"] == "limit goal_chars for the goal is 32000, met 40000"
    assert error["hint"] == "shorten the input or raise PLANWAVE_LIMIT_GOAL_CHARS"
    assert llm.requests == []


def test_a_plan_that_cannot_be_repaired_brings_its_faults_and_another_way(
    llm: FakeLLMServer,
) -> None:
    llm.add(*[TextReply("I would rather not.")] * 3)
    exit_code, shown = printed_by("run", "Compare")
    error = shown["error"]
    assert (exit_code, error["code"]) == (3, "plan-invalid")
    assert error["message"].startswith("no valid plan after 3 attempt(s); the last one: ")
    assert "I would rather not." in error["message"]
    assert error["hint"].startswith("rephrase the goal, or choose a stronger model")
    assert [found["code"] for found in shown["diagnostics"]] == ["invalid-json"]
    assert len(llm.requests) == 3


def test_a_failed_node_is_named_with_its_reason_and_the_document_is_kept(
    llm: FakeLLMServer,
) -> None:
    llm.add(
        TextReply(json.dumps(PLAN)), ErrorReply(400, "invalid_request_error", "this will not do")
    )
    exit_code, shown = printed_by("run", "Compare")
    error = shown["error"]
    assert (exit_code, shown["status"], error["code"]) == (1, "failed", "bad-request")
    assert error["message"].startswith("node 'left' failed: openai (")
    assert error["message"].endswith("refused the request (HTTP 400): this will not do")
    assert error["hint"] == "change what the message names, or choose another model"
    (node,) = shown["nodes"]
    assert (node["status"], node["error"]["code"]) == ("failed", "bad-request")
    assert Path(shown["document_path"]).is_file()


@pytest.mark.parametrize(
    ("step", "code", "says"),
    [
        (ErrorReply(503), "provider-overloaded", "is overloaded (HTTP 503)"),
        (DroppedConnection(), "provider-unreachable", "cannot be reached"),
        (ErrorReply(401, "invalid_api_key", "bad key"), "provider-auth", "refused the credentials"),
    ],
)
def test_a_provider_that_fails_while_planning_has_a_code_and_a_way_out(
    llm: FakeLLMServer, step: ReplyStep, code: str, says: str
) -> None:
    llm.add(step)
    exit_code, shown = printed_by("run", "Compare")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, code)
    assert error["message"].startswith("openai (")
    assert says in error["message"]
    assert error["hint"]
    assert "sk-test" not in json.dumps(shown)


def test_a_provider_nobody_answers_for_is_unreachable(
    llm: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:  # bound, never listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        exit_code, shown = printed_by("run", "Compare")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "provider-unreachable")
    assert "check the network and the endpoint's address" in error["hint"]
    assert llm.requests == []


def test_a_provider_that_goes_down_while_running_fails_the_node_with_its_code(
    llm: FakeLLMServer,
) -> None:
    llm.add(TextReply(json.dumps(PLAN)), ErrorReply(529, "overloaded_error", "x"))
    exit_code, shown = printed_by("run", "Compare")
    error = shown["error"]
    assert (exit_code, shown["status"], error["code"]) == (1, "failed", "provider-overloaded")
    assert error["message"].startswith("node 'left' failed: openai (")
    assert "choose another provider" in error["hint"]


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        ('{"ghost": {"output": 1}}', "unknown-input-node", "ghost"),
        ('{"begin": {"outptu": 1}}', "invalid-inputs", "its outputs are: output"),
    ],
)
def test_inputs_no_node_can_be_given_are_refused_before_anything_runs(
    given: str, code: str, says: str
) -> None:
    graph = {"nodes": [{"id": "begin", "type": "start"}], "edges": []}
    Path("g.json").write_text(json.dumps(graph), "utf-8")
    exit_code, shown = printed_by("exec", "g.json", "--input", given)
    assert (exit_code, shown["error"]["code"]) == (2, code)
    assert says in shown["error"]["message"]


def test_flat_inputs_go_to_the_one_entry_node() -> None:
    graph = {"nodes": [{"id": "begin", "type": "start"}], "edges": []}
    Path("g.json").write_text(json.dumps(graph), "utf-8")
    exit_code, shown = printed_by("exec", "g.json", "--input", '{"output": "hi"}')
    assert exit_code == 0
    assert shown["node_results"] == {"begin": "hi"}
