"""Executions whose graph is changed while they run: random graphs, random legal changes, at random moments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planwave.errors import Conflict, GraphInvalid, NodeError
from planwave.events import Event, ExecutionState, fold
from planwave.events.plan_payloads import REPLAN, PlanRequestedData, PlanRevisedData
from planwave.events.request_text import is_change_request
from planwave.executor.driver.execution import Execution
from planwave.executor.options import OnFailure, RunOptions
from planwave.executor.ports import ChangeCalls, WrittenChange
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.graph.editing.revision import graph_change, revision_findings
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Edge, Graph, Node
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import (
    ExecutionResult,
    FlowContext,
    NodeEvent,
    NodeTypeInfo,
    Suspension,
)
from planwave.graph.reading.documents import read_graph
from tests.support.engine.generic_nodes import OPEN_AND_LINK_PORTS, GenericNodeTypes, MemoryJournal
from tests.support.engine.random_schedules import ByteChoices
from tests.support.graph.builders import make_edge

NOW = "2026-01-01T00:00:00.000000+00:00"
REFUSALS = {
    "frozen-node", "frozen-input", "used-id", "nothing-changed", "plan-changed", "change-requested",
    "approval-open",
}  # fmt: skip
OUTPUT = "output"


class TellingNode:
    """Gives its id, its tag and all that reached it, so that a result shows how it was made."""

    node_type = "step"

    def __init__(self, started: list[tuple[str, int]]) -> None:
        self._started = started

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        self._started.append((context.node_id, context.attempt))
        if data.get("delay"):
            await asyncio.sleep(data["delay"])
        if data.get("does") == "fails":
            raise NodeError(f"{context.node_id} fails")
        if data.get("does") == "fails once" and context.attempt == 1:
            raise NodeError("not yet", retryable=True)
        if data.get("does") == "asks":
            return Suspension({"for": context.node_id}, state=_told(data, inputs, context))
        if data.get("does") == "chooses":
            return ExecutionResult({"left": DataValue("any", _told(data, inputs, context))})
        asked = NodeEvent(context.node_id, "step", REPLAN, context.run_id, {"request": "a change"})
        events = [asked] if data.get("does") == "wants a change" and context.may_replan else ()
        return ExecutionResult({OUTPUT: DataValue("any", _told(data, inputs, context))}, events)

    async def resume(
        self, data: Any, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> ExecutionResult:
        return ExecutionResult({OUTPUT: DataValue("any", [state, answer])})


def _told(data: Mapping[str, Any], inputs: Inputs, context: FlowContext) -> Any:
    arrived = sorted(str(each.value.value) for each in inputs.arrivals)
    return f"{context.node_id}:{data.get('tag', '')}({'|'.join(arrived)})"


class TellingTypes(GenericNodeTypes):
    """The catalogue of ``TellingNode``."""

    def __init__(self, started: list[tuple[str, int]]) -> None:
        super().__init__({})
        self._node = TellingNode(started)
        self._facts["step"] = NodeTypeInfo(
            "step", "", OPEN_AND_LINK_PORTS, OPEN_AND_LINK_PORTS, replayable=True
        )


def without_doubles(edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """Return edges without those that say the same again: a check would refuse them."""
    seen: dict[Any, Edge] = {}
    for each in edges:
        ends = each.source, each.source_handle, each.target, each.target_handle, each.channel
        seen.setdefault(ends, each)
    return tuple(seen.values())


def request_about(data: PlanRevisedData) -> dict[str, Any]:
    """What a person is asked about a change, as far as the driver reads it."""
    actions = ["approve", "reject"]
    return {**data, "kind": "plan-change", "answer": data.get("note", ""), "actions": actions}


DOES = ("fails", "fails once", "asks", "chooses")
HANDLES = (OUTPUT, "left", "right")


class RevisedRun:
    """An execution that is changed at random moments.

    Args:
        choices: What decides everything.
        joins: Whether nodes may start with the first of their inputs; then results depend on time.
        on_failure: What follows from a failure after which a model writes a change; None: none does.
        by_nodes: Whether nodes may ask for changes, too.
    """

    def __init__(
        self,
        choices: ByteChoices,
        *,
        joins: bool = False,
        on_failure: OnFailure | None = None,
        by_nodes: bool = False,
    ) -> None:
        self.choices, self._joins = choices, joins
        self._count = 0
        self.refusals: list[str] = []
        self.written: dict[int, WrittenChange] = {}
        self.decisions: dict[str, bool] = {}
        self.shown: dict[int, list[Sequence[Event]]] = {}
        self._listener: Callable[[list[Event]], None] = lambda _: None
        self.options = RunOptions(
            scheduling=("eager", "waves")[choices.below(2)],
            max_parallel=(None, 1, 2)[choices.below(3)],
            on_failure=on_failure or "continue",
            replan={"on_failure": True, "by_nodes": by_nodes, "max": 1 + choices.below(3)}
            if on_failure
            else None,
        )
        size = 2 + choices.below(6)
        nodes = [self._node() for _ in range(size)]
        edges = [
            self._edge(nodes[first].id, nodes[first + 1 + choices.below(size - 1 - first)].id)
            for first in (choices.below(size - 1) for _ in range(choices.below(2 * size)))
        ]
        self.graph = Graph(tuple(nodes), without_doubles(edges))
        self.moments = [choices.below(12) + 0.5 for _ in range(1 + choices.below(3))]
        self.started: list[tuple[str, int]] = []
        self.catalogue = TellingTypes(self.started)
        self.journal = MemoryJournal()
        self.journal.batches.append([self._created()])

    def _created(self) -> Event:
        data = {"graph": self.graph.to_document(), "waves": 0, "options": self.options.as_json()}
        return Event("x1", 1, NOW, "execution.created", None, None, data)

    def _node(self) -> Node:
        self._count += 1
        document = {"id": f"n{self._count}", "type": "step", "name": f"n{self._count}"}
        parts = {"data": self._data(), "policy": self._policy()}
        graph, _ = read_graph({"nodes": [{**document, **parts}], "edges": []})
        return graph.nodes[0]

    def _data(self) -> dict[str, Any]:
        choices = self.choices
        data: dict[str, Any] = {"tag": choices.below(100), "delay": choices.below(5)}
        if self.options.replans_by_nodes and choices.one_in(3):
            data["does"] = "wants a change"
        elif self.options.max_replans and choices.one_in(4):
            data["does"] = "fails"
        elif choices.one_in(3):
            data["does"] = DOES[choices.below(len(DOES))]
        return data

    def _policy(self) -> dict[str, Any]:
        is_any = self._joins and self.choices.one_in(4)
        policy = {"join": "any" if is_any else "all", "retry": {"attempts": 2, "backoffS": 1}}
        return {**policy, "onError": "continue" if self.choices.one_in(6) else "fail"}

    def _edge(self, source: str, target: str) -> Edge:
        self._count += 1
        handle = HANDLES[0 if self.choices.below(3) else self.choices.below(len(HANDLES))]
        channel = "link" if self.choices.one_in(9) else "flow"
        name = f"e{self._count}"
        return make_edge(source, target, source_handle=handle, channel=channel, edge_id=name)

    # -- changes -----------------------------------------------------------------------------------

    def changed(self, graph: Graph) -> Graph:
        """Return a graph with a few random changes; it has no cycle."""
        nodes, edges = list(graph.nodes), list(graph.edges)
        for _ in range(1 + self.choices.below(3)):
            what = self.choices.below(5)
            if what == 0 and len(nodes) > 1:
                gone = nodes.pop(self.choices.below(len(nodes))).id
                edges = [each for each in edges if gone not in (each.source, each.target)]
            elif what == 1 and nodes:
                at = self.choices.below(len(nodes))
                nodes[at] = nodes[at]._replace(data=self._data())
            elif what == 2 and edges:
                edges.pop(self.choices.below(len(edges)))
            elif what == 3 and len(nodes) > 1:
                pair = sorted(self.choices.below(len(nodes)) for _ in range(2))
                if pair[0] != pair[1]:
                    edges.append(self._edge(*(nodes[each].id for each in pair)))
            else:
                added = self._node()
                nodes.append(added)
                source = nodes[self.choices.below(len(nodes) - 1)] if len(nodes) > 1 else None
                if source is not None:
                    edges.append(self._edge(source.id, added.id))
        return Graph(tuple(nodes), without_doubles(edges))

    def random_change(self, state: ExecutionState) -> tuple[Graph, PlanRevisedData]:
        """Return a random change of the graph that is run."""
        before, _ = read_graph(state.graph or {})
        after = self.changed(before)
        return after, {
            "change": len(state.changes) + 1,
            "base": graph_hash(before),
            "hash": graph_hash(after),
            "graph_change": graph_change(before.document, after.document),
            "floor": 0,
        }

    async def revise(self, execution: Execution) -> None:
        """Make a random change, if the execution can be changed so."""
        state = fold(await self.journal.events("x1"))
        if execution.has_ended or state.graph is None:
            return
        try:
            graph, data = self.random_change(state)
            must_ask = self.options.max_replans > 0 and self.choices.one_in(3)
            request = request_about(data) if must_ask else None
            await execution.revise(graph, data, request)
        except GraphInvalid as error:
            self.refusals += [each.code for each in error.diagnostics]
        except Conflict as error:
            self.refusals.append(error.code)

    async def write_change(
        self,
        asked: PlanRequestedData,
        number: int,
        events: Sequence[Event],
        calls: ChangeCalls,
    ) -> WrittenChange:
        """Write a random change, as a model does after a while, or refuse it; the same where it is asked again."""
        self.shown.setdefault(number, []).append(events)
        await asyncio.sleep(self.choices.below(6))
        calls.ended({"input_tokens": number})
        if number not in self.written:
            state = fold(events)
            refusal = Conflict("not today", code="refused") if self.choices.one_in(4) else None
            if refusal is not None:
                self.written[number] = WrittenChange(error=refusal)
                return self.written[number]
            graph, data = self._likely_change(state)
            asked_first = request_about(data) if self.choices.one_in(2) else None
            self.written[number] = WrittenChange(graph, data, request=asked_first)
        return self.written[number]

    def _likely_change(self, state: ExecutionState) -> tuple[Graph, PlanRevisedData]:
        """Return a random change that is seldom illegal: what a model writes is checked before."""
        before, _ = read_graph(state.graph or {})
        progress = state.changes.progress(state.nodes, before)
        change = self.random_change(state)
        for _ in range(11):
            if not revision_findings(before, change[0], progress, self.catalogue):
                break
            change = self.random_change(state)
        return change

    # -- runs --------------------------------------------------------------------------------------

    async def run(self) -> ExecutionState:
        """Run it to its end with the changes; return its state."""
        execution = self._execution(self.graph, last_seq=1)
        loop = asyncio.get_running_loop()
        self._answer_after(execution)
        async with asyncio.TaskGroup() as tasks:
            timers = [
                loop.call_later(at, lambda: tasks.create_task(self.revise(execution)))
                for at in self.moments
            ]
            await execution.run()
            for each in timers:
                each.cancel()
        return fold(await self.journal.events("x1"))

    async def recovered(self, events: Sequence[Event]) -> ExecutionState:
        """Go on after some of the events, as another process does; return the state at the end."""
        state = fold(events)
        graph, _ = read_graph(state.graph or {})
        self.journal.batches[:] = [list(events)]
        execution = self._execution(
            graph,
            history=History(events),
            is_recovery=True,
            wave_floors=state.waves.floors,
        )
        self._answer_after(execution)
        for request_id in list(state.requests):
            asyncio.get_running_loop().call_later(2, self._answer, execution, request_id)
        await execution.run()
        return fold(await self.journal.events("x1"))

    async def from_scratch(self, graph: Graph) -> ExecutionState:
        """Run a graph that nothing changes; return its state."""
        following = RevisedRun(ByteChoices(b""))
        following.graph, following.options = graph, replace(self.options, replan=None)
        following.moments = []
        following.journal.batches[:] = [[following._created()]]
        return await following.run()

    def _execution(self, graph: Graph, **more: Any) -> Execution:
        program = Program(graph, self.catalogue)
        return Execution(
            program,
            execution_id="x1",
            options=self.options,
            journal=self.journal,
            now=lambda: NOW,
            on_events=self._on_events,
            write_change=self.write_change,
            **more,
        )

    def _answer_after(self, execution: Execution) -> None:
        loop = asyncio.get_running_loop()

        def listen(events: list[Event]) -> None:
            for event in events:
                if (request_id := event.data.get("request_id")) is not None:
                    loop.call_later(2, self._answer, execution, request_id)

        self._listener = listen

    def _answer(self, execution: Execution, request_id: str) -> None:
        if not execution.has_ended and request_id in execution.open_requests:
            execution.answer(request_id, self._answer_to(request_id))

    def _answer_to(self, request_id: str) -> Any:
        """Return an answer; the same where a process that follows is asked again."""
        requests = (
            event.data.get("request")
            for event in self.journal.appended
            if event.data.get("request_id") == request_id and "request" in event.data
        )
        if not is_change_request(next(requests, None)):
            return "yes"
        decision = self.decisions.setdefault(request_id, self.choices.one_in(3))
        return {"decision": "reject" if decision else "approve", "note": ""}

    def _on_events(self, events: list[Event]) -> None:
        self._listener(events)
