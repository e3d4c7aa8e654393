"""Many lives of one storage directory, ended at random, and what they have to leave behind.

``Lives`` starts a service again and again over the same directory (``crash_child.py``), ends
it with ``kill -9``, and looks after each life at what is stored and at what the outside world saw.
``Lives.check`` holds all of it to the invariants I1 to I9.
"""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from planwave.errors import StoreError
from planwave.events import ENDED_STATUS, TERMINAL, Event, ExecutionState, fold
from planwave.storage.documents import build_document
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.schema import calls
from tests.support.cpu_time import cpu_of
from tests.support.engine.event_invariants import check_events, once_values, settled_attempts
from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess
from tests.support.recovery.crash_child import EXTERNAL_LOG, TOKENS, ChildOptions
from tests.support.recovery.crash_points import KILLED, record_kind
from tests.support.storage.either_database import Place

PROGRAM = "from tests.support.recovery.crash_child import main; main()"
LONGEST_STRETCH = 20
"""How many times longer a life lasts at most, so that it works as much as it should."""
_POLL_S = 0.005
SHORTEST_S = 0.03
"""How long a life lasts at least that is cut off at a random moment."""
CallRef = tuple[str, str, int, int]
"""Execution, path, attempt, ordinal."""


class SettledWork(NamedTuple):
    """What has to be left alone: attempts with an outcome, executions that are over, paid calls.

    ``kept`` are the values that nodes of an execution's own graph find again: execution, path, key.
    """

    attempts: set[tuple[str, str, int]]
    ended: set[str]
    calls: set[CallRef]
    once_values: set[tuple[str, str, str]]


@dataclass
class ProcessRun:
    """How one life went.

    Attributes:
        pid: Its process.
        facts: What a client received, in order.
        exit_code: How it ended: ``-9`` where it was killed.
    """

    pid: int = 0
    facts: list[list[Any]] = field(default_factory=list)
    exit_code: int | None = None

    def facts_of(self, fact: str) -> list[list[Any]]:
        """Return the facts of one kind."""
        return [about for kind, *about in self.facts if kind == fact]


