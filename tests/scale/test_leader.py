"""What one process at a time does, while that process is killed: notified once, each slot and each event once."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from planwave.ids import new_id
from planwave.storage.postgres.store import PostgresStore
from tests.support.cli.command_process import PLANWAVE
from tests.support.paths import ROOT
from tests.support.scale.installation import Installation
from tests.support.scale.role_process import RoleProcess, processes
from tests.support.triggers.hook_sender import SECRET

pytestmark = [pytest.mark.scale, pytest.mark.timeout(400)]

STEP = {"id": "step", "type": "logged-step", "data": {"ms": 0}}


class Receiver:
    """Takes notifications, and tells events; both on loopback.

    Attributes:
        accepted: Ids of the notifications that it has taken.
        refused: How many it has refused.
        is_open: Whether it takes any.
        forged: Ids of those whose signature is not right.
        told: The number of the last event.
    """

    def __init__(self) -> None:
        self.accepted: list[str] = []
        self.forged: list[str] = []
        self.refused = 0
        self.is_open = True
        self.told = 0
        self.address = ""

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(reader, writer)
        finally:  # also where the test ends while a stream is open
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value for name, _, value in (each.partition(": ") for each in head[1:])
        }
        if head[0].startswith("GET"):
            await self._tell(writer, int(headers.get("last-event-id") or 0))
        else:
            body = await reader.readexactly(int(headers["content-length"]))
            status = self._take(headers, body.decode())
            writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
            await writer.drain()

    def _take(self, headers: dict[str, str], body: str) -> int:
        if not self.is_open:
            self.refused += 1
            return 503
        at = datetime.fromtimestamp(int(headers["webhook-timestamp"]), UTC)
        if Webhook(SECRET).sign(headers["webhook-id"], at, body) != headers["webhook-signature"]:
            self.forged.append(headers["webhook-id"])
        self.accepted.append(headers["webhook-id"])
        return 204

    async def _tell(self, writer: asyncio.StreamWriter, last: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        while True:
            for number in range(last + 1, self.told + 1):
                writer.write(f'id: {number}\ndata: "e"\n\n'.encode())
            last = max(last, self.told)
            await writer.drain()
            await asyncio.sleep(0.1)


@pytest.fixture
def installation(
    database_url: str, temporal_address: str, task_queue: str, tmp_path: Path
) -> Iterator[Installation]:
    with processes(tmp_path) as group:
        made = Installation(group, database_url, temporal_address, task_queue)
        yield made
        made.close()


async def trigger_of(client: httpx2.AsyncClient, entry: dict[str, Any]) -> str:
    """Listen for an entry node; return the id of the trigger."""
    edges = [{"source": entry["id"], "target": "step", "data": {"channel": "flow"}}]
    graph = {"nodes": [entry, STEP], "edges": edges}
    saved = await client.post("/api/flows", json={"name": new_id(), "graph": graph})
    assert saved.is_success, saved.text
    made = await client.post("/api/triggers", json={"plan_id": saved.json()["plan_id"]})
    assert made.is_success, made.text
    assert made.json()["problem"] is None
    return made.json()["trigger_id"]


async def execute(client: httpx2.AsyncClient, count: int) -> None:
    for _ in range(count):
        body = {"graph": {"nodes": [STEP], "edges": []}, "start": True}
        assert (await client.post("/api/execute", json=body)).status_code == 202


async def starts_of(url: str) -> Counter[tuple[str, str]]:
    """Return how many executions there are of each delivery of a trigger."""
    async with PostgresStore.open(url, read_only=True) as store:
        found: Counter[tuple[str, str]] = Counter()
        for record in await store.executions(limit=200):
            trigger = (await store.events(record.execution_id))[0].data.get("trigger")
            if trigger:
                found[trigger["id"], trigger["delivery"]] += 1
        return found


async def until(holds: Any, within_s: float = 60.0) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.1)


async def test_the_work_of_a_leader_that_is_killed_goes_on_and_nothing_is_done_twice(
    installation: Installation,
) -> None:
    receiver = Receiver()
    async with receiver.serving():
        target = {"url": f"http://{receiver.address}/hook", "secrets": ["main"]}
        env = {
            "PLANWAVE_NOTIFICATIONS": json.dumps({"all": target}),
            "PLANWAVE_SECRETS": json.dumps({"main": {"env": "MAIN_SECRET"}}),
            "MAIN_SECRET": SECRET,
            "PLANWAVE_ALLOWED_OUTBOUND": json.dumps([receiver.address]),
            "PLANWAVE_LIMIT_SCHEDULE_GAP_S": "10",
            "PLANWAVE_AUDIT_LOG": "true",
        }

        def start(role: str) -> RoleProcess:
            return installation.start(role, env=env)

        leader = await asyncio.to_thread(start, "serve")  # alone: it leads from now on
        serve = await asyncio.to_thread(start, "serve")
        await asyncio.to_thread(start, "worker")
        async with httpx2.AsyncClient(base_url=serve.url, timeout=45) as client:
            slots = await trigger_of(
                client, {"id": "at", "type": "schedule", "data": {"everyS": 10}}
            )
            source = {"url": f"http://{receiver.address}/events"}
            told = await trigger_of(client, {"id": "on", "type": "sse", "data": source})
            await execute(client, 3)
            await until(lambda: len(receiver.accepted) >= 3)
            receiver.told = 5
            await until_started(installation.url, told, 5)

            receiver.is_open = False
            await execute(client, 5)
            await until(lambda: receiver.refused >= 5)
            leader.kill()
            receiver.told = 10
            await execute(client, 3)
            await asyncio.sleep(2)
            receiver.is_open = True
            await until_started(installation.url, told, 10)
            await until_started(installation.url, slots, 3)
            # Each of them is told once it has ended.
            await until(lambda: len(receiver.accepted) >= 11 + 10 + 3)
            async with PostgresStore.open(installation.url, read_only=True) as store:
                await until_none_waits(store)

        starts = await starts_of(installation.url)
        assert {of for of, count in starts.items() if count > 1} == set()
        assert {key for of, key in starts if of == told} == {str(each) for each in range(1, 11)}
        assert receiver.forged == []
        assert Counter(receiver.accepted).most_common(1)[0][1] == 1, "each was taken once"
        check = await asyncio.to_thread(verify_audit, installation.url)
    assert check.returncode == 0, check.stdout + check.stderr


async def until_started(url: str, trigger_id: str, count: int) -> None:
    async with asyncio.timeout(90):
        while sum(of == trigger_id for of, _ in await starts_of(url)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.5)


async def until_none_waits(store: PostgresStore) -> None:
    async with asyncio.timeout(120):
        while await store.notifications.count_pending():  # noqa: ASYNC110
            await asyncio.sleep(0.2)


def verify_audit(url: str) -> subprocess.CompletedProcess[str]:
    """Check the audit logs of all processes; one of them was killed."""
    env = {**os.environ, "PLANWAVE_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PLANWAVE, "audit", "verify"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
