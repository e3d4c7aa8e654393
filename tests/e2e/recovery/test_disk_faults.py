"""What happens when the disk fails: one test for each row of the fault matrix about disks.

What SQLite writes goes through a real SQLite to a disk that fails on purpose, or to a real small
one; see ``tests/support/storage/faulty_disk.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.errors import StoreError
from planwave.events import Event
from planwave.graph.model import Node
from planwave.service.executions.document_writer import DocumentWriter
from planwave.service.executions.store_retry import RetryingJournal
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage import files
from planwave.storage.documents import build_document
from planwave.storage.files import write_atomically
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.connection import DATABASE_NAME
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory, run_command
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.paths import ROOT
from tests.support.polling import until
from tests.support.processes.forked_process import run_forked
from tests.support.server.in_process_client import asgi_client
from tests.support.server.server_process import start_server
from tests.support.service.dependencies import dependencies
from tests.support.storage import faulty_disk as disks
from tests.support.storage.faulty_disk import (
    FaultyDisk,
    PowerCutSimulator,
    faulty_disk,
    fill_disk,
    short_writes,
    small_disk,
)

AT = "2026-01-01T00:00:00.000000Z"
RUN = "01900000-0000-7000-8000-00000000000a"
"""An id that may become a file name."""
TRIES = 5
"""A busy machine may take its time away once or twice; what really waits does so every time."""


def log(seq: int, of: str = "x1", size: int = 0) -> Event:
    return Event(of, seq, AT, "node.log", "a", 1, {"message": "x" * size})


def result(seq: int, value: Any, of: str = "x1") -> Event:
    outputs = {"output": {"type": "text", "value": value}}
    return Event(of, seq, AT, "node.completed", "a", 1, {"outputs": outputs, "duration_s": 1})


def record(name: str = "x1") -> ExecutionRecord:
    return ExecutionRecord(name, None, "t", "g", "starting", AT)


async def code_of(write: Any) -> str | None:
    """Give the code a write is refused with, None where it is done."""
    try:
        await write
    except StoreError as error:
        return error.code
    return None


async def seqs(store: SqliteStore, name: str = "x1") -> list[int]:
    return [event.seq for event in await store.events(name)]


async def says(store: SqliteStore, status: str) -> None:
    """Wait until a store says so of itself."""
    async with asyncio.timeout(120):
        await until(lambda: store.stats.status == status)


def unfinished(directory: Path) -> list[Path]:
    return list(directory.glob(".*.tmp"))


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    with faulty_disk() as made:
        yield made


@pytest.fixture
async def store(disk: FaultyDisk, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore.open(tmp_path / "kept", artifact_bytes=1_000)
    await made.create_execution(record(), [])
    yield made
    await made.close()


# -- power ----------------------------------------------------------------------------------------


async def cut_often(
    disk: FaultyDisk, place: Path, monkeypatch: pytest.MonkeyPatch, seed: int, synchronous: str
) -> list[tuple[int, Path]]:
    """Write, and give what is left of it after power cuts: events acknowledged by then, and where."""
    cuts, rng = PowerCutSimulator(disk, place / "kept", seed), random.Random(seed)  # noqa: S311
    left: list[tuple[int, Path]] = []
    told = 0

    def cut(_: Path | None = None) -> int:
        if rng.random() < 0.15:
            left.append((told, cuts.write_surviving_files(place / f"left-{len(left)}")))
        return disks.OK

    with monkeypatch.context() as patched:
        patched.setattr("planwave.storage.files.os.fsync", cuts.fsync)
        store = SqliteStore.open(place / "kept", artifact_bytes=1_000)
        await store.create_execution(record(), [])
        raw = store._writer._transactions._raw  # type: ignore[union-attr]
        raw.execute("PRAGMA wal_autocheckpoint = 20")
        raw.execute(f"PRAGMA synchronous = {synchronous}")
        disk.on_sync = cut
        for seq in range(1, 121):
            size = rng.choice((0, 0, 100, 5_000))
            await store.append("x1", 1, [result(seq, f"{seq} {'x' * size}")])
            told = seq
            cut()
        disk.on_sync = lambda _: disks.OK
        await store.close()
    return left


async def lost_in(left: list[tuple[int, Path]]) -> list[str]:
    """Name what was acknowledged and is not there, or not as it was."""
    lost: list[str] = []
    for told, directory in left:
        try:
            found = await read_again(directory)
        except StoreError as error:
            lost.append(f"{told} were acknowledged: {error}")
        else:
            if found not in (told, told + 1):  # one may be on disk and not acknowledged yet
                lost.append(f"{told} were acknowledged, {found} are there")
    return lost


async def read_again(directory: Path) -> int:
    """Open what is left, and give how many events are there, in order and without a gap."""
    store = SqliteStore.open(directory, artifact_bytes=1_000)
    try:
        found = await seqs(store)
    finally:
        await store.close()
    assert found == list(range(1, len(found) + 1))
    return len(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_f16_what_was_acknowledged_survives_a_power_cut(
    disk: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    left = await cut_often(disk, tmp_path, monkeypatch, seed, "FULL")
    assert len(left) > 10
    assert await lost_in(left) == []


async def test_f16_without_waiting_for_the_disk_a_power_cut_would_lose_something(
    disk: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shows that the test above can fail."""
    left = await cut_often(disk, tmp_path, monkeypatch, 0, "OFF")
    assert await lost_in(left)


