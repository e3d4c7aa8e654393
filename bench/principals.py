"""What one principal takes from the others: large documents, and a flood of executions.

::

    python bench/principals.py            # both, a server for each; prints one JSON object

``documents``: a document of 20 MiB, read by 20 clients with one access token, then not read by 25. While
they are under way ``/healthz`` is asked all the time. ``flood``: a token starts 60 executions of an hour;
then the operator starts one.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

TYPES = '''
import asyncio
import planwave

@planwave.node("big")
def big() -> str:
    """Gives 0.9 MB."""
    return "x" * 900_000

@planwave.node("long")
async def long() -> str:
    """Takes an hour."""
    await asyncio.sleep(3_600)
    return "done"
'''
OPERATOR = "operator-0123456789"
_SLOW_S = 10.0


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[str, int]]:
    """Serve from a new directory; yield the address and the id of the process."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "bench_types.py").write_text(TYPES)
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("planwave")), "serve", "--port", "0", "--json", "--storage", "data",
            cwd=place, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PLANWAVE_TOKEN": OPERATOR, "PLANWAVE_NODE_MODULES": "bench_types", "PYTHONPATH": str(place)},
        )  # fmt: skip
        assert process.stdout is not None
        try:
            yield json.loads(await process.stdout.readline())["url"], process.pid
        finally:
            for each in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
                if process.returncode is None:
                    process.send_signal(each)
                    await asyncio.wait(
                        [asyncio.get_running_loop().create_task(process.wait())], timeout=5
                    )


class Api:
    """The API as one principal uses it."""

    def __init__(self, client: httpx2.AsyncClient, token: str = OPERATOR) -> None:
        self._client, self.headers = client, {"Authorization": f"Bearer {token}"}

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._client.request(method, path, json=body, headers=self.headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def flow(self, *nodes: dict[str, Any]) -> str:
        graph = {"nodes": list(nodes), "edges": []}
        return (await self.call("POST", "/api/flows", {"name": "f", "graph": graph}))["plan_id"]

    async def token(self, plan_id: str) -> str:
        body = {"name": "t", "scopes": ["run", "read"], "flows": [plan_id]}
        return (await self.call("POST", "/api/tokens", body))["token"]

    async def start(self, plan_id: str) -> str:
        body = {"plan_id": plan_id, "start": True}
        return (await self.call("POST", "/api/execute", body))["execution_id"]

    async def until(self, execution_id: str, *status: str) -> None:
        while (await self.call("GET", f"/api/executions/{execution_id}"))["status"] not in status:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def rss_mib(pid: int) -> int:
    """Return the memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) // 1024


async def watched(
    url: str, pid: int, work: Callable[[], Awaitable[Any]]
) -> tuple[Any, dict[str, float]]:
    """Do something; return its result, the slowest ``/healthz`` meanwhile, and the most memory."""
    slowest, most = 0.0, rss_mib(pid)
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client, asyncio.TaskGroup() as tasks:
        working = tasks.create_task(_awaited(work()))
        while not working.done():
            began = time.perf_counter()
            await client.get("/healthz")
            slowest = max(slowest, time.perf_counter() - began)
            most = max(most, rss_mib(pid))
            await asyncio.sleep(0.01)
    return working.result(), {"healthz_s": round(slowest, 3), "rss_mib": most}


async def _awaited(work: Awaitable[Any]) -> Any:
    return await work


async def slow_reader(url: str, path: str, headers: dict[str, str]) -> None:
    """Send a request and read nothing of the response for a while."""
    host, port = url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port), limit=1024)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{head}\r\n".encode())
    await asyncio.sleep(_SLOW_S)
    writer.transport.abort()


async def documents() -> dict[str, Any]:
    """Return what 20 readers and 25 slow readers of a document of 20 MiB cost."""
    limits = httpx2.Limits(max_connections=100)
    async with (
        serving() as (url, pid),
        httpx2.AsyncClient(base_url=url, timeout=120, limits=limits) as client,
    ):
        operator = Api(client)
        flow = await operator.flow(*({"id": f"n{i}", "type": "big", "data": {}} for i in range(12)))
        token = Api(client, await operator.token(flow))
        execution_id = await operator.start(flow)
        await operator.until(execution_id, "completed")
        path = f"/api/executions/{execution_id}/document"
        await asyncio.sleep(2)  # its file is written
        before = rss_mib(pid)

        async def read(_: int) -> tuple[int, int]:
            answer = await client.get(path, headers=token.headers)
            return answer.status_code, len(answer.content)

        async def all_of(one: Callable[[int], Awaitable[Any]], count: int) -> list[Any]:
            async with asyncio.TaskGroup() as tasks:
                made = [tasks.create_task(_awaited(one(number))) for number in range(count)]
            return [each.result() for each in made]

        _, alone = await watched(url, pid, lambda: read(0))
        began = time.perf_counter()
        answers, twenty = await watched(url, pid, lambda: all_of(read, 20))
        twenty["seconds"] = round(time.perf_counter() - began, 2)
        statuses = [status for status, _ in answers]
        twenty["statuses"] = {str(each): statuses.count(each) for each in {*statuses}}
        _, slow = await watched(
            url, pid, lambda: all_of(lambda _: slow_reader(url, path, token.headers), 25)
        )
        size = max(size for _, size in answers)
        return {
            "document_mib": round(size / 2**20, 1), "rss_before_mib": before,
            "one": alone, "twenty": twenty, "slow_25": slow,
        }  # fmt: skip


async def flood() -> dict[str, Any]:
    """Return when the first step of the operator runs while a token has all places."""
    async with serving() as (url, pid), httpx2.AsyncClient(base_url=url, timeout=60) as client:
        operator = Api(client)
        flow = await operator.flow({"id": "n", "type": "long", "data": {}})
        quick = await operator.flow({"id": "n", "type": "text", "data": {"text": "hi"}})
        token = Api(client, await operator.token(flow))
        for _ in range(60):
            await token.start(flow)
        await asyncio.sleep(1)

        async def one() -> float | None:
            began = time.perf_counter()
            execution_id = await operator.start(quick)
            try:
                async with asyncio.timeout(5):
                    await operator.until(execution_id, "completed")
            except TimeoutError:
                return None
            return round(time.perf_counter() - began, 3)

        took_s, seen = await watched(url, pid, one)
        return {"completed_after_s": took_s, **seen}


async def _main() -> None:
    print(json.dumps({"documents": await documents(), "flood": await flood()}, indent=2))


if __name__ == "__main__":
    asyncio.run(_main())
