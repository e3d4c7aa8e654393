from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.events import Event
from planwave.service.queries.history import ExecutionQueries, History
from planwave.storage.lock import DirectoryLock
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.cli.fake_factories import fake_factories
from tests.support.graph.builders import make_graph, text_node

ID = "01911111-0000-7000-8000-000000000001"
GRAPH = make_graph(text_node("a", name="First"), text_node("b"), edges=[("a", "b")])


def event(seq: int, kind: str, path: str | None = None, **data: Any) -> Event:
    return Event(ID, seq, f"2026-01-01T00:00:0{seq}+00:00", kind, path, 1 if path else None, data)


STORY = [
    event(1, "execution.created", goal="g", title="A run", graph=GRAPH.to_document()),
    event(2, "execution.started", waves=2),
    event(3, "node.started", "a", wave=1),
    event(4, "node.completed", "a", outputs={"output": {"type": "text", "value": "one"}}),
    event(5, "node.failed", "b", error={"code": "boom", "message": "no"}, handled=False),
    event(6, "execution.failed", error={"code": "boom", "message": "b failed"}, failures=["b"]),
]


class Written(ExecutionQueries):
    """Keeps what another process writes: some more of it at every look."""

    def __init__(self, pieces: Sequence[Sequence[Event]]) -> None:
        super().__init__(store := MemoryStore(), None)
        self.history = History(store, None)
        self.history.executions = self
        self._pieces = iter(pieces)
        self.looks = 0

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        self.looks += 1
        piece = next(self._pieces, ())
        for each in piece:
            if each.seq == 1:
                record = ExecutionRecord(ID, None, "A run", "g", "starting", each.at)
                await self._store.create_execution(record, [each])
            else:
                await self._store.append(ID, 1, [each])
        return await super().events(execution_id, after=after, limit=limit)

    async def get(self, execution_id: str) -> ExecutionRecord:
        if await self._store.execution(execution_id) is None:
            return ExecutionRecord(ID, None, "A run", "g", "starting", STORY[0].at)
        return await super().get(execution_id)


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DirectoryLock]:
    """Another process that writes, and says no address."""
    monkeypatch.setattr("planwave.cli.commands.executions.watch._POLL_INTERVAL_S", 0.0)
    lock = DirectoryLock(tmp_path)
    yield lock
    lock.release()


def watch(written: Written, directory: Path, *args: str) -> Result:
    obj = fake_factories(history=lambda _: written.history, storage_dir=directory)
    return CliRunner().invoke(app, ["watch", ID, *args], obj=obj)


@pytest.mark.usefixtures("writer")
def test_watch_prints_events_of_another_process(tmp_path: Path) -> None:
    written = Written([STORY[:2], STORY[2:3], [], STORY[3:5], STORY[5:]])
    done = watch(written, tmp_path)
    assert (done.exit_code, written.looks) == (1, 5)
    output = [line.partition("] ")[2] for line in done.stdout.splitlines() if line.startswith("[")]
    assert [line.split()[0] for line in output] == ["running", "started", "completed", "failed"]


def test_watch_prints_event_times(tmp_path: Path) -> None:
    done = watch(Written([STORY]), tmp_path)
    times = [line[1:9].strip() for line in done.stdout.splitlines() if line.startswith("[")]
    assert times == ["1.0s", "2.0s", "3.0s", "4.0s"]


def test_watch_reports_abandoned_execution(tmp_path: Path) -> None:
    done = watch(Written([STORY[:4]]), tmp_path)
    assert done.exit_code == 1
    assert "no process runs this execution: it stays executing" in done.stderr


def test_watch_json_prints_one_object(tmp_path: Path) -> None:
    done = watch(Written([STORY]), tmp_path, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["status"] == "failed"
    assert "failed     b" in done.stderr


ASKED = [
    *STORY[:3],
    event(4, "node.waiting", "a", request_id="r4", request={"prompt": "May I?"}),
    event(5, "execution.paused", reason="waiting for an answer"),
]


@pytest.mark.usefixtures("writer")
def test_watch_shows_open_request_and_answer(tmp_path: Path) -> None:
    answered = event(6, "node.answered", "a", request_id="r4", answer={"decision": "ok"})
    ended = event(7, "execution.cancelled", cause="enough")
    done = watch(Written([STORY[:1], [], ASKED[1:], [answered, ended]]), tmp_path)
    assert "for an answer to r4: May I?" in done.stdout
    assert f"  answer with: planwave answer {ID} r4" in done.stdout
    assert "answered   a  First: ok" in done.stdout


@pytest.mark.usefixtures("writer")
def test_watch_does_not_offer_closed_request(tmp_path: Path) -> None:
    answered = event(6, "node.answered", "a", request_id="r4", answer={"decision": "ok"})
    ended = event(7, "execution.cancelled", cause="enough")
    done = watch(Written([[*ASKED, answered], [ended]]), tmp_path)
    assert "for an answer to r4: May I?" in done.stdout
    assert "answer with" not in done.stdout


def test_watch_of_paused_execution_succeeds(tmp_path: Path) -> None:
    done = watch(Written([ASKED]), tmp_path)
    assert done.exit_code == 0
    assert f"answer with: planwave answer {ID} r4" in done.stdout


@pytest.mark.usefixtures("writer")
def test_watch_shows_resume_command(tmp_path: Path) -> None:
    paused = event(3, "execution.paused", reason="paused by request")
    ended = event(4, "execution.cancelled", cause="enough")
    done = watch(Written([STORY[:1], [], [STORY[1], paused, ended]]), tmp_path)
    assert f"resume with: planwave resume {ID}" in done.stdout