# -- a full disk ----------------------------------------------------------------------------------


async def test_f17_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "4m") as small:
        store = SqliteStore.open(small, artifact_bytes=100_000)
        await store.create_execution(record(), [])
        await store.append("x1", 1, [log(1)])
        ballast = fill_disk(small, free_bytes=200_000)
        told, code = 1, None
        while code is None:
            code = await code_of(store.append("x1", 1, [log(told + 1, size=20_000)]))
            told += code is None
        assert code == "disk-full"
        assert store.stats.status == "disk-full"
        assert await seqs(store) == list(range(1, told + 1)), "reading works"
        large = result(told + 1, "x" * 300_000)
        assert await code_of(store.append("x1", 1, [large])) == "disk-full"
        assert not list((small / "artifacts").iterdir()), "nothing half-written is left"
        ballast.unlink()
        await says(store, "ok")  # by itself, though nobody writes
        await store.append("x1", 1, [large])
        await store.append("x1", 1, [log(told + 2, size=20_000)])
        await store.close()
        again = SqliteStore.open(small)
        assert await seqs(again) == list(range(1, told + 3))
        await again.close()


async def test_f17_a_small_write_that_still_fits_does_not_say_that_there_is_room(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "small", "4m") as small:
        store = SqliteStore.open(small)
        await store.create_execution(record(), [])
        fill_disk(small, free_bytes=50_000)
        assert await code_of(store.append("x1", 1, [log(1, size=100_000)])) == "disk-full"
        await store.append("x1", 1, [log(1)])
        assert store.stats.status == "disk-full"
        await store.close()


async def test_f17_what_runs_stands_still_on_a_full_disk_and_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "4m") as small:
        store = SqliteStore.open(small)
        await store.create_execution(record(), [])
        ballast = fill_disk(small)
        journal = RetryingJournal(store)

        async def run() -> None:
            for seq in range(1, 41):
                await journal.append("x1", 1, [log(seq, size=20_000)])

        async with asyncio.TaskGroup() as group:
            running = group.create_task(run())
            await says(store, "disk-full")
            stood = await seqs(store)
            assert not running.done()
            ballast.unlink()
        assert await seqs(store) == list(range(1, 41))
        assert len(stood) < 40
        await store.close()


