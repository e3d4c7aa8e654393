"""What the log of a run says of a server's tools: which are changed for the model, left out, or cut."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from planwave.config.files import read_settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.llm.fake_llm_server import (
    FakeLLMServer,
    ToolCallReply,
    fake_llm_in_thread,
    tool_results_of,
    tools_of,
)
from tests.support.mcp.servers import AGENT_WITH_SERVER, HOSTILE
from tests.support.server.running_server import running_server


@pytest.fixture
def llm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    """A model that calls the tool ``act`` once, then repeats what it was told."""
    isolated_directory(tmp_path, monkeypatch)
    Path("graph.json").write_text(json.dumps(AGENT_WITH_SERVER))

    def reply(body: dict[str, Any]) -> Any:
        return next(iter(tool_results_of(body).values()), ToolCallReply([("box_act", {})]))

    with fake_llm_in_thread(reply_to=reply) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        yield llm


def serve_tools(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    table = {"command": sys.executable, "args": [HOSTILE, mode, "marks"]}
    monkeypatch.setenv("PLANWAVE_MCP", json.dumps({"box": table}))
    assert read_settings().settings.mcp["box"].cwd is None


def logged() -> list[str]:
    """Give the texts of the last execution's log, as a service shows it."""
    execution_id = invoke_json("show", "last")["execution_id"]
    storage = Path("storage")
    with running_server(directory=storage, store=SqliteStore.open(storage)) as running:
        url = f"{running.base_url}/api/executions/{execution_id}/events?format=log"
        with urlopen(url) as answer:  # noqa: S310 - our own service
            return [each["content"] for each in json.load(answer)["entries"]]


def test_tools_that_are_changed_or_left_out_are_named(
    llm: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_tools(monkeypatch, "choices")
    assert invoke("exec", "graph.json").exit_code == 0
    assert tools_of(llm.requests[0].body) == {
        "box_act": {"type": "object", "properties": {}},
        "box_either": {"type": "object", "properties": {"a": {}, "b": {}}},
    }
    said = (
        "the tool 'box_either' is offered without 'oneOf' at the top, whose properties it has all, "
        "which the provider does not take",
        "the tool 'box_text' is left out: its arguments are no object",
    )
    texts, watched = logged(), " ".join(invoke("watch", "last").output.split())
    for each in said:
        assert texts.count(each) == 1, texts
        assert watched.count(each) == 1, watched


def test_result_over_the_limit_is_cut_with_a_marker_for_the_model(
    llm: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_tools(monkeypatch, "large")
    monkeypatch.setenv("PLANWAVE_LIMIT_MCP_RESULT_BYTES", "1000")
    done = invoke_json("exec", "graph.json")
    call = done["nodes"][1]["calls"][1]
    (told,) = tool_results_of(llm.requests[-1].body).values()
    marker = "[cut: the result has 5242882 bytes, and may have 1000 (limit mcp_result_bytes)]"
    for text in (told, done["nodes"][1]["result"], json.dumps(call)):
        assert text.count(marker) == 1, text[-200:]
        assert text.count("x") < 1000
    assert len(json.dumps(told)) == 1000