@dataclass
class CrashHistory:
    """The lives of one place.

    Attributes:
        settled: How things stood after each life.
        program: What the process of a life runs.
        longest_s: How long a life lasts at most that is cut off at a random moment.
        least_cpu_share: How much of its time such a life works at least; else it lasts longer.
    """

    place: Place
    runs: list[ProcessRun] = field(default_factory=list)
    settled: list[SettledWork] = field(default_factory=list)
    program: ClassVar[str] = PROGRAM
    longest_s: ClassVar[float] = 0.4
    least_cpu_share: ClassVar[float] = 0.0

    def options(self, **order: Any) -> ChildOptions:
        """Return the options of one life."""
        directory, url = self.place
        return ChildOptions(directory=str(directory), database_url=url, **order)

    @property
    def directory(self) -> Path:
        """The directory of the place."""
        return self.place.directory

    def run(self, kill_after_s: float | None = None, **order: Any) -> ProcessRun:
        """Live one life; it is killed so many seconds after it is up, if it has not ended."""
        options = json.dumps(asdict(self.options(**order)))
        with ForkedProcess("-c", self.program, options, cwd=ROOT, stderr=2) as process:
            life = ProcessRun(process.pid)
            timer = _Killer(process, kill_after_s or 0, self.least_cpu_share)
            assert process.stdout is not None
            for line in process.stdout:
                life.facts.append(json.loads(line))
                if life.facts[-1] == ["up"] and kill_after_s is not None:
                    timer.start()
            timer.stop()
            life.exit_code = process.wait()
        self.runs.append(life)
        expected = 0, -signal.SIGKILL, KILLED
        assert life.exit_code in expected, f"it broke ({life.exit_code}); see its standard error"
        self.place.wait_until_left()
        self.settled.append(settled_in(self.place))
        return life

    def live_and_die(
        self, kills: int, seed: int, missing: Callable[[], object], *, at_once: int
    ) -> None:
        """Live so many lives that are cut off, and on until all has happened; then one to the end.

        Args:
            kills: How many lives are cut off, at random moments.
            seed: What is chosen.
            missing: What has not happened yet, without which the loop shows nothing; false for nothing.
            at_once: How many executions there always are that have not ended.
        """
        choose = Random(seed)  # noqa: S311 - a test's choices
        killed = 0
        while killed < kills or missing():  # a busy machine does little in so short a life
            assert killed < kills + 60, f"never happened: {missing()}"
            more = max(killed - kills, 0) / 5
            after_s = choose.uniform(SHORTEST_S, self.longest_s) * (1 + more)
            life = self.run(after_s, seed=choose.getrandbits(32), at_once=at_once)
            killed += life.exit_code != 0
        self.run(seed=seed, ends=True)

    def stored(self) -> dict[str, tuple[ExecutionRecord, list[Event]]]:
        """Give all that is stored."""
        return stored_in(self.place)

    def document(self, execution_id: str) -> dict[str, Any]:
        """Return the document of an execution that has ended: the file, or what the API makes where there is none."""
        if self.place.documents is not None:
            path = self.directory / f"{execution_id}.json"
            return json.loads(path.read_text("utf-8"))
        return asyncio.run(_document(self.place, execution_id))

    def external_records(self, *kinds: str) -> list[list[Any]]:
        """Give what the outside world saw, ``[kind, pid, execution, path, attempt, …]``."""
        path = self.directory.parent / EXTERNAL_LOG
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        seen = [json.loads(line) for line in lines]
        return [each for each in seen if not kinds or each[0] in kinds]

    # -- invariants --------------------------------------------------------------------------------

    def check(self, *, is_over: bool = True) -> None:
        """Hold everything to the invariants I1 to I9; ``is_ended``: all has ended in good order."""
        stored = self.stored()
        for _, events in stored.values():
            check_events(events)
        self._check_facts(stored)
        self._check_external_records()
        self._check_once(stored)
        self._check_charged(stored)
        if is_over:
            self._check_end(stored)

    def _check_facts(self, stored: dict[str, tuple[ExecutionRecord, list[Event]]]) -> None:
        """I1, I8: what a client received is stored, as it was received."""
        for life in self.runs:
            for (own,) in life.facts_of("accepted"):
                assert own in stored, f"{own} was accepted, and is gone"
            last: dict[str, int] = {own: 0 for (own,) in life.facts_of("accepted")}
            for own, seq, kind, path in life.facts_of("published"):
                event = stored[own][1][seq - 1]
                assert (event.seq, event.type, event.path) == (seq, kind, path)
                assert seq == last.get(own, seq - 1) + 1, "published with a gap, or twice"
                last[own] = seq
            for own, kind in life.facts_of("ended"):
                assert stored[own][1][-1].type == kind
            for own, request_id, decision in life.facts_of("answered"):
                (event,) = _of(stored[own][1], "node.answered", request_id)
                assert event.data["answer"]["decision"] == decision
                assert "by" not in event.data
            for own, path in life.facts_of("cancelled"):
                kind = "execution.cancelled" if path is None else "node.cancelled"
                assert [e for e in stored[own][1] if (e.type, e.path) == (kind, path)]
            for own, change, graph_hash in life.facts_of("revised"):
                made = [e.data for e in stored[own][1] if e.type == "plan.revised"]
                assert (made[change - 1]["change"], made[change - 1]["hash"]) == (
                    change,
                    graph_hash,
                )
            for (own,) in life.facts_of("paused"):
                reasons = [e.data["reason"] for e in _paused(stored[own][1])]
                assert "paused by request" in reasons

    def _check_external_records(self) -> None:
        """I6: what was settled did not run again; what was recorded was not asked for again."""
        order = {life.pid: number for number, life in enumerate(self.runs)}
        kept: set[CallRef] = set()
        made: Counter[tuple[int, CallRef]] = Counter()
        for kind, pid, own, path, attempt, *ordinal in self.external_records():
            number = order[pid]
            before = self.settled[number - 1] if number else SettledWork(set(), set(), set(), set())
            assert own not in before.ended, f"{own} was over, and {path} did something"
            settled = (own, path, attempt) in before.attempts
            assert not settled, f"{own}: {path} was settled, and ran again"
            if kind == "once":
                assert (own, path, ordinal[0]) not in before.once_values, "a value was made again"
            if kind in ("run", "once"):
                continue
            call = (own, path, attempt, *ordinal)
            if kind == "kept":
                kept.add(call)
                continue
            is_paid = call in kept or call in before.calls
            assert not is_paid, f"{call} was paid for, and made again"
            made[pid, call] += 1
            assert made[pid, call] == 1, f"{call} was made twice in one life"

    def _check_once(self, stored: dict[str, tuple[ExecutionRecord, list[Event]]]) -> None:
        """I6: what may act but once acted again only where a person decided so; nothing reused ran."""
        ran = Counter((own, path) for _, _, own, path, _ in self.external_records("run"))
        for own, (_, events) in stored.items():
            nodes = [*events[0].data["graph"]["nodes"]]
            for event in events:
                if event.type == "plan.revised":
                    nodes += event.data["graph_change"]["nodes"]
            for event in events:
                assert not event.data.get("reused") or not ran[own, event.path]
            again = Counter(
                e.path
                for e in events
                if e.type == "node.answered" and e.data["answer"].get("decision") == "run_again"
            )
            for node in nodes:
                if node.get("policy", {}).get("effect") == "once":
                    assert ran[own, node["id"]] <= 1 + again[node["id"]]

    def _check_charged(self, stored: dict[str, tuple[ExecutionRecord, list[Event]]]) -> None:
        """I7: executions are charged with every call that was paid and kept, once.

        Only what an attempt did not come to tell, as it was cancelled or failed, may be left out.
        """
        paid = asyncio.run(_recorded_calls(self.place))
        for own, (_, events) in stored.items():
            state = fold(events)
            completed = {(e.path, e.attempt) for e in events if e.type == "node.completed"}
            least, most = Counter[str](), Counter[str]()
            for (path, attempt), kept in paid.get(own, {}).items():
                most[path] += kept
                is_own = (path, attempt) in completed and not self._may_be_served(events)
                least[path] += kept if is_own else 0
            charged = 0
            for path, usage in _usage_of(state).items():
                calls = usage["calls"]
                assert least[path] <= calls <= most[path], f"{own}: {path} is charged for {calls}"
                assert usage["input_tokens"] == calls * TOKENS
                charged += calls
            assert (state.usage.calls, state.usage.input_tokens) == (charged, charged * TOKENS)

    def _may_be_served(self, events: list[Event]) -> bool:
        """Return whether an execution is served calls that another one was charged with."""
        return False

    def _check_end(self, stored: dict[str, tuple[ExecutionRecord, list[Event]]]) -> None:
        """I3, I5, I9: all has ended, is written down, and nothing lies about."""
        assert self.runs[-1].exit_code == 0
        assert self.runs[-1].facts_of("left") == [[[]]], "tasks were left"
        for own, (record, events) in stored.items():
            assert events[-1].type in TERMINAL, f"{own} is stuck at {events[-1]}"
            document = self.document(own)
            assert document["last_seq"] == record.last_seq == len(events)
            assert document["status"] == record.status == events[-1].type.partition(".")[2]
        assert not [*self.directory.rglob("*.tmp"), *self.directory.rglob(".*.tmp")]
        asyncio.run(_check_lock_released(self.place))


