"""Changes of the graph of an execution through the service: while it runs, waits, is paused and has ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.errors import Conflict, GraphInvalid, NotFound, PreconditionFailed, StoreError
from planwave.events import execution_logs
from planwave.executor.options import RunOptions
from planwave.graph.editing.revision import graph_change
from planwave.graph.model import LINK, DataValue, Node, Port
from planwave.graph.operations import AddEdge, AddNode, RemoveNode, UpdateNode
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import ExecutionResult, Suspension
from planwave.graph.reading.documents import read_graph
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.graph.builders import make_edge, make_graph, text_node
from tests.support.polling import until
from tests.support.service.dependencies import execute_goal
from tests.unit.service.executions.test_fork_graphs import edited, opened
from tests.unit.service.executions.test_fork_runs import Joins, joins, result

CHAIN = make_graph(joins("a"), joins("b"), joins("c"), edges=[("a", "b"), ("b", "c")])
COSTS = {"id": "costs", "type": "joins", "name": "Costs", "data": {}}


class Held(Joins):
    """The same, but nodes wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        if context.node_id == "b":
            self.runs["b held"] += 1
            await self.gate.wait()
        return await super().execute(data, inputs, context)


class Asks:
    """A node type that gives what a person answers."""

    node_type = "asks"

    async def execute(self, data: Any, inputs: Any, context: Any) -> Suspension:
        return Suspension({"message": "Which city?"})

    async def resume(
        self, data: Any, inputs: Any, context: Any, state: Any, answer: Any
    ) -> ExecutionResult:
        return ExecutionResult({"output": DataValue("text", answer)})


async def running(service: Service, work: Held, **more: Any) -> str:
    """Start an execution of the chain; its second node waits."""
    execution_id = (await execute_goal(service, **more)).execution_id
    await until(lambda: work.runs["b held"])
    return execution_id


WIDENED = edited(
    CHAIN.to_document(),
    AddNode(COSTS),
    AddEdge({"source": "a", "target": "costs"}),
    AddEdge({"source": "costs", "target": "c"}),
)


async def test_a_running_execution_goes_on_with_the_changed_graph_and_runs_nothing_twice() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        change = await service.changes.revise(execution_id, WIDENED, note="also cover costs")
        assert (change["change"], change["note"]) == (1, "also cover costs")
        assert change["hash"] == graph_hash(read_graph(WIDENED)[0])
        await until(lambda: work.runs["costs"])
        work.gate.set()
        assert await result(service, execution_id) == {
            "a": "a", "b": "a+b", "costs": "a+costs", "c": "a+b+a+costs+c",
        }  # fmt: skip
        assert work.runs == {"a": 1, "b held": 1, "b": 1, "costs": 1, "c": 1}
        document = await service.executions.document(execution_id)
        assert [each["hash"] for each in document["changes"]] == [change["hash"]]
        assert {node["id"] for node in document["graph"]["nodes"]} == {"a", "b", "c", "costs"}
        events = await service.executions.events(execution_id)
        assert "Plan changed: new or changed costs - also cover costs" in execution_logs(events)


async def test_a_failed_step_is_replaced_while_another_one_still_runs() -> None:
    graph = make_graph(
        joins("a"), joins("b"), joins("bad"), joins("c"),
        edges=[("a", "b"), ("a", "bad"), ("b", "c"), ("bad", "c")],
    )  # fmt: skip
    work = Held()
    work.broken = {"bad"}
    async with opened(graph, work) as service:
        execution_id = await running(service, work)
        await until(lambda: work.runs["bad"])
        changed = edited(
            graph.to_document(),
            RemoveNode("bad"),
            AddNode(COSTS),
            AddEdge({"source": "a", "target": "costs"}),
            AddEdge({"source": "costs", "target": "c"}),
        )
        change = await service.changes.revise(execution_id, changed, note="bad is broken")
        assert [(each["path"], each["status"]) for each in change["dropped"]] == [("bad", "failed")]
        work.gate.set()
        assert await result(service, execution_id) == {
            "a": "a", "b": "a+b", "costs": "a+costs", "c": "a+b+a+costs+c",
        }  # fmt: skip
        assert (await service.executions.get(execution_id)).status == "completed"
        for read in (service.executions.explain, service.executions.node_document):
            with pytest.raises(NotFound, match=r"change 1 \(bad is broken\) dropped it at") as gone:
                await read(execution_id, "bad")
            assert "in `changes` of the document" in (gone.value.hint or "")
            with pytest.raises(NotFound, match="has no node 'never'"):
                await read(execution_id, "never")
        used = edited(changed, AddNode({"id": "bad", "type": "joins", "name": "Bad", "data": {}}))
        assert {each["id"] for each in graph_change(changed, used)["nodes"]} == {"bad"}


