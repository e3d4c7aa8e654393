"""An installation of several processes: a database and a Temporal server, processes that serve and workers."""

from __future__ import annotations

import asyncio
import json
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from typing import Any, Final

import httpx2

from planwave.client.sse import EventStreamParser
from planwave.events import TERMINAL, Event
from planwave.ids import new_id
from planwave.storage.event_codec import ENDED_STATUSES
from planwave.storage.postgres.store import PostgresStore
from tests.support.cli.command_process import PLANWAVE
from tests.support.scale.account import Account, account_of, is_paused, resumed_after, takeover_s
from tests.support.scale.logging_nodes import Run, RunLog
from tests.support.scale.relay import Relay
from tests.support.scale.role_process import ProcessGroup, RoleProcess
from tests.support.storage.next_version import NextStore

FAULTS: Final = int(os.environ.get("SCALE_FAULTS", "2"))
"""How many times each fault happens."""
EXECUTIONS: Final = int(os.environ.get("SCALE_EXECUTIONS", "12"))
"""How many executions run while one does."""
LAYERS: Final = int(os.environ.get("SCALE_LAYERS", "4"))
"""How many layers of nodes the graph of an execution has, each of which waits for the one before; 10 make 30 nodes."""
WIDTH: Final = 3
STEP_MS: Final = 600
NODES: Final = [f"n{layer}-{i}" for layer in range(LAYERS) for i in range(WIDTH)]
LAST_LAYER: Final = NODES[-WIDTH:]
ONCE: Final = [f"n{layer}-0" for layer in range(1, LAYERS)]
"""Those with the effect ``once``."""
GRAPH: Final[dict[str, Any]] = {
    "nodes": [
        {
            "id": each,
            "type": "logged-act" if each in ONCE else "logged-step",
            "data": {"ms": STEP_MS},
        }
        for each in NODES
    ],
    "edges": [
        {
            "source": f"n{layer - 1}-{(i + 1) % WIDTH}",
            "target": f"n{layer}-{i}",
            "data": {"channel": "flow"},
        }
        for layer in range(1, LAYERS)
        for i in range(WIDTH)
    ],
}
_LIMITS: Final = {
    "PLANWAVE_LIMIT_REQUESTS_PER_S": 100_000,
    "PLANWAVE_LIMIT_REQUESTS_BURST": 1_000_000,
    "PLANWAVE_LIMIT_EXECUTIONS_PER_MINUTE": 1_000_000,
    "PLANWAVE_LIMIT_WAITING_EXECUTIONS": 10_000,
    "PLANWAVE_LIMIT_DRAIN_S": 5,
}
_AT_ONCE: Final = 6
_ASK_AGAIN: Final = {httpx2.codes.SERVICE_UNAVAILABLE, httpx2.codes.TOO_MANY_REQUESTS}
"""A server was away, or too many executions wait: a client asks again."""
_ENDS_S: Final = 120
_ENDS_EACH_S: Final = 1.0


