"""What a goal leaves open, on the command line: assumed, answered by options, or asked on a terminal."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.cli.terminal import typed
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)
from tests.support.llm.planner_replies import planner_reply, reply_node

QUESTIONS = [
    {"question": "Which market?", "assumed": "Germany", "options": ["Germany", "Austria"]},
    {"question": "Who's the reader, if x = 3?", "assumed": "the board"},
]


def answer(body: dict[str, Any]) -> str:
    """Plan with questions, those too that were answered, else do the step."""
    if schema_of(body) is None:
        return "Done."
    return json.dumps({"questions": QUESTIONS, **json.loads(planner_reply(reply_node("a")))})


@pytest.fixture
def llm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    isolated_directory(tmp_path, monkeypatch)
    with fake_llm_in_thread(reply_to=answer) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def test_what_is_assumed_stands_above_the_plan_and_its_option_changes_it(
    llm: FakeLLMServer,
) -> None:
    done = invoke("plan", "Plan the launch", "--questions", stdin="")
    assert done.exit_code == 0, done.output
    assert done.stdout.index("Assumed   Which market? Germany") < done.stdout.index("Wave 1")
    assert len(llm.requests) == 1  # without a terminal nobody is asked, and nothing is paid twice
    (line,) = (each for each in done.stdout.splitlines() if "--answer" in each and "Who" in each)
    option, value = shlex.split(line.partition(": ")[2])
    done = invoke("plan", "Plan the launch", option, value.replace("ANSWER", "my children"))
    assert done.exit_code == 0, done.output
    assert "Answered  Who's the reader, if x = 3? my children" in done.stdout
    assert "Assumed   Which market? Germany" in done.stdout
    assert "- Who's the reader, if x = 3? my children" in prompt_of(llm.requests[-1].body)
    plan_id = done.stdout.split()[-1]
    assert "Answered  Who's the reader, if x = 3? my children" in invoke("show", plan_id).stdout
    questions = invoke_json("show", plan_id)["questions"]
    assert [each["assumed"] for each in questions] == [False, True]


def test_answers_that_cannot_be_used_are_refused_before_a_model_is_called(
    llm: FakeLLMServer,
) -> None:
    for bad in ("Germany", "Which market?=", "=Germany"):
        assert invoke("run", "Plan the launch", "--answer", bad).exit_code == 2
    assert llm.requests == []


@pytest.mark.parametrize("way", ["option", "setting"])
def test_a_person_is_asked_on_the_terminal_where_they_want_it(
    way: str, llm: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "setting":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        own = tmp_path / "config" / "planwave" / "planwave.toml"
        own.parent.mkdir(parents=True)
        own.write_text("ask_questions = true\n", "utf-8")
        own.chmod(0o600)
    flags = ["--questions"] if way == "option" else []
    script = [("Answer [Germany]: ", "2\n"), ("Answer [the board]: ", "\n")]
    code, seen = typed(["run", "Plan the launch", *flags], script)
    assert code == 0, seen
    seen = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", seen)
    assert "Answered  Which market? Austria" in seen
    assert "Answered  Who's the reader, if x = 3? the board" in seen
    assert "- Which market? Austria\n- Who's the reader, if x = 3? the board" in prompt_of(
        llm.requests[1].body
    )
    assert len(llm.requests) == 3  # two plans and the step
    assert invoke_json("ls")["plans"] == []  # nobody has seen the first one, so it is gone


def test_the_assumed_answers_are_taken_by_enter_and_without_a_wish_to_be_asked(
    llm: FakeLLMServer,
) -> None:
    script = [("Answer [Germany]: ", "\n"), ("Answer [the board]: ", "\n")]
    code, seen = typed(["plan", "Plan the launch", "--questions"], script)
    assert (code, len(llm.requests)) == (0, 1), seen
    code, seen = typed(["plan", "Plan the launch"], [])
    assert (code, len(llm.requests), "Answer [" in seen) == (0, 2, False), seen