class _Killer(threading.Thread):
    """Kills a process after a time, on a busy machine once it has done about as much as on a quiet one."""

    def __init__(self, process: ForkedProcess, after_s: float, least_cpu_share: float) -> None:
        super().__init__(name="killer")
        self._process, self._after_s = process, after_s
        self._least_cpu_s = after_s * least_cpu_share
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let the process be."""
        self._stopped.set()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Wait, and kill the process."""
        began, before = time.monotonic(), cpu_of(self._process.pid) or 0.0
        while not self._stopped.wait(_POLL_S):
            lasted, used = time.monotonic() - began, cpu_of(self._process.pid)
            is_late = lasted >= self._after_s * LONGEST_STRETCH
            if used is None or is_late:
                break
            if lasted >= self._after_s and used - before >= self._least_cpu_s:
                break
        if not self._stopped.is_set():
            self._process.kill()


def stored_in(place: Place) -> dict[str, tuple[ExecutionRecord, list[Event]]]:
    """Give all executions stored in a place."""
    return asyncio.run(_stored(place))


def settled_in(place: Place) -> SettledWork:
    """Give what has to be left alone from now on."""
    return asyncio.run(_settled(place))


def _usage_of(state: ExecutionState) -> dict[str, Any]:
    """Return what each node of an execution has used by its path, those too that a change has dropped."""
    nodes = [each.as_json() for each in state.nodes.values()]
    nodes += [node for change in state.changes.records for node in change["dropped"]]
    return {each["path"]: each["usage"] for each in nodes}


def _of(events: list[Event], kind: str, request_id: str) -> list[Event]:
    return [e for e in events if e.type == kind and e.data["request_id"] == request_id]


def _paused(events: list[Event]) -> list[Event]:
    return [e for e in events if e.type == "execution.paused"]


async def _stored(place: Place) -> dict[str, tuple[ExecutionRecord, list[Event]]]:
    store = place.open_to_read()
    records = await store.executions(limit=100_000)
    found = {r.execution_id: (r, await store.events(r.execution_id)) for r in records}
    await store.close()
    return found


async def _document(place: Place, own: str) -> dict[str, Any]:
    async with place.open_to_read() as store:
        record = await store.execution(own)
        assert record is not None
        calls = (await store.calls([own])).get(own, ())
        return {**build_document(await store.events(own), record, calls)}


async def _settled(place: Place) -> SettledWork:
    store = place.open_to_read()
    records = await store.executions(limit=100_000)
    over = {r.execution_id for r in records if r.status in ENDED_STATUS}
    found = SettledWork(set(), over, set(), set())
    for own in (r.execution_id for r in records if r.execution_id not in found.ended):
        events = await store.events(own)
        found.attempts.update((own, *each) for each in settled_attempts(events))
        found.once_values.update((own, *each) for each in once_values(events) if "[" not in each[0])
    for row in await store._rows(calls.select()):
        found.calls.add((row.execution_id, row.path, row.attempt, row.ordinal))
    await store.close()
    return found


async def _recorded_calls(place: Place) -> dict[str, Counter[tuple[str, int]]]:
    """Give how many model calls are kept, by execution, and by path and attempt."""
    store = place.open_to_read()
    found: dict[str, Counter[tuple[str, int]]] = {}
    for row in await store._rows(calls.select()):
        if record_kind(json.loads(row.reply)) == "model":
            found.setdefault(row.execution_id, Counter())[row.path, row.attempt] += 1
    await store.close()
    return found


async def _check_lock_released(place: Place) -> None:
    try:
        store = place.open()
    except StoreError as error:
        raise AssertionError("a lock was left behind") from error
    await store.close()