async def test_f17_the_service_says_that_the_disk_is_full_and_recovers_without_restart(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "small", "4m") as small:
        store = SqliteStore.open(small)
        service = Service(dependencies(make_graph(text_node("a")), store=store, directory=small))
        async with asgi_client(
            create_app(Settings(storage_dir=small), lambda _: service)
        ) as client:
            first = await client.post("/api/plan", json={"prompt": "a goal"})
            ballast = fill_disk(small)
            refused: list[httpx2.Response] = []
            async with asyncio.timeout(120):
                while not refused:  # the log has some room of its own
                    answer = await client.post("/api/plan", json={"prompt": "x" * 20_000})
                    refused += [answer] * (answer.status_code != 201)
            assert (refused[0].status_code, refused[0].json()["code"]) == (503, "disk-full")
            assert "free some space" in refused[0].json()["hint"]
            assert (await client.get("/healthz")).json() == {"status": "disk-full"}
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["code"]) == (503, "disk-full")
            assert ready.headers["retry-after"]
            found = await client.get(f"/api/plans/{first.json()['plan_id']}")
            assert found.status_code == 200, "reading works"
            ballast.unlink()
            await says(store, "ok")
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            assert (await client.get("/readyz")).status_code == 200
            again = await client.post("/api/plan", json={"prompt": "x" * 20_000})
            assert again.status_code == 201


async def stands(service: Service, held: HeldNode, store: SqliteStore, disk: FaultyDisk) -> str:
    """Run a node, then have the disk full as it ends; give the id of the execution."""
    plan = await service.plans.create("a goal")
    execution_id = (await service.executions.execute(plan.plan_id)).execution_id
    await held.started.wait()
    disk.on_write = lambda *_: disks.FULL
    held.release.set()
    await says(store, "disk-full")
    return execution_id


HELD = make_graph(Node("a", "held", "A"), text_node("b"), edges=[("a", "b")])


async def test_f17_an_execution_loses_nothing_to_a_full_disk(
    disk: FaultyDisk, store: SqliteStore
) -> None:
    held = HeldNode()
    async with Service(dependencies(HELD, types=[held], store=store)) as service:
        execution_id = await stands(service, held, store, disk)
        seen = await service.executions.get(execution_id)
        assert (seen.status, seen.last_seq) == ("executing", 4), "nothing is told that is not kept"
        disk.on_write = lambda *_: disks.OK
        async with asyncio.timeout(120):
            ended = await service.executions.wait(execution_id)
        assert ended.status == "completed"
        kinds = [(e.type, e.path) for e in await store.events(execution_id)]
        assert kinds.count(("node.started", "a")) == kinds.count(("node.completed", "a")) == 1


@pytest.mark.parametrize("way", ["drain", "leave"])
async def test_f17_a_service_goes_down_while_the_disk_is_full_and_loses_nothing(
    disk: FaultyDisk, store: SqliteStore, tmp_path: Path, way: str
) -> None:
    held = HeldNode()
    async with (
        asyncio.timeout(120),
        Service(dependencies(HELD, types=[held], store=store)) as service,
    ):
        execution_id = await stands(service, held, store, disk)
        if way == "drain":
            await service.drain(0.1)
    disk.on_write = lambda *_: disks.OK
    again = SqliteStore.open(tmp_path / "kept")
    found = await again.open_executions()
    assert [(x.execution_id, x.status) for x in found] == [(execution_id, "executing")]
    await again.close()


async def test_f17_a_disk_that_is_full_below_the_database_refuses_and_recovers(
    store: SqliteStore, disk: FaultyDisk
) -> None:
    disk.on_write = lambda *_: disks.FULL
    assert await code_of(store.append("x1", 1, [log(1)])) == "disk-full"
    assert await code_of(store.create_execution(record("x2"), [])) == "disk-full"
    assert store.stats.status == "disk-full"
    assert await seqs(store) == []
    disk.on_write = lambda *_: disks.OK
    await store.append("x1", 1, [log(1)])
    assert (store.stats.status, await seqs(store)) == ("ok", [1])
    assert await store.execution("x2") is None


