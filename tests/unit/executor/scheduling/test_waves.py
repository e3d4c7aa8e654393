"""The waves of nodes that were added or rewired while their graph was run."""

from __future__ import annotations

from planwave.executor.scheduling.types import SchedulingRules
from planwave.executor.scheduling.waves import WaveBarrier
from planwave.graph.topology import Topology
from tests.support.graph.fake_node_types import parse_graph


def waves(text: str, *edges: str, part: set[int] | None = None, **floors: int) -> dict[str, int]:
    graph = parse_graph(text, *edges)
    topology = Topology(graph, set())
    rules = SchedulingRules(floors={topology.index[each]: (floors[each], False) for each in floors})
    barrier = WaveBarrier(topology, {}, part, (), rules)
    return dict(zip(topology.ids, barrier.number, strict=True))


def test_a_new_step_is_in_no_wave_below_its_floor_nor_is_what_depends_on_it() -> None:
    assert waves("a b c", "a>b", "b>c") == {"a": 1, "b": 2, "c": 3}
    assert waves("a b c", "a>b", "b>c", b=4) == {"a": 1, "b": 4, "c": 5}
    assert waves("a b c", "a>b", "b>c", b=1, c=3) == {"a": 1, "b": 2, "c": 3}


def test_a_step_that_has_begun_stays_in_its_wave_and_what_depends_on_it_comes_after() -> None:
    topology = Topology(parse_graph("a b c d", "a>b", "b>c", "c>d"), set())
    rules = SchedulingRules(floors={0: (4, False), 2: (2, True)})
    assert WaveBarrier(topology, {}, None, (), rules).number == [4, 5, 2, 4]


def test_what_is_not_run_raises_no_wave() -> None:
    assert waves("a b c", "a>c", "b>c", part={1, 2}, a=9, c=2) == {"a": 0, "b": 1, "c": 2}


def test_floors_of_one_run_leave_the_graph_as_it_is_for_others() -> None:
    topology = Topology(parse_graph("a b", "a>b"), set())
    WaveBarrier(topology, {}, None, (), SchedulingRules(floors={0: (5, False)}))
    assert WaveBarrier(topology, {}, None, (), SchedulingRules()).number == [1, 2]
