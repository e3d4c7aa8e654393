"""What is told to who counts: the observer port, from queue to subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from planwave.events import Event, ExecutionState
from planwave.graph.model import Graph, Node
from planwave.providers.protocols import CallReport
from planwave.service.dependencies import Observer
from planwave.service.service import Service
from planwave.service.streaming.subscriber_queue import BacklogLimits
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.nodes.linked_nodes import LinkConsumer, LinkedSource, two_consumers_of_one_source
from tests.support.service.dependencies import dependencies, execute_goal


class Counts(Observer):
    """An observer that writes everything down."""

    def __init__(self) -> None:
        self.states: list[tuple[str, str | None]] = []
        self.waits: list[float] = []
        self.events: list[Event] = []
        self.gone: list[str] = []
        self.links: list[tuple[int, int]] = []
        self.lags: list[float] = []
        self.drops = 0
        self.fan_outs: list[dict[int, int]] = []
        self.calls: list[CallReport] = []

    def started(self, state: ExecutionState, waited_s: float) -> None:
        self.states.append((state.execution_id, state.flow))
        self.waits.append(waited_s)

    def published(self, events: Sequence[Event]) -> None:
        self.events += events

    def execution_left(self, execution_id: str) -> None:
        self.gone.append(execution_id)

    def link_cache_used(self, hits: int, misses: int, fan_out: Mapping[int, int]) -> None:
        self.links.append((hits, misses))
        self.fan_outs.append(dict(fan_out))

    def delivered(self, lag_s: float) -> None:
        self.lags.append(lag_s)

    def subscriber_dropped(self) -> None:
        self.drops += 1

    def model_called(self, call: CallReport) -> None:
        self.calls.append(call)


def counted(graph: Graph, **more: Any) -> tuple[Service, Counts]:
    service, counts = Service(dependencies(graph, **more)), Counts()
    service.observe(counts)
    return service, counts


async def test_observer_receives_graph_events_and_links() -> None:
    service, counts = counted(two_consumers_of_one_source(), types=[LinkedSource(), LinkConsumer()])
    async with service:
        record = await execute_goal(service)
        ended = await service.executions.wait(record.execution_id)
    assert counts.states == [(record.execution_id, None)]
    assert counts.gone == [record.execution_id]
    assert [event.seq for event in counts.events] == list(range(2, ended.last_seq + 1))
    assert counts.links == [(1, 1)], "made for one consumer, found by the other"
    assert counts.fan_outs == [{2: 1}]
    assert counts.waits[0] >= 0


async def test_each_of_several_observers_is_told() -> None:
    service, first = counted(make_graph(text_node("a")))
    second = Counts()
    service.observe(second)
    service.observe(Observer())  # overrides nothing
    async with service:
        record = await execute_goal(service)
        await service.executions.wait(record.execution_id)
    assert first.events == second.events != []
    assert first.gone == second.gone == [record.execution_id]


async def test_observer_is_notified_of_interrupted_execution() -> None:
    held = HeldNode()
    graph = make_graph(text_node("a"), Node("h", "held", "h"))
    service, counts = counted(graph, types=[held])
    async with service:
        record = await execute_goal(service)
        await held.started.wait()
        await service.drain(0)
    assert counts.gone == [record.execution_id]
    assert not any(event.type.startswith("execution.c") for event in counts.events)


async def test_observer_receives_delivery_lag_and_drops() -> None:
    first, second = HeldNode(), HeldNode()
    second.node_type = "held-too"
    graph = make_graph(Node("h", "held", "h"), Node("i", "held-too", "i"), edges=[("h", "i")])
    service, counts = counted(graph, types=[first, second])
    async with service:
        record = await execute_goal(service)
        await first.started.wait()
        async with (
            service.executions.subscribe(record.execution_id) as reading,
            service.executions.subscribe(record.execution_id, limits=BacklogLimits(events=0)),
        ):
            assert service.load.subscribers == 2
            first.release.set()
            await anext(reading)
            assert counts.drops == 0, "one frame may always wait"
            second.release.set()
            assert [frame.is_last async for frame in reading][-1]
            assert (counts.drops, service.load.subscribers) == (1, 1)
        assert service.load.subscribers == 0
        await asyncio.sleep(0)  # it is noted behind the subscribers
    assert len(counts.lags) == 2
    assert all(0 <= lag < 5 for lag in counts.lags)


async def test_drained_subscriber_is_not_counted_as_dropped() -> None:
    held = HeldNode()
    service, counts = counted(make_graph(Node("h", "held", "h")), types=[held])
    async with service:
        record = await execute_goal(service)
        await held.started.wait()
        async with service.executions.subscribe(record.execution_id):
            service.close_streams()
            held.release.set()
            assert (await service.executions.wait(record.execution_id)).status == "completed"
    assert counts.drops == 0


async def test_observer_receives_model_calls() -> None:
    class Made:
        on_call = None

    calls: Any = Made()
    service, counts = counted(make_graph(text_node("a")), calls=calls)
    async with service:
        calls.on_call(CallReport("openai", "gpt", "completed"))
    assert [call.provider for call in counts.calls] == ["openai"]
