"""Random graphs, delays, failures, retries and cancels through the whole driver."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import NodeError
from planwave.events import fold
from planwave.executor.options import RunOptions
from planwave.executor.scheduling.types import NodeStatus
from planwave.graph.model import DataValue, Graph, Policy, Retry
from planwave.graph.protocols import ExecutionResult, Suspension
from tests.support.engine.generic_nodes import TERMINAL_TYPES, ExecutionHarness, MemoryJournal
from tests.support.engine.random_schedules import (
    SOURCE_HANDLES,
    STATUS_NAMES,
    ByteChoices,
    random_graph,
)
from tests.support.engine.reference_scheduler import ScheduleCase
from tests.support.examples import examples
from tests.support.virtual_loop import virtual_time

SETTLED = {
    "node.completed", "node.failed", "node.cancelled", "node.skipped", "node.blocked",
}  # fmt: skip


class Scene:
    """A random execution: what each node does, when, and whether the run is cancelled."""

    def __init__(self, choices: ByteChoices) -> None:
        self.choices = choices
        graph, self.passive = random_graph(choices)
        policies = [self._policy() for _ in graph.nodes]
        kinds = ["vein" if n in self.passive else "step" for n in range(len(graph.nodes))]
        nodes = [
            node._replace(type=kind, policy=policy)
            for node, kind, policy in zip(graph.nodes, kinds, policies, strict=True)
        ]
        self.graph = Graph(tuple(nodes), graph.edges)
        self.case = ScheduleCase(self.graph, self.passive)
        self.plans = {node.id: [self._plan() for _ in range(4)] for node in nodes}
        self.options = RunOptions(
            scheduling=("eager", "waves")[choices.below(2)],
            on_failure=("continue", "stop")[choices.one_in(4)],
            max_parallel=(None, 1, 2)[choices.below(3)],
            node_timeout_s=(None, 3)[choices.below(2)],
        )
        self.cancel_at = choices.below(12) + 0.5 if choices.one_in(4) else None
        self.ledger = MemoryJournal() if choices.below(2) else None

    def _policy(self) -> Policy:
        choices = self.choices
        return Policy(
            join="any" if choices.one_in(6) else "all",
            retry=Retry(1 + choices.below(3), choices.below(2)),
            on_error="continue" if choices.one_in(5) else "fail",
        )

    def _plan(self) -> tuple[int, int, frozenset[str]]:
        return self.choices.below(8), self.choices.below(5), self.choices.some(SOURCE_HANDLES)

    async def act(self, inputs: Any, context: Any) -> Any:
        what, delay, handles = self.plans[context.node_id][context.attempt - 1]
        if delay:
            await asyncio.sleep(delay)
        match what:
            case 5:
                raise NodeError("boom", retryable=True)
            case 6:
                raise ValueError("boom")
            case 7:
                return Suspension({"for": context.path})
        return ExecutionResult({h: DataValue("any", context.node_id) for h in sorted(handles)})

    async def run(self) -> ExecutionHarness:
        acts = dict.fromkeys(self.plans, self.act)
        harness = ExecutionHarness(self.graph, acts, self.options, journal=self.ledger)
        harness.answer_every_request(2, None)
        if self.cancel_at is not None:
            loop = asyncio.get_running_loop()
            loop.call_later(self.cancel_at, harness.execution.cancel, "enough")
        self.final = await harness.run()
        return harness


@given(st.binary(min_size=120, max_size=240))
@settings(max_examples=examples(120), deadline=None)
@virtual_time
async def test_any_run_ends_once_with_every_node_settled(source: bytes) -> None:
    scene = Scene(ByteChoices(source))

    harness = await scene.run()
    harness.check_sequence()
    check_nodes(scene, harness)
    if scene.ledger is not None:
        assert scene.ledger.appended == harness.stored
    assert harness.stored[-1].type == f"execution.{scene.final}"
    assert harness.stored[-1].type in TERMINAL_TYPES


def check_nodes(scene: Scene, harness: ExecutionHarness) -> None:
    """Each node settles once, starts once an attempt, and only after all its sources settled."""
    ended: dict[str, int] = {}
    for event in harness.stored:
        if event.type in SETTLED:
            assert event.path not in ended
            ended[str(event.path)] = event.seq
    executed = {n.id for i, n in enumerate(scene.graph.nodes) if i not in scene.case.linked}
    assert set(ended) == executed
    started = [(e.path, e.attempt) for e in harness.stored if e.type == "node.started"]
    assert len(started) == len(set(started))
    first = {e.path: e.seq for e in reversed(harness.stored) if e.type == "node.started"}
    failed = [e for e in harness.stored if e.type == "node.failed" and not e.data["handled"]]
    if failed and scene.options.on_failure == "stop":
        assert all(seq < failed[0].seq for seq in first.values())
    for edge in scene.graph.edges:
        plain = edge.channel == "flow" and scene.graph.by_id[edge.target].policy.join == "all"
        if plain and edge.target in first:
            assert ended[edge.source] < first[edge.target]
    state = fold(harness.stored)
    for number, status in enumerate(harness.execution._run.root.schedule.status):
        if number not in scene.case.linked and status is not NodeStatus.PENDING:
            assert state.nodes[f"n{number}"].status == STATUS_NAMES[status]
