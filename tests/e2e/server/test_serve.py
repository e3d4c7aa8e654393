"""The server as a process: how it starts, what holds it up, and how it goes down."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from planwave.service.service import Service
from planwave.storage.lock import LOCK_NAME, read_owner
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import (
    isolated_directory,
    read_until,
    run_command,
    start_command,
    start_console_script,
)
from tests.support.polling import until
from tests.support.server.server_process import ServerProcess, start_server
from tests.support.service.dependencies import dependencies


def execute(server: ServerProcess, goal: str) -> str:
    """Plan a goal and start it; give the execution's id."""
    answer = httpx2.post(f"{server.url}/api/run", json={"prompt": goal})
    assert answer.status_code in (200, 201, 202), answer.text
    return answer.json()["execution_id"]


def await_end(server: ServerProcess, execution_id: str) -> None:
    """Follow an execution until it is over."""
    events = httpx2.get(f"{server.url}/api/executions/{execution_id}/events", timeout=120).text
    assert "event: execution.completed" in events


def documents(directory: Path) -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in directory.glob("*.json")}


def unfinished(directory: Path) -> list[Path]:
    return list(directory.glob(".*.tmp"))


async def kept(directory: Path, execution_id: str) -> tuple[str, list[str]]:
    """Give status and event types of an execution as they are stored, in order without a gap."""
    store = SqliteStore.open(directory, read_only=True)
    try:
        record, events = await store.execution(execution_id), await store.events(execution_id)
    finally:
        await store.close()
    assert record is not None
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return record.status, [event.type for event in events]


class TestCommand:
    @pytest.fixture(autouse=True)
    def empty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        isolated_directory(tmp_path, monkeypatch)

    def test_it_says_where_it_listens_on_one_line_and_in_the_lock(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PLANWAVE_TOKEN", "tok")
        with start_console_script("serve", "--port", "0", "--json") as process:
            told = json.loads(read_until(process.stdout, "\n"))
            assert told["needs_token"] is True
            directory = tmp_path / "storage"
            assert read_owner(directory) == {"pid": told["pid"], "url": told["url"], "token": "tok"}
            assert (directory / LOCK_NAME).stat().st_mode & 0o777 == 0o600
            assert httpx2.get(f"{told['url']}/readyz").status_code == 200
            assert httpx2.get(f"{told['url']}/api/plans").status_code == 401
            bearer = {"Authorization": "Bearer tok"}
            assert httpx2.get(f"{told['url']}/api/plans", headers=bearer).json()["plans"] == []
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=120)
        assert process.returncode == 0
        assert output == ""
        assert "tok" not in errors
        assert "shutting down" in errors
        begin, *_, end = [line.split(" planwave.service ")[-1] for line in errors.splitlines()]
        assert (
            begin == f"started version={version('planwave')} url={told['url']} storage={directory}"
        )
        assert end == "stopped exit_code=0"
        assert read_owner(directory) is None

    @pytest.mark.parametrize(
        ("args", "says"),
        [
            (["--host", "0.0.0.0"], "needs a token"),  # noqa: S104 - refused
            (["--host", "192.0.2.1"], "needs a token"),
            (["--port", "{used}"], "cannot listen"),
            (["--port", "70000"], "65535"),
        ],
    )
    def test_where_it_may_not_or_cannot_listen_it_says_so(self, args: list[str], says: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as used:
            port = used.getsockname()[1]
            refused = run_command("serve", *(arg.format(used=port) for arg in args))
        assert refused.returncode == 2
        assert says in refused.stderr
        assert "Traceback" not in refused.stderr

    def test_a_second_server_of_a_directory_is_told_of_the_first(self) -> None:
        first = start_command("serve", "--port", "0", "--json")
        with first:
            pid = json.loads(read_until(first.stdout, "\n"))["pid"]
            second = run_command("serve", "--port", "0")
            assert second.returncode != 0
            assert f"pid {pid}" in second.stderr
            first.send_signal(signal.SIGINT)
            first.communicate(timeout=120)
        assert first.returncode == 0


async def rest_of(socket_: Any) -> str:
    """Read a WebSocket to its end; give the last message."""
    said = ""
    with suppress(ConnectionClosed):
        while True:
            said = str(await socket_.recv())
    return said


DRAIN_S = 5.0
TRIES = 3
"""A busy machine may take its time away once; what is waited for is so every time."""


@pytest.mark.slow
async def test_a_drain_finishes_what_it_can_and_leaves_the_rest_resumable(tmp_path: Path) -> None:
    took: list[float] = []
    while not took or (took[-1] >= DRAIN_S + 5 and len(took) < TRIES):
        took.append(await drained(tmp_path / str(len(took))))
    assert min(took) < DRAIN_S + 5


async def drained(directory: Path) -> float:
    """Drain a server with all sorts of clients; give how many seconds that took."""
    with start_server(directory, drain_s=DRAIN_S) as server:
        brief, held = execute(server, "naps"), execute(server, "held")
        ws = server.url.replace("http", "ws", 1) + f"/ws/{held}"
        async with AsyncExitStack() as stack:
            sockets = [
                await stack.enter_async_context(connect(f"{ws}{query}"))
                for query in ("", "?mode=events&after=0", "?mode=events&after=0")
            ]
            client = await stack.enter_async_context(httpx2.AsyncClient(base_url=server.url))
            streams = [
                await stack.enter_async_context(
                    client.stream("GET", f"/api/executions/{each}/events")
                )
                for each in (held, held)
            ]
            half = socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])))
            half.sendall(b"POST /api/plan HTTP/1.1\r\nHost: x\r\nContent-Le")
            began = time.monotonic()
            server.signal()
            told = [await rest_of(each) for each in sockets]
            assert all("draining" in each for each in told)
            assert [each.close_code for each in sockets] == [1012] * 3
            for stream in streams:
                text = "".join([piece async for piece in stream.aiter_text()])
                assert text.rstrip().rpartition("event: ")[2].startswith("server_draining")
            ready = await client.get("/readyz")
            assert ready.json()["code"] == "server-draining"
            refused = await client.post("/api/plan", json={"prompt": "texts"})
            assert (refused.status_code, refused.json()["code"]) == (503, "server-draining")
            server.release_nodes()
            assert await asyncio.to_thread(server.wait_for_exit) == 0
            took = time.monotonic() - began
            half.close()
    status, types = await kept(directory, brief)
    assert (status, "node.completed" in types) == ("executing", True)
    status, types = await kept(directory, held)
    assert (status, types[-1]) == ("executing", "node.started")
    return took


