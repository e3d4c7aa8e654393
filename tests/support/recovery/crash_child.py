"""A service that is there to be killed: executor, database, a scripted model, no HTTP and no SDK.

The process runs ``main OPTIONS``: it lives one life as ordered (``ChildOptions`` as JSON). On
standard output comes what a client of the service may rely on, each written once the service reported
so (``FactWriter``). ``tests/support/recovery/crash_history.py`` is the other end.

What the outside world saw is in ``<directory>/../outside.log``, JSON lines written before anybody is
recorded: ``["run", life, execution, path, attempt]`` for a node that began its work, ``["call", life,
execution, path, attempt, ordinal]`` for a call that the model took, ``"kept"`` for one whose reply
the service has recorded, ``["once", life, execution, path, attempt, key]`` for a value that was made.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from zlib import crc32

from planwave.errors import NodeError, PlanwaveError, ProviderError
from planwave.events import TERMINAL, Event
from planwave.executor.options import RunOptions
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent
from planwave.graph.reading.documents import read_graph
from planwave.nodes.services import NodeServices
from planwave.providers.protocols import (
    CallKey,
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    Recorder,
    Usage,
)
from planwave.providers.recordings import key_of, reply_from
from planwave.service.service import Service
from planwave.settings import Limits
from planwave.storage.sql.store import Store
from tests.support.graph.random_documents import (
    changed_document,
    nested_documents,
    random_document,
    random_options,
)
from tests.support.llm.fake_providers import FakeProviders
from tests.support.recovery.crash_points import KILLED, CrashPoint, crash_at
from tests.support.service.dependencies import dependencies
from tests.support.storage.either_database import Place

EXTERNAL_LOG = "outside.log"
TOKENS = 7
"""What the model reads in every prompt."""
NESTED_GRAPHS = {name: read_graph(document)[0] for name, document in nested_documents().items()}
SET_ASIDE = "set aside"
LONGEST_LIFE_S = 60
"""A life that has not ended after so many seconds hangs; it writes what is open, and fails."""
FAILING_PROMPT_PREFIX = "say"
"""How a prompt begins at which the model stumbles now and then: always at the same calls."""


@dataclass(frozen=True, kw_only=True)
class ChildOptions:
    """What one life is to be like.

    Attributes:
        directory: The storage directory.
        database_url: Its database, where that is not in the directory.
        seed: What is chosen.
        at_once: Executions made so that there are always so many that have not ended.
        graphs: One execution of each is made before that.
        ends: Live until all that is stored has ended, then go down in good order.
        point: Where the process ends by itself; see ``crash_points``.
        recoveries: The limit of that name.
        patient: Answer only what is asked of an execution that has come to rest.
    """

    directory: str
    database_url: str | None = None
    seed: int = 0
    at_once: int = 0
    graphs: Sequence[dict[str, Any]] = ()
    ends: bool = False
    point: str | None = None
    recoveries: int = 1_000
    patient: bool = False


class AppendOnlyLog:
    """Lines that are there once written, whatever becomes of the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, *what: Any) -> None:
        os.write(self._file, json.dumps(what).encode() + b"\n")


class ExternalWorld:
    """The world the nodes act upon: a model that counts its calls, and work that leaves a trace."""

    def __init__(self, log: AppendOnlyLog, recorder: Recorder, seed: int) -> None:
        self._log, self._recorder = log, recorder
        self._choose = Random(seed)  # noqa: S311 - a test's choices

    def record_run(self, context: FlowContext) -> None:
        """Note that a node does its work."""
        self._log.write("run", os.getpid(), context.run_id, context.path, context.attempt)

    def record_once(self, context: FlowContext, key: str) -> None:
        """Note that a node makes a value that it has to find again."""
        place = context.run_id, context.path, context.attempt
        self._log.write("once", os.getpid(), *place, key)

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncIterator[Delta | ModelReply]:
        """Answer, mostly; a reply is recorded before it is given."""
        assert scope is not None
        key = key_of(request, scope)
        recorded = await self._recorder.recorded(key)
        if recorded is not None:
            yield reply_from(recorded)
            return
        await self.record_call(key)
        yield Delta("so ")
        await asyncio.sleep(self._choose.random() * 0.01)
        if request.prompt.startswith(FAILING_PROMPT_PREFIX) and crc32(repr(key).encode()) % 3 == 0:
            raise ProviderError("the model stumbled", provider=request.provider, retryable=True)
        reply = ModelReply(
            f"so {request.prompt}", request.provider, request.model, "stop", Usage(TOKENS, 1)
        )
        await self._recorder.record(key, asdict(reply))
        self._note("kept", key)
        yield reply

    async def record_call(self, key: CallKey) -> None:
        """Take a call."""
        self._note("call", key)

    def _note(self, what: str, key: CallKey) -> None:
        self._log.write(what, os.getpid(), *key[:4])


