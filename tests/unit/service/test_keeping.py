from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from planwave.graph.model import Node
from planwave.service.service import Service
from tests.fakes.service import Held, graph_of, rooms, text_node
from tests.fakes.wires import make_edge

ASK = Node("ask", "approval", "Ask", data={"prompt": "ok?"})
HELD = Node("h", "held", "H")
GRAPH = graph_of(
    HELD, ASK, text_node("after"),
    edges=[("h", "ask"), make_edge("ask", "after", source_handle="approve")],
)  # fmt: skip


async def written(service: Service, execution_id: str, directory: Path) -> dict[str, Any]:
    """The document of an execution at rest."""
    await service.wait(execution_id)
    path = directory / f"{execution_id}.json"
    return json.loads(await asyncio.to_thread(path.read_bytes))


async def test_the_document_is_written_at_every_pause_and_at_the_end(tmp_path: Path) -> None:
    held = Held()
    async with Service(rooms(GRAPH, types=[held], directory=tmp_path)) as service:
        plan = await service.create_plan("do it")
        execution_id = (await service.execute(plan.plan_id)).execution_id
        await held.started.wait()
        await service.pause(execution_id)
        held.let_go.set()
        paused = await written(service, execution_id, tmp_path)
        assert (paused["status"], paused["reason"]) == ("paused", "paused by request")

        await service.resume(execution_id)
        asks = await written(service, execution_id, tmp_path)
        assert (asks["status"], asks["waitingForInput"]) == ("paused", True)
        assert (asks["currentNodeId"], asks["last_seq"] > paused["last_seq"]) == ("ask", True)
        (request,) = asks["requests"]
        assert (request["path"], request["request"]["prompt"]) == ("ask", "ok?")

        answer = {"decision": "approve", "note": "fine"}
        await service.answer(execution_id, request["request_id"], answer)
        ended = await written(service, execution_id, tmp_path)
        assert (ended["status"], ended["requests"]) == ("completed", [])
        node = next(each for each in ended["nodes"] if each["id"] == "ask")
        assert [(each["decision"], each["note"]) for each in node["answers"]] == [
            ("approve", "fine")
        ]
        events = await service.events(execution_id)
        assert ended["last_seq"] == len(events)