async def test_what_has_begun_is_refused_with_the_place_and_the_way_out() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        changed = edited(
            CHAIN.to_document(),
            UpdateNode("a", {"data": {"say": "x"}}),
            AddNode(COSTS),
            AddEdge({"source": "costs", "target": "b"}),
        )
        with pytest.raises(GraphInvalid) as refused:
            await service.changes.revise(execution_id, changed)
        told = [(each.code, each.pointer, each.node) for each in refused.value.diagnostics]
        assert told == [("frozen-node", "/nodes/0", "a"), ("frozen-input", "/nodes/1", "b")]
        assert all(each.hint for each in refused.value.diagnostics)
        with pytest.raises(GraphInvalid, match="stay as it is"):
            await service.changes.revise(execution_id, CHAIN.to_document())
        broken = edited(CHAIN.to_document(), AddEdge({"source": "c", "target": "gone"}))
        with pytest.raises(GraphInvalid):
            await service.changes.revise(execution_id, broken)
        work.gate.set()
        await service.executions.wait(execution_id)
        state = await service.executions.live_executions.state(execution_id)
        assert not state.changes
        with pytest.raises(Conflict, match="already completed") as over:
            await service.changes.revise(execution_id, WIDENED)
        assert over.value.hint == "fork it with the changed graph"


async def test_errors_of_the_graph_are_told_with_what_has_begun_and_would_change() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        nodes = [{**each, "data": {"say": "x"}} for each in CHAIN.to_document()["nodes"][:2]]
        other = {"id": "x", "type": "none of ours", "data": {}}
        changed = {"nodes": [other, *nodes], "edges": []}
        with pytest.raises(GraphInvalid) as refused:
            await service.changes.revise(execution_id, changed)
        told = [(each.code, each.pointer) for each in refused.value.diagnostics]
        assert told == [
            ("unknown-node-type", "/nodes/0/type"),
            ("frozen-node", "/nodes/1"),
            ("frozen-node", "/nodes/2"),
            ("frozen-input", "/nodes/2"),
        ]
        work.gate.set()
        await service.executions.wait(execution_id)


async def test_of_two_changes_at_once_the_second_one_is_refused() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        seen = [graph_hash(CHAIN)]
        first = await service.changes.revise(execution_id, WIDENED, expected=seen)
        with pytest.raises(PreconditionFailed) as late:
            await service.changes.revise(
                execution_id,
                edited(WIDENED, AddNode({**COSTS, "id": "more"})),
                expected=seen,
            )
        assert late.value.code == "plan-changed"
        again = edited(WIDENED, RemoveNode("c"))
        second = await service.changes.revise(execution_id, again, expected=[first["hash"]])
        assert second["change"] == 2
        with pytest.raises(GraphInvalid) as used:
            await service.changes.revise(execution_id, edited(again, AddNode({**COSTS, "id": "c"})))
        assert [each.code for each in used.value.diagnostics] == ["used-id"]
        work.gate.set()
        assert set(await result(service, execution_id)) == {"a", "b", "costs"}


async def test_an_execution_that_waits_for_a_person_is_changed_in_the_store_and_goes_on() -> None:
    document = {
        "nodes": [
            {"id": "ask", "type": "asks", "data": {}},
            {"id": "c", "type": "joins", "data": {}},
        ],
        "edges": [{"source": "ask", "target": "c", "data": {"channel": "flow"}}],
    }
    asked, _ = read_graph(document)
    work = Joins()
    async with opened(asked, work, Asks()) as service:
        execution_id = (await execute_goal(service)).execution_id
        await service.executions.wait(execution_id)
        changed = edited(asked.to_document(), AddNode(COSTS))
        await service.changes.revise(execution_id, changed)
        await until(lambda: work.runs["costs"])
        await service.executions.wait(execution_id)
        record = await service.executions.get(execution_id)
        assert record.status == "paused"
        state = await service.executions.live_executions.state(execution_id)
        (request_id,) = state.requests
        await service.executions.answer(execution_id, request_id, "Rome")
        assert await result(service, execution_id) == {
            "ask": "Rome", "c": "Rome+c", "costs": "costs",
        }  # fmt: skip