class JobNode:
    """A node type that works ``ms`` milliseconds, after some ``calls``, values it ``keeps``, graphs.

    Where it has a ``body``, it runs that graph for so many ``items``, some in ``parallel``; an item
    that fails is its failure unless it ``skips`` those. It may work on ``until`` there is a file,
    fail, break, or end the process.
    """

    node_type = "job"

    def __init__(self, world: ExternalWorld) -> None:
        self._world = world

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> AsyncIterator[NodeEvent | ExecutionResult]:
        self._world.record_run(context)
        scope = CallScope(context.run_id, context.path, context.attempt)
        texts: list[str] = []
        for number in range(data.get("calls", 0)):
            request = ModelRequest("openai", "gpt", f"{context.node_id} {number}")
            async for item in self._world.stream(request, scope):
                if isinstance(item, ModelReply):
                    texts.append(item.text)
                    yield self._usage_event(item, context)
        texts += [await self._once_value(context, f"k{n}") for n in range(data.get("keeps", 0))]
        if "body" in data:
            await _run_each(data, context)
        await asyncio.sleep(data.get("ms", 0) / 1_000)
        if "until" in data:
            await until(Path(data["until"]).exists)
        if context.attempt <= data.get("fails", 0):
            raise NodeError("not this time", retryable=True)
        if data.get("dies"):
            os._exit(KILLED)
        if data.get("breaks"):
            raise NodeError("it broke")
        yield ExecutionResult({"output": DataValue("text", " ".join([context.node_id, *texts]))})

    def _usage_event(self, reply: ModelReply, context: FlowContext) -> NodeEvent:
        usage = {"provider": reply.provider, "model": reply.model, **asdict(reply.usage)}
        usage |= {"recorded": True} if reply.recorded else {}
        return NodeEvent(context.node_id, self.node_type, "usage", context.run_id, usage)

    async def _once_value(self, context: FlowContext, key: str) -> str:
        async def make() -> str:
            self._world.record_once(context, key)
            await asyncio.sleep(0.002)
            return f"{key} of life {os.getpid()}"

        kept: str = await context.runtime.once(key, make)
        return kept


async def _run_each(data: Mapping[str, Any], context: FlowContext) -> None:
    """Run a graph for every item, so many at a time."""
    left = iter(range(data.get("items", 1)))

    async def work() -> None:
        for item in left:
            try:
                await context.runtime.run_graph(
                    f"i{item}", NESTED_GRAPHS[data["body"]], {}, variables={"item": item}
                )
            except NodeError as error:
                if not data.get("skips"):
                    raise NodeError("an item failed", retryable=True) from error

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(data.get("parallel", 1)):
                group.create_task(work())
    except* NodeError as failed:
        raise failed.exceptions[0] from None


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    while not holds():  # noqa: ASYNC110 - nobody here would set an event
        await asyncio.sleep(0.01)


class FactWriter:
    """What the service has confirmed, on standard output."""

    def write(self, fact: str, *about: Any) -> None:
        os.write(1, json.dumps([fact, *about]).encode() + b"\n")


