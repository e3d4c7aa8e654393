"""The floor of ``load_executions.py``: the same requests and subscribers, nothing of planwave.

A bare Starlette application on uvicorn: a POST reads its JSON, starts raw asyncio tasks that sleep
as the graph says and commits one row to SQLite; a WebSocket tells each end of a node. No check, no
store of results, no documents. What it takes is what any service on this stack has to take.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import sys
import uuid
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute


class Floor:
    """Runs graphs of sleeps and tells subscribers of them."""

    def __init__(self, directory):
        self._rows = sqlite3.connect(directory / "floor.db")
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("CREATE TABLE started (id TEXT PRIMARY KEY, graph TEXT)")
        self._told = {}
        self._tasks = set()

    async def execute(self, request):
        """``POST /api/execute``."""
        body = await request.body()
        ident = str(uuid.uuid4())
        with self._rows:
            self._rows.execute("INSERT INTO started VALUES (?, ?)", (ident, body))
        told = self._told[ident] = asyncio.Queue()
        task = asyncio.create_task(run(json.loads(body)["graph"], told))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return JSONResponse({"execution_id": ident}, 201)

    async def watch(self, socket):
        """``WS /ws/{execution_id}``: what was told so far, then the rest, an array each time."""
        await socket.accept()
        told = self._told[socket.path_params["execution_id"]]
        while True:
            batch = [await told.get()]
            while not told.empty():
                batch.append(told.get_nowait())
            ended = batch[-1] is None
            await socket.send_text(json.dumps(batch))
            if ended:
                break
            await asyncio.sleep(0.05)
        await socket.close(1000)


async def run(graph, told):
    """Run a graph of sleeps; each node's task is made when its last dependency has ended."""
    left = {node["id"]: 0 for node in graph["nodes"]}
    following = {node: [] for node in left}
    seconds = {node["id"]: node["data"]["s"] for node in graph["nodes"]}
    for edge in graph["edges"]:
        left[edge["target"]] += 1
        following[edge["source"]].append(edge["target"])
    async with asyncio.TaskGroup() as tasks:

        async def one(node):
            told.put_nowait({"type": "node.started", "path": node})
            await asyncio.sleep(seconds[node])
            told.put_nowait({"type": "node.completed", "path": node})
            for target in following[node]:
                left[target] -= 1
                if not left[target]:
                    tasks.create_task(one(target))

        for node in [node for node, count in left.items() if not count]:
            tasks.create_task(one(node))
    told.put_nowait(None)


def main():
    floor = Floor(Path(sys.argv[1]))
    routes = [
        Route("/api/execute", floor.execute, methods=["POST"]),
        WebSocketRoute("/ws/{execution_id}", floor.watch),
    ]
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Starlette(routes=routes), log_level="warning", timeout_keep_alive=60)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