async def approved(service: Service, work: Held) -> str:
    """Start an execution of the chain whose plan a person approves; its second node waits."""
    execution_id = (await execute_goal(service, require_approval=True)).execution_id
    await service.executions.wait(execution_id)
    with pytest.raises(Conflict) as refused:
        await service.changes.revise(execution_id, WIDENED)
    assert refused.value.code == "approval-open", "the plan itself is decided about first"
    await answered(service, execution_id, "approve")
    await until(lambda: work.runs["b held"])
    return execution_id


async def answered(service: Service, execution_id: str, decision: str) -> None:
    state = await service.executions.live_executions.state(execution_id)
    (request_id,) = state.requests
    await service.executions.answer(execution_id, request_id, {"decision": decision})


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_a_change_of_a_plan_that_needs_an_approval_asks_for_one_by_its_hash(
    decision: str,
) -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await approved(service, work)
        before = (await service.executions.document(execution_id))["approval"]["plan_hash"]
        change = await service.changes.revise(execution_id, WIDENED, note="also cover costs")
        state = await service.executions.live_executions.state(execution_id)
        (asked,) = state.requests.values()
        assert change["request_id"] == asked.request_id
        assert asked.request["hash"] == change["hash"] == graph_hash(read_graph(WIDENED)[0])
        assert (asked.request["by"], asked.request["answer"]) == ("person", "also cover costs")
        assert not state.changes.records
        with pytest.raises(Conflict) as refused:
            await service.changes.revise(execution_id, WIDENED, note="once more")
        assert refused.value.code == "approval-open"
        work.gate.set()
        await until(lambda: work.runs["b"])
        assert not work.runs["costs"]
        await answered(service, execution_id, decision)
        await service.executions.wait(execution_id)
        document = await service.executions.document(execution_id)
        assert document["status"] == "completed"
        is_made = decision == "approve"
        assert work.runs["costs"] == is_made
        assert document["approval"]["plan_hash"] == (change["hash"] if is_made else before)
        made = [(each["note"], each["revised_by"]) for each in document.get("changes", ())]
        assert made == ([("also cover costs", change["revised_by"])] if is_made else [])
        fork = await service.executions.fork(execution_id, rerun=["c"], start=False)
        told = (await service.executions.document(fork.execution_id))["approval"]
        assert told == {"plan_hash": document["approval"]["plan_hash"], "approved_in": execution_id}


async def test_a_run_is_changed_as_often_as_the_limit_says_and_forked_after_that() -> None:
    work = Held()
    async with opened(CHAIN, work, limits=Limits(plan_revisions=1)) as service:
        execution_id = await running(service, work)
        await service.changes.revise(execution_id, WIDENED)
        narrowed = edited(WIDENED, RemoveNode("c"))
        for change in (
            service.changes.revise(execution_id, narrowed),
            service.changes.replan(execution_id, "Leave out the last step"),
        ):
            with pytest.raises(Conflict, match="as the limit plan_revisions allows, 1") as refused:
                await change
            assert refused.value.code == "revision-limit"
            assert refused.value.hint == "fork it with the changed graph"
        work.gate.set()
        await service.executions.wait(execution_id)
        fork = await service.executions.fork(execution_id, graph=narrowed)
        assert set(await result(service, fork.execution_id)) == {"a", "b", "costs"}
        assert work.runs["a"] == 1


async def test_a_part_of_a_graph_that_is_run_is_not_changed() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work, options=RunOptions(run_to=("b",)))
        with pytest.raises(Conflict) as refused:
            await service.changes.revise(execution_id, WIDENED)
        assert refused.value.code == "restricted-run"
        work.gate.set()
        await service.executions.wait(execution_id)