async def test_a_second_signal_leaves_at_once_and_loses_nothing(tmp_path: Path) -> None:
    with start_server(tmp_path, drain_s=600) as server:
        held, brief = execute(server, "held"), execute(server, "texts")
        await_end(server, brief)
        began = time.monotonic()
        server.signal()
        server.read_log_until("shutting down")
        server.signal(signal.SIGINT)
        assert server.wait_for_exit() == 128 + signal.SIGINT
        assert time.monotonic() - began < 300, "it was waited for what was running"
    status, types = await kept(tmp_path, held)
    assert (status, types[-1]) == ("executing", "node.started")
    assert (await kept(tmp_path, brief))[0] == "completed"


@pytest.mark.slow
@pytest.mark.parametrize("signals", [1, 2, 3])
async def test_a_document_is_whole_or_absent_however_hard_it_is_stopped(
    tmp_path: Path, signals: int
) -> None:
    with start_server(tmp_path, "slow-disk", drain_s=1 if signals == 1 else 600) as server:
        execute(server, "held")  # so that a drain lasts
        ids = [execute(server, "texts") for _ in range(4)]
        for each in ids:
            await_end(server, each)  # its document is being written now
        for said in ("shutting down", "stopping at once", "")[:signals]:
            server.signal()
            if said:
                server.read_log_until(said)
        assert (server.wait_for_exit() == 0) is (signals == 1)
    assert all(each["status"] == "completed" for each in documents(tmp_path).values())
    if signals < 3:
        assert set(documents(tmp_path)) == set(ids)
        assert not unfinished(tmp_path)
    async with Service(dependencies(store=SqliteStore.open(tmp_path), directory=tmp_path)):
        pass  # a start writes what is missing and sweeps up
    assert set(documents(tmp_path)) == set(ids)
    assert not unfinished(tmp_path)


@pytest.mark.slow
async def test_f59_idle_connections_past_the_limit_get_a_503_until_they_are_closed(
    tmp_path: Path,
) -> None:
    with start_server(tmp_path, "512") as server:
        address = ("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
        idle: list[socket.socket] = []
        try:
            for number in range(400):  # 256 are allowed; 512 files would be all
                idle.append(socket.create_connection(address, timeout=120))
                if number % 100 == 0:
                    answer = httpx2.get(f"{server.url}/healthz", timeout=120)
                    assert answer.status_code in (200, 503)
        finally:
            for each in idle:
                each.close()
        await until(lambda: httpx2.get(f"{server.url}/readyz", timeout=120).status_code == 200)


def memory_of(pid: int) -> int:
    """Give the most memory a process has had, bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_of_fifty_megabytes_is_refused_in_flat_memory(
    tmp_path: Path, chunked: bool
) -> None:
    piece, count = b" " * 50_000, 1_000
    with start_server(tmp_path) as server:
        execute(server, "texts")
        before = memory_of(server.process.pid)
        host, port = server.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 50000000"
        head = f"POST /api/plan HTTP/1.1\r\nHost: {host}:{port}\r\n{length}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode())
        for _ in range(count):
            writer.write(b"c350\r\n" + piece + b"\r\n" if chunked else piece)
            await writer.drain()
        answer = (await reader.read()).decode()  # to the end: the connection is closed
        writer.close()
        assert answer.startswith("HTTP/1.1 413 ")
        assert '"limit":"body_bytes"' in answer
        assert memory_of(server.process.pid) - before < 8 * 1024 * 1024
