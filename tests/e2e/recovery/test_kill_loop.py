"""``kill -9`` at random moments, again and again over one directory; nothing that counts is lost."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from planwave.events import TERMINAL
from planwave.providers.protocols import CallKey
from planwave.providers.recordings import idempotency_key
from tests.support.cli.command_process import (
    isolated_directory,
    read_until,
    start_command,
    start_console_script,
)
from tests.support.engine.event_invariants import check_events
from tests.support.llm.fake_llm_server import FakeLLMServer, fake_llm_in_thread
from tests.support.recovery.crash_history import (
    CrashHistory,
    SettledWork,
    settled_in,
    stored_in,
)
from tests.support.storage.either_database import Place
from tests.support.storage.filled_database import fill_database

KINDS = {
    "execution.completed", "execution.failed", "execution.paused", "execution.resumed",
    "node.completed", "node.failed", "node.retrying", "node.waiting", "node.answered",
    "node.blocked", "node.skipped", "node.parked", "node.unparked", "plan.revised",
}  # fmt: skip


def live_and_die(lives: CrashHistory, kills: int, seed: int) -> None:
    """Live so many lives that are cut off, and on until all has happened; then one to the end."""
    lives.live_and_die(kills, seed, lambda: not is_mixed(lives) and "see is_mixed", at_once=6)


def is_mixed(lives: CrashHistory) -> bool:
    """Say whether something of everything has happened, else the loop shows nothing."""
    events = [event for _, each in lives.stored().values() for event in each]
    facts = {fact for life in lives.runs for fact, *_ in life.facts}
    emitted = {event.data["event_type"] for event in events if event.type == "node.event"}
    return (
        {event.type for event in events} >= KINDS
        and emitted >= {"run_graph", "once"}
        and {"[" in (event.path or "") for event in events if event.data.get("reused")}
        == {True, False}
        and facts >= {"accepted", "published", "ended", "answered", "revised"}
    )


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_f12_a_long_loop_of_kills_loses_nothing(place: Place, seed: int) -> None:
    lives = CrashHistory(place)
    live_and_die(lives, 100, seed)
    lives.check()


# -- the whole command, over HTTP


def step(node_id: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"id": node_id, "type": kind, "data": data}


def wire(source: str, target: str, handle: str = "output") -> dict[str, Any]:
    return {
        "id": f"{source}-{target}", "source": source, "sourceHandle": handle,
        "target": target, "targetHandle": "input", "data": {"channel": "flow"},
    }  # fmt: skip


QUESTION: dict[str, Any] = {
    "nodes": [
        step("a", "llm", prompt="about a"),
        step("b", "llm", prompt="about b"),
        step("q", "approval", prompt="Shall it?"),
        step("yes", "llm"),
        step("no", "text", text="no"),
        step("last", "text", text="{{ inputs.input }}"),
    ],
    "edges": [
        wire("a", "q"), wire("b", "q"), wire("q", "yes", "approve"), wire("q", "no", "reject"),
        wire("yes", "last"), wire("no", "last"),
    ],
}  # fmt: skip


class Caller:
    """A client of one directory's services: sends again what it had no answer to."""

    def __init__(self, seed: int) -> None:
        self.choose = Random(seed)  # noqa: S311 - a test's choices
        self.made: dict[str, str | None] = {}
        self.answered: list[tuple[str, str, str]] = []

    def go_on(self, url: str, *, makes: bool = True) -> bool:
        """Make, look, answer; say whether all has ended."""
        with httpx2.Client(base_url=url, timeout=60, trust_env=False) as http:
            if makes and None not in self.made.values():
                self.made[f"key-{len(self.made)}"] = None
            for key in [key for key, own in self.made.items() if own is None]:
                body = {"graph": QUESTION, "start": True}
                sent = http.post("/api/execute", json=body, headers={"Idempotency-Key": key})
                assert sent.status_code == 202, sent.text
                self.made[key] = sent.json()["execution_id"]
            open_ = [each for each in self._executions(http) if not each["completed_at"]]
            for own in [each["execution_id"] for each in open_]:
                for request in http.get(f"/api/executions/{own}/requests").json()["requests"]:
                    self._answer(http, own, request["request_id"])
            return not open_

    def _executions(self, http: httpx2.Client) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = http.get("/api/executions?limit=200").json()["executions"]
        return found

    def _answer(self, http: httpx2.Client, own: str, request_id: str) -> None:
        decision = self.choose.choice(["approve", "reject"])
        place = f"/api/executions/{own}/requests/{request_id}"
        told = http.post(place, json={"decision": decision})
        assert told.status_code in (200, 202, 409), told.text
        if told.status_code != 409:
            self.answered.append((own, request_id, decision))


def asked_for(llm: FakeLLMServer) -> list[str]:
    """Give the idempotency keys of all calls that reached the provider, in order."""
    return [request.headers["idempotency-key"] for request in llm.requests]


