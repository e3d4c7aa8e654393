"""Executions told anything at any moment, over any number of lives of their service."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from planwave.errors import (
    Conflict,
    Gone,
    GraphInvalid,
    InputError,
    NodeError,
    ShuttingDown,
    SlowConsumer,
    StoreError,
)
from planwave.events import TERMINAL, Event, ExecutionState, fold
from planwave.executor.options import RunOptions
from planwave.graph.model import DataValue, Graph, Node, Policy, Retry
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.graph.reading.documents import read_graph
from planwave.ids import new_id
from planwave.planner.revised_plan import RevisedPlan, Revision, RevisionReading
from planwave.providers.protocols import CallScope
from planwave.service.service import Service
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.engine.event_invariants import check_events, settled_attempts
from tests.support.examples import examples
from tests.support.graph.builders import make_edge, make_graph, make_plan
from tests.support.service.dependencies import dependencies
from tests.support.virtual_loop import VirtualLoop
from tests.unit.service.executions.test_commands import (
    QUESTION,
    Asks,
    Counts,
    executed,
    opened,
    reached,
)

Given = TypeVar("Given")
NUMBERS = st.integers(0, 1_000)
SEEDS = st.integers(0, 2**64)
"""What is chosen within a step: drawn choice by choice, nearly all histories begin alike."""


async def test_what_is_ended_while_it_waits_for_its_turn_is_not_run_to_an_end_again(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, QUESTION, Asks()) as service:
        execution_id = await executed(service)
        await service.executions.wait(execution_id)
        (request,) = await service.executions.requests(execution_id)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(service.executions.answer(execution_id, request.request_id, 1))
            tasks.create_task(service.executions.cancel(execution_id, node="q"))
    async with opened(tmp_path, QUESTION, Asks()) as service:
        kinds = [e.type for e in await service.executions.events(execution_id)]
        assert kinds.index("node.answered") < kinds.index("node.cancelled")
        assert [kind for kind in kinds if kind in TERMINAL] == ["execution.failed"]


async def test_an_answer_before_its_turn_to_be_recovered_comes_takes_an_execution_up(
    tmp_path: Path,
) -> None:
    graph = make_graph(Node("q", "asks", "Q"), Node("b", "counts", "B", data={"hold": True}))
    counts = Counts()
    async with opened(tmp_path, graph, Asks(), counts) as service:
        execution_id = await executed(service)
        await counts.started.wait()
        await reached(service, execution_id, lambda event: event.type == "node.waiting")
    counts.held.set()
    async with opened(tmp_path, graph, Asks(), counts) as service:
        (request,) = await service.executions.requests(execution_id)
        await service.executions.answer(execution_id, request.request_id, 1)
        assert (await service.executions.wait(execution_id)).status == "completed"
        events = await service.executions.events(execution_id)
        check_events(events)
        (resumed,) = [e for e in events if e.type == "execution.resumed"]
        assert resumed.data["reason"] == "recovery"
        assert counts.runs["b"] == 2


# -- a machine of all of it

AT_ONCE = 2
OUTCOMES = ("gives",) * 4 + ("fails", "fails for now", "fails for now", "asks", "asks")


def _node(node_id: str, **policy: Any) -> Node:
    chosen = Policy(**policy)
    document: dict[str, Any] = {
        "join": chosen.join,
        "retry": {"attempts": chosen.retry.attempts, "backoffS": chosen.retry.backoff_s},
        "onError": chosen.on_error,
    }
    if chosen.effect is not None:
        document["effect"] = chosen.effect
    return Node(node_id, "puppet", node_id, policy=chosen, policy_document=document)


PATIENT = Retry(3, 1.0)
GRAPHS = (
    make_graph(_node("a", retry=PATIENT), _node("b"), edges=[("a", "b")]),
    make_graph(_node("a"), _node("b"), _node("c", join="any"), _node("d"),
             edges=[("a", "c"), ("b", "c"), ("c", "d"), ("a", "d")]),
    make_graph(_node("a", effect="once"), _node("b", effect="once"), _node("c"),
             edges=[("a", "b"), ("b", "c")]),
    make_graph(_node("a", on_error="continue"), _node("b"), _node("c", retry=PATIENT),
             edges=[make_edge("a", "b", source_handle="error"), ("a", "c")]),
)  # fmt: skip
ASKED = {"question": "?"}
COMMANDS = ("answer",) * 6 + ("resume",) * 4 + ("pause", "cancel node") * 2 + ("cancel",)


FACTS = {"by", "handled", "interrupted", "reentry", "reused", "via"}
EVERYTHING = FACTS | {
    "execution.cancelled", "execution.completed", "execution.failed", "execution.paused",
    "execution.resumed", "node.answered", "node.blocked", "node.cancelled", "node.retrying",
    "node.skipped",
}  # fmt: skip


class OneThread(VirtualLoop):
    """A virtual loop that does itself what it is asked to have a thread do."""

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - for whoever awaits it
            done.set_exception(error)
        return done


class Mortal:
    """A store that outlives its service; nothing that belongs to a dead one is kept any more."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        if self.is_dead and name in ("append", "claim", "create_execution", "save_plan"):
            raise StoreError("the process has ended", code="dead")
        return getattr(self._store, name)

    async def close(self) -> None:
        """Leave the store open."""