async def test_a_fork_of_a_changed_execution_begins_with_the_changed_graph() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        await service.changes.revise(execution_id, WIDENED)
        work.gate.set()
        await service.executions.wait(execution_id)
        work.runs.clear()
        fork = await service.executions.fork(execution_id, rerun=["costs"])
        assert set(await result(service, fork.execution_id)) == {"a", "b", "c", "costs"}
        assert work.runs == {"costs": 1}


async def test_a_retry_of_a_changed_execution_goes_on_with_the_changed_graph() -> None:
    work = Held()
    work.broken = {"costs"}
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        change = await service.changes.revise(execution_id, WIDENED)
        work.gate.set()
        assert (await service.executions.wait(execution_id)).status == "failed"
        work.broken.clear()
        again = (await service.executions.retry(execution_id)).execution_id
        assert (await result(service, again))["c"] == "a+b+a+costs+c"
        assert work.runs == {"a": 1, "b held": 1, "b": 1, "costs": 2, "c": 1}
        state = await service.executions.state(again)
        assert (state.plan_hash, len(state.changes)) == (change["hash"], 0)
        assert state.parent == {"execution_id": execution_id, "retry": True, "rerun": ["costs"]}


async def test_a_retry_runs_no_step_that_was_dropped() -> None:
    graph = make_graph(
        joins("a"), joins("b"), joins("bad"), joins("worse"), edges=[("a", "b"), ("a", "bad"), ("b", "worse")]
    )  # fmt: skip
    work = Held()
    work.broken = {"bad", "worse"}
    async with opened(graph, work) as service:
        execution_id = await running(service, work)
        await until(lambda: work.runs["bad"])
        await service.changes.revise(execution_id, edited(graph.to_document(), RemoveNode("bad")))
        work.gate.set()
        assert (await service.executions.wait(execution_id)).status == "failed"
        work.broken.clear()
        again = (await service.executions.retry(execution_id)).execution_id
        assert await result(service, again) == {"a": "a", "b": "a+b", "worse": "a+b+worse"}
        assert work.runs == {"a": 1, "b held": 1, "b": 1, "bad": 1, "worse": 2}


async def test_a_template_that_names_a_dropped_step_is_refused_with_its_place() -> None:
    reads = text_node("c", "{{ nodes.middle.output }}")
    graph = make_graph(joins("b"), joins("middle"), reads, edges=[("b", "middle"), ("middle", "c")])
    work = Held()
    async with opened(graph, work) as service:
        execution_id = await running(service, work)
        drops = RemoveNode("middle"), AddEdge({"source": "b", "target": "c"})
        changed = edited(graph.to_document(), *drops)
        with pytest.raises(GraphInvalid) as refused:
            await service.changes.revise(execution_id, changed)
        told = [(e.code, e.pointer, e.node) for e in refused.value.diagnostics]
        assert told == [("not-an-ancestor", "/nodes/1/data/text", "c")]
        mended = UpdateNode("c", {"data": {"text": "{{ nodes.b.output }}"}})
        await service.changes.revise(execution_id, edited(changed, mended))
        work.gate.set()
        assert await result(service, execution_id) == {"b": "b", "c": "b"}


async def test_the_plan_stays_until_a_person_keeps_the_change() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        change = await service.changes.revise(execution_id, WIDENED)
        work.gate.set()
        record = await service.executions.wait(execution_id)
        plan = await service.plans.get(str(record.plan_id))
        assert plan.hash == graph_hash(CHAIN)
        kept = await service.revisions.promote(execution_id)
        assert kept.hash == change["hash"]


class Calls:
    """A node type that runs what is linked into it, or resolves an expression, once it is let go."""

    node_type = "calls"
    inputs = (Port("input", multiple=True), Port("tool", channel=LINK, multiple=True))
    outputs = (Port("output"),)

    def __init__(self) -> None:
        self.gate, self.running = asyncio.Event(), set[str]()

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        self.running.add(context.node_id)
        await self.gate.wait()
        resolved = await context.runtime.resolve("{{ input }}", {})
        if context.node_id == "call":
            made = await context.runtime.run_linked("k", "helper", {"input": resolved})
            resolved = made["output"].value
        return ExecutionResult({"output": DataValue("text", resolved)})


