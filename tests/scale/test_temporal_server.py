"""The Temporal server of the tests: it runs workflows, and keeps them where its process is killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.support.scale.temporal_server import running_temporal


@workflow.defn
class Greeting:
    """Waits for a name, and answers with a greeting."""

    def __init__(self) -> None:
        self._name = ""

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self._name != "")
        return f"Hello, {self._name}"

    @workflow.signal
    def tell(self, name: str) -> None:
        self._name = name


def worker(client: Client, task_queue: str) -> Worker:
    return Worker(
        client,
        task_queue=task_queue,
        workflows=[Greeting],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )


async def test_workflow_runs_on_the_server_of_the_tests(
    temporal_address: str, task_queue: str
) -> None:
    client = await Client.connect(temporal_address)
    async with worker(client, task_queue):
        handle = await client.start_workflow(Greeting.run, id=task_queue, task_queue=task_queue)
        await handle.signal(Greeting.tell, "wave")
        assert await handle.result() == "Hello, wave"


@pytest.mark.scale
async def test_workflow_outlives_the_process_of_its_server(
    needs_temporal: None, tmp_path: Path, task_queue: str
) -> None:
    with running_temporal(tmp_path, keeps_data=True) as server:
        client = await Client.connect(server.address)
        handle = await client.start_workflow(Greeting.run, id=task_queue, task_queue=task_queue)
        server.kill()
        server.start()
        client = await Client.connect(server.address)
        async with worker(client, task_queue):
            handle = client.get_workflow_handle_for(Greeting.run, task_queue)
            await handle.signal(Greeting.tell, "wave")
            assert await handle.result() == "Hello, wave"