async def test_f18_a_document_without_room_is_left_out_and_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore.open(tmp_path / "kept")
    with small_disk(tmp_path / "small", "512k") as small:
        ballast = fill_disk(small, free_bytes=8_000)
        large = make_graph(text_node("a", "x" * 20_000), text_node("b"), edges=[("a", "b")])
        service = Service(dependencies(large, store=store, directory=small))
        async with service:
            plan = await service.plans.create("a goal")
            done = await service.executions.execute(plan.plan_id)
            ended = await service.executions.wait(done.execution_id)
            assert ended.status == "completed", "the journal goes on"
            assert [e.seq for e in await store.events(done.execution_id)][-1] == ended.last_seq
            assert any("not written" in m and "No space" in m for m in caplog.messages)
            assert os.listdir(small) == ["ballast"], "nothing half-written is left"
            ballast.unlink()
            other = await service.executions.execute(plan.plan_id)
            await service.executions.wait(other.execution_id)
            await service.executions.wait(done.execution_id)
            assert await store.lagging_documents() == [], "with the next one that can be written"
            kept = json.loads((small / f"{done.execution_id}.json").read_text("utf-8"))
            assert kept["last_seq"] == ended.last_seq


# -- a disk that fails ----------------------------------------------------------------------------


async def test_f19_after_one_failed_fsync_nothing_is_written_until_a_restart(
    store: SqliteStore, disk: FaultyDisk, tmp_path: Path
) -> None:
    await store.append("x1", 1, [log(1)])
    answers = iter([disks.FSYNC_FAILED])
    disk.on_sync = lambda _: next(answers, disks.OK)
    assert await code_of(store.append("x1", 1, [log(2)])) == "store-failed"
    assert store.stats.status == "store-read-only"
    disk.syncs.clear()
    written: list[str] = []
    disk.after_write = lambda path, *_: written.append(path.name)
    with pytest.raises(StoreError, match="until restart") as refused:
        await store.append("x1", 1, [log(2)])
    assert refused.value.code == "store-read-only"
    assert await code_of(store.create_execution(record("x2"), [])) == "store-read-only"
    assert (await seqs(store))[0] == 1, "reading works"
    await store.close()
    assert (disk.syncs, written) == ([], []), "neither is tried again, nor is the log moved"
    assert (tmp_path / "kept" / f"{DATABASE_NAME}-wal").stat().st_size
    again = SqliteStore.open(tmp_path / "kept")
    found = await seqs(again)
    assert found in ([1], [1, 2]), "what was not acknowledged may be there"
    await again.append("x1", 1, [log(len(found) + 1)])
    await again.close()


async def test_f19_a_failed_fsync_is_said_in_every_answer_and_on_healthz(
    disk: FaultyDisk, tmp_path: Path
) -> None:
    store = SqliteStore.open(tmp_path)
    service = Service(dependencies(make_graph(text_node("a")), store=store))
    async with asgi_client(create_app(Settings(storage_dir=tmp_path), lambda _: service)) as client:
        kept = await client.post("/api/plan", json={"prompt": "a goal"})
        disk.on_sync = lambda _: disks.FSYNC_FAILED
        first = await client.post("/api/plan", json={"prompt": "a goal"})
        disk.on_sync = lambda _: disks.OK
        later = await client.post("/api/plan", json={"prompt": "a goal"})
        assert [a.status_code for a in (kept, first, later)] == [201, 503, 503]
        assert later.json()["code"] == "store-read-only"
        assert (await client.get("/healthz")).json() == {"status": "store-read-only"}
        assert (await client.get("/readyz")).json()["code"] == "store-read-only"
        assert (await client.get("/api/plans")).status_code == 200, "reading works"


async def test_f20_short_and_interrupted_writes_are_completed(tmp_path: Path) -> None:
    with short_writes(seed=20) as counts:
        store = SqliteStore.open(tmp_path, artifact_bytes=1_000)
        await store.create_execution(record(), [])
        for seq in range(1, 31):
            await store.append("x1", 1, [log(seq, size=3_000)])
        await store.close()
    assert counts["cut"] > 20
    assert counts["interrupted"] > 5
    again = SqliteStore.open(tmp_path)
    assert await again.events("x1") == [log(seq, size=3_000) for seq in range(1, 31)]
    await again.close()