class Helps:
    """A node type that is linked into others, and runs for them."""

    node_type = "helps"
    inputs = (Port("input", multiple=True),)
    outputs = (Port("output"), Port("tool", channel=LINK))

    async def execute(self, data: Any, inputs: Any, context: Any) -> ExecutionResult:
        return ExecutionResult({"output": DataValue("text", f"helped {inputs.text()}")})

    async def materialize(self, data: Any, output_handle: str, context: Any) -> Any:
        return "tool"


async def test_a_step_in_flight_uses_what_is_linked_into_it_and_its_own_input_after_a_change() -> (
    None
):
    graph = make_graph(
        joins("a", say="AAA"), joins("later"), joins("b", say="BBB"),
        Node("call", "calls", "Call"), Node("other", "calls", "Other"), Node("helper", "helps", "H"),
        edges=[
            ("a", "call"), ("b", "other"), ("call", "later"),
            make_edge("helper", "call", channel=LINK, source_handle="tool", target_handle="tool"),
        ],
    )  # fmt: skip
    calls = Calls()
    async with opened(graph, Joins(), calls, Helps()) as service:
        execution_id = (await execute_goal(service)).execution_id
        await until(lambda: len(calls.running) == 2)
        changed = edited(graph.to_document(), RemoveNode("later"), AddNode(COSTS))
        await service.changes.revise(execution_id, changed)
        calls.gate.set()
        given = await result(service, execution_id)
        assert (given["call"], given["other"]) == ("helped AAA", "BBB")


async def test_a_fork_with_another_graph_than_the_changed_one_runs() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        await service.changes.revise(execution_id, WIDENED)
        work.gate.set()
        await service.executions.wait(execution_id)
        fork = await service.executions.fork(execution_id, graph=CHAIN.to_document())
        assert await result(service, fork.execution_id) == {"a": "a", "b": "a+b", "c": "a+b+c"}


async def test_the_order_of_a_change_is_that_of_what_is_stored() -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        turned = {
            "nodes": list(reversed(WIDENED["nodes"])), "edges": list(reversed(WIDENED["edges"])),
        }  # fmt: skip
        change = await service.changes.revise(execution_id, turned)
        work.gate.set()
        given = await result(service, execution_id)
        state = await service.executions.live_executions.state(execution_id)
        stored, _ = read_graph(state.graph or {})
        assert change["hash"] == state.plan_hash == graph_hash(stored)
        fork = await service.executions.fork(execution_id, rerun=["c"])
        assert (await result(service, fork.execution_id))["c"] == given["c"]


async def test_a_store_that_cannot_be_read_refuses_the_change_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = Held()
    async with opened(CHAIN, work) as service:
        execution_id = await running(service, work)
        live = service.executions.live_executions.get(execution_id)
        assert live is not None
        assert live.execution is not None

        async def busy() -> Any:
            raise StoreError("busy", code="store-busy")

        with monkeypatch.context() as patched:
            patched.setattr(type(live.execution.publisher), "stored", lambda _: busy())
            with pytest.raises(StoreError):
                await service.changes.revise(execution_id, WIDENED)
        await service.changes.revise(execution_id, WIDENED)
        work.gate.set()
        assert set(await result(service, execution_id)) == {"a", "b", "c", "costs"}
        assert work.runs["a"] == work.runs["b"] == 1


async def test_a_step_that_a_person_has_cancelled_in_the_queue_does_not_come_back() -> None:
    graph = make_graph(joins("a"), joins("b"), joins("paid"), edges=[("a", "b"), ("a", "paid")])
    work = Held()
    async with opened(graph, work) as service:
        execution_id = await running(service, work, options=RunOptions(max_parallel=1))
        await service.executions.cancel(execution_id, node="paid")
        await service.changes.revise(execution_id, edited(graph.to_document(), AddNode(COSTS)))
        work.gate.set()
        assert (await result(service, execution_id))["costs"] == "costs"
        assert work.runs["paid"] == 0
        state = await service.executions.live_executions.state(execution_id)
        assert state.nodes["paid"].status == "cancelled"
