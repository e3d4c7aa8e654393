"""A person changes a run in words, through HTTP, while a step of it waits for the reply of its model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.settings import Settings
from tests.support.llm.fake_llm_server import FakeLLMServer, prompt_of, schema_of
from tests.support.llm.planner_replies import reply_step, step_reply
from tests.support.server.in_process_client import NO_RATE_LIMITS, asgi_client

PLAN = step_reply(
    reply_step("look", description="Look around"),
    reply_step("end", "look", description="Write the report"),
)
COSTS = {**reply_step("costs", "look", description="Add up the costs"), "type": "agent"}
CHANGE = {
    "answer": "Adds up the costs.",
    "operations": [
        {"op": "add_node", "node": COSTS},
        {"op": "add_edge", "edge": {"source": "costs", "target": "end", "channel": "flow"}},
    ],
}
WORDS = "also cover the running costs"


@dataclass
class Replies:
    """Plans and runs steps; holds back what the first step gives, and the change, until it may come."""

    look: asyncio.Event = field(default_factory=asyncio.Event)
    change: asyncio.Event = field(default_factory=asyncio.Event)
    changed: list[str] = field(default_factory=list)

    async def __call__(self, body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        if "There is a plan already." in prompt:
            self.changed.append(prompt)
            await self.change.wait()
            return json.dumps(CHANGE)
        if schema_of(body) is not None:
            return PLAN
        if "Look around" in prompt:
            await self.look.wait()
        return "Done."


@dataclass
class Run:
    """A run whose first step has begun."""

    client: httpx2.AsyncClient
    replies: Replies
    path: str

    async def document(self) -> dict[str, Any]:
        return (await self.client.get(f"{self.path}/document")).json()

    async def until_step(self, node_id: str, status: str) -> None:
        """Wait until a step has a status."""
        async with asyncio.timeout(60):
            while True:
                nodes = (await self.document()).get("nodes", ())
                if (node_id, status) in [(each["path"], each["status"]) for each in nodes]:
                    return
                await asyncio.sleep(0.01)

    async def events(self) -> list[dict[str, Any]]:
        """Return all events of the run, once it has ended."""
        async with asyncio.timeout(60):
            stream = await self.client.get(f"{self.path}/events")
        lines = stream.text.splitlines()
        return [json.loads(each[6:]) for each in lines if each.startswith("data: ")]


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    replies = Replies()
    async with FakeLLMServer(reply_to=replies) as llm:
        settings = Settings(
            storage_dir=tmp_path / "storage",
            openai_api_key="sk-test",
            openai_base_url=llm.openai_url,
            limits=NO_RATE_LIMITS,
        )
        async with asgi_client(create_app(settings, open_service)) as client:
            made = await client.post("/api/run", json={"prompt": "Write a report"})
            assert made.status_code == 202, made.text
            run = Run(client, replies, f"/api/executions/{made.json()['execution_id']}")
            await run.until_step("look", "running")
            yield run


async def test_words_change_a_run_which_starts_nothing_until_the_change_is_made(run: Run) -> None:
    accepted = await run.client.post(f"{run.path}/replan", json={"request": WORDS})
    assert (accepted.status_code, accepted.json()["change"]) == (202, 1)
    run.replies.look.set()
    await run.until_step("look", "completed")
    document = await run.document()
    assert document["plan_request"]["request"] == WORDS
    assert {each["path"]: each["status"] for each in document["nodes"]} == {
        "look": "completed",
        "end": "pending",
    }
    run.replies.change.set()

    events = await run.events()
    told = [(each["type"], each.get("path")) for each in events]
    asked, looked = told.index(("plan.requested", None)), told.index(("node.completed", "look"))
    revised = told.index(("plan.revised", None))
    starts = [index for index, (kind, _) in enumerate(told) if kind == "node.started"]
    assert asked < looked < revised
    assert [told[index][1] for index in starts if index > asked] == ["costs", "end"]
    assert not [index for index in starts if asked < index < revised]
    assert events[revised]["data"]["by"] == "person"
    assert events[revised]["data"]["note"] == "Adds up the costs."
    assert told[-1][0] == "execution.completed"
    assert (await run.document())["node_results"] == dict.fromkeys(
        ("look", "costs", "end"), "Done."
    )
    (prompt,) = run.replies.changed
    assert WORDS in prompt


async def test_a_proposal_changes_nothing_and_the_run_ends_as_it_would_have(run: Run) -> None:
    run.replies.change.set()
    before = await run.document()
    asked = {"request": WORDS, "dry_run": True}
    answer = await run.client.post(f"{run.path}/replan", json=asked)
    assert answer.status_code == 200, answer.text
    proposal = answer.json()
    assert proposal["base"] == before["plan_hash"]
    assert {each["id"] for each in proposal["graph"]["nodes"]} == {"look", "costs", "end"}
    assert (proposal["answer"], proposal["additions"]) == ("Adds up the costs.", [])
    after = await run.document()
    assert (after["plan_hash"], after["graph"]) == (before["plan_hash"], before["graph"])

    run.replies.look.set()
    events = await run.events()
    assert not [each["type"] for each in events if each["type"].startswith("plan.re")]
    assert (await run.document())["node_results"] == dict.fromkeys(("look", "end"), "Done.")
