"""A run that repairs itself: a step fails, a model changes the plan, and the run goes on with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

CHANGE = {
    "answer": "Asks another source.",
    "operations": [
        {"op": "remove_node", "id": "old"},
        {"op": "add_node", "node": {"id": "new", "name": "New", "type": "agent", "description": "Ask the new source"}},
        {"op": "add_edge", "edge": {"source": "new", "target": "end", "channel": "flow"}},
    ],
}  # fmt: skip
NOTHING = {"answer": "No other source is known.", "operations": []}
REVISION = "There is a plan already."


class Replies:
    """Plans, fails the step that asks the old source, and changes the plan as it is told."""

    change: Any = CHANGE

    def __call__(self, body: dict[str, Any]) -> Any:
        prompt = prompt_of(body)
        if REVISION in prompt:
            return json.dumps(self.change)
        if schema_of(body) is not None:
            nodes = [
                reply_node("old", description="Ask the old source"),
                reply_node("end", description="Write the report"),
            ]
            return planner_reply(*nodes, edges=[reply_edge("old", "end")])
        return ErrorReply(400) if "old source" in prompt else "Done."


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def llm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replies: Replies
) -> Iterator[FakeLLMServer]:
    isolated_directory(tmp_path, monkeypatch)
    with fake_llm_in_thread(reply_to=replies) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def test_a_run_goes_on_with_what_a_model_puts_in_place_of_a_failed_step(llm: FakeLLMServer) -> None:
    document = invoke_json("run", "Write a report", "--replan", "2")
    assert document["status"] == "completed"
    assert [each["note"] for each in document["changes"]] == ["Asks another source."]
    assert {each["path"]: each["status"] for each in document["nodes"]} == {
        "end": "completed",
        "new": "completed",
    }
    asked = [prompt_of(each.body) for each in llm.requests if REVISION in prompt_of(each.body)]
    assert len(asked) == 1
    assert "- old: " in asked[0]
    logs = invoke("logs", "last").stdout
    assert "a change of the plan is being written as old failed" in logs
    assert "plan changed: new or changed new" in logs


def test_a_run_that_no_change_can_help_ends_as_without_the_option(
    llm: FakeLLMServer, replies: Replies
) -> None:
    replies.change = NOTHING
    document = invoke_json("run", "Write a report", "--replan", "2", code=1)
    assert document["status"] == "failed"
    assert document["failures"] == ["old"]
    (refused,) = document["refused_changes"]
    assert refused["error"] == {"code": "nothing-changed", "message": "No other source is known."}
    assert "plan not changed: No other source is known." in invoke("logs", "last").stdout
    assert invoke("run", "Write a report", "--replan", "0").exit_code == 2
