"""Workers with and without the embedded model on one database: what needs it is driven where it can be run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.cli.in_process_command import invoke
from tests.support.llm.fake_llm_server import FakeLLMServer, fake_llm_in_thread
from tests.support.scale.installation import Installation
from tests.support.scale.logging_nodes import Run
from tests.support.scale.role_process import RoleProcess, processes

CAPABLE = """
import os
from planwave.providers.local.models import LocalModelServers

async def endpoint(self, model):
    return os.environ["EMBEDDED_URL"], "none"

LocalModelServers.availability = lambda self: (True, "a test replies", "")
LocalModelServers.endpoint = endpoint
from planwave.main import main
main()
"""
"""The program of a process that can run the embedded model."""
WAITING_FOR = 'planwave_executions_waiting_for{capability="local"}'
PLAIN = {"nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}], "edges": []}
EMBEDDED = {
    "nodes": [
        {"id": "say", "type": "agent", "data": {"provider": "local", "userPrompt": "Say it."}},
        {"id": "end", "type": "logged-step", "data": {}},
    ],
    "edges": [{"source": "say", "target": "end", "data": {"channel": "flow"}}],
}
CALLING: dict[str, Any] = {
    "nodes": [
        {"id": "before", "type": "logged-step", "data": {}},
        {"id": "call", "type": "inner", "data": {"flow": {"name": "embedded"}}},
    ],
    "edges": [{"source": "before", "target": "call", "data": {"channel": "flow"}}],
}


@pytest.fixture
def llm() -> Iterator[FakeLLMServer]:
    with fake_llm_in_thread(reply_to=lambda body: "said") as running:
        yield running


@pytest.fixture
async def installation(
    tmp_path: Path, database_url: str, temporal_address: str, task_queue: str
) -> AsyncIterator[Installation]:
    with processes(tmp_path) as group:
        made = Installation(group, database_url, temporal_address, task_queue)
        yield made
        made.close()


def runs_of(installation: Installation, execution_id: str) -> list[Run]:
    return [run for run in installation.all_runs() if run.execution_id == execution_id]


class Api:
    """What clients see of one process that serves."""

    def __init__(self, process: RoleProcess, client: httpx2.AsyncClient) -> None:
        self._process, self._client = process, client

    async def post(self, path: str, body: Any, status: int) -> Any:
        answer = await self._client.post(path, json=body)
        assert answer.status_code == status, f"{answer.text}\n{self._process.log()}"
        return answer.json()

    async def execute(self, graph: Any) -> str:
        body = {"graph": graph, "start": True}
        return (await self.post("/api/execute", body, 202))["execution_id"]

    async def shown(self, execution_id: str) -> Any:
        return (await self._client.get(f"/api/executions/{execution_id}")).json()

    async def status(self, execution_id: str, *expected: str) -> Any:
        async with asyncio.timeout(40):
            while (found := await self.shown(execution_id))["status"] not in expected:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return found

    async def until_waiting(self, execution_id: str, processes_: int) -> None:
        waits_for = {"capability": "local", "processes": processes_}
        shown: Any = {}
        with suppress(TimeoutError):
            async with asyncio.timeout(25):
                while shown.get("waits_for") != waits_for:
                    await asyncio.sleep(0.1)
                    shown = await self.shown(execution_id)
        told = {name: shown.get(name) for name in ("status", "error", "node_states", "reason")}
        assert shown.get("waits_for") == waits_for, f"{told}\n{self._process.log()}"

    async def metric(self, name: str) -> float:
        lines = (await self._client.get("/metrics")).text.splitlines()
        return sum(float(each.rpartition(" ")[2]) for each in lines if each.startswith(name))


@pytest.mark.timeout(240)
async def test_what_needs_the_embedded_model_waits_for_a_worker_that_has_it(
    installation: Installation, llm: FakeLLMServer
) -> None:
    env = {"EMBEDDED_URL": llm.openai_url}
    served = installation.start("serve")
    without = installation.start("worker")
    async with httpx2.AsyncClient(base_url=served.url, timeout=45) as client:
        api = Api(served, client)
        checked = await api.post("/api/check", {"graph": EMBEDDED}, 200)
        assert [each for each in checked["diagnostics"] if each["severity"] == "error"] == []
        waiting = await api.execute(EMBEDDED)
        assert (await api.status(await api.execute(PLAIN), "completed"))["status"] == "completed"
        await api.until_waiting(waiting, 0)
        async with asyncio.timeout(20):  # it is counted every two seconds
            while await api.metric(WAITING_FOR) != 1:  # noqa: ASYNC110 - in other processes
                await asyncio.sleep(0.1)
        with_model = installation.start("worker", program=CAPABLE, env=env)
        shown = await api.status(waiting, "completed", "failed", "paused")
        assert shown["status"] == "completed", shown
        assert "waits_for" not in shown
        assert {run.pid for run in installation.all_runs()} == {with_model.pid}
        await api.post("/api/flows", {"name": "embedded", "graph": EMBEDDED}, 201)
        fork = await api.post(f"/api/executions/{waiting}/fork", {"rerun": ["say"]}, 202)
        nested = await api.execute(CALLING)
        for own in (fork["execution_id"], nested):
            assert (await api.status(own, "completed", "failed"))["status"] == "completed"
        assert {run.pid for run in installation.all_runs()} == {with_model.pid}
        with_model.kill()
        again = await api.execute(EMBEDDED)
        await api.until_waiting(again, 0)
        back = installation.start("worker", program=CAPABLE, env=env)
        assert (await api.status(again, "completed", "failed"))["status"] == "completed"
        assert {run.pid for run in runs_of(installation, again)} == {back.pid}
    assert "waits" not in without.log()


ASKING: dict[str, Any] = {
    "nodes": [
        {"id": "ask", "type": "approval", "data": {"prompt": "Go on?", "actions": ["go"]}},
        *CALLING["nodes"],
    ],
    "edges": [
        {"source": "ask", "sourceHandle": "go", "target": "before", "data": {"channel": "flow"}},
        *CALLING["edges"],
    ],
}
"""The flow that it names may be another one by the time it is answered."""


@pytest.mark.timeout(240)
async def test_what_only_a_call_of_a_model_shows_to_need_it_is_handed_to_a_worker_that_has_it(
    installation: Installation, llm: FakeLLMServer, temporal_address: str
) -> None:
    served, without = installation.start("serve"), installation.start("worker")
    async with httpx2.AsyncClient(base_url=served.url, timeout=45) as client:
        api = Api(served, client)
        flow = await api.post("/api/flows", {"name": "embedded", "graph": PLAIN}, 201)
        own, cancelled = [await api.execute(ASKING) for _ in range(2)]
        asked = [await api.status(each, "paused") for each in (own, cancelled)]
        changed = await client.put(
            f"/api/flows/{flow['plan_id']}", json={"graph": EMBEDDED}, headers={"If-Match": "*"}
        )
        assert changed.is_success, changed.text
        for each in asked:
            (request,) = each["requests"]
            path = f"/api/executions/{each['execution_id']}/requests/{request['request_id']}"
            await api.post(path, {"decision": "go"}, 200)
        for each in (own, cancelled):
            await api.until_waiting(each, 0)
            (before,) = runs_of(installation, each)
            assert (before.path, before.pid) == ("before", without.pid)
        for command in (("ls",), ("show", own)):
            told = await asyncio.to_thread(invoke, *command, "--url", served.url)
            words = "waits for a worker that has a local model; there is none now"
            assert words in told.output, told.output
        await api.post(f"/api/executions/{cancelled}/cancel", {}, 200)
        await until_closed(temporal_address, cancelled)
        env = {"EMBEDDED_URL": llm.openai_url}
        with_model = installation.start("worker", program=CAPABLE, env=env)
        shown = await api.status(own, "completed", "failed", "paused")
        assert shown["status"] == "completed", shown
        _, *after = runs_of(installation, own)
        assert {run.pid for run in after} == {with_model.pid}, "what had ended is not done again"
        assert [run.path.rpartition("/")[2] for run in after] == ["end"]
        assert len(runs_of(installation, cancelled)) == 1


async def until_closed(address: str, execution_id: str) -> None:
    """Wait until no workflow carries an execution any more, although no process could end it."""
    # Not above: the SDK may be missing.
    from temporalio.client import Client, WorkflowExecutionStatus

    workflow = (await Client.connect(address)).get_workflow_handle(execution_id)
    async with asyncio.timeout(20):
        while (await workflow.describe()).status is WorkflowExecutionStatus.RUNNING:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
