"""A process that ends around the end of an execution: its notification comes, under one id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2
import pytest

from planwave.storage.sqlite.store import SqliteStore
from tests.support.polling import until
from tests.support.recovery.crash_points import KILLED
from tests.support.recovery.crash_server import crash_server


class Message(NamedTuple):
    message_id: str
    body: str


class Receiver:
    """An HTTP server on loopback that accepts messages."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.strip().split("\r\n")[1:])
        body = (await reader.readexactly(int(fields["content-length"]))).decode()
        self.messages.append(Message(fields["webhook-id"], body))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[Receiver, str]]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    async with server:
        yield receiver, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "point",
    [
        "before:append:1:execution.completed",
        "after:append:1:execution.completed",
        # Half a minute passes until a message is taken again that a dead process had taken.
        pytest.param("before:notifications.update:1", marks=pytest.mark.slow),
        pytest.param("after:notifications.update:1", marks=pytest.mark.slow),
    ],
)
async def test_end_is_told_wherever_the_process_ends(tmp_path: Path, point: str) -> None:
    # Sent before the process ended, and not noted: it comes again.
    expected = 2 if point == "before:notifications.update:1" else 1
    async with receiving() as (receiver, address):
        with crash_server(tmp_path, point, notified=address) as server:
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as calls:
                plan = await calls.post(f"{server.url}/api/plan", json={"prompt": "texts"})
                body = {"plan_id": plan.json()["plan_id"], "start": True}
                started = await calls.post(f"{server.url}/api/execute", json=body)
            assert await asyncio.to_thread(server.wait_for_exit) == KILLED
        with crash_server(tmp_path, notified=address):
            await until(lambda: len(receiver.messages) >= expected)
        store = SqliteStore.open(tmp_path / "storage")
        (record,) = await store.notifications.page()
        await store.close()
        assert {each.message_id for each in receiver.messages} == {record.notification_id}
        (body,) = {each.body for each in receiver.messages}
        message = json.loads(body)
        assert message["type"] == "execution.completed"
        assert message["data"]["execution_id"] == started.json()["execution_id"]
        assert len(receiver.messages) == expected