def test_f20_a_file_that_gets_only_half_its_room_is_not_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as small:
        write_atomically(small / "f.json", b"old")
        with pytest.raises(OSError, match="No space"):
            write_atomically(small / "f.json", bytes(100_000))  # the last write is a short one
        assert os.listdir(small) == ["f.json"]
        assert (small / "f.json").read_bytes() == b"old"


@pytest.mark.parametrize("way", ["deleted", "moved", "replaced"])
async def test_f27_a_directory_that_is_gone_is_noticed_and_not_made_anew(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CHECK_INTERVAL_S", 0.0)
    kept = tmp_path / "kept"
    if way == "replaced":
        other = SqliteStore.open(tmp_path / "other")
        await other.create_execution(record(), [])
        await other.close()
    store = SqliteStore.open(kept)
    await store.create_execution(record(), [log(1)])
    if way == "deleted":
        shutil.rmtree(kept)
    else:
        kept.rename(tmp_path / "elsewhere")
    if way == "replaced":
        (tmp_path / "other").rename(kept)
    with pytest.raises(StoreError, match="deleted, moved or replaced") as refused:
        await store.append("x1", 1, [log(2)])
    assert refused.value.code == "store-failed"
    assert await code_of(store.append("x1", 1, [log(2)])) == "store-read-only"
    assert await code_of(store.create_execution(record("x2"), [])) == "store-read-only"
    assert store.stats.status == "store-read-only"
    await store.close()
    assert kept.exists() is (way == "replaced"), "nothing was made anew"
    if way == "replaced":
        again = SqliteStore.open(kept, read_only=True)
        assert await seqs(again) == [], "nothing went to what took its place"
        await again.close()


async def test_f27_a_log_that_is_gone_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CHECK_INTERVAL_S", 0.0)
    store = SqliteStore.open(tmp_path)
    await store.create_execution(record(), [log(1)])
    (tmp_path / f"{DATABASE_NAME}-wal").unlink()
    assert await code_of(store.append("x1", 1, [log(2)])) == "store-failed"
    assert store.stats.status == "store-read-only"
    await store.close()


async def test_f28_the_event_loop_is_free_while_the_disk_takes_its_time(
    store: SqliteStore, disk: FaultyDisk
) -> None:
    names = [f"y{number}" for number in range(100)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(store.create_execution(record(name), []))
    waits, goes_on = threading.Event(), threading.Event()

    def slow(_: Path) -> int:
        waits.set()
        assert goes_on.wait(60)
        return disks.OK

    disk.on_sync = slow
    before = store.commits
    async with asyncio.TaskGroup() as group:
        first = group.create_task(store.append("x1", 1, [log(1)]))
        await asyncio.to_thread(waits.wait, 60)
        others = [group.create_task(store.append(name, 1, [log(1, name)])) for name in names]
        for _ in range(1_000):  # the loop turns, and reading goes on
            await asyncio.sleep(0)
        assert await seqs(store) == []
        assert not any(task.done() for task in (first, *others))
        goes_on.set()
    assert store.commits - before == 2, "all that gathered meanwhile shared one commit"


async def test_f29_a_long_reader_holds_nobody_up(store: SqliteStore, tmp_path: Path) -> None:
    reader = sqlite3.connect(tmp_path / "kept" / DATABASE_NAME, isolation_level=None)
    with closing(reader):
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM batches").fetchall()
        store._writer._transactions._raw.execute("PRAGMA wal_autocheckpoint = 5")  # type: ignore[union-attr]
        for seq in range(1, 51):
            await store.append("x1", 1, [log(seq, size=1_000)])
        assert reader.execute("SELECT count(*) FROM batches").fetchone() == (0,)
    assert store.stats.status == "ok"
    assert await seqs(store) == list(range(1, 51))


async def test_f29_another_program_s_lock_is_waited_for(store: SqliteStore, tmp_path: Path) -> None:
    other = sqlite3.connect(
        tmp_path / "kept" / DATABASE_NAME, isolation_level=None, check_same_thread=False
    )
    (busy_ms,) = store._writer._transactions._raw.execute("PRAGMA busy_timeout").fetchone()  # type: ignore[union-attr]
    assert busy_ms >= 5_000, "so long nobody is told that the database is locked"
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            append = group.create_task(store.append("x1", 1, [log(1)]))
            for _ in range(1_000):  # the loop turns meanwhile
                await asyncio.sleep(0)
            assert not append.done()
            other.execute("ROLLBACK")
    assert await seqs(store) == [1]


async def test_f29_a_lock_that_stays_is_a_delay_for_what_runs(
    store: SqliteStore, tmp_path: Path
) -> None:
    store._writer._transactions._raw.execute("PRAGMA busy_timeout = 1")  # type: ignore[union-attr]
    other = sqlite3.connect(tmp_path / "kept" / DATABASE_NAME, isolation_level=None)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        async with asyncio.TaskGroup() as group:
            group.create_task(RetryingJournal(store).append("x1", 1, [log(1)]))
            await says(store, "store-busy")
            other.execute("ROLLBACK")
    assert await seqs(store) == [1]
    assert store.stats.status == "ok"


# -- documents ------------------------------------------------------------------------------------

WRITE_AND_DIE = """
import asyncio, os, pathlib, signal, sys
import planwave.storage.documents
from planwave.service.executions.document_writer import DocumentWriter
from planwave.storage.sqlite.store import SqliteStore

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(directory, moment, name):
    if moment == "before the rename":
        pathlib.Path.replace = die
    elif moment == "after the rename":
        planwave.storage.documents.sync_directory = die
    else:
        SqliteStore.set_document_seqs = die
    store = SqliteStore.open(directory)
    async with DocumentWriter(store, directory) as documents:
        documents.schedule(name)

asyncio.run(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
"""


async def dies_writing(directory: Path, moment: str) -> str:
    """Kill who writes the document of an execution that has just ended; give the older document."""
    kinds = ("execution.created", "execution.started", "execution.paused", "execution.resumed")
    events = [Event(RUN, n, AT, kind, None, None, {}) for n, kind in enumerate(kinds, 1)]
    store = SqliteStore.open(directory)
    await store.create_execution(record(RUN), events[:3])
    async with DocumentWriter(store, directory) as documents:
        await documents.catch_up()
    older = (directory / f"{RUN}.json").read_text("utf-8")
    end = Event(RUN, 5, AT, "execution.completed", None, None, {})
    await store.append(RUN, 1, [events[3], end])
    await store.close()
    child = run_forked("-c", WRITE_AND_DIE, str(directory), moment, RUN, cwd=ROOT)
    assert child.returncode == -signal.SIGKILL
    return older


async def caught_up(directory: Path) -> None:
    """Start again, and find the document as it should be."""
    store = SqliteStore.open(directory)
    assert not unfinished(directory)
    assert await store.lagging_documents() == [RUN]
    for _ in range(2):  # once more changes nothing
        async with DocumentWriter(store, directory) as documents:
            await documents.catch_up()
        found, events = await store.execution(RUN), await store.events(RUN)
        assert found is not None
        kept = json.loads((directory / f"{RUN}.json").read_text("utf-8"))
        assert kept == json.loads(json.dumps(build_document(events, found)))
        assert (kept["status"], found.document_seq) == ("completed", 5)
        assert await store.lagging_documents() == []
    await store.close()


async def test_f09_killed_before_a_document_takes_its_name_the_older_one_stays(
    tmp_path: Path,
) -> None:
    older = await dies_writing(tmp_path, "before the rename")
    assert len(unfinished(tmp_path)) == 1
    assert (tmp_path / f"{RUN}.json").read_text("utf-8") == older
    await caught_up(tmp_path)


async def test_f10_killed_before_the_rename_is_durable_either_document_is_whole(
    tmp_path: Path,
) -> None:
    older = await dies_writing(tmp_path, "after the rename")
    newer = (tmp_path / f"{RUN}.json").read_text("utf-8")
    assert json.loads(newer)["last_seq"] == 5
    shutil.copytree(tmp_path, tmp_path / "cut")  # and where the power went, too, the older one
    (tmp_path / "cut" / f"{RUN}.json").write_text(older, "utf-8")
    await caught_up(tmp_path / "cut")
    await caught_up(tmp_path)


async def test_f11_killed_before_a_document_is_noted_it_is_written_again_and_the_same(
    tmp_path: Path,
) -> None:
    await dies_writing(tmp_path, "before it is noted")
    written = (tmp_path / f"{RUN}.json").read_text("utf-8")
    await caught_up(tmp_path)
    assert (tmp_path / f"{RUN}.json").read_text("utf-8") == written


# -- starting -------------------------------------------------------------------------------------


def serves_not(directory: Path, monkeypatch: pytest.MonkeyPatch, workplace: Path) -> str:
    """Start a service that cannot start; give the line it says."""
    isolated_directory(workplace, monkeypatch)
    done = run_command("--storage", str(directory), "serve", "--port", "0", cwd=workplace)
    assert done.returncode != 0
    assert "Traceback" not in done.stdout + done.stderr
    assert os.listdir(workplace) == [], "nothing is made elsewhere"
    return done.stderr


@pytest.mark.parametrize("there", [False, True], ids=["missing", "empty"])
def test_f25_a_read_only_disk_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    (tmp_path / "workplace").mkdir()
    with small_disk(tmp_path / "disk", "64k", read_only=True) as disk:
        target = disk if there else disk / "storage"
        said = serves_not(target, monkeypatch, tmp_path / "workplace")
        assert "Read-only file system" in said
        assert "PLANWAVE_STORAGE_DIR" in said
        assert os.listdir(disk) == []


def test_f25_a_directory_that_is_a_file_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "workplace").mkdir()
    (tmp_path / "file").write_text("no directory")
    said = serves_not(tmp_path / "file" / "storage", monkeypatch, tmp_path / "workplace")
    assert "PLANWAVE_STORAGE_DIR" in said
    assert (tmp_path / "file").read_text() == "no directory"


OPEN_AS_SOMEBODY = """
import os, pathlib, sys
from planwave.errors import StoreError
from planwave.storage.sqlite.store import SqliteStore
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    SqliteStore.open(pathlib.Path(sys.argv[1]))
except StoreError as error:
    print(error.code, error.message, error.hint, sep="|")
"""


@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_f25_a_directory_of_another_owner_is_one_clear_line(tmp_path: Path, mode: int) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    tmp_path.chmod(0o755)
    kept.chmod(mode)
    done = run_forked("-c", OPEN_AS_SOMEBODY, str(kept), cwd=ROOT)
    kept.chmod(0o700)
    (line,) = done.stdout.splitlines()
    code, message, hint = line.split("|")
    assert code == "store-unusable"
    assert "Permission denied" in message
    assert "owner and permissions" in hint
    assert os.listdir(kept) == []


async def test_f26_a_second_process_is_told_at_once_who_holds_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "workplace").mkdir()
    kept = tmp_path / "kept"
    with start_server(kept) as server:
        took: list[float] = []
        while not took or (took[-1] >= 1 and len(took) < TRIES):
            began = time.monotonic()
            with pytest.raises(StoreError, match=f"locked by pid {server.process.pid}") as refused:
                SqliteStore.open(kept)
            took.append(time.monotonic() - began)
            assert refused.value.code == "storage-locked"
        assert min(took) < 1
        said = serves_not(kept, monkeypatch, tmp_path / "workplace")
        assert f"locked by pid {server.process.pid}" in said
        server.signal(signal.SIGKILL)
        assert server.wait_for_exit() == -signal.SIGKILL
    with start_server(kept) as server:  # a killed holder leaves nothing that is in the way
        assert httpx2.get(f"{server.url}/readyz").status_code == 200
