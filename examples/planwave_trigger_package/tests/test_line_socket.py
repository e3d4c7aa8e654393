"""The trigger in a real service: a line starts an execution, and the same id no second one."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import planwave_line_socket as package

from planwave.bootstrap import open_service
from planwave.settings import Settings
from planwave.triggers.host import TriggerHost

FLOW = json.loads((Path(__file__).parents[1] / "flow.json").read_text("utf-8"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:  # the listener is about to open its port
            await asyncio.sleep(0.01)


async def test_line_starts_one_execution(tmp_path: Path) -> None:
    port = free_port()
    FLOW["nodes"][0]["data"]["port"] = port
    settings = Settings(storage_dir=tmp_path)
    service = open_service(settings)
    service.catalogue.register(package.LineSocket, replace=True)
    async with service, TriggerHost(service, settings, [package.LineSockets]) as triggers:
        flow = await service.flows.create("alarms", graph=FLOW)
        await triggers.create(flow.plan_id)
        reader, writer = await connect(port)
        writer.write(b"[42] the disk is full\n[42] the disk is full\n")
        execution_id = (await reader.readline()).decode().strip()
        assert await reader.readline() == b"known\n"
        await service.executions.wait(execution_id)
        document = await service.executions.document(execution_id)
        assert document["node_results"]["alarm"] == "Alarm: the disk is full"
        assert document["trigger"]["delivery"] == "42"
        writer.close()
        await writer.wait_closed()
