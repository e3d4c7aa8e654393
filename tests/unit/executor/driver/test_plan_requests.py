"""Executions that ask for a change of their own graph after a failure, and go on with it or without it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from planwave.errors import Conflict, NodeError
from planwave.events import Event, fold
from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
from planwave.executor.options import RunOptions
from planwave.executor.ports import ChangeCalls, WrittenChange
from planwave.executor.recovery.history import History
from planwave.graph.model import Graph, Policy
from planwave.graph.protocols import FlowContext, Suspension
from planwave.graph.reading.documents import read_graph
from tests.support.engine.generic_nodes import (
    ExecutionHarness,
    MemoryJournal,
    node_event,
    result_with,
)
from tests.support.engine.revised_runs import change_of, request_about
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

AT = "2026-01-01T00:00:00.000000+00:00"
REPLAN = {"on_failure": True, "max": 1}
BEFORE = parse_graph("a b c slow", "a>b", "b>c")
AFTER = parse_graph("a other c slow", "a>other", "other>c")


async def fails(*_: Any) -> Any:
    raise NodeError("no such page", code="gone")


def after(seconds: float, act: Callable[[], Any] = result_with) -> Any:
    async def node(*_: Any) -> Any:
        await asyncio.sleep(seconds)
        return act()

    return node


def raise_error() -> None:
    raise NodeError("no such page", code="gone")


class Writer:
    """Writes the changes that it is given, one a request, each after a second; else it refuses.

    Args:
        graphs: What it writes.
        asks: A person is asked about each.
        reserves: The tokens that each of its calls reserves.
        uses: The tokens that each of them uses.
        repairs: How often it sends its reply back first.
    """

    def __init__(
        self,
        *graphs: Graph,
        asks: bool = False,
        reserves: int = 7,
        uses: int = 7,
        repairs: int = 0,
    ) -> None:
        self.graphs, self.asked = list(graphs), list[Mapping[str, Any]]()
        self.asks, self.reserves, self.uses, self.repairs = asks, reserves, uses, repairs
        self.called_at = list[float]()
        self.failed = list[list[str]]()
        """What had failed as far as it was shown, by request."""

    async def __call__(
        self,
        asked: PlanRequestedData,
        number: int,
        events: Sequence[Event],
        calls: ChangeCalls,
    ) -> WrittenChange:
        self.asked.append(asked)
        nodes = fold(events).nodes.values()
        self.failed.append([each.path for each in nodes if each.status == "failed"])
        calls.wrote({"kind": "node", "id": f"step {number}"})
        before = fold(events).graph or {"nodes": [], "edges": []}
        for _ in range(1 + self.repairs):
            await self._call(calls)
        if len(self.graphs) < number:
            raise Conflict("nothing can help", code="nothing-changed")
        graph = self.graphs[number - 1]
        made = 1 + len(fold(events).changes)
        change = change_of(read_graph(before)[0], graph, made)
        data: PlanRevisedData = {**change, "note": f"change {made}"}
        return WrittenChange(graph, data, request=request_about(data) if self.asks else None)

    async def _call(self, calls: ChangeCalls) -> None:
        budget, reserved = calls.budget, None
        if budget is not None:
            reserved = await budget.reserve({"calls": 1, "tokens": self.reserves})
        self.called_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
        calls.ended({"input_tokens": self.uses})
        if reserved is not None:
            reserved.release()


def scene(
    writer: Writer | None,
    behaviors: Mapping[str, Any],
    graph: Graph = BEFORE,
    *,
    stored: Sequence[Event] = (),
    **options: Any,
) -> ExecutionHarness:
    """An execution; with events that are stored already, one that goes on after them."""
    journal = MemoryJournal()
    created = {"graph": graph.to_document(), "waves": 0}
    events = [Event("x1", 1, AT, "execution.created", None, None, created), *stored]
    journal.batches.append(events)
    told = RunOptions(**{"replan": REPLAN, **options})
    more = {"history": History(events), "is_recovery": True} if stored else {"last_seq": 1}
    return ExecutionHarness(graph, behaviors, told, journal=journal, write_change=writer, **more)


KINDS = ("node.started", "node.completed", "node.failed", "node.blocked", "node.cancelled")
PLANS = ("plan.requested", "plan.revised", "plan.refused")
ENDS = ("execution.completed", "execution.failed", "execution.cancelled")


@virtual_time
async def test_a_failed_step_is_replaced_and_nothing_starts_meanwhile() -> None:
    writer = Writer(AFTER)
    run = scene(writer, {"b": fails, "slow": after(0.5)})
    assert await run.run() == "completed"
    assert run.event_names(*KINDS, *PLANS, *ENDS, "usage")[4:] == [
        "node.failed b",
        "plan.requested",
        "node.completed slow",
        "usage",
        "plan.revised",
        "node.started other",
        "node.completed other",
        "node.started c",
        "node.completed c",
        "execution.completed",
    ]
    assert writer.asked == [{"change": 1, "by": "failure", "path": "b"}]
    failed = next(batch for batch in run.batches if batch[0].type == "node.failed")
    assert [each.type for each in failed] == ["node.failed", "plan.requested"]
    assert [each.attempt for each in run.stored if each.type == "usage"] == [1]


@virtual_time
@pytest.mark.parametrize("on_failure", ["continue", "stop"])
async def test_a_refused_change_leaves_the_end_as_it_would_have_been(on_failure: str) -> None:
    behaviors = {"b": fails, "slow": after(0.5), "late": after(1)}
    graph = parse_graph("a b c slow late", "a>b", "b>c", "slow>late")
    plain = scene(None, behaviors, graph, on_failure=on_failure, replan=None)
    asking = scene(Writer(), behaviors, graph, on_failure=on_failure)
    assert await plain.run() == await asking.run() == "failed"

    def ends(run: ExecutionHarness) -> Any:
        state = fold([*run.execution_created, *run.stored])  # type: ignore[attr-defined]
        return state.error, state.failures, {n.path: n.status for n in state.nodes.values()}

    for run in (plain, asking):
        run.execution_created = [  # type: ignore[attr-defined]
            Event("x1", 1, AT, "execution.created", None, None, {"graph": graph.to_document()})
        ]
    assert ends(plain) == ends(asking)
    error = {"code": "nothing-changed", "message": "nothing can help"}
    assert asking.data_of("plan.refused") == [{"change": 1, "error": error}]


@virtual_time
async def test_a_stop_waits_for_the_refusal_and_a_change_takes_it_away() -> None:
    graph = parse_graph("a b late", "a>late")
    behaviors = {"a": after(2), "b": fails}
    refused = scene(Writer(), behaviors, graph, on_failure="stop")
    assert await refused.run() == "failed"
    assert refused.event_names("plan.refused", "node.cancelled") == [
        "plan.refused",
        "node.cancelled late",
    ]
    changed = scene(
        Writer(parse_graph("a other late", "a>late")), behaviors, graph, on_failure="stop"
    )
    assert await changed.run() == "completed"
    assert changed.event_names("node.cancelled") == []


@virtual_time
async def test_a_failure_after_the_last_change_stops_at_once() -> None:
    graph = parse_graph("a b late", "a>late")
    changed = parse_graph("a other late", "a>late")
    behaviors = {"a": after(3), "b": fails, "other": fails}
    run = scene(Writer(changed), behaviors, graph, on_failure="stop")
    assert await run.run() == "failed"
    assert run.event_names("node.failed", *PLANS, "node.cancelled") == [
        "node.failed b",
        "plan.requested",
        "plan.revised",
        "node.failed other",
        "node.cancelled late",
    ]


@virtual_time
async def test_a_cancel_while_a_change_is_written_ends_the_execution_and_the_writing() -> None:
    writer = Writer(AFTER)
    run = scene(writer, {"b": fails, "slow": after(9)})
    asyncio.get_running_loop().call_later(0.5, run.execution.cancel, "enough")
    assert await run.run() == "cancelled"
    assert run.event_names(*PLANS) == ["plan.requested"]
    ended = asyncio.get_running_loop().time()
    assert ended < 1


@virtual_time
async def test_a_cancel_after_all_else_has_ended_cancels() -> None:
    run = scene(Writer(), {"b": fails})
    asyncio.get_running_loop().call_later(0.5, run.execution.cancel, "enough")
    assert await run.run() == "cancelled"
    assert run.data_of("execution.cancelled") == [{"cause": "enough"}]


@virtual_time
async def test_a_pause_holds_what_a_change_would_start_until_it_is_resumed() -> None:
    run = scene(Writer(AFTER), {"b": fails})
    loop = asyncio.get_running_loop()
    loop.call_later(0.5, run.execution.pause)
    loop.call_later(3, run.execution.resume)
    assert await run.run() == "completed"
    assert run.event_names("execution.paused", "execution.resumed", *PLANS, "node.started")[3:] == [
        "plan.requested",
        "execution.paused",
        "plan.revised",
        "execution.resumed",
        "node.started other",
        "node.started c",
    ]


@virtual_time
async def test_nobody_else_changes_the_plan_meanwhile() -> None:
    run = scene(Writer(AFTER), {"b": fails})
    refusals: list[Any] = []

    def revise() -> None:
        done = run.execution.revise(AFTER, change_of(BEFORE, AFTER))
        done.add_done_callback(lambda it: refusals.append(it.exception()))

    asyncio.get_running_loop().call_later(0.5, revise)
    assert await run.run() == "completed"
    assert [each.code for each in refusals] == ["change-requested"]


@virtual_time
async def test_what_fails_while_a_change_is_written_asks_for_the_next() -> None:
    both = parse_graph("a other c slow", "a>other", "other>c")
    neither = parse_graph("a other c fast", "a>other", "other>c")
    writer = Writer(both, neither)
    run = scene(writer, {"b": fails, "slow": after(0.5, raise_error)}, replan={**REPLAN, "max": 2})
    assert await run.run() == "completed"
    assert [each.get("path") for each in writer.asked] == ["b", "slow"]
    assert [each["change"] for each in writer.asked] == [1, 2]


TWO_FAIL = parse_graph("a b c done", "a>c")
NONE_FAIL = parse_graph("c d done", "c>d")


@virtual_time
async def test_what_fails_in_one_turn_is_in_one_request() -> None:
    behaviors = {"a": fails, "b": fails}
    writer = Writer(NONE_FAIL)
    run = scene(writer, behaviors, TWO_FAIL, replan={**REPLAN, "max": 3})
    assert await run.run() == "completed"
    assert writer.failed == [["a", "b"]]
    told = run.event_names("node.failed", "node.completed", *PLANS)
    assert told[:5] == [
        "node.failed a",
        "node.failed b",
        "node.completed done",
        "plan.requested",
        "plan.revised",
    ]
    assert run.event_names("plan.requested") == ["plan.requested"]


@pytest.mark.parametrize("on_failure", ["continue", "stop"])
@virtual_time
async def test_what_failed_in_one_turn_asks_for_no_other_change_once_that_is_refused(
    on_failure: str,
) -> None:
    writer = Writer()
    options = {"replan": {**REPLAN, "max": 3}, "on_failure": on_failure}
    run = scene(writer, {"a": fails, "b": fails, "c": after(1)}, TWO_FAIL, **options)
    assert await run.run() == "failed"
    assert writer.failed == [["a", "b"]]


@pytest.mark.parametrize("on_failure", ["continue", "stop"])
@virtual_time
async def test_what_failed_in_one_turn_is_in_the_same_request_after_a_crash(
    on_failure: str,
) -> None:
    """``slow`` fails once the model is called: it is not in the words, also where they are said again."""
    graph = parse_graph("a b c d done slow", "a>c", "done>d")
    behaviors = {"a": fails, "b": fails, "slow": after(0.5, raise_error)}
    options = {"replan": {**REPLAN, "max": 2}, "on_failure": on_failure}
    writer = Writer()
    run = scene(writer, behaviors, graph, **options)
    run.interrupt_after(0.7)
    assert await run.run() == "interrupted"
    again = scene(writer, behaviors, graph, stored=run.stored, **options)
    assert await again.run() == "failed"
    assert writer.failed == [["a", "b"], ["a", "b"], ["a", "b", "slow"]]
    assert [each.get("path") for each in writer.asked] == ["a", "a", "slow"]
    if on_failure == "stop":  # nothing that ended in the turn of the failures starts anything
        assert again.event_names("node.started", "node.cancelled") == ["node.cancelled d"]


@virtual_time
async def test_without_a_writer_and_without_budget_a_change_is_refused() -> None:
    nobody = scene(None, {"b": fails})
    assert await nobody.run() == "failed"
    assert nobody.data_of("plan.refused")[0]["error"]["code"] == "no-planner"
    writer = Writer(AFTER)
    spent = scene(writer, {"b": after(3, raise_error)}, budget={"wall_s": 2})
    assert await spent.run() == "failed"
    assert spent.data_of("plan.refused")[0]["error"]["code"] == "budget-used"
    assert writer.called_at == []


# -- the budget ------------------------------------------------------------------------------------


def calls_model(reserves: int, uses: int, seconds: float) -> Any:
    async def node(_: Any, context: FlowContext) -> Any:
        assert context.budget is not None
        reserved = await context.budget.reserve({"calls": 1, "tokens": reserves})
        with context.own_work():
            await asyncio.sleep(seconds)
        yield node_event(context, "usage", {"input_tokens": uses})
        reserved.release()
        yield result_with()

    return node


def tokens_of(run: ExecutionHarness) -> int:
    return sum(data["input_tokens"] for data in run.data_of("usage"))


@virtual_time
@pytest.mark.parametrize(("limit", "status"), [(30, "completed"), (29, "failed")])
async def test_a_change_is_written_only_where_the_budget_has_what_its_call_may_use(
    limit: int, status: str
) -> None:
    writer = Writer(AFTER, reserves=30, uses=30)
    run = scene(writer, {"b": fails}, budget={"tokens": limit})
    assert await run.run() == status
    assert tokens_of(run) <= limit
    assert len(writer.called_at) == (status == "completed")
    if status == "failed":
        (refused,) = run.data_of("plan.refused")
        assert refused["error"]["code"] == "budget-used"
        assert run.event_names("execution.paused") == []


@virtual_time
@pytest.mark.parametrize(("used", "status"), [(50, "completed"), (71, "failed")])
async def test_a_change_waits_for_what_a_step_that_runs_has_reserved(
    used: int, status: str
) -> None:
    began = asyncio.get_running_loop().time()
    writer = Writer(AFTER, reserves=30, uses=30)
    run = scene(writer, {"b": fails, "slow": calls_model(80, used, 5)}, budget={"tokens": 100})
    assert await run.run() == status
    assert tokens_of(run) <= 100
    assert writer.called_at == ([began + 5] if status == "completed" else [])


@virtual_time
async def test_a_step_that_runs_waits_for_what_the_change_has_reserved() -> None:
    began, called_at = asyncio.get_running_loop().time(), list[float]()

    async def late(_: Any, context: FlowContext) -> Any:
        await asyncio.sleep(0.5)
        assert context.budget is not None
        reserved = await context.budget.reserve({"tokens": 60})
        called_at.append(asyncio.get_running_loop().time())
        yield node_event(context, "usage", {"input_tokens": 60})
        reserved.release()
        yield result_with()

    writer = Writer(AFTER, reserves=60, uses=40)
    run = scene(writer, {"b": fails, "slow": late}, budget={"tokens": 100})
    assert await run.run() == "completed"
    assert called_at == [began + 1]
    assert tokens_of(run) == 100
    assert run.event_names("node.parked", "node.unparked", "execution.paused") == [
        "node.parked slow", "node.unparked slow",
    ]  # fmt: skip


@virtual_time
async def test_a_step_that_waits_for_the_budget_asks_a_person_once_the_change_is_refused() -> None:
    writer = Writer(AFTER, reserves=101)
    run = scene(writer, {"b": fails, "slow": calls_model(101, 101, 0)}, budget={"tokens": 100})

    def stop(event: Event) -> None:
        if event.type == "execution.paused" and "request_id" in event.data:
            answer = {"decision": "stop"}
            loop = asyncio.get_running_loop()
            loop.call_soon(run.execution.answer, event.data["request_id"], answer)

    run.listeners.append(stop)
    assert await run.run() == "cancelled"
    assert run.event_names("plan.refused", "execution.paused") == [
        "plan.refused", "execution.paused",
    ]  # fmt: skip
    assert writer.called_at == []


@virtual_time
async def test_what_each_call_of_a_change_has_used_counts_before_the_next() -> None:
    writer = Writer(AFTER, reserves=60, uses=20, repairs=2)
    run = scene(writer, {"b": fails}, budget={"tokens": 100})
    assert await run.run() == "completed"
    assert [data["input_tokens"] for data in run.data_of("usage")] == [20, 20, 20]
    again = Writer(AFTER, reserves=60, uses=30, repairs=2)
    cut = scene(again, {"b": fails}, budget={"tokens": 100})
    assert await cut.run() == "failed"
    assert tokens_of(cut) == 60  # both calls that were made count
    assert cut.data_of("plan.refused")[0]["error"]["code"] == "budget-used"


@virtual_time
async def test_a_graph_that_cannot_be_is_refused_with_its_findings() -> None:
    run = scene(Writer(parse_graph("a b c slow", "b>a", "b>c")), {"b": fails})
    assert await run.run() == "failed"
    (refused,) = run.data_of("plan.refused")
    assert refused["error"]["code"] == "graph-invalid"
    assert {each["code"] for each in refused["diagnostics"]} == {"frozen-input"}


@virtual_time
async def test_a_failure_that_a_policy_handles_asks_for_nothing() -> None:
    graph = parse_graph("a b c", "a>b", "b>c")
    nodes = [
        node._replace(policy=node.policy._replace(on_error="continue")) for node in graph.nodes
    ]
    run = scene(Writer(AFTER), {"b": fails}, Graph(tuple(nodes), graph.edges))
    await run.run()
    assert run.event_names(*PLANS) == []


@virtual_time
async def test_what_was_skipped_in_the_turn_of_a_failure_is_told_after_a_crash_too() -> None:
    policies = {"a": Policy(on_error="continue")}
    graph = parse_graph("a b c", "a>c", policies=policies)
    behaviors = {"a": after(1, raise_error), "b": after(1, raise_error)}
    run = scene(Writer(), behaviors, graph)
    run.interrupt_after(1.5)
    assert await run.run() == "interrupted"
    assert run.event_names("node.failed", "node.skipped", *PLANS) == [
        "node.failed a",
        "node.failed b",
        "plan.requested",
    ]
    again = scene(Writer(), behaviors, graph, stored=run.stored)
    assert await again.run() == "failed"
    assert again.event_names("node.skipped", *PLANS) == ["node.skipped c", "plan.refused"]


# -- changes that a person decides about -----------------------------------------------------------

OWN = ("execution.paused", "execution.resumed")
APPROVE = {"decision": "approve", "note": ""}
REJECT = {"decision": "reject", "note": "not there"}


def own_request_of(run: ExecutionHarness) -> str:
    (asked,) = (each for each in run.data_of("execution.paused") if "request_id" in each)
    return str(asked["request_id"])


def answer_at(run: ExecutionHarness, seconds: float, answer: Any) -> None:
    def give() -> None:
        run.execution.answer(own_request_of(run), answer)

    asyncio.get_running_loop().call_later(seconds, give)


@virtual_time
async def test_nothing_starts_before_a_person_approves_and_what_runs_goes_on() -> None:
    run = scene(Writer(AFTER, asks=True), {"b": fails, "slow": after(3)})
    answer_at(run, 9, APPROVE)
    assert await run.run() == "completed"
    assert run.event_names(*KINDS, *PLANS, *OWN, *ENDS)[4:] == [
        "node.failed b",
        "plan.requested",
        "execution.paused",
        "node.completed slow",
        "execution.resumed",
        "plan.revised",
        "node.started other",
        "node.completed other",
        "node.started c",
        "node.completed c",
        "execution.completed",
    ]
    (batch,) = (each for each in run.batches if "plan.revised" in {event.type for event in each})
    assert [each.type for each in batch[:2]] == ["execution.resumed", "plan.revised"]


@virtual_time
@pytest.mark.parametrize("on_failure", ["continue", "stop"])
async def test_a_rejected_change_leaves_the_end_as_it_would_have_been(on_failure: str) -> None:
    graph = parse_graph("a b c slow late", "a>b", "b>c", "slow>late")
    run = scene(
        Writer(parse_graph("a other c slow late", "a>other", "other>c", "slow>late"), asks=True),
        {"b": fails, "slow": after(0.5)},
        graph,
        on_failure=on_failure,
    )
    answer_at(run, 9, REJECT)
    assert await run.run() == "failed"
    (refused,) = run.data_of("plan.refused")
    message = "the change was rejected: not there"
    assert refused == {"change": 1, "error": {"code": "change-rejected", "message": message}}
    late = ["node.started late", "node.completed late"]
    stopped = ["node.cancelled late"]
    told = run.event_names("node.started", "node.completed", "node.cancelled")
    assert told[-len(late) :] == late if on_failure == "continue" else told[-1:] == stopped


@virtual_time
async def test_a_pause_by_a_person_holds_over_the_request_and_its_answer() -> None:
    run = scene(Writer(AFTER, asks=True), {"b": fails})
    loop = asyncio.get_running_loop()
    loop.call_later(0.5, run.execution.pause)
    answer_at(run, 3, APPROVE)
    loop.call_later(5, run.execution.resume)
    assert await run.run() == "completed"
    assert [each["kind"] for each in run.data_of("execution.paused")] == ["requested"] * 3
    assert run.event_names(*OWN, *PLANS, "node.started")[3:] == [
        "plan.requested",
        "execution.paused",
        "execution.paused",
        "execution.resumed",
        "execution.paused",
        "plan.revised",
        "execution.resumed",
        "node.started other",
        "node.started c",
    ]


@virtual_time
async def test_a_resume_does_not_stand_for_the_answer() -> None:
    run = scene(Writer(AFTER, asks=True), {"b": fails})
    loop = asyncio.get_running_loop()
    loop.call_later(2, run.execution.pause)
    loop.call_later(3, run.execution.resume)
    answer_at(run, 9, APPROVE)
    assert await run.run() == "completed"
    assert [each["kind"] for each in run.data_of("execution.paused")] == [
        "waiting", "requested", "waiting",
    ]  # fmt: skip
    assert "plan.revised" in run.event_names("node.started", *PLANS)[4]


@virtual_time
async def test_a_cancel_closes_the_request_about_a_change() -> None:
    run = scene(Writer(AFTER, asks=True), {"b": fails, "slow": after(99)})
    asyncio.get_running_loop().call_later(5, run.execution.cancel, "enough")
    assert await run.run() == "cancelled"
    assert run.event_names(*PLANS, *OWN) == ["plan.requested", "execution.paused"]


@virtual_time
async def test_a_change_by_hand_takes_the_place_of_the_one_that_waits_for_a_person() -> None:
    run = scene(Writer(AFTER, asks=True), {"b": fails})
    mine = parse_graph("a mine c slow", "a>mine", "mine>c")
    refusals: list[Any] = []

    def revise() -> None:
        run.execution.revise(mine, change_of(BEFORE, mine))
        late = run.execution.answer(own_request_of(run), APPROVE)
        late.add_done_callback(lambda it: refusals.append(it.exception()))

    asyncio.get_running_loop().call_later(5, revise)
    assert await run.run() == "completed"
    assert [each.code for each in refusals] == ["request-closed"]
    assert run.event_names(*PLANS, *OWN, "node.started")[3:] == [
        "plan.requested",
        "execution.paused",
        "plan.revised",
        "execution.resumed",
        "node.started mine",
        "node.started c",
    ]


@virtual_time
async def test_what_fails_while_a_person_is_asked_asks_for_the_next_change() -> None:
    both = parse_graph("a other c slow", "a>other", "other>c")
    neither = parse_graph("a other c fast", "a>other", "other>c")
    writer = Writer(both, neither, asks=True)
    run = scene(writer, {"b": fails, "slow": after(3, raise_error)}, replan={**REPLAN, "max": 2})
    answers = iter((APPROVE, APPROVE))

    def answer_all() -> None:
        for request_id in run.execution.open_requests:
            run.execution.answer(request_id, next(answers))

    for at in (6, 12):
        asyncio.get_running_loop().call_later(at, answer_all)
    assert await run.run() == "completed"
    assert [each.get("path") for each in writer.asked] == ["b", "slow"]


@virtual_time
async def test_a_change_that_cannot_be_made_asks_nobody() -> None:
    run = scene(Writer(parse_graph("a b c slow", "b>a", "b>c"), asks=True), {"b": fails})
    assert await run.run() == "failed"
    assert run.event_names(*OWN) == []
    assert run.data_of("plan.refused")[0]["error"]["code"] == "graph-invalid"


# -- by a node -------------------------------------------------------------------------------------

BY_NODES = {"by_nodes": True, "max": 1}
WORDS = {"request": "leave out c"}
ASKED = {"change": 1, "by": "node", "path": "a", **WORDS}


async def asks(_: Any, context: FlowContext) -> Any:
    """Ask in the result, as a node of a library does."""
    result = result_with("a")
    return result._replace(events=[node_event(context, "replan", WORDS)])


def records(*data: Any, then: Callable[[], Any] = result_with) -> Any:
    """Ask at once, and learn whether that is possible."""

    async def node(_: Any, context: FlowContext) -> Any:
        for each in data:
            await context.record("replan", each)
        return then()

    return node


@virtual_time
@pytest.mark.parametrize("node", [asks, records(WORDS)])
async def test_a_node_asks_for_a_change_in_the_batch_of_its_completion(node: Any) -> None:
    writer = Writer(parse_graph("a b other slow", "a>b", "b>other"))
    run = scene(writer, {"a": node, "slow": after(0.5)}, replan=BY_NODES)
    assert await run.run() == "completed"
    completed = next(batch for batch in run.batches if batch[0].type == "node.event")
    assert [each.type for each in completed] == ["node.event", "node.completed", "plan.requested"]
    assert completed[0].data == {"event_type": "replan", "data": WORDS}
    assert writer.asked == [ASKED]
    assert run.event_names(*PLANS, "node.started")[2:] == [
        "plan.requested",
        "plan.revised",
        "node.started b",
        "node.started other",
    ]


@virtual_time
async def test_the_last_node_asks_for_what_is_to_follow() -> None:
    writer = Writer(parse_graph("a b", "a>b"))
    run = scene(writer, {"a": asks}, parse_graph("a"), replan=BY_NODES)
    assert await run.run() == "completed"
    assert run.event_names("node.completed") == ["node.completed a", "node.completed b"]


@virtual_time
async def test_nodes_that_ask_while_a_change_is_written_are_heard_one_by_one() -> None:
    graph = parse_graph("a b c", "b>c")
    writer = Writer(parse_graph("a b c d", "b>c"), parse_graph("a b c d e", "b>c"))
    behaviors = {"a": asks, "b": asks, "c": asks}
    run = scene(writer, behaviors, graph, replan={**BY_NODES, "max": 2})
    assert await run.run() == "completed"
    assert [(each["change"], each["path"]) for each in writer.asked] == [(1, "a"), (2, "b")]
    told = "the plan is not changed any more: 2 changes were asked for"
    assert run.data_of("node.log", "c") == [{"message": told, "level": "warning"}]


@virtual_time
async def test_a_failure_is_heard_before_what_a_node_asks_for() -> None:
    writer = Writer(parse_graph("a other c", "a>other", "other>c"))
    both = {"a": asks, "b": fails}
    run = scene(writer, both, parse_graph("a b"), replan={**REPLAN, **BY_NODES, "max": 2})
    assert await run.run() == "completed"
    assert [(each["by"], each["path"]) for each in writer.asked] == [
        ("failure", "b"),
        ("node", "a"),
    ]


@virtual_time
async def test_what_a_node_asks_for_before_it_waits_is_requested_once_it_completes() -> None:
    """The same in another process that goes on after any batch before the change."""
    asks_person = records(WORDS, then=lambda: Suspension("which one?"))
    writer = Writer(parse_graph("a b other slow", "a>b", "b>other"))
    run = scene(writer, {"a": asks_person}, replan=BY_NODES)
    run.answer_after(5)
    assert await run.run() == "completed"
    (waiting,) = run.data_of("node.waiting")
    assert waiting["replan"] == WORDS["request"]
    told = ["node.event a", "node.completed a", *PLANS[:2], "node.started b", "node.started other"]
    assert [each for each in run.event_names() if each in told] == told
    (made,) = (
        n for n, batch in enumerate(run.batches) if "plan.revised" in {each.type for each in batch}
    )
    for cut in range(1, made + 1):
        stored = [event for batch in run.batches[:cut] for event in batch if event.seq]
        again = scene(writer, {"a": asks_person}, replan=BY_NODES, stored=stored)
        asked = {each.data["request_id"]: each.type for each in stored if "request_id" in each.data}
        open_requests = [i for i, kind in asked.items() if kind == "node.waiting"]
        again.answer_every_request(1, "yes", open_requests)
        assert await again.run() == "completed"
        events = [*stored, *again.stored]
        assert [each.data["event_type"] for each in events if each.type == "node.event"] == [
            "replan"
        ]
        assert [each.type for each in events if each.type in PLANS] == list(PLANS[:2])
    assert {str(each) for each in writer.asked} == {str(ASKED)}


@virtual_time
async def test_a_node_that_has_asked_before_it_waits_asks_for_no_second_change() -> None:
    behaviors = {
        "a": records(WORDS, then=lambda: Suspension("which one?")),
        "a:resume": lambda inputs, context, state, answer: records(WORDS)(inputs, context),
    }
    run = scene(Writer(AFTER), behaviors, replan=BY_NODES)
    run.answer_after(1)
    assert await run.run() == "failed"
    (failed,) = run.data_of("node.failed", "a")
    assert "it has asked for one already" in failed["error"]["message"]
    assert run.event_names(*PLANS) == []


@virtual_time
async def test_a_node_that_fails_after_it_has_asked_asks_for_nothing() -> None:
    run = scene(Writer(AFTER), {"a": records(WORDS, then=raise_error)}, replan=BY_NODES)
    assert await run.run() == "failed"
    assert run.event_names(*PLANS, "node.event") == []


@virtual_time
@pytest.mark.parametrize(
    ("asked", "options", "why"),
    [
        ([WORDS], {"replan": REPLAN}, "the steps of this execution may ask for none"),
        ([WORDS], {"replan": None}, "the steps of this execution may ask for none"),
        ([WORDS, WORDS], {"replan": BY_NODES}, "it has asked for one already"),
        (
            [{"request": " "}],
            {"replan": BY_NODES},
            'its data are {"request"}, 1 to 4000 characters',
        ),
        ([{"request": "x" * 4001}], {"replan": BY_NODES}, "1 to 4000 characters"),
        (["words"], {"replan": BY_NODES}, "1 to 4000 characters"),
    ],
)
async def test_a_node_that_cannot_ask_is_told_why(asked: Any, options: Any, why: str) -> None:
    run = scene(Writer(AFTER), {"a": records(*asked)}, **options)
    assert await run.run() == "failed"
    (failed,) = run.data_of("node.failed", "a")
    assert failed["error"]["code"] == "no-replan"
    assert why in failed["error"]["message"]
    assert [each["by"] for each in run.data_of("plan.requested")] in ([], ["failure"])


@virtual_time
async def test_a_graph_that_runs_inside_a_step_is_never_changed() -> None:
    inner = parse_graph("x")

    async def around(_: Any, context: FlowContext) -> Any:
        assert context.may_replan
        await context.runtime.run_graph("inner", inner, {})
        return result_with()

    async def within(_: Any, context: FlowContext) -> Any:
        assert not context.may_replan
        return await asks(_, context)

    run = scene(Writer(AFTER), {"a": around, "x": within}, parse_graph("a"), replan=BY_NODES)
    assert await run.run() == "completed"
    assert run.event_names(*PLANS) == []
    (told,) = run.data_of("node.log")
    assert "graphs that run inside a step are never changed" in told["message"]


@virtual_time
@pytest.mark.parametrize("second", ["node", "failure"])
async def test_what_asks_while_a_change_is_written_asks_after_a_crash_too(second: str) -> None:
    async def later(_: Any, context: FlowContext) -> Any:
        await asyncio.sleep(0.5)
        return raise_error() if second == "failure" else await asks(_, context)

    graph = parse_graph("a b")
    changed = [parse_graph("a b c"), parse_graph("a c d"), parse_graph("a b c d")]
    writer = Writer(changed[0], changed[1] if second == "failure" else changed[2])
    options = {"replan": {**REPLAN, **BY_NODES, "max": 2}}
    run = scene(writer, {"a": asks, "b": later}, graph, **options)
    assert await run.run() == "completed"
    asked = [(1, "node", "a"), (2, second, "b")]
    assert [(each["change"], each["by"], each["path"]) for each in writer.asked] == asked
    ended = ("node.completed", "node.failed")
    last = next(each.seq for each in run.stored if each.path == "b" and each.type in ended)
    stored = [each for each in run.stored if each.seq <= last]
    again = scene(writer, {"a": asks, "b": later}, graph, stored=stored, **options)
    assert await again.run() == "completed"
    assert [(each["change"], each["by"], each["path"]) for each in writer.asked[2:]] == asked


# -- what a person asks for in words ---------------------------------------------------------------

IN_WORDS: PlanRequestedData = {
    "change": 1, "by": "person", "request": "another way",
    "requested_by": {"kind": "local"}, "writer": {"provider": None, "model": None},
}  # fmt: skip


def ask(run: ExecutionHarness, at_s: float, change: int = 1) -> list[Any]:
    """Ask for a change in words after a time; what comes of that is added to the list."""
    outcomes: list[Any] = []

    def request() -> None:
        done = run.execution.request_change({**IN_WORDS, "change": change})
        done.add_done_callback(lambda it: outcomes.append(it.exception()))

    asyncio.get_running_loop().call_later(at_s, request)
    return outcomes


@virtual_time
async def test_words_of_a_person_hold_what_has_not_begun_until_the_change_is_made() -> None:
    writer = Writer(AFTER)
    run = scene(writer, {"a": after(1), "slow": after(1.6)}, replan=None)
    outcomes = ask(run, 0.5)
    assert await run.run() == "completed"
    assert run.event_names(*KINDS, *PLANS, "usage", *ENDS) == [
        "node.started a",
        "node.started slow",
        "plan.requested",
        "node.completed a",
        "usage",
        "plan.revised",
        "node.started other",
        "node.completed other",
        "node.started c",
        "node.completed c",
        "node.completed slow",
        "execution.completed",
    ]
    assert (outcomes, writer.asked) == ([None], [IN_WORDS])


@virtual_time
async def test_words_that_come_to_nothing_let_the_execution_go_on_as_it_was() -> None:
    run = scene(Writer(), {"a": after(1)}, replan=None)
    ask(run, 0.5)
    assert await run.run() == "completed"
    (refused,) = run.data_of("plan.refused")
    assert (refused["change"], refused["error"]["code"]) == (1, "nothing-changed")
    assert "node.completed b" in run.event_names("node.completed")


@virtual_time
async def test_words_are_heard_while_the_execution_waits_which_it_does_again_afterwards() -> None:
    more = parse_graph("a b c slow more", "a>b", "b>c")
    run = scene(Writer(more), {"b": after(0, lambda: Suspension("which one?"))}, replan=None)
    ask(run, 1)

    def answer() -> None:
        run.execution.answer(run.execution.open_requests[0], 5)

    asyncio.get_running_loop().call_later(5, answer)
    assert await run.run() == "completed"
    assert run.event_names("execution.paused", "execution.resumed", *PLANS)[:5] == [
        "execution.paused",
        "execution.resumed",
        "plan.requested",
        "plan.revised",
        "execution.paused",
    ]


@virtual_time
async def test_only_one_change_is_written_and_none_while_a_person_has_paused_the_execution() -> (
    None
):
    run = scene(Writer(AFTER), {"a": after(5)}, replan=None)
    first, second, stale = ask(run, 0.5), ask(run, 1), ask(run, 2)
    asyncio.get_running_loop().call_later(3, run.execution.pause)
    paused = ask(run, 3.5, change=2)
    asyncio.get_running_loop().call_later(4, run.execution.resume)
    assert await run.run() == "completed"
    codes = [None if each is None else each.code for (each,) in (first, second, stale, paused)]
    assert codes == [None, "change-requested", "plan-changed", "paused"]


@virtual_time
async def test_words_of_a_person_take_none_of_the_changes_that_failures_may_ask_for() -> None:
    wider = parse_graph("a b c slow more", "a>b", "b>c")
    writer = Writer(wider, parse_graph("a other c slow more", "a>other", "other>c"))
    run = scene(writer, {"a": after(2), "b": fails})
    ask(run, 0.5)
    assert await run.run() == "completed"
    assert [each["by"] for each in writer.asked] == ["person", "failure"]


@virtual_time
async def test_a_process_that_ends_while_words_become_a_change_is_followed_by_one_that_asks_again() -> (
    None
):
    first = scene(Writer(AFTER), {"a": after(1), "slow": after(9)}, replan=None)
    ask(first, 0.5)
    assert await first.run() == "completed"
    cut = next(i for i, each in enumerate(first.stored) if each.type == "usage")
    writer = Writer(AFTER)
    taken_up = scene(writer, {}, stored=first.stored[:cut], replan=None)
    assert await taken_up.run() == "completed"
    assert writer.asked == [IN_WORDS]
    told = taken_up.event_names("node.started", "plan.revised")
    assert told.index("plan.revised") < told.index("node.started other")
    assert "node.started b" not in told
