"""``planwave logs``: what it prints of a stored execution, and of one that runs elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.shapes.executions import DocumentResponse
from tests.support.cli.fake_factories import fake_factories
from tests.unit.cli.commands.executions.test_watch import ID, STORY, Written, event, writer

__all__ = ["writer"]
TRACE = "Traceback (most recent call last):\n  in helper\nKeyError: x"
CALL = {"call_id": "c1", "name": "look_up"}
LOGGED = [
    *STORY[:3],
    event(4, "node.event", "a", event_type="tool_call_start", data={**CALL, "arguments": {"order": "1"}}),
    event(5, "node.event", "a", event_type="tool_call_end", data={**CALL, "result": {"cents": 100}, "duration_s": 0.2}),
    event(6, "node.retrying", "a", error={"code": "x", "message": "no"}, delay_s=1.0, next_attempt=2, traceback=TRACE),
    event(7, "node.failed", "b", error={"code": "boom", "message": "KeyError: x"}, handled=False, traceback=TRACE),
    event(8, "execution.failed", error={"code": "boom", "message": "b failed"}, failures=["b"]),
]  # fmt: skip


class Stored(Written):
    """Has written its first piece before anybody looks."""

    async def document(self, execution_id: str, /) -> DocumentResponse:
        if not self.looks:
            await self.events(execution_id)
        return await super().document(execution_id)


def logs(written: Written, directory: Path, *args: str) -> Result:
    written.history.executions = written.for_operator()
    obj = fake_factories(history=lambda _: written.history, storage_dir=directory)
    done = CliRunner().invoke(app, ["logs", ID, *args], obj=obj)
    assert done.exit_code == 0, done.output
    return done


def texts(done: Result) -> list[str]:
    """Return level, node and words of the lines, without the time."""
    return [line.split("  ", 1)[1] for line in done.stdout.splitlines() if line[:1] != " "]


def test_logs_has_steps_calls_retries_and_tracebacks(tmp_path: Path) -> None:
    done = logs(Stored([LOGGED]), tmp_path)
    assert texts(done) == [
        "INFO     created: A run",
        "INFO     started",
        "INFO     a  started",
        'INFO     a  call look_up {"order": "1"} in 0.2 s → {"cents": 100}',
        "WARNING  a  attempt 1 failed: no; tries again in 1.0 s",
        "ERROR    b  failed: KeyError: x",
        "ERROR    failed: b failed",
    ]
    assert done.stdout.count("      in helper") == 2


@pytest.mark.parametrize(
    ("args", "count"),
    [(("--level", "error"), 2), (("--level", "warning"), 3), (("--node", "a"), 3), (("--node", "b"), 1)],
)  # fmt: skip
def test_logs_of_one_step_or_from_a_level_up(
    tmp_path: Path, args: tuple[str, ...], count: int
) -> None:
    assert len(texts(logs(Stored([LOGGED]), tmp_path, *args))) == count


def test_logs_as_json_are_one_object(tmp_path: Path) -> None:
    said = json.loads(logs(Stored([LOGGED]), tmp_path, "--json").stdout)
    assert said["execution_id"] == ID
    assert said["lines"][5] == {
        "at": "2026-01-01T00:00:07+00:00", "level": "error", "node": "b", "text": "failed: KeyError: x",
        "traceback": TRACE,
    }  # fmt: skip


@pytest.mark.usefixtures("writer")
def test_logs_follow_what_another_process_writes(tmp_path: Path) -> None:
    written = Stored([LOGGED[:2], LOGGED[2:5], [], LOGGED[5:]])
    assert texts(logs(written, tmp_path, "-f"))[-1] == "ERROR    failed: b failed"


def test_logs_of_a_run_that_goes_on_end_with_what_is_stored(tmp_path: Path) -> None:
    done = logs(Stored([LOGGED[:4]]), tmp_path)
    assert texts(done)[-1] == 'WARNING  a  call look_up {"order": "1"} has begun and not ended'


def test_logs_of_an_interrupted_run_end_with_how_to_go_on(tmp_path: Path) -> None:
    """Also with ``-f``: nothing follows until somebody resumes it."""
    for args in ((), ("-f",), ("--node", "a")):
        written = Interrupted([LOGGED[:3]])
        last = texts(logs(written, tmp_path, *args))[-1]
        assert last.startswith("WARNING  its process ended; ")
        assert last.endswith(f"planwave resume {ID}")


class Interrupted(Stored):
    """Nobody runs it any more."""

    async def document(self, execution_id: str, /) -> DocumentResponse:
        return {**await super().document(execution_id), "interrupted": True}


REUSED = {"reused": {"execution_id": "e0"}, "outputs": {}}
FORKED = [
    *STORY[:2],
    event(3, "wave.started", wave=1, nodes=["a", "b", "c"]),
    event(4, "node.started", "a", name="a"),
    event(5, "node.started", "b", name="b"),
    event(6, "node.completed", "a", **REUSED),
    event(7, "node.started", "c", name="c"),
    event(8, "node.completed", "b", **REUSED),
    event(9, "node.completed", "c", duration_s=1.0, outputs={}),
    event(10, "execution.completed"),
]  # fmt: skip


def test_a_step_that_was_reused_did_not_start(tmp_path: Path) -> None:
    assert texts(logs(Stored([FORKED]), tmp_path))[2:] == [
        "INFO     a  reused from e0",
        "INFO     c  started",
        "INFO     b  reused from e0",
        "INFO     c  completed in 1.0 s",
        "INFO     completed",
    ]


def test_each_line_has_its_date(tmp_path: Path) -> None:
    for line in logs(Stored([FORKED]), tmp_path).stdout.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  ", line)
