"""The semantics table, row by row, with the expected decisions written out.

``docs/semantics.md`` names these tests. Each tells a schedule what happened and expects what it
then says; ``tests/unit/executor`` holds the same rules against an oracle on random graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.executor.scheduling.decisions import Cause, Decisions, SchedulingRules
from planwave.executor.scheduling.schedule import Schedule
from planwave.graph.model import Graph
from planwave.graph.topology import Topology, materialized_ids
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_catalog import parse_graph
from tests.support.paths import ROOT
from tests.support.virtual_loop import virtual_time

NO_INPUT = "no input arrived: every incoming edge was skipped"
SEMANTICS = ROOT / "docs" / "semantics.md"


class Told:
    """A schedule told in ids: ``told("a")`` completes a on ``output`` and gives what follows."""

    def __init__(self, graph: Graph, *, only: set[str] | None = None, **options: Any) -> None:
        topology = Topology(graph, materialized_ids(graph, only or set()))
        self.ids, number = topology.ids, topology.index
        rules = SchedulingRules(
            join_any=frozenset(number[n] for n in options.get("any", "").split()),
            required={number[n]: frozenset(h) for n, h in options.get("required", {}).items()},
            barrier=options.get("waves", False),
            stop_on_failure=options.get("stop", False),
        )
        part = options.get("part")
        self.number = number
        self.schedule = Schedule(
            topology,
            rules,
            preset={number[n]: handles for n, handles in options.get("given", {}).items()},
            part=None if part is None else {number[n] for n in part.split()},
            dropped=[number[n] for n in options.get("dropped", "").split()],
        )

    def start(self) -> str:
        return self._shown(self.schedule.start())

    def __call__(self, *facts: str) -> str:
        """Tell facts, ``a``, ``a.handle``, ``a!`` (failed), ``a?`` (waits), ``a=`` (answered)."""
        for fact in facts:
            self._tell(fact)
        return self._shown(self.schedule.decide())

    def _tell(self, fact: str) -> None:
        schedule = self.schedule
        name, _, handles = fact.rstrip("!?=#").partition(".")
        marks: dict[str, Callable[[int], None]] = {
            "!": lambda n: schedule.failed(n, "boom", handles.split(",") if handles else None),
            "?": schedule.waits,
            "=": schedule.answered,
            "#": lambda n: schedule.cancelled(n, "not wanted"),
        }
        if name == "cancel":
            schedule.cancel("enough")
        elif fact[-1] in marks:
            marks[fact[-1]](self.number[name])
        else:
            schedule.completed(self.number[name], (handles or "output").split(","))

    def _shown(self, said: Decisions) -> str:
        """Decisions as words: ``start b(e2) skip c blocked d<a cancel e over 1 finished …``."""
        ids, words = self.ids, list[str]()
        edges = self.schedule._topology.edges
        for node, via in said.starts:
            words.append(f"start {ids[node]}" + (f"({edges[via].id})" if via is not None else ""))
        words += [
            f"skip {ids[n]}" + (f".{cause.handle}" if cause.handle else "")
            for n, cause in said.skipped
        ]
        words += [f"block {ids[n]}<{self._whose(cause)}" for n, cause in said.blocked]
        words += [f"cancel {ids[n]}<{self._whose(cause)}" for n, cause in said.cancelled]
        words += [f"over {wave}" for wave in said.waves_completed]
        words += [said.finished] if said.finished else []
        words += ["paused"] if said.paused else []
        return ", ".join(words)

    def _whose(self, cause: Cause) -> str:
        return cause.reason if cause.node is None else self.ids[cause.node]

    def reason(self, name: str) -> str:
        return self.schedule.cause[self.number[name]].reason


# -- linked


def test_linked_nodes_are_never_executed_and_in_no_wave() -> None:
    told = Told(parse_graph("g u", "g~u"))
    assert told.start() == "start u"
    assert told.schedule.waves.number == [0, 1]
    assert told("u") == "over 1, completed"


def test_a_type_that_only_materialises_is_linked_without_any_edge() -> None:
    told = Told(parse_graph("g u"), only={"g"})
    assert told.start() == "start u"


def test_a_node_with_a_flow_edge_out_is_executed_though_it_is_linked_too() -> None:
    told = Told(parse_graph("g u end", "g~u", "g>end"))
    assert told.start() == "start g, start u"


def test_a_flow_edge_into_a_linked_node_holds_its_consumers_back() -> None:
    told = Told(parse_graph("a g u", "a>g", "g~u"))
    assert told.start() == "start a"
    assert told("a") == "start u, over 1"


def test_it_holds_them_back_through_further_links() -> None:
    told = Told(parse_graph("a inner g u", "a>inner", "inner~g", "g~u"))
    assert told.start() == "start a"
    assert told("a") == "start u, over 1"


def test_consumers_of_a_gate_whose_source_failed_are_blocked() -> None:
    told = Told(parse_graph("a b g u", "a>g", "g~u", "b>u"))
    assert told.start() == "start a, start b"
    assert told("a!") == "block u<a, over 2"
    assert told("b") == "over 1, failed"


def test_a_skipped_gate_leaves_the_decision_to_the_consumers_own_edges() -> None:
    told = Told(parse_graph("a b g u v", "a.x>g", "g~u", "g~v", "b>u", "b.x>v"))
    assert told.start() == "start a, start b"
    assert told("a") == ""
    assert told("b") == "start u, skip v, over 1"


def test_a_consumer_without_edges_of_its_own_takes_the_gates_fate() -> None:
    told = Told(parse_graph("a g u", "a.x>g", "g~u"))
    told.start()
    assert told("a") == "skip u, over 1, over 2, completed"


# -- edge states and joins


def test_a_completed_node_delivers_on_the_handles_it_names() -> None:
    told = Told(parse_graph("a b c", "a.yes>b", "a.no>c"))
    told.start()
    assert told("a.yes") == "start b, skip c, over 1"
    assert told.reason("c") == NO_INPUT


def test_failed_blocked_and_cancelled_nodes_pass_on_the_first_cause() -> None:
    told = Told(parse_graph("a b c d e", "a>b", "b>c", "d>e"))
    told.start()
    assert told("a!") == "block b<a, block c<a, over 3"
    assert told("d#") == "block e<d, over 1, over 2, failed"
    assert told.reason("e") == "not wanted"


def test_join_all_waits_for_every_edge_and_needs_one_delivery() -> None:
    told = Told(parse_graph("a b c", "a>c", "b.x>c"))
    assert told.start() == "start a, start b"
    assert told("a") == ""
    assert told("b") == "start c, over 1"


def test_join_any_starts_at_the_first_delivery_with_its_winner_named() -> None:
    told = Told(parse_graph("a b c", "a>c", "b>c"), any="c")
    told.start()
    assert told("b") == "start c(e2)"
    assert told("a") == "over 1"
    assert told("c") == "over 2, completed"


def test_join_any_goes_on_after_a_failure_and_a_skip() -> None:
    told = Told(parse_graph("a b c d", "a>d", "b.x>d", "c>d"), any="d")
    told.start()
    assert told("a!", "b") == ""
    assert told("c") == "start d(e3), over 1"


def test_join_any_without_delivery_is_blocked_by_the_first_failure() -> None:
    told = Told(parse_graph("a b c d", "a>d", "b>d", "c.x>d"), any="d")
    told.start()
    assert told("b!", "a!") == ""
    assert told("c") == "block d<b, over 1, over 2, failed"


def test_join_any_without_delivery_or_failure_is_skipped() -> None:
    told = Told(parse_graph("a b c", "a.x>c", "b.x>c"), any="c")
    told.start()
    assert told("a", "b") == "skip c, over 1, over 2, completed"


def test_join_any_waits_for_its_gates() -> None:
    told = Told(parse_graph("a b g c", "a>c", "b>g", "g~c"), any="c")
    told.start()
    assert told("a") == ""
    assert told("b") == "start c(e1), over 1"


# -- skipped, blocked


def test_a_required_input_whose_edges_were_skipped_skips_the_node_and_is_named() -> None:
    graph = parse_graph("a b c", "a.x>c.need", "a.y>c.need", "b>c.other")
    told = Told(graph, required={"c": ["need"]})
    told.start()
    assert told("b") == ""
    assert told("a") == "skip c.need, over 1, over 2, completed"
    told = Told(graph, required={"c": ["need"]})
    told.start()
    assert told("a.y", "b") == "start c, over 1"


def test_a_required_input_without_edges_is_no_reason_to_skip() -> None:
    told = Told(parse_graph("a c", "a>c.other"), required={"c": ["need"]})
    told.start()
    assert told("a") == "start c, over 1"


def test_a_failed_edge_blocks_at_once_and_other_branches_go_on() -> None:
    told = Told(parse_graph("a b c d e", "a>c", "b>c", "b>d", "c>e"))
    told.start()
    assert told("a!") == "block c<a, block e<a, over 3"
    assert told("b") == "start d, over 1"
    assert told("d") == "over 2, failed"


def test_failure_beats_skip_whichever_comes_first() -> None:
    graph = parse_graph("a b c", "a>c.one", "b.x>c.need")
    for facts in (("a!", "b"), ("b", "a!")):
        told = Told(graph, required={"c": ["need"]})
        told.start()
        said = [told(fact) for fact in facts]
        assert any("block c<a" in words for words in said)
        assert not any("skip" in words for words in said)


# -- failure policy, cancelling


def test_continue_finishes_what_does_not_depend_on_the_failure() -> None:
    told = Told(parse_graph("a b c d", "a>b", "c>d"))
    told.start()
    assert told("a!") == "block b<a"
    assert told("c") == "start d, over 1"
    assert told("d") == "over 2, failed"


def test_stop_lets_running_nodes_finish_and_cancels_the_rest_with_the_cause() -> None:
    told = Told(parse_graph("a b c d e w", "a>b", "c>d", "d>e"), stop=True)
    assert told.start() == "start a, start c, start w"
    assert told("w?") == ""
    assert told("a!") == "block b<a, cancel d<a, cancel e<a, cancel w<a, over 2, over 3"
    assert told("c") == "over 1, failed"


def test_cancel_cancels_everything_that_is_not_settled() -> None:
    told = Told(parse_graph("a b c", "a>c"))
    told.start()
    assert told("b", "cancel") == "cancel c<enough, over 2"
    assert told("a#") == "over 1, cancelled"


# -- scheduling, waiting


def test_eager_starts_a_node_the_moment_it_is_ready() -> None:
    told = Told(parse_graph("a b c", "a>c"))
    told.start()
    assert told("a") == "start c"


def test_waves_hold_a_node_until_the_wave_before_is_over() -> None:
    told = Told(parse_graph("a b c", "a>c"), waves=True)
    told.start()
    assert told("a") == ""
    assert told("b") == "start c, over 1"


def test_the_barrier_opens_when_the_rest_of_the_wave_waits() -> None:
    told = Told(parse_graph("a b c d e", "a>c", "b>d", "c>e"), waves=True)
    told.start()
    assert told("a") == ""
    assert told("b?") == "start c"
    assert told("c") == "start e"  # d is downstream of what waits
    assert told("e") == "over 3, paused"
    assert told("b=") == ""
    assert told("b") == "start d, over 1"
    assert told("d") == "over 2, completed"


def test_a_waiting_node_holds_only_what_follows_it_and_the_run_pauses() -> None:
    told = Told(parse_graph("a b c d", "a>b", "c>d"))
    told.start()
    assert told("a?") == ""
    assert told("c") == "start d"
    assert told("d") == "paused"
    assert told("a=") == ""
    assert told("a") == "start b, over 1"
    assert told("b") == "over 2, completed"


# -- entry, order, explain


def test_inputs_settle_nodes_and_their_consumers_are_the_first_wave() -> None:
    told = Told(parse_graph("a b c", "a>b", "b>c"), given={"a": ["output"]})
    assert told.start() == "start b"
    assert told.schedule.waves.number == [0, 1, 2]


def test_other_entries_are_skipped_and_the_rest_is_not_reached() -> None:
    graph = parse_graph("d e k x y", "d>x", "k>x", "e>y")
    told = Told(graph, given={"d": ["output"]}, dropped="e", part="d e k x")
    assert told.start() == "start k, skip e"
    assert told.reason("e") == "another entry was chosen"
    assert [told.ids[n] for n in told.schedule.not_reached] == ["y"]
    assert told.schedule.waves.number == [0, 0, 1, 2, 0]
    assert told("k") == "start x, over 1"
    assert told("x") == "over 2, completed"


async def started_in(rig: ExecutionHarness) -> tuple[str, list[str], list[str]]:
    """How a run ends, the nodes that were started, and those that were not reached."""
    ended = await rig.run()
    started = [event.path for event in rig.published if event.type == "node.started"]
    return ended, sorted(started), rig.data_of("execution.started")[0].get("not_reached", [])


@virtual_time
async def test_run_to_runs_only_what_leads_to_some_nodes() -> None:
    rig = ExecutionHarness(
        parse_graph("a b c d", "a>b", "b>c", "a>d"), {}, RunOptions(run_to=("b",))
    )
    assert await started_in(rig) == ("completed", ["a", "b"], ["c", "d"])


@virtual_time
async def test_run_from_runs_what_follows_some_nodes_and_what_that_needs() -> None:
    graph = parse_graph("a b c d k", "a>b", "b>c", "a>d", "k>c")
    rig = ExecutionHarness(graph, {}, RunOptions(run_from=("b",)))
    assert await started_in(rig) == ("completed", ["a", "b", "c", "k"], ["d"])


def test_without_inputs_every_root_starts_in_graph_order() -> None:
    told = Told(parse_graph("c a b", "c>b"))
    assert told.start() == "start c, start a"


def test_ready_sets_follow_graph_order_not_finishing_order() -> None:
    told = Told(parse_graph("a b z y", "a>z", "b>y"))
    told.start()
    assert told("b", "a") == "start z, start y, over 1"


def test_the_same_facts_give_the_same_decisions() -> None:
    facts = ("b", "a!", "c?", "c=", "c")
    runs = []
    for _ in range(2):
        told = Told(parse_graph("a b c d e", "a>d", "b>d", "c>e"), any="d", waves=True)
        runs.append([told.start(), *(told(fact) for fact in facts)])
    assert runs[0] == runs[1]


def test_every_node_that_did_not_run_says_why() -> None:
    graph = parse_graph("a b c d e f", "a>b", "c.x>d", "e>f")
    told = Told(graph)
    told.start()
    told("a!", "c")
    told("cancel", "e#")
    assert {name: told.reason(name) for name in "bdef"} == {
        "b": "boom",
        "d": NO_INPUT,
        "e": "not wanted",
        "f": "enough",
    }


# -- what the driver adds


@pytest.mark.parametrize("scheduling", ["eager", "waves"])
@virtual_time
async def test_both_schedulings_give_the_same_results(scheduling: Any) -> None:
    async def picks(inputs: Any, context: Any) -> Any:
        return result_with(1, "yes")

    graph = parse_graph(
        "a b c d e f", "a.yes>b", "a.no>c", "b>d", "c>d", "c>e", "f>e", "b>f"
    )  # fmt: skip
    rig = ExecutionHarness(graph, {"a": picks}, RunOptions(scheduling=scheduling))
    assert await rig.run() == "completed"
    assert sorted(rig.event_names("node.completed", "node.skipped")) == [
        "node.completed a", "node.completed b", "node.completed d", "node.completed e",
        "node.completed f", "node.skipped c",
    ]  # fmt: skip


# -- the page


def test_the_page_names_only_tests_there_are_and_every_one_of_them() -> None:
    named = set(re.findall(r"`(test_\w+)`", SEMANTICS.read_text(encoding="utf-8")))
    here = {name for name in globals() if name.startswith("test_")}
    here -= {
        "test_the_page_names_only_tests_there_are_and_every_one_of_them",
        "test_the_files_and_tests_the_page_names_elsewhere_are_there",
    }
    assert named == here


def test_the_files_and_tests_the_page_names_elsewhere_are_there() -> None:
    places = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", SEMANTICS.read_text(encoding="utf-8"))
    assert len(places) > 60
    for path, name in places:
        file = SEMANTICS.parents[1] / path
        assert file.is_file(), path
        assert not name or re.search(rf"def {name}\b", file.read_text(encoding="utf-8")), name
