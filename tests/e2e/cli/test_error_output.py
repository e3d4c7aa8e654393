"""What can go wrong on the way from a goal to a result: a code, a sentence, the way out, an exit code.

Everything is asked through the command line with ``--json``, as a program would.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory
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
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_LIMIT_CALL_ATTEMPTS", "1")


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


def test_unknown_provider_lists_providers(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by("run", "Compare", "--provider", "nobody")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-provider")
    assert error["message"].startswith(
        "unknown provider 'nobody'; available: openai; not available"
    )
    assert "anthropic (ANTHROPIC_API_KEY is not set)" in error["message"]
    assert error["hint"] == (
        "name one of these, or add [providers.NAME] with a base_url to planwave.toml "
        "(planwave doctor)"
    )
    assert llm.requests == []


def test_unavailable_provider_names_alternatives(
    llm: FakeLLMServer,
) -> None:
    exit_code, shown = printed_by("run", "Compare", "--provider", "anthropic")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unavailable-provider")
    assert error["message"] == "provider 'anthropic' is not available: ANTHROPIC_API_KEY is not set"
    assert error["hint"] == (
        "set ANTHROPIC_API_KEY in the environment, or use openai, which is available"
    )
    assert llm.requests == []


def test_unknown_model_lists_models(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by(
        "run", "Compare", "--provider", "openai", "--model", "no such model"
    )
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-model")
    assert "provider 'openai' has no model 'no such model'; it offers: gpt-" in error["message"]
    assert error["hint"] == "leave the model out to use the provider's default"
    assert llm.requests == []


def test_unknown_embedded_model_lists_models(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by(
        "run", "Compare", "--provider", "local", "--model", "no-such-model"
    )
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-model")
    assert error["message"] == "no embedded model is called 'no-such-model'"
    assert "qwen2.5-coder-1.5b" in error["hint"]


def test_model_unknown_to_the_provider_is_an_unknown_model(
    llm: FakeLLMServer,
) -> None:
    llm.add(ErrorReply(404, "model_not_found", "The model gpt-9 does not exist"))
    exit_code, shown = printed_by("run", "Compare", "--model", "gpt-9")
    error = shown["error"]
    assert (exit_code, error["code"]) == (4, "unknown-model")
    assert "openai (gpt-9) does not know this model" in error["message"]
    assert "check the model's name" in error["hint"]


@pytest.mark.parametrize("goal", ["", "  \n "])
def test_empty_goal_is_rejected(llm: FakeLLMServer, goal: str) -> None:
    exit_code, shown = printed_by("run", goal)
    error = shown["error"]
    assert (exit_code, error["code"]) == (2, "empty-goal")
    assert error["message"] == "the goal is empty"
    assert "say what you want" in error["hint"]
    assert llm.requests == []


def test_overlong_goal_names_the_limit(llm: FakeLLMServer) -> None:
    exit_code, shown = printed_by("run", "x" * 40_000)
    error = shown["error"]
    assert (exit_code, error["code"]) == (2, "limit-exceeded")
    assert error["message"] == "limit goal_chars for the goal is 32000, met 40000"
    assert error["hint"] == (
        "shorten the input or raise the limit goal_chars (PLANWAVE_LIMIT_GOAL_CHARS)"
    )
    assert llm.requests == []


def test_unrepairable_plan_lists_diagnostics(
    llm: FakeLLMServer,
) -> None:
    llm.add(*[TextReply("I would rather not.")] * 3)
    exit_code, shown = printed_by("run", "Compare")
    error = shown["error"]
    assert (exit_code, error["code"]) == (3, "plan-invalid")
    assert error["message"] == (
        "no valid plan after 3 attempts; the last one: the model refused to plan: "
        "'I would rather not.'"
    )
    assert error["hint"].startswith("rephrase the goal, or choose a stronger model")
    assert [found["code"] for found in shown["diagnostics"]] == ["refusal"]
    assert len(llm.requests) == 3


def test_failed_node_is_named_and_the_document_stored(
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
    assert (node["status"], node["error_detail"]["code"]) == ("failed", "bad-request")
    assert Path(shown["document_path"]).is_file()


@pytest.mark.parametrize(
    ("step", "code", "says"),
    [
        (ErrorReply(503), "provider-overloaded", "is overloaded (HTTP 503)"),
        (DroppedConnection(), "provider-unreachable", "cannot be reached"),
        (ErrorReply(401, "invalid_api_key", "bad key"), "provider-auth", "refused the credentials"),
    ],
)
def test_provider_failure_while_planning_has_code_and_hint(
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