class CrashClient:
    """Makes executions, watches them, answers what they ask, and gets in their way.

    Attributes:
        fork_chance: How likely an execution that has ended is followed by a retry or a fork.
        revise_chance: How likely the graph of an execution is changed when a node of it starts.
    """

    fork_chance: ClassVar[float] = 0.3
    revise_chance: ClassVar[float] = 0.12

    def __init__(self, service: Service, order: ChildOptions, tasks: asyncio.TaskGroup) -> None:
        self._service, self._order, self._tasks = service, order, tasks
        self._choose = Random(order.seed)  # noqa: S311 - a test's choices
        self._facts = FactWriter()
        self._open = 0
        self._execution_ended = asyncio.Event()

    async def run(self) -> None:
        """Do all that is ordered."""
        for record in await self._service._store.open_executions():
            await self._follow(record.execution_id, record.last_seq)
        for graph in self._order.graphs:
            await self._make(graph)
        while self._open or self._order.at_once:
            if self._open < self._order.at_once:
                await self._make(*self._random_graph())
            else:
                self._execution_ended.clear()
                await self._execution_ended.wait()

    def _random_graph(self) -> tuple[dict[str, Any], RunOptions | None]:
        return random_document(self._choose), random_options(self._choose)

    async def _make(self, graph: dict[str, Any], options: RunOptions | None = None) -> None:
        plan = await self._service.plans.read(json.dumps(graph))
        made = await self._service.executions.execute(plan, options=options)
        self._facts.write("accepted", made.execution_id)
        await self._follow(made.execution_id, 0)

    async def _follow(self, execution_id: str, after: int) -> None:
        state = await self._service.executions.state(execution_id)
        reason = state.reason or ""
        if self._is_set_aside(reason):
            return
        self._open += 1
        self._tasks.create_task(self._watch(execution_id, after))
        for request in list(state.requests.values()):
            self._schedule_answer(execution_id, request.request_id, request.request)
        if state.status == "paused" and not reason.startswith("waiting"):
            self._tasks.create_task(self._resume(execution_id))

    def _is_set_aside(self, reason: str) -> bool:
        """Say whether an execution paused for this reason is left alone: not when all has to end."""
        return reason.startswith(SET_ASIDE) and not self._order.ends

    async def _watch(self, execution_id: str, after: int) -> None:
        async for event in self._service.executions.watch(execution_id, after=after):
            if event.seq:
                self._facts.write("published", execution_id, event.seq, event.type, event.path)
                self._react(event)
                if event.type == "execution.paused" and self._is_set_aside(event.data["reason"]):
                    break
        if self._order.ends:
            await self._service.executions.wait(execution_id)
        self._open -= 1
        self._execution_ended.set()

    def _react(self, event: Event) -> None:
        if event.type == "node.waiting":
            self._schedule_answer(
                event.execution_id, event.data["request_id"], event.data["request"]
            )
        elif event.type in TERMINAL:
            self._facts.write("ended", event.execution_id, event.type)
            if self._order.at_once and self._choose.random() < self.fork_chance:
                self._tasks.create_task(self._retry_or_fork(event.execution_id))
        elif event.type == "execution.paused" and self._order.patient:
            self._tasks.create_task(self._answer_all(event.execution_id))
        elif event.type == "node.started" and self._order.at_once:
            chance = self._choose.random()
            if chance < 0.02:
                self._tasks.create_task(self._cancel(event.execution_id))
            elif chance < 0.05:
                self._tasks.create_task(self._cancel(event.execution_id, event.path))
            elif chance < 0.08:
                self._tasks.create_task(self._pause(event.execution_id))
            elif chance < 0.08 + self.revise_chance:
                self._tasks.create_task(self._revise(event.execution_id))

    async def _answer_all(self, execution_id: str) -> None:
        for request in await self._service.executions.requests(execution_id):
            await self._answer(execution_id, request.request_id, request.request)

    def _schedule_answer(self, execution_id: str, request_id: str, request: Any) -> None:
        if not self._order.patient:
            self._tasks.create_task(self._answer(execution_id, request_id, request))

    def _answer_to(self, request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {"decision": self._choose.choice(request["actions"])}
        if answer["decision"] == "give_result":
            answer["value"] = "given"
        return answer

    async def _answer(self, execution_id: str, request_id: str, request: Any) -> None:
        answer = self._answer_to(request)
        await asyncio.sleep(self._choose.random() * 0.03)
        with suppress(PlanwaveError):  # its time was over, or its node was cancelled first
            await self._service.executions.answer(execution_id, request_id, answer)
            self._facts.write("answered", execution_id, request_id, answer["decision"])

    async def _cancel(self, execution_id: str, path: str | None = None) -> None:
        with suppress(PlanwaveError):  # it ended first
            await self._service.executions.cancel(execution_id, node=path)
            self._facts.write("cancelled", execution_id, path)

    async def _retry_or_fork(self, execution_id: str) -> None:
        """Run what failed, or some node of it, in an execution that takes over all else."""
        with suppress(PlanwaveError):  # nothing of it failed
            if self._choose.random() < 0.5:
                made = await self._service.executions.retry(execution_id)
            else:
                made = await self._service.executions.fork(execution_id, rerun=["n1"])
            self._facts.write("accepted", made.execution_id)
            await self._follow(made.execution_id, 0)

    async def _revise(self, execution_id: str) -> None:
        """Change the graph that is run; what has begun is sometimes among that, and is refused."""
        with suppress(PlanwaveError):
            state = await self._service.executions.state(execution_id)
            graph: dict[str, Any] = json.loads(json.dumps(state.graph))
            new_id = f"r{self._choose.getrandbits(32):x}"
            changed = changed_document(graph, new_id, self._choose)
            made = await self._service.changes.revise(execution_id, changed)
            self._facts.write("revised", execution_id, made["change"], made["hash"])

    async def _pause(self, execution_id: str) -> None:
        with suppress(PlanwaveError):
            await self._service.executions.pause(execution_id)
            self._facts.write("paused", execution_id)
            await self._resume(execution_id)

    async def _resume(self, execution_id: str) -> None:
        with suppress(PlanwaveError):
            await self._service.executions.resume(execution_id)
            self._facts.write("resumed", execution_id)


async def run_child(order: ChildOptions) -> None:
    """Live as ordered."""
    directory, point = Path(order.directory), CrashPoint.parse(order.point)
    place = Place(directory, order.database_url)
    store = place.open()
    kept = crash_at(store, point)
    outside = ExternalWorld(AppendOnlyLog(directory.parent / EXTERNAL_LOG), kept, order.seed)
    outside.record_call = crash_at(outside, point).record_call
    parts = dependencies(
        types=[JobNode(outside)],
        store=kept,
        directory=place.documents,
        limits=Limits(recoveries=order.recoveries, recoveries_per_s=10_000),
        node_services=lambda goal: NodeServices(outside, FakeProviders(), goal),
    )
    await live(Service(parts), CrashClient, order)


async def live(opened: Service, client_type: type[CrashClient], order: ChildOptions) -> None:
    """Recover what is stored, do all that is ordered, and go down in good order."""
    async with opened as service, asyncio.TaskGroup() as tasks:
        client = client_type(service, order, tasks)
        FactWriter().write("up")
        await service.recover()
        try:
            async with asyncio.timeout(LONGEST_LIFE_S):
                await client.run()
        except TimeoutError:
            await write_open_executions(service._store)
            raise
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    FactWriter().write("left", [repr(task) for task in left])


async def write_open_executions(store: Store) -> None:
    """Write what is stored of all executions that have not ended, and all tasks, to standard error."""
    for record in await store.open_executions():
        events = await store.events(record.execution_id)
        sys.stderr.write("\n  ".join(map(str, [record, *events[-40:]])) + "\n")
    for task in asyncio.all_tasks():
        task.print_stack(limit=6, file=sys.stderr)


def main() -> None:
    """Live as ordered in the first argument."""
    signal.alarm(2 * LONGEST_LIFE_S)  # a process whose parent is gone does not stay
    asyncio.run(run_child(ChildOptions(**json.loads(sys.argv[1]))))