def keys_of(settled: SettledWork) -> set[str]:
    return {idempotency_key(CallKey(*call, "")) for call in settled.calls}


async def slowly(body: dict[str, Any]) -> str:
    await asyncio.sleep(0.05)
    return "a reply"


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_f12_the_command_that_serves_is_killed_again_and_again_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    for limit in ("REQUESTS_PER_S", "REQUESTS_BURST", "EXECUTIONS_PER_MINUTE", "RECOVERIES"):
        monkeypatch.setenv(f"PLANWAVE_LIMIT_{limit}", "1000")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    caller, paid = Caller(20), list[tuple[int, set[str]]]()
    with fake_llm_in_thread(reply_to=slowly) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        while len(paid) < 20 or len(caller.made) < 10:
            with start_command("serve", "--port", "0", "--json") as process:
                url = json.loads(read_until(process.stdout, "\n"))["url"]
                killer = threading.Timer(caller.choose.uniform(0.05, 1.5), process.kill)
                killer.start()
                with suppress(httpx2.TransportError):
                    while True:
                        caller.go_on(url)
                killer.join()
                assert process.wait(60) == -signal.SIGKILL
            paid.append((len(llm.requests), keys_of(settled_in(Place(tmp_path / "storage")))))
        with start_command("serve", "--port", "0", "--json") as process:
            url = json.loads(read_until(process.stdout, "\n"))["url"]
            while not caller.go_on(url, makes=False):
                pass
            process.terminate()
            assert process.wait(60) == 0
        for count, keys in paid:
            assert not keys & set(asked_for(llm)[count:]), "paid for, and called again"
    check_served(caller, tmp_path / "storage")


def check_served(caller: Caller, directory: Path) -> None:
    """Hold what is stored to what the client was told."""
    stored = stored_in(Place(directory))
    assert set(stored) == set(caller.made.values())
    for record, events in stored.values():
        check_events(events)
        assert events[-1].type in TERMINAL
        assert record.status == "completed"
        document = json.loads((directory / f"{record.execution_id}.json").read_text("utf-8"))
        assert (document["status"], document["last_seq"]) == (record.status, record.last_seq)
    for own, request_id, decision in caller.answered:
        (told,) = [
            e
            for e in stored[own][1]
            if e.type == "node.answered" and e.data["request_id"] == request_id
        ]
        assert told.data["answer"]["decision"] == decision
    assert not [*directory.rglob(".*.tmp")]


# -- very much to take up

STORED, OPEN_NOW, READY_S = 10_000, 500, 10.0
TRIES = 3
"""A busy machine may take its time away once; what is slow is so every time."""
LEFT, WAITING, PACE = 375, 125, 50
"""Of those that are open: executions to be taken up, those that wait for an answer; how many a
second."""


def to_go_on(http: httpx2.Client) -> int:
    """Give how many have yet to be taken up or are at work."""
    counts = 0
    for status in ("starting", "executing"):
        page = http.get(f"/api/executions?status={status}&limit=200").json()
        counts += len(page["executions"])
    return counts


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_f70_a_start_over_very_much_that_is_stored_is_ready_before_all_of_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_LIMIT_RECOVERIES_PER_S", str(PACE))
    fill_database(tmp_path / "filled", STORED, OPEN_NOW)
    took: list[float] = []
    while not took or (took[-1] >= READY_S and len(took) < TRIES):
        directory = shutil.copytree(tmp_path / "filled", tmp_path / f"storage-{len(took)}")
        began_at = datetime.now(UTC).isoformat()
        took.append(ready_in(directory))
        check_taken_up(directory, began_at)
    assert min(took) < READY_S


def ready_in(directory: Path) -> float:
    """Serve until nothing is left to be taken up; give after how many seconds it was ready."""
    began = time.monotonic()
    command = "--storage", str(directory), "serve", "--port", "0", "--json"
    with start_console_script(*command) as process:  # its imports are part of its start
        url = json.loads(read_until(process.stdout, "\n"))["url"]
        with httpx2.Client(base_url=url, timeout=60, trust_env=False) as http:
            assert http.get("/readyz").status_code == 200
            took = time.monotonic() - began
            assert to_go_on(http), "it was not ready before all had been taken up"
            while to_go_on(http):
                time.sleep(0.5)
        process.terminate()
        assert process.wait(60) == 0
    return took


def check_taken_up(directory: Path, began_at: str) -> None:
    """All went on, at the pace of the limits, and nothing else."""
    stored = stored_in(Place(directory)).values()
    statuses = Counter(record.status for record, _ in stored)
    assert statuses == {"completed": STORED - OPEN_NOW, "paused": OPEN_NOW}
    taken_up = sorted(
        datetime.fromisoformat(event.at)
        for _, events in stored
        for event in events
        if event.type in ("execution.resumed", "execution.started") and event.at > began_at
    )
    assert len(taken_up) == LEFT
    took_s = (taken_up[-1] - taken_up[0]).total_seconds()
    assert took_s > 0.8 * LEFT / PACE, "nobody held them back"