class Installation:
    """Processes on one database and one task queue.

    Attributes:
        group: The processes.
        ids: All executions that were started.
        store_type: What reads them.
    """

    store_type: type[PostgresStore] = PostgresStore

    def __init__(
        self, group: ProcessGroup, database_url: str, temporal_address: str, task_queue: str
    ) -> None:
        self.group = group
        self.url, self._temporal, self._queue = database_url, temporal_address, task_queue
        self._relays = ExitStack()
        self._run_log = RunLog(group.run_log)
        self.ids: list[str] = []

    def close(self) -> None:
        """End the relays; those who started the processes end these."""
        self._relays.close()

    def relay(self, port: int) -> Relay:
        """Return a relay to a port."""
        return self._relays.enter_context(Relay(port))

    def start(
        self,
        role: str,
        *,
        database_port: int = 0,
        temporal_port: int = 0,
        program: str = PLANWAVE,
        env: Mapping[str, str] | None = None,
    ) -> RoleProcess:
        """Start ``planwave ROLE`` on a free port, perhaps through relays, with further settings."""
        temporal = {
            "address": f"127.0.0.1:{temporal_port}" if temporal_port else self._temporal,
            "task_queue": self._queue,
        }
        url = self.url.replace(f":{port_of(self.url)}/", f":{database_port}/")
        return self.group.start(
            role, "--port", "0", program=program,
            PLANWAVE_DATABASE_URL=url if database_port else self.url,
            PLANWAVE_CARRIER="temporal",
            PLANWAVE_TEMPORAL=json.dumps(temporal),
            **_LIMITS,
            **(env or {}),
        )  # fmt: skip

    # -- load --------------------------------------------------------------------------------------

    async def begin(
        self, api: RoleProcess, count: int = EXECUTIONS, supervised: Sequence[RoleProcess] = ()
    ) -> list[str]:
        """Start executions, and return their ids once each runs its first nodes.

        Of the processes that are supervised, those that have ended are started again meanwhile.
        """
        begun = await self.create(api, count)

        def have_begun() -> bool:
            _start_again(supervised)
            return self.runs(begun).keys() >= set(begun)

        await self.until(have_begun)
        return begun

    async def create(
        self,
        api: RoleProcess,
        count: int = EXECUTIONS,
        graph: Mapping[str, Any] = GRAPH,
        options: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Start executions, some at a time; return their ids once they are accepted."""
        created: list[str] = []
        left = iter(range(count))
        async with httpx2.AsyncClient(base_url=api.url, timeout=45) as client:

            async def some() -> None:
                for _ in left:
                    key = {"Idempotency-Key": new_id()}
                    body = {"graph": graph, "start": True, "options": dict(options or {})}
                    answer = await client.post("/api/execute", json=body, headers=key)
                    while answer.status_code in _ASK_AGAIN:
                        await asyncio.sleep(0.2)
                        answer = await client.post("/api/execute", json=body, headers=key)
                    assert answer.status_code == httpx2.codes.ACCEPTED, answer.text
                    created.append(answer.json()["execution_id"])

            async with asyncio.TaskGroup() as tasks:
                for _ in range(_AT_ONCE):
                    tasks.create_task(some())
        self.ids += created if graph is GRAPH else ()
        return created

    def runs(self, ids: Iterable[str]) -> Counter[str]:
        """Return how often nodes of executions have run, by execution."""
        return Counter(each.execution_id for each in self._runs_of(ids))

    def all_runs(self) -> list[Run]:
        """Return what all nodes have written."""
        return self._run_log.runs()

    def _runs_of(self, ids: Iterable[str]) -> list[Run]:
        some = {*ids}
        return [each for each in self.all_runs() if each.execution_id in some]

    def drives(self, process: RoleProcess, ids: Sequence[str]) -> list[str]:
        """Return which of some executions a process drives, and has not begun the last layer of."""
        at_end = {run.execution_id for run in self._runs_of(ids) if run.path in LAST_LAYER}
        some = {*ids} - at_end
        return [each for each in self.last_run_by(process) if each in some]

    def last_run_by(self, process: RoleProcess) -> list[str]:
        """Return the executions of which a process ran the last node so far."""
        last = {run.execution_id: run for run in self.all_runs()}
        return [each for each, run in last.items() if run.pid == process.pid]

    async def until(self, condition: Callable[[], object], within_s: float = _ENDS_S) -> None:
        """Wait for something that processes do."""
        async with asyncio.timeout(within_s):
            while not condition():  # noqa: ASYNC110 - it happens in other processes
                await asyncio.sleep(0.05)

    async def ready(self, *some: RoleProcess) -> None:
        """Wait until processes take work, each started again if it has ended."""
        for each in some:
            await self.any_ready([each])

    async def any_ready(self, some: Sequence[RoleProcess]) -> None:
        """Wait until one of some processes takes work; as a supervisor does, start those again that have ended."""
        async with asyncio.timeout(_ENDS_S):
            while not any(each.is_ready() for each in some):
                _start_again(some)
                await asyncio.sleep(0.05)

    async def ended(
        self, api: RoleProcess, ids: Sequence[str] | None = None
    ) -> dict[str, list[Event]]:
        """Return the events of executions once all have ended; nodes that must not run again get a result."""
        waiting = {*(self.ids if ids is None else ids)}
        histories: dict[str, list[Event]] = {}
        began = last_ended = time.monotonic()
        at_most_s = _ENDS_S + _ENDS_EACH_S * len(waiting)
        async with (
            self.store_type.open(self.url, read_only=True) as store,
            httpx2.AsyncClient(base_url=api.url, timeout=45) as client,
        ):
            while waiting:
                for each in sorted(waiting):
                    record = await store.execution(each)
                    if record is not None and record.status in ENDED_STATUSES:
                        histories[each] = await store.events(each)
                        last_ended = time.monotonic()  # after 200 faults hundreds wait for results
                waiting -= histories.keys()
                await _give_results(client, waiting)
                now = time.monotonic()
                assert now < min(last_ended + _ENDS_S, began + at_most_s), self.report(waiting)
                await asyncio.sleep(0.2)
        return histories

    async def taken_over(
        self, ids: Iterable[str], failed_at: float, others: Sequence[RoleProcess]
    ) -> None:
        """Wait until each execution goes on in one of the other processes, or has ended.

        One that waits for a person needs no process.
        """
        waiting = {*ids}
        began = time.monotonic()
        async with self.store_type.open(self.url, read_only=True) as store:
            while waiting:
                for each in sorted(waiting):
                    events = await store.events(each)
                    status = events[-1].type.removeprefix("execution.")
                    is_at_rest = status in ENDED_STATUSES or is_paused(events, math.inf)
                    if is_at_rest or resumed_after(events, failed_at):
                        waiting.discard(each)
                assert time.monotonic() - began < _ENDS_S, self.report(waiting)
                _start_again(others)
                await asyncio.sleep(0.1)

    async def forms(self) -> Counter[int]:
        """Count the batches of all executions by the version in whose form they are stored."""
        async with NextStore.open(self.url, read_only=True) as store:
            return Counter([form for each in self.ids for form in await store.forms(each)])

    async def newest_form(self) -> int:
        """Return the version in whose form the last events of the newest execution are stored."""
        async with NextStore.open(self.url, read_only=True) as store:
            return (await store.forms(self.ids[-1]))[-1]

    def takeovers(self) -> Counter[tuple[str, str]]:
        """Count how often an execution went on in another process, by the programs of the two."""
        program_of = {pid: each.program for each in self.group.all for pid in each.pids}
        pids: dict[str, list[int]] = defaultdict(list)
        for run in sorted(self.all_runs(), key=lambda run: run.at):
            pids[run.execution_id].append(run.pid)
        return Counter(
            (program_of[before], program_of[after])
            for own in pids.values()
            for before, after in pairwise(own)
            if before != after
        )

    async def follow(self, api: RoleProcess, execution_id: str, seqs: list[int]) -> list[int]:
        """Follow a stream of events to the end of its execution, as a browser does.

        Where the connection ends, or the server is away, it asks again with the id of the last event. Nothing that comes
        twice is left out.

        Args:
            api: The process that serves the stream.
            execution_id: The execution.
            seqs: Gets the ``seq`` of each stored event as it comes.

        Returns:
            ``seqs``.
        """
        url = f"/api/executions/{execution_id}/events"
        async with asyncio.timeout(_ENDS_S), httpx2.AsyncClient(timeout=_ENDS_S) as client:
            while True:
                headers = {"Last-Event-ID": str(seqs[-1])} if seqs else {}
                with suppress(httpx2.TransportError):
                    async with client.stream("GET", api.url + url, headers=headers) as answer:
                        assert answer.is_success or answer.status_code in _ASK_AGAIN
                        parser = EventStreamParser()
                        async for chunk in answer.aiter_bytes():
                            events = [json.loads(each.data) for each in parser.feed(chunk)]
                            stored = [each for each in events if each.get("seq")]
                            seqs += [each["seq"] for each in stored]
                            if any(each["type"] in TERMINAL for each in stored):
                                return seqs
                await asyncio.sleep(0.1)

    def report(self, waiting: Iterable[str]) -> str:
        """Return what the processes have logged, for a message."""
        logs = "\n".join(f"== {each.name}\n{each.log()[-3_000:]}" for each in self.group.all)
        return f"not ended: {sorted(waiting)}\n{logs}"

    def account(self, histories: dict[str, list[Event]]) -> Account:
        """Count what became of executions."""
        return account_of(histories, self.all_runs(), NODES, ONCE)

    def takeover_s(
        self, histories: dict[str, list[Event]], pid: int, failed_at: float
    ) -> list[float]:
        """Return how long each execution of a failed process stood still."""
        return takeover_s(histories, self.all_runs(), pid, failed_at)


def port_of(address: str) -> int:
    """Return the port of ``scheme://…:port/…`` or ``host:port``."""
    return int(address.rpartition(":")[2].partition("/")[0])


def _start_again(some: Iterable[RoleProcess]) -> None:
    for each in some:
        if each.has_ended():
            each.launch()


async def _give_results(client: httpx2.AsyncClient, ids: Iterable[str]) -> None:
    """Answer for nodes whose process failed in the middle of what must not be done twice."""
    for execution_id in ids:
        own = f"/api/executions/{execution_id}"
        with suppress(httpx2.TransportError):
            answer = await client.get(own)
            for each in answer.json()["requests"] if answer.is_success else ():
                if each["request"]["kind"] != "interrupted":
                    continue
                given = {"decision": "give_result", "value": "given"}
                await client.post(f"{own}/requests/{each['request_id']}", json=given)
