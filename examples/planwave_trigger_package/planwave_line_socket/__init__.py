"""A trigger that starts an execution for every line that a program sends to a port."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

from pydantic import Field

from planwave import NodeType
from planwave.nodes.authoring.node_type import NodeData
from planwave.service.triggers.trigger_service import Trigger
from planwave.triggers.adapter import Deliveries, TriggerAdapter

_LINE = re.compile(r"^(?:\[(?P<id>[^\]]{1,100})\] *)?(?P<text>.*)", re.DOTALL)


class LineSocketData(NodeData):
    """Where it listens."""

    port: int = Field(ge=1, le=65_535, description="The port on 127.0.0.1.")


class LineSocket(NodeType):
    """Outputs the line that started the run; in other runs an empty text."""

    node_type = "line-socket"
    purpose = "Begin with a line that another program sends to a port."
    Data = LineSocketData
    inputs = ()
    entry = expects_input = True

    async def run(self, data: LineSocketData, inputs: Any, context: Any) -> str:
        return ""


class LineSockets(TriggerAdapter):
    """Listens for the lines of all `line-socket` nodes."""

    node_type = "line-socket"
    listens = True

    def details(self, trigger: Trigger) -> dict[str, Any]:
        return {"address": f"127.0.0.1:{trigger.data.port}"}

    async def listen(self, trigger: Trigger, deliveries: Deliveries) -> None:
        async def read_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while line := (await reader.readline()).decode(errors="replace").strip():
                    parts = _LINE.search(line)
                    key, text = parts.groups() if parts is not None else (None, line)
                    record = await deliveries.start(key or str(uuid4()), {"output": text})
                    answer = "known" if record is None else record.execution_id
                    writer.write(f"{answer}\n".encode())
                    await writer.drain()
            finally:
                writer.close()

        server = await asyncio.start_server(read_lines, "127.0.0.1", trigger.data.port)
        async with server:
            await server.serve_forever()