class Puppet:
    """A node type that does what it is told, when it is told."""

    node_type = "puppet"

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], asyncio.Future[str]] = {}
        self.ran: list[tuple[str, str, int]] = []

    async def execute(self, data: Any, inputs: Any, context: Any) -> Any:
        self.ran.append((context.run_id, context.path, context.attempt))
        return await self._told(context)

    async def resume(self, data: Any, inputs: Any, context: Any, state: Any, answer: Any) -> Any:
        return await self._told(context)

    async def _told(self, context: Any) -> Any:
        place = (context.run_id, context.path)
        told = self.held[place] = asyncio.get_running_loop().create_future()
        try:
            what = await told
        finally:
            del self.held[place]
        if what == "asks":
            return Suspension(ASKED, None, 100.0, "nobody came")
        if what == "gives":
            return ExecutionResult({"output": DataValue("text", context.path)})
        raise NodeError(what, retryable=what == "fails for now")


class Subscriber:
    """A client that reads a frame now and then, and comes back with its cursor where it is dropped."""

    def __init__(self, execution_id: str) -> None:
        self.execution_id = execution_id
        self.seen: list[Event] = []

    async def watch(self, service: Service) -> None:
        while True:
            after = len(self.seen)
            with suppress(SlowConsumer):
                async with service.executions.subscribe(
                    self.execution_id, after, BacklogLimits(events=6)
                ) as following:
                    async for frame in following:
                        self.seen += [event for event in frame.events if event.seq]
                        await asyncio.sleep(0.3)
                    return


