"""A retry through the command line: the provider is asked for what is lacking, and for nothing more."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from planwave.bootstrap import open_service
from planwave.settings import Settings
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke_json
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    NoReply,
    ReplyStep,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)

ITEMS = ["one", "two", "three", "four", "five"]
BODY: dict[str, Any] = {
    "nodes": [
        {"id": "draft", "type": "llm", "data": {"prompt": "draft {{ item }}"}},
        {"id": "check", "type": "llm", "data": {"prompt": "check {{ item }}"}},
    ],
    "edges": [{"source": "draft", "target": "check", "data": {"channel": "flow"}}],
}
LOOP: dict[str, Any] = {
    "nodes": [
        {"id": "each", "type": "loop", "data": {"items": ITEMS, "parallel": 1, "body": BODY}}
    ],
    "edges": [],
}


def test_retry_of_loop_pays_only_for_the_failed_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("PLANWAVE_LIMIT_CALL_ATTEMPTS", "1")
    requested: list[str] = []

    def reply(body: dict[str, Any]) -> str | ReplyStep:
        requested.append(prompt_of(body))
        if requested[-1] == "check five" and len(requested) == 2 * len(ITEMS):
            return ErrorReply(400, "invalid_request_error")
        return f"{requested[-1]}: done"

    with fake_llm_in_thread(reply_to=reply) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        first = invoke_json("exec", "-", stdin=json.dumps(LOOP), code=1)
        assert (first["status"], len(requested)) == ("failed", 2 * len(ITEMS))
        again = invoke_json("retry", "last")
        assert requested[2 * len(ITEMS) :] == ["check five"]
    assert again["status"] == "completed"
    shown = invoke_json("show", "last")
    assert shown["parent"]["execution_id"] == first["execution_id"]
    (loop,) = [node for node in shown["nodes"] if node["path"] == "each"]
    assert loop["outputs"]["output"]["value"] == [f"check {item}: done" for item in ITEMS]
    assert shown["usage"]["calls"] == 1


PLAN = {
    "title": "One step",
    "nodes": [{"id": "left", "name": "Left way", "description": "Describe the left way."}],
    "edges": [],
}
PLANS = {"nodes": [{"id": "p", "type": "planner", "data": {"goal": "Go left"}}], "edges": []}


async def test_retry_of_cancelled_planner_reuses_its_first_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    requested: list[str] = []
    mends = asyncio.Event()

    def reply(body: dict[str, Any]) -> str | ReplyStep:
        if schema_of(body) is None:
            return "the left way"
        requested.append(prompt_of(body))
        if len(requested) == 1:
            return json.dumps({**PLAN, "edges": [{"source": "left", "target": "nowhere"}]})
        if len(requested) == 2:
            mends.set()
            return NoReply()
        return json.dumps(PLAN)

    async with FakeLLMServer(reply_to=reply) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        async with open_service(Settings(storage_dir=tmp_path / "storage")) as service:
            plan = await service.plans.read(json.dumps(PLANS))
            first = (await service.executions.execute(plan)).execution_id
            await mends.wait()
            await service.executions.cancel(first)
            again = (await service.executions.retry(first)).execution_id
            assert (await service.executions.wait(again)).status == "completed"
            assert len(requested) == 3, "the plan that was to be mended was not asked for again"
            assert requested[2] == requested[1]
            used = [(await service.executions.state(each)).usage.calls for each in (first, again)]
            assert used == [1, 2], "what was paid for counts where it was paid"
