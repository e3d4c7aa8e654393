"""Executions whose graph is changed while they run: random graphs, random legal changes, at random moments."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from planwave.errors import Conflict, GraphInvalid, NodeError
from planwave.events import ENDED_NODE, Event, ExecutionState, fold
from planwave.events.plan_payloads import REPLAN, PlanRequestedData, PlanRevisedData
from planwave.events.request_text import is_change_request
from planwave.events.types import REQUESTED
from planwave.executor.driver.execution import Execution
from planwave.executor.node_api.host import NodeHost
from planwave.executor.options import OnFailure, RunOptions
from planwave.executor.ports import ChangeCalls, WrittenChange
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.reuse.reuse import ParentExecution, Reuse
from planwave.graph.editing.revision import graph_change, revision_findings
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Edge, Graph, Node
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import (
    ExecutionResult,
    FlowContext,
    NodeTypeInfo,
    Suspension,
)
from planwave.graph.reading.documents import read_graph
from planwave.planner.plan_access import additions_of
from tests.support.engine.generic_nodes import OPEN_AND_LINK_PORTS, GenericNodeTypes, MemoryJournal
from tests.support.engine.random_schedules import ByteChoices
from tests.support.graph.builders import make_edge

NOW = "2026-01-01T00:00:00.000000+00:00"
REFUSALS = {
    "frozen-node", "frozen-input", "used-id", "nothing-changed", "plan-changed", "change-requested",
    "approval-open",
    "conflict", "at-rest",  # it has just ended
}  # fmt: skip
OUTPUT = "output"


class TellingNode:
    """Gives its id, its tag and all that reached it, so that a result shows how it was made.

    It uses what is linked to it until it ends.
    """

    node_type = "step"

    def __init__(self, started: list[tuple[str, int]], lines: Lines) -> None:
        self._started, self._lines = started, lines

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult | Suspension:
        self._started.append((context.path, context.attempt))
        linked = await context.runtime.resolve_links(context.node_id, "input")
        with self._lines.used(cast("list[Line]", linked)):
            return await self._execute(data, inputs, context, [str(each) for each in linked])

    async def _execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext, linked: list[str]
    ) -> ExecutionResult | Suspension:
        arrived = sorted([*linked, *(str(each.value.value) for each in inputs.arrivals)])
        if data.get("any"):
            arrived = ["any"]  # whichever came first
        told = f"{context.node_id}:{data.get('tag', '')}({'|'.join(arrived)})"
        does = data.get("does", "")
        if data.get("delay"):
            await asyncio.sleep(data["delay"])
        if does in INNER:
            outputs = await context.runtime.run_graph("k", INNER[does], {})
            told += str(sorted((node, each[OUTPUT].value) for node, each in outputs.items()))
        if does == "fails":
            raise NodeError(f"{context.node_id} fails")
        if does == "fails once" and context.attempt == 1:
            raise NodeError("not yet", retryable=True)
        if does in WANTS and context.may_replan:
            context.emit(REPLAN, {"request": "a change"})
        if does in ("asks", "wants a change, then asks"):
            return Suspension({"for": context.node_id}, state=told)
        handle = "left" if does == "chooses" else OUTPUT
        return ExecutionResult({handle: DataValue("any", told)})

    async def resume(
        self, data: Any, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> ExecutionResult:
        linked = await context.runtime.resolve_links(context.node_id, "input")
        with self._lines.used(cast("list[Line]", linked)):
            await asyncio.sleep(data.get("delay", 0))
            return ExecutionResult({OUTPUT: DataValue("any", [state, answer])})

    async def materialize(self, data: Any, output_handle: str, context: FlowContext) -> Any:
        return Line(self._lines, f"line {context.node_id}:{data.get('tag', '')}")


class Lines:
    """What links have opened, and what of it was closed while a node used it."""

    def __init__(self) -> None:
        self.open, self.misused = list[Line](), list[str]()

    @contextmanager
    def used(self, lines: Sequence[Line]) -> Iterator[None]:
        """Watch that none of them is closed meanwhile."""
        try:
            yield
        finally:
            self.misused += [str(each) for each in lines if each not in self.open]


class Line:
    """Something that a linked node opens."""

    def __init__(self, lines: Lines, name: str) -> None:
        self._lines, self._name = lines, name

    def __str__(self) -> str:
        return self._name

    async def __aenter__(self) -> Line:
        self._lines.open.append(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lines.open.remove(self)


class TellingTypes(GenericNodeTypes):
    """The catalogue of ``TellingNode``."""

    def __init__(self, started: list[tuple[str, int]], lines: Lines) -> None:
        super().__init__({})
        self._node = TellingNode(started, lines)
        self._facts["step"] = NodeTypeInfo(
            "step", "", OPEN_AND_LINK_PORTS, OPEN_AND_LINK_PORTS, replayable=True, materializes=True
        )


def without_doubles(edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """Return edges without those that say the same again: a check would refuse them."""
    seen: dict[Any, Edge] = {}
    for each in edges:
        ends = each.source, each.source_handle, each.target, each.target_handle, each.channel
        seen.setdefault(ends, each)
    return tuple(seen.values())


def _ignored(done: asyncio.Future[None]) -> None:
    """Let a command be refused: something else may have come first."""
    done.add_done_callback(lambda it: it.exception())


def _resume(execution: Execution) -> None:
    if not execution.has_ended:
        _ignored(execution.resume())


def request_about(data: PlanRevisedData) -> dict[str, Any]:
    """What a person is asked about a change, as far as the driver reads it."""
    actions = ["approve", "reject"]
    return {**data, "kind": "plan-change", "answer": data.get("note", ""), "actions": actions}


def change_of(before: Graph, after: Graph, number: int = 1) -> PlanRevisedData:
    """Return what the event of a change of one graph to another says."""
    return {
        "change": number,
        "base": graph_hash(before),
        "hash": graph_hash(after),
        "graph_change": graph_change(before.document, after.document),
        "floor": 1,
    }


def _inner(*nodes: dict[str, Any]) -> Graph:
    """A graph that runs inside a node."""
    documents = [{"type": "step", "name": each["id"], **each} for each in nodes]
    return read_graph({"nodes": documents, "edges": []})[0]


INNER = {
    "runs a graph": _inner({"id": "i", "data": {"delay": 2}}, {"id": "j", "data": {"delay": 3}}),
    "runs a graph that asks": _inner(
        {"id": "i", "data": {"delay": 1}}, {"id": "j", "data": {"does": "asks"}}
    ),
    "runs a graph that fails": _inner({"id": "i"}, {"id": "j", "data": {"does": "fails"}}),
}
WANTS = ("wants a change", "wants a change, then asks")
DOES = ("fails", "fails once", "asks", "chooses", *INNER)
EFFECTS = ("none", "none", "read", "write", "once")
HANDLES = (OUTPUT, "left", "right")


class RevisedRun:
    """An execution that is changed at random moments.

    Args:
        choices: What decides everything.
        joins_any: Whether nodes may start with the first of their inputs; what they give is the same whichever that is.
        races: ``joins_any``, and whether people cancel nodes, or all of it, and pause it for a while; then results
            depend on time.
        on_failure: What follows from a failure after which a model writes a change; None: none does.
        stops: Whether a failure stops the run, and no model writes a change after it.
        by_nodes: Whether nodes may ask for changes, too.
        acts: Whether nodes have effects; then only models change it, and a person is asked first where the service asks.
    """

    def __init__(
        self,
        choices: ByteChoices,
        *,
        joins_any: bool = False,
        races: bool = False,
        on_failure: OnFailure | None = None,
        stops: bool = False,
        by_nodes: bool = False,
        acts: bool = False,
    ) -> None:
        self.choices, self._joins_any, self._acts = choices, joins_any or races, acts
        self._count = 0
        self.refusals: list[str] = []
        self.written: dict[tuple[int, str], WrittenChange] = {}
        self.decisions: dict[str, bool] = {}
        self.shown: dict[int, list[Sequence[Event]]] = {}
        self._listener: Callable[[list[Event]], None] = lambda _: None
        self.options = RunOptions(
            scheduling=("eager", "waves")[choices.below(2)],
            max_parallel=(2 if stops else None, 1, 2)[choices.below(3)],
            on_failure="stop" if stops else on_failure or "continue",
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
        self.graph = self._graph(nodes, edges)
        changes = 0 if acts else 1 + choices.below(3)
        self.moments = [choices.below(12) + 0.5 for _ in range(changes)]
        self.disturbances = [choices.below(12) + 0.25 for _ in range(races * choices.below(3))]
        self.started: list[tuple[str, int]] = []
        self.lines = Lines()
        self.catalogue = TellingTypes(self.started, self.lines)
        self.journal = MemoryJournal()
        self.journal.batches.append([self._created()])

    def _created(self) -> Event:
        data = {"graph": self.graph.to_document(), "waves": 0, "options": self.options.as_json()}
        return Event("x1", 1, NOW, "execution.created", None, None, data)

    def _node(self) -> Node:
        self._count += 1
        document = {"id": f"n{self._count}", "type": self._type(), "name": f"n{self._count}"}
        graph, _ = read_graph({"nodes": [{**document, "policy": self._policy()}], "edges": []})
        (node,) = graph.nodes
        return node._replace(data=self._data(node))

    def _type(self) -> str:
        """Return the type of the next node."""
        return "step"

    def _data(self, node: Node) -> dict[str, Any]:
        """Return random data for a node."""
        choices = self.choices
        data: dict[str, Any] = {"tag": choices.below(100), "delay": choices.below(5)}
        if node.policy.join == "any":
            data["any"] = True
        if self.options.replans_by_nodes and choices.one_in(3):
            data["does"] = WANTS[choices.below(len(WANTS))]
        elif self.options.max_replans and choices.one_in(4):
            data["does"] = "fails"
        elif choices.one_in(3):
            data["does"] = DOES[choices.below(len(DOES))]
        return data

    def _policy(self) -> dict[str, Any]:
        is_any = self._joins_any and self.choices.one_in(2)
        policy: dict[str, Any] = {"join": "any" if is_any else "all"}
        policy["retry"] = {"attempts": 2, "backoffS": 1}
        if self._acts:
            policy["effect"] = EFFECTS[self.choices.below(len(EFFECTS))]
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
                nodes[at] = nodes[at]._replace(data=self._data(nodes[at]))
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
        return self._graph(nodes, edges)

    def _graph(self, nodes: Sequence[Node], edges: Sequence[Edge]) -> Graph:
        """Return a graph of random nodes and edges."""
        return Graph(tuple(nodes), without_doubles(edges))

    def random_change(self, state: ExecutionState) -> tuple[Graph, PlanRevisedData]:
        """Return a random change of the graph that is run."""
        before, _ = read_graph(state.graph or {})
        after = self.changed(before)
        return after, change_of(before, after, len(state.changes) + 1)

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
        """Write a random change, as a model does after a while, or refuse it; the same where it is asked the same."""
        self.shown.setdefault(number, []).append(events)
        await asyncio.sleep(self.choices.below(6))
        calls.ended({"input_tokens": number})
        state = fold(events)
        asked_for = number, graph_hash(read_graph(state.graph or {})[0])
        if asked_for not in self.written:
            if self.choices.one_in(4):
                refusal = Conflict("not today", code="refused")
                self.written[asked_for] = WrittenChange(error=refusal)
            else:
                graph, data = self._likely_change(state)
                before, _ = read_graph(state.graph or {})
                must_ask = (
                    bool(additions_of(before, graph, self.catalogue))
                    if self._acts
                    else self.choices.one_in(2)
                )
                asked_first = request_about(data) if must_ask else None
                self.written[asked_for] = WrittenChange(graph, data, request=asked_first)
        return self.written[asked_for]

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
            timers += [loop.call_later(at, self._disturb, execution) for at in self.disturbances]
            await execution.run()
            for each in timers:
                each.cancel()
        return fold(await self.journal.events("x1"))

    def _disturb(self, execution: Execution) -> None:
        """Pause it for a while, cancel one of the nodes that run or wait, or now and then all of it."""
        what = self.choices.below(6)
        nodes = fold(self.journal.appended).nodes.values()
        active = [each.path for each in nodes if each.status not in ENDED_NODE]
        if what == 0:
            execution.cancel("enough")
        elif what < 3:
            _ignored(execution.pause())
            asyncio.get_running_loop().call_later(1.5, _resume, execution)
        elif active:
            path = active[self.choices.below(len(active))]
            _ignored(execution.cancel_node(path, "enough"))

    async def recovered(self, events: Sequence[Event]) -> ExecutionState:
        """Go on after some of the events, as another process does; return the state at the end."""
        state = fold(events)
        self.journal.batches[:] = [list(events)]
        execution = self._loaded(state, events)
        self._answer_after(execution)
        if state.pause == REQUESTED:
            asyncio.get_running_loop().call_later(2, _resume, execution)
        for request_id in list(state.requests):
            asyncio.get_running_loop().call_later(2, self._answer, execution, request_id)
        await execution.run()
        return fold(await self.journal.events("x1"))

    async def run_in_parts(self) -> ExecutionState:
        """Run it; where it only waits for people, or is cut off, another process goes on with a change or an answer."""
        execution, changes = self._execution(self.graph, last_seq=1, parks="always"), 3
        self._cut_off_later(execution)
        while await execution.run() in ("paused", "interrupted"):
            events = self.journal.appended
            state = fold(events)
            execution = self._loaded(state, events, parks="always")
            if changes and self.choices.one_in(2):
                changes -= 1
                _ignored(execution.revise(*self._likely_change(state)))
            elif state.requests:
                request_id = next(iter(state.requests))
                _ignored(execution.answer(request_id, self._answer_to(request_id)))
            self._cut_off_later(execution)
        return fold(self.journal.appended)

    def _cut_off_later(self, execution: Execution) -> None:
        if self.choices.one_in(3):
            at_s = self.choices.below(6) + 0.5
            cut_off = partial(execution.interrupt, at_once=True)
            asyncio.get_running_loop().call_later(at_s, cut_off)

    def _loaded(self, state: ExecutionState, events: Sequence[Event], **more: Any) -> Execution:
        """Return the execution as another process has it, after some of its events."""
        return self._execution(
            read_graph(state.graph or {})[0],
            history=History(events),
            is_recovery=state.status == "executing",
            wave_floors=state.waves.floors,
            **more,
        )

    async def forked(self) -> ExecutionState:
        """Run the graph that ran last again, with the results that there are; return the state at the end."""
        events = self.journal.appended
        state, host = fold(events), NodeHost("x1", {}, None, None, None, None)
        graph, _ = read_graph(state.graph or {})
        parent = ParentExecution(
            "x1", Program(graph, self.catalogue), ParentHistory(events), host, self.options, None,
            wave_floors=state.waves.floors,
        )  # fmt: skip
        self.graph = graph
        self.journal.batches[:] = [[self._created()]]
        execution = self._execution(graph, last_seq=1, reuse=Reuse("x1", [parent], (), {}))
        self._answer_after(execution)
        await execution.run()
        return fold(self.journal.appended)

    async def from_scratch(self, graph: Graph) -> ExecutionState:
        """Run a graph that nothing changes; return its state."""
        following = type(self)(ByteChoices(b""))
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
