"""Executions whose process is dead: each command says so, with the way on, and never of one that is run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from planwave.cli.errors import ExitCode
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.plan import graph_hash
from planwave.ids import new_id
from planwave.service.executions.run_spec import RunSpec, new_execution
from planwave.storage.lock import DirectoryLock
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.graph.builders import make_graph, text_node

AT = "2026-01-01T00:00:00.000000+00:00"
GRAPH = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])
STORAGE = Path("storage")


async def _leave(execution_id: str, *kinds: tuple[str, str | None]) -> None:
    """Leave an execution as a process does that is killed after these events."""
    spec = RunSpec(graph=GRAPH, inputs={}, options=RunOptions(), plan_hash=graph_hash(GRAPH))
    async with SqliteStore.open(STORAGE) as store:
        record, created = new_execution(spec, 2, execution_id, AT, queued=True)
        await store.create_execution(record, [created])
        events = [
            Event(execution_id, seq, AT, kind, path, 1 if path else None, {"waves": 2})
            for seq, (kind, path) in enumerate(kinds, start=2)
        ]
        await store.append(execution_id, await store.claim(execution_id), events)


@pytest.fixture
def cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    isolated_directory(tmp_path, monkeypatch)
    execution_id = new_id()
    asyncio.run(_leave(execution_id, ("execution.started", None), ("node.started", "a")))
    return execution_id


@pytest.fixture
def owner(cut_off: str) -> Iterator[DirectoryLock]:
    """A live process that owns the directory."""
    lock = DirectoryLock(STORAGE)
    yield lock
    lock.release()


READS = [
    ("ls",),
    ("show", "last"),
    ("explain", "last"),
    ("explain", "last", "a"),
    ("watch", "last"),
]


@pytest.mark.parametrize("command", READS, ids=" ".join)
def test_every_command_says_that_nobody_runs_it_and_how_to_continue(
    cut_off: str, command: tuple[str, ...]
) -> None:
    shown = invoke(*command)
    assert "interrupted" in shown.stdout or command[0] == "explain"
    assert f"continue with: planwave resume {cut_off}" in shown.stdout
    document = invoke_json(*command, code=shown.exit_code)
    for found in document.get("executions", [document]):
        assert found["interrupted"] is True
        assert found.get("status") != "interrupted", "the stored status stays"
    assert invoke("resume", cut_off).exit_code == 0
    assert "continue with" not in invoke(*command).stdout


REFUSED = [("retry", "last"), ("fork", "last", "--rerun", "a"), ("delete", "{}")]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_what_needs_its_end_does_not_say_to_wait_for_it(
    cut_off: str, command: tuple[str, ...]
) -> None:
    refused = invoke(*(word.format(cut_off) for word in command))
    assert refused.exit_code == ExitCode.USAGE
    assert "resume" in refused.stderr
    assert "interrupted" in refused.stderr
    assert invoke("cancel", cut_off).exit_code == 0, "the other way on"
    assert invoke(*(word.format(cut_off) for word in command)).exit_code == 0


def test_the_log_of_it_ends_with_how_to_continue(cut_off: str) -> None:
    assert (
        invoke("logs", "last").stdout.rstrip().endswith(f"continue with: planwave resume {cut_off}")
    )


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("command", READS[:-1], ids=" ".join)
def test_an_execution_is_not_interrupted_while_a_live_process_owns_the_directory(
    command: tuple[str, ...],
) -> None:
    assert "continue with" not in invoke(*command).stdout
    assert "interrupted" not in str(invoke_json(*command))


def test_the_pid_of_a_dead_owner_may_belong_to_another_process_by_now(
    cut_off: str, owner: DirectoryLock
) -> None:
    owner.write_owner({"pid": os.getpid(), "url": "http://127.0.0.1:1"})
    owner.close()  # as the kernel does with the lock of a killed process: its file stays as it is
    assert invoke_json("show", cut_off)["interrupted"] is True


def test_what_is_only_created_is_not_interrupted(cut_off: str) -> None:
    async def create() -> str:
        spec = RunSpec(graph=GRAPH, inputs={}, options=RunOptions())
        async with SqliteStore.open(STORAGE) as store:
            record, created = new_execution(spec, 2, new_id(), AT)
            await store.create_execution(record, [created])
            return record.execution_id

    created = asyncio.run(create())
    listed = {each["execution_id"]: each for each in invoke_json("ls")["executions"]}
    assert ("interrupted" in listed[created], "interrupted" in listed[cut_off]) == (False, True)