class Executions(RuleBasedStateMachine):
    """Everything a service can be told, its end at any moment, and clients that watch.

    Attributes:
        happened: What has in all histories so far; where too little does, they show nothing.
    """

    happened: ClassVar[set[str]] = set()
    planner: ClassVar[Any] = None
    replans: ClassVar[dict[str, int] | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.loop = OneThread()
        self.broken: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.broken.append(context))
        self.kept = MemoryStore()
        self.accepted: list[str] = []
        self.known: dict[str, list[Event]] = {}
        self.cancelled: set[str] = set()
        self.answered: dict[tuple[str, str], Any] = {}
        self.subscribers: dict[str, Subscriber] = {}
        self.ran = Counter[tuple[str, str]]()
        self.do(self._open())

    # -- lives

    def do(self, what: Coroutine[Any, Any, Given]) -> Given:
        """Do something, and let everything that follows from it happen."""

        async def done() -> Given:
            try:
                return await what
            finally:
                await asyncio.sleep(0.01)

        return self.loop.run_until_complete(done())

    async def _open(self) -> None:
        self.store, self.puppet = Mortal(self.kept), Puppet()
        limits = Limits(
            concurrent_executions=AT_ONCE,
            burst_executions=0,
            recoveries_per_s=1_000,
            recoveries=1_000,
        )
        parts = dependencies(
            types=[self.puppet], store=self.store, limits=limits, planner=self.planner
        )
        self.service = Service(parts)
        await self.service.__aenter__()
        await self.service.recover()
        self.settled = {
            (own, *each)
            for own in self.accepted
            for each in settled_attempts(await self.kept.events(own))
        }
        self.watching = asyncio.TaskGroup()
        await self.watching.__aenter__()
        for subscriber in self.subscribers.values():
            self.watching.create_task(self._watch(subscriber))

    async def _watch(self, subscriber: Subscriber) -> None:
        with suppress(ShuttingDown, StoreError):
            await subscriber.watch(self.service)

    async def _end(self) -> None:
        await self.service.drain(0)
        await self.watching.__aexit__(None, None, None)
        await self.service.__aexit__(None, None, None)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        assert not self.puppet.held
        self.ran.update((own, path) for own, path, _ in self.puppet.ran)

    def teardown(self) -> None:
        try:
            self._bring_to_an_end()
            self.do(self._end())
            for event in itertools.chain(*self.known.values()):
                self.happened.add(event.type)
                self.happened.update(event.data.keys() & FACTS)
        finally:
            self.loop.close()

    def _bring_to_an_end(self) -> None:
        """Nothing is stuck: with every node done and every question answered, all of it ends."""
        for _ in range(200):
            left = [own for own in self.accepted if not self._state(own).is_over]
            if not left:
                return
            for own in left:
                state = self._state(own)
                for request in list(state.requests.values()):
                    self._answer(own, request.request_id, request.request)
                if state.status == "paused" and not state.requests:
                    with suppress(Conflict):
                        self.do(self.service.executions.resume(own))
            for told in list(self.puppet.held.values()):
                told.set_result("gives")
            self.do(asyncio.sleep(1))
            self.nothing_is_lost()
        raise AssertionError(f"stuck: {left}")

    def _stored(self, own: str) -> list[Event]:
        """Give what is stored of an execution; no time passes."""
        return self.loop.run_until_complete(self.kept.events(own))

    def _state(self, own: str) -> ExecutionState:
        return fold(self._stored(own))

    def _one(self, number: int) -> str:
        """Choose an execution, mostly one that has not ended."""
        open_ = [own for own in self.accepted if not self._state(own).is_over]
        chosen = open_ if open_ and number % 8 else self.accepted
        return chosen[number % len(chosen)]

    # -- rules: none has a precondition. What Hypothesis draws may depend on nothing but what it drew
    # before, and how far a service has come by then depends on the clock.

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self._create(Random(seed))  # noqa: S311 - a test's choices

    @rule(seed=SEEDS)
    def create(self, seed: int) -> None:
        if len(self.accepted) < 4:
            self._create(Random(seed))  # noqa: S311 - a test's choices

    def _create(self, choose: Random) -> None:
        done = choose.choices(OUTCOMES, k=choose.randrange(4))
        waves, stops = choose.choices([False, True], k=2)
        self.make(choose.choice(GRAPHS), done, waves=waves, stops=stops)

    def make(
        self, which: Graph, done: Sequence[str] = (), *, waves: bool = False, stops: bool = False
    ) -> None:
        """Make an execution, and tell its nodes in turn what to do: it begins in its midst."""
        options = RunOptions(
            scheduling="waves" if waves else "eager",
            on_failure="stop" if stops else "continue",
            replan=self.replans,
        )
        made = self.do(self.service.executions.execute(make_plan(which, new_id()), options=options))
        self.accepted.append(made.execution_id)
        for what in done:
            held = [told for (own, _), told in self.puppet.held.items() if own == made.execution_id]
            if held:
                held[0].set_result(what)
                self.do(asyncio.sleep(0))

    @rule(seed=SEEDS)
    def outcomes(self, seed: int) -> None:
        if not self.puppet.held:
            return
        choose = Random(seed)  # noqa: S311 - a test's choices
        whats = choose.choices(OUTCOMES, k=1 + choose.randrange(4))
        cancels = choose.choice([""] * 8 + ["node", "all"])
        self.settle(whats, choose.randrange(1_000), cancels)

    def settle(self, whats: Sequence[str], number: int = 0, cancels: str = "") -> None:
        """Tell some nodes at once what to do; the first of them may be cancelled meanwhile."""
        held = list(self.puppet.held.items())
        held = (held[number % len(held) :] + held)[: min(len(whats), len(held))]
        (own, path), _ = held[0]

        async def tell() -> None:
            for (_, told), what in zip(held, whats, strict=False):
                told.set_result(what)
            if cancels:
                with suppress(Conflict):
                    await self.service.executions.cancel(
                        own, node=path if cancels == "node" else None
                    )

        self.do(tell())

    @rule(gently=st.booleans())
    def restart(self, gently: bool) -> None:
        self.store.is_dead = not gently
        self.do(self._end())
        self.do(self._open())

    @rule(number=NUMBERS, twice=st.booleans())
    def answer(self, number: int, twice: bool) -> None:
        own = self._one(number)
        for request in list(self._state(own).requests.values())[: 2 if twice else 1]:
            self._answer(own, request.request_id, request.request, at_once=twice)

    def _answer(self, own: str, request_id: str, request: Any, *, at_once: bool = False) -> None:
        actions = request.get("actions") or ["yes"]
        answers = [{"decision": actions[0]}, {"decision": actions[0]}][: 2 if at_once else 1]
        refused: list[Conflict] = []

        async def answer(answer: Any) -> None:
            try:
                await self.service.executions.answer(own, request_id, answer)
                self.answered[own, request_id] = answer["decision"]
            except (Conflict, Gone) as error:
                refused.append(error)

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as tasks:
                for each in answers:
                    tasks.create_task(answer(each))

        self.do(all_of_them())
        assert len(refused) == len(answers) - 1, refused
        assert all(error.code == "request-answered" for error in refused)

    @rule(seed=SEEDS)
    def commands(self, seed: int) -> None:
        choose = Random(seed)  # noqa: S311 - a test's choices
        self.command(choose.choices(COMMANDS, k=1 + choose.randrange(4)), choose.randrange(1_000))

    def command(self, whats: Sequence[str], number: int = 0) -> None:
        """Tell an execution several things at once, mostly one that asks something."""
        asking = [own for own in self.accepted if self._state(own).requests]
        own = asking[number % len(asking)] if asking else self._one(number)
        state = self._state(own)
        request_id = next(iter(state.requests), "r1")
        path = state.requests[request_id].path if request_id in state.requests else "a"

        async def told(what: str) -> None:
            with suppress(InputError):
                if what == "answer":
                    await self.service.executions.answer(own, request_id, {"decision": "fail"})
                    self.answered[own, request_id] = "fail"
                elif what == "cancel node":
                    await self.service.executions.cancel(own, node=path)
                elif what == "cancel":
                    await self.service.executions.cancel(own)
                    self.cancelled.add(own)
                else:
                    await getattr(self.service.executions, what)(own)

        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as tasks:
                for each in whats:
                    tasks.create_task(told(each))

        self.do(all_of_them())

    @rule(number=NUMBERS, path=st.sampled_from(["", "a", "b"]))
    def retry_or_fork(self, number: int, path: str) -> None:
        if len(self.accepted) >= 6:
            return
        own = self._one(number)
        with suppress(Conflict):
            if path:
                made = self.do(self.service.executions.fork(own, rerun=[path]))
            else:
                made = self.do(self.service.executions.retry(own))
            self.accepted.append(made.execution_id)

    @rule(seconds=st.sampled_from([0.05, 1.0, 4.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        self.do(asyncio.sleep(seconds))

    @rule(number=NUMBERS)
    def watch(self, number: int) -> None:
        own = self._one(number)
        if own in self.subscribers:
            return
        subscriber = self.subscribers[own] = Subscriber(own)

        async def begin() -> None:
            self.watching.create_task(self._watch(subscriber))

        self.do(begin())

    # -- invariants

    @invariant()
    def nothing_is_lost(self) -> None:
        for own in self.accepted:
            events = self._stored(own)
            check_events(events)
            before = self.known.get(own, [])
            assert events[: len(before)] == before
            self.known[own] = events
            if own in self.subscribers:
                seen = self.subscribers[own].seen
                assert seen == events[: len(seen)]
            if own in self.cancelled:
                assert events[-1].type == "execution.cancelled"
        for (own, request_id), decision in self.answered.items():
            told = [e for e in self.known[own] if e.data.get("request_id") == request_id]
            assert [e.data["answer"]["decision"] for e in told[1:]] == [decision]

    @invariant()
    def nothing_settled_runs_again(self) -> None:
        again = self.settled & set(self.puppet.ran)
        assert not again, again
        twice = [place for place, times in Counter(self.puppet.ran).items() if times > 1]
        once = {own for own in self.accepted if "once" in str(self._state(own).graph)}
        assert all(place[0] in once for place in twice), twice

    @invariant()
    def what_may_act_once_acts_again_only_where_that_was_said(self) -> None:
        ran = self.ran + Counter((own, path) for own, path, _ in self.puppet.ran)
        for own in self.accepted:
            said = Counter(
                event.path
                for event in self._stored(own)
                if event.type == "node.answered"
                and event.data["answer"] == {"decision": "run_again", "note": ""}
            )
            for node in (self._state(own).graph or {})["nodes"]:
                if node["policy"].get("effect") == "once":
                    assert ran[own, node["id"]] <= 1 + said[node["id"]]

    @invariant()
    def nothing_is_stuck(self) -> None:
        working = {own for own, _ in self.puppet.held}
        for own in self.accepted:
            state = self._state(own)
            if state.is_over:
                assert own not in working, "it is over, and still at work"
            elif state.status == "executing":
                waits = {"retrying"} & {node.status for node in state.nodes.values()}
                is_queued = self.service.executions.driver.position(own) is not None
                is_planned = state.changes.open is not None
                assert own in working or waits or is_queued or is_planned, f"{own} is stuck"
            elif state.status == "paused" and state.reason == "waiting for an answer":
                assert state.requests
            elif state.status == "starting":
                assert self.service.executions.driver.position(own) is not None
        assert self.service.load.places <= AT_ONCE
        assert not self.broken, self.broken


def changed(graph: Graph, choose: Random) -> Graph:
    """Return a graph with a new node, perhaps without another one."""
    nodes, edges = list(graph.nodes), list(graph.edges)
    if choose.randrange(3) and len(nodes) > 1:
        gone = nodes.pop(choose.randrange(len(nodes))).id
        edges = [each for each in edges if gone not in (each.source, each.target)]
    added = _node(f"n{choose.randrange(1_000)}", retry=PATIENT)
    edge = make_edge(choose.choice(nodes).id, added.id, edge_id=f"e-{added.id}")
    return Graph((*nodes, added), (*edges, edge))


class Changes:
    """Writes a change as a model does, after a while; the same one where it is asked for it again."""

    def require_reviser(self, provider: str | None, model: str | None) -> None:
        """Any model can."""

    async def revise(
        self,
        plan: RevisedPlan,
        words: str,
        provider: str | None = None,
        model: str | None = None,
        *,
        on_progress: Any = None,
        scope: CallScope | None = None,
    ) -> Revision:
        await asyncio.sleep(0.5)
        choose = Random(words if scope is None else scope.attempt)  # noqa: S311 - a test's choices
        reading = RevisionReading("", "otherwise", (), plan.content, changed(plan.graph, choose))
        return Revision(reading, "p", "m", [{"usage": {"input_tokens": 1}}])


class ChangedExecutions(Executions):
    """The same, of executions that people change, by hand and in words, and that a model changes after failures."""

    happened: ClassVar[set[str]] = set()
    planner: ClassVar[Any] = Changes()
    replans: ClassVar[dict[str, int] | None] = {"on_failure": True, "max": 2}

    def __init__(self) -> None:
        self.proposals: list[Any] = []
        super().__init__()

    @rule(seed=SEEDS)
    def revise(self, seed: int) -> None:
        choose = Random(seed)  # noqa: S311 - a test's choices
        own = self._one(choose.randrange(1_000))
        graph = changed(read_graph(self._state(own).graph or {})[0], choose)
        with suppress(InputError, GraphInvalid):
            self.do(self.service.changes.revise(own, graph.to_document()))

    @rule(seed=SEEDS)
    def replan(self, seed: int) -> None:
        """Have a model make a change in words, which holds the execution meanwhile."""
        own = self._one(Random(seed).randrange(1_000))  # noqa: S311 - a test's choices
        with suppress(InputError):
            accepted = self.do(self.service.changes.replan(own, f"as {seed} says"))
            assert accepted["change"] == self._state(own).changes.newest
            self.happened.add("a change that a person has a model write")

    @rule(seed=SEEDS)
    def propose(self, seed: int) -> None:
        """Have a model propose a change in words; a person takes it at another moment, or never."""
        own = self._one(Random(seed).randrange(1_000))  # noqa: S311 - a test's choices
        before = self._stored(own)
        with suppress(InputError):
            proposal = self.do(self.service.changes.propose(own, f"otherwise, as {seed} says"))
            self.proposals.append(proposal)
        if fold(before).is_over:
            assert self._stored(own) == before

    @rule(number=NUMBERS)
    def take(self, number: int) -> None:
        if not self.proposals or len(self.accepted) >= 6:
            return
        proposal = self.proposals.pop(number % len(self.proposals))
        own, graph = proposal["execution_id"], proposal["graph"]
        if self._state(own).is_over:
            with suppress(InputError, GraphInvalid):
                made = self.do(self.service.executions.fork(own, graph=graph))
                self.accepted.append(made.execution_id)
                self.happened.add("a fork with a proposal")
            return
        is_stale = self._state(own).plan_hash != proposal["base"]
        try:
            self.do(self.service.changes.revise(own, graph, expected=[proposal["base"]]))
        except (InputError, GraphInvalid):
            return
        assert not is_stale
        ids = {each["id"] for each in graph["nodes"]}
        assert ids <= {each["id"] for each in (self._state(own).graph or {})["nodes"]}
        self.happened.add("a change in words")


_MORE_RUNS = 6


def test_whatever_commands_meet_an_execution_at_rest_it_is_run_once() -> None:
    commands = sorted(set(COMMANDS))
    for whats in [*product(commands, repeat=2), *product(("answer", "pause", "resume"), repeat=3)]:
        machine = Executions()
        machine.make(GRAPHS[0])
        machine.settle(["asks"])
        machine.command(whats)
        machine.nothing_is_lost()
        machine.nothing_is_stuck()
        machine.nothing_settled_runs_again()
        machine.teardown()


def test_any_history_keeps_what_is_promised() -> None:
    usual = settings(
        max_examples=examples(60), stateful_step_count=40, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    Executions.happened.clear()
    run_state_machine_as_test(Executions, settings=settings(usual, derandomize=True))
    # What is drawn depends on the modules that are loaded: rare events may be left out.
    for _ in range(_MORE_RUNS):
        if Executions.happened >= EVERYTHING:
            return
        run_state_machine_as_test(Executions, settings=settings(usual, derandomize=False))
    missing = EVERYTHING - Executions.happened
    assert not missing, f"it shows too little, {missing} never happened: take more examples"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_more_histories_keep_the_same_promises() -> None:
    more = settings(
        max_examples=400, stateful_step_count=50, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    Executions.happened.clear()
    run_state_machine_as_test(Executions, settings=more)
    assert "execution.completed" in Executions.happened


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_many_histories_of_executions_that_are_changed_keep_the_same_promises() -> None:
    more = settings(
        max_examples=200, stateful_step_count=50, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    ChangedExecutions.happened.clear()
    run_state_machine_as_test(ChangedExecutions, settings=more)
    changes = {"plan.requested", "plan.revised", "execution.completed"}
    in_words = {"a change in words", "a fork with a proposal"}
    in_words.add("a change that a person has a model write")
    assert changes | in_words <= ChangedExecutions.happened
