"""The semantics table, row by row, with the expected decisions written out.

``docs/semantics.md`` names these tests. Each gives outcomes to a schedule and expects its
decisions; ``tests/unit/executor`` checks the same rules on random graphs with a reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from planwave.errors import InvalidTransition
from planwave.executor.options import RunOptions
from planwave.executor.scheduling.schedule import Schedule
from planwave.executor.scheduling.types import Cause, Decisions, SchedulingRules
from planwave.graph.model import Graph
from planwave.graph.topology import Topology, materialized_ids
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.paths import ROOT
from tests.support.virtual_loop import virtual_time

NO_INPUT = "no input arrived: every incoming edge was skipped"
SEMANTICS = ROOT / "docs" / "semantics.md"


class ScheduleScript:
    """A schedule by ids: ``script("a")`` completes a on ``output`` and returns the decisions."""

    def __init__(self, graph: Graph, *, only: set[str] | None = None, **options: Any) -> None:
        topology = Topology(graph, materialized_ids(graph, only or set()))
        self.ids, number = topology.ids, topology.index
        rules = SchedulingRules(
            join_any=frozenset(number[n] for n in options.get("any", "").split()),
            required={number[n]: frozenset(h) for n, h in options.get("required", {}).items()},
            barrier=options.get("waves", False),
            stop_on_failure=options.get("stop", False),
            disposable=frozenset(number[n] for n in options.get("disposable", "").split()),
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
        """Apply outcomes: ``a``, ``a.handle``, ``a!`` failed, ``a?`` waits, ``a=`` answered, ``-a`` released."""
        for fact in facts:
            self._apply(fact)
        return self._shown(self.schedule.decide())

    def _apply(self, fact: str) -> None:
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
        elif name.startswith("-"):
            schedule.release(self.number[name[1:]])
        elif fact[-1] in marks:
            marks[fact[-1]](self.number[name])
        else:
            schedule.completed(self.number[name], (handles or "output").split(","))

    def _shown(self, decisions: Decisions) -> str:
        """Decisions as words: ``start b(e2) skip c blocked d<a cancel e over 1 finished …``."""
        ids, words = self.ids, list[str]()
        edges = self.schedule._topology.edges
        for node, via in decisions.starts:
            words.append(f"start {ids[node]}" + (f"({edges[via].id})" if via is not None else ""))
        words += [
            f"skip {ids[n]}" + (f".{cause.handle}" if cause.handle else "")
            for n, cause in decisions.skipped
        ]
        words += [f"block {ids[n]}<{self._whose(cause)}" for n, cause in decisions.blocked]
        words += [f"cancel {ids[n]}<{self._whose(cause)}" for n, cause in decisions.cancelled]
        words += [f"over {wave}" for wave in decisions.waves_completed]
        words += [f"unneeded {ids[node]}" for node in decisions.unneeded]
        words += [decisions.finished] if decisions.finished else []
        words += ["paused"] if decisions.paused else []
        return ", ".join(words)

    def _whose(self, cause: Cause) -> str:
        return cause.reason if cause.node is None else self.ids[cause.node]

    def reason(self, name: str) -> str:
        return self.schedule.cause[self.number[name]].reason


# -- linked


def test_linked_nodes_are_never_executed_and_in_no_wave() -> None:
    script = ScheduleScript(parse_graph("g u", "g~u"))
    assert script.start() == "start u"
    assert script.schedule.waves.number == [0, 1]
    assert script("u") == "over 1, completed"


def test_a_type_that_only_materializes_is_linked_without_any_edge() -> None:
    script = ScheduleScript(parse_graph("g u"), only={"g"})
    assert script.start() == "start u"


def test_a_node_with_an_outgoing_flow_edge_is_executed_even_if_it_is_linked() -> None:
    script = ScheduleScript(parse_graph("g u end", "g~u", "g>end"))
    assert script.start() == "start g, start u"


def test_consumers_of_a_linked_node_wait_for_its_flow_sources() -> None:
    script = ScheduleScript(parse_graph("a g u", "a>g", "g~u"))
    assert script.start() == "start a"
    assert script("a") == "start u, over 1"


def test_a_linked_node_that_its_consumer_feeds_is_executed_after_it() -> None:
    script = ScheduleScript(parse_graph("u a g", "u>a", "a>g", "g~u"))
    assert script.start() == "start u"
    assert script("u") == "start a, over 1"
    assert script("a") == "start g, over 2"
    assert script("g") == "over 3, completed"


def test_consumers_wait_through_a_chain_of_links() -> None:
    script = ScheduleScript(parse_graph("a inner g u", "a>inner", "inner~g", "g~u"))
    assert script.start() == "start a"
    assert script("a") == "start u, over 1"


def test_consumers_of_a_gate_whose_source_failed_are_blocked() -> None:
    script = ScheduleScript(parse_graph("a b g u", "a>g", "g~u", "b>u"))
    assert script.start() == "start a, start b"
    assert script("a!") == "block u<a, over 2"
    assert script("b") == "over 1, failed"


def test_after_a_skipped_gate_the_consumers_own_edges_decide() -> None:
    script = ScheduleScript(parse_graph("a b g u v", "a.x>g", "g~u", "g~v", "b>u", "b.x>v"))
    assert script.start() == "start a, start b"
    assert script("a") == ""
    assert script("b") == "start u, skip v, over 1"


def test_a_consumer_without_own_edges_is_skipped_with_its_gate() -> None:
    script = ScheduleScript(parse_graph("a g u", "a.x>g", "g~u"))
    script.start()
    assert script("a") == "skip u, over 1, over 2, completed"


# -- edge states and joins


def test_a_completed_node_delivers_on_the_handles_it_names() -> None:
    script = ScheduleScript(parse_graph("a b c", "a.yes>b", "a.no>c"))
    script.start()
    assert script("a.yes") == "start b, skip c, over 1"
    assert script.reason("c") == NO_INPUT


def test_failed_blocked_and_cancelled_nodes_propagate_the_first_cause() -> None:
    script = ScheduleScript(parse_graph("a b c d e", "a>b", "b>c", "d>e"))
    script.start()
    assert script("a!") == "block b<a, block c<a, over 3"
    assert script("d#") == "block e<d, over 1, over 2, failed"
    assert script.reason("e") == "not wanted"


def test_join_all_waits_for_every_edge_and_needs_one_delivery() -> None:
    script = ScheduleScript(parse_graph("a b c", "a>c", "b.x>c"))
    assert script.start() == "start a, start b"
    assert script("a") == ""
    assert script("b") == "start c, over 1"


def test_join_any_starts_at_the_first_delivery_and_names_its_edge() -> None:
    script = ScheduleScript(parse_graph("a b c", "a>c", "b>c"), any="c")
    script.start()
    assert script("b") == "start c(e2)"
    assert script("a") == "over 1"
    assert script("c") == "over 2, completed"


def test_join_any_waits_for_a_delivery_after_a_failure_and_a_skip() -> None:
    script = ScheduleScript(parse_graph("a b c d", "a>d", "b.x>d", "c>d"), any="d")
    script.start()
    assert script("a!", "b") == ""
    assert script("c") == "start d(e3), over 1"


def test_join_any_without_delivery_is_blocked_by_the_first_failure() -> None:
    script = ScheduleScript(parse_graph("a b c d", "a>d", "b>d", "c.x>d"), any="d")
    script.start()
    assert script("b!", "a!") == ""
    assert script("c") == "block d<b, over 1, over 2, failed"


def test_join_any_without_delivery_or_failure_is_skipped() -> None:
    script = ScheduleScript(parse_graph("a b c", "a.x>c", "b.x>c"), any="c")
    script.start()
    assert script("a", "b") == "skip c, over 1, over 2, completed"


UNNEEDED = "no longer needed: what it leads to has started without it"


def test_what_leads_only_to_a_started_join_any_is_no_longer_needed() -> None:
    graph = parse_graph("w b c q j d", "w>b", "b>j", "c>j", "c>d", "q>j")
    script = ScheduleScript(graph, any="j", disposable="w b c q j d")
    script.start()
    assert script("c?", "w?") == ""
    assert script("q") == "start j(e5), unneeded w, unneeded b"  # c leads to d as well
    assert script("-w", "-b", "j") == f"cancel w<{UNNEEDED}, cancel b<{UNNEEDED}, over 3, paused"
    assert script("c=", "c") == "start d, over 1"
    assert script("d") == "over 2, completed"


def test_a_running_node_that_is_no_longer_needed_finishes_or_is_released_when_it_waits() -> None:
    graph = parse_graph("a b q j", "a>j", "b>j", "q>j")
    script = ScheduleScript(graph, any="j", disposable="a b q")
    script.start()
    assert script("q", "a") == "start j(e3), unneeded b"
    assert script("j", "b?") == "over 2, unneeded b, paused"
    assert script("-b") == f"cancel b<{UNNEEDED}, over 1, completed"
    with pytest.raises(InvalidTransition, match="node 'a' cannot be released"):
        script("-a")


def test_join_any_waits_for_its_gates() -> None:
    script = ScheduleScript(parse_graph("a b g c", "a>c", "b>g", "g~c"), any="c")
    script.start()
    assert script("a") == ""
    assert script("b") == "start c(e1), over 1"


# -- skipped, blocked


def test_a_required_input_whose_edges_were_all_skipped_skips_the_node_and_is_named() -> None:
    graph = parse_graph("a b c", "a.x>c.need", "a.y>c.need", "b>c.other")
    script = ScheduleScript(graph, required={"c": ["need"]})
    script.start()
    assert script("b") == ""
    assert script("a") == "skip c.need, over 1, over 2, completed"
    script = ScheduleScript(graph, required={"c": ["need"]})
    script.start()
    assert script("a.y", "b") == "start c, over 1"


def test_a_required_input_without_edges_does_not_skip_the_node() -> None:
    script = ScheduleScript(parse_graph("a c", "a>c.other"), required={"c": ["need"]})
    script.start()
    assert script("a") == "start c, over 1"


def test_a_failed_edge_blocks_at_once_and_other_branches_continue() -> None:
    script = ScheduleScript(parse_graph("a b c d e", "a>c", "b>c", "b>d", "c>e"))
    script.start()
    assert script("a!") == "block c<a, block e<a, over 3"
    assert script("b") == "start d, over 1"
    assert script("d") == "over 2, failed"


def test_failure_has_priority_over_skip_in_any_order() -> None:
    graph = parse_graph("a b c", "a>c.one", "b.x>c.need")
    for facts in (("a!", "b"), ("b", "a!")):
        script = ScheduleScript(graph, required={"c": ["need"]})
        script.start()
        decisions = [script(fact) for fact in facts]
        assert any("block c<a" in words for words in decisions)
        assert not any("skip" in words for words in decisions)


# -- failure policy, cancelling


def test_continue_finishes_what_does_not_depend_on_the_failure() -> None:
    script = ScheduleScript(parse_graph("a b c d", "a>b", "c>d"))
    script.start()
    assert script("a!") == "block b<a"
    assert script("c") == "start d, over 1"
    assert script("d") == "over 2, failed"


def test_stop_lets_running_nodes_finish_and_cancels_the_rest_with_the_cause() -> None:
    script = ScheduleScript(parse_graph("a b c d e w", "a>b", "c>d", "d>e"), stop=True)
    assert script.start() == "start a, start c, start w"
    assert script("w?") == ""
    assert script("a!") == "block b<a, cancel d<a, cancel e<a, cancel w<a, over 2, over 3"
    assert script("c") == "over 1, failed"


def test_cancel_cancels_all_nodes_that_are_not_settled() -> None:
    script = ScheduleScript(parse_graph("a b c", "a>c"))
    script.start()
    assert script("b", "cancel") == "cancel c<enough, over 2"
    assert script("a#") == "over 1, cancelled"


# -- scheduling, waiting


def test_eager_starts_a_node_as_soon_as_it_is_ready() -> None:
    script = ScheduleScript(parse_graph("a b c", "a>c"))
    script.start()
    assert script("a") == "start c"


def test_waves_start_a_node_when_the_previous_wave_has_ended() -> None:
    script = ScheduleScript(parse_graph("a b c", "a>c"), waves=True)
    script.start()
    assert script("a") == ""
    assert script("b") == "start c, over 1"


def test_the_barrier_opens_when_the_unsettled_nodes_of_the_wave_wait() -> None:
    script = ScheduleScript(parse_graph("a b c d e", "a>c", "b>d", "c>e"), waves=True)
    script.start()
    assert script("a") == ""
    assert script("b?") == "start c"
    assert script("c") == "start e"  # d is downstream of what waits
    assert script("e") == "over 3, paused"
    assert script("b=") == ""
    assert script("b") == "start d, over 1"
    assert script("d") == "over 2, completed"


def test_a_waiting_node_delays_only_its_descendants_and_the_run_pauses() -> None:
    script = ScheduleScript(parse_graph("a b c d", "a>b", "c>d"))
    script.start()
    assert script("a?") == ""
    assert script("c") == "start d"
    assert script("d") == "paused"
    assert script("a=") == ""
    assert script("a") == "start b, over 1"
    assert script("b") == "over 2, completed"


# -- entry, order, explain


def test_preset_results_settle_nodes_which_stay_in_their_wave() -> None:
    script = ScheduleScript(parse_graph("a b c", "a>b", "b>c"), given={"a": ["output"]})
    assert script.start() == "start b"
    assert script.schedule.waves.number == [1, 2, 3]


def test_entries_that_were_not_chosen_are_skipped_and_unreached_nodes_are_reported() -> None:
    graph = parse_graph("d e k x y", "d>x", "k>x", "e>y")
    script = ScheduleScript(graph, given={"d": ["output"]}, dropped="e", part="d e k x")
    assert script.start() == "start k, skip e"
    assert script.reason("e") == "another entry was chosen"
    assert [script.ids[n] for n in script.schedule.not_reached] == ["y"]
    assert script.schedule.waves.number == [1, 0, 1, 2, 0]
    assert script("k") == "start x, over 1"
    assert script("x") == "over 2, completed"


async def started_in(harness: ExecutionHarness) -> tuple[str, list[str], list[str]]:
    """How a run ends, the nodes that were started, and those that were not reached."""
    ended = await harness.run()
    started = [event.path for event in harness.published if event.type == "node.started"]
    return ended, sorted(started), harness.data_of("execution.started")[0].get("not_reached", [])


@virtual_time
async def test_run_to_runs_the_named_nodes_and_their_ancestors() -> None:
    harness = ExecutionHarness(
        parse_graph("a b c d", "a>b", "b>c", "a>d"), {}, RunOptions(run_to=("b",))
    )
    assert await started_in(harness) == ("completed", ["a", "b"], ["c", "d"])


@virtual_time
async def test_run_from_runs_the_named_nodes_their_descendants_and_what_these_need() -> None:
    graph = parse_graph("a b c d k", "a>b", "b>c", "a>d", "k>c")
    harness = ExecutionHarness(graph, {}, RunOptions(run_from=("b",)))
    assert await started_in(harness) == ("completed", ["a", "b", "c", "k"], ["d"])


def test_without_inputs_every_root_starts_in_graph_order() -> None:
    script = ScheduleScript(parse_graph("c a b", "c>b"))
    assert script.start() == "start c, start a"


def test_ready_nodes_start_in_graph_order_not_in_finishing_order() -> None:
    script = ScheduleScript(parse_graph("a b z y", "a>z", "b>y"))
    script.start()
    assert script("b", "a") == "start z, start y, over 1"


def test_the_same_facts_give_the_same_decisions() -> None:
    facts = ("b", "a!", "c?", "c=", "c")
    runs = []
    for _ in range(2):
        script = ScheduleScript(parse_graph("a b c d e", "a>d", "b>d", "c>e"), any="d", waves=True)
        runs.append([script.start(), *(script(fact) for fact in facts)])
    assert runs[0] == runs[1]


def test_every_node_that_did_not_run_has_a_reason() -> None:
    graph = parse_graph("a b c d e f", "a>b", "c.x>d", "e>f")
    script = ScheduleScript(graph)
    script.start()
    script("a!", "c")
    script("cancel", "e#")
    assert {name: script.reason(name) for name in "bdef"} == {
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
    harness = ExecutionHarness(graph, {"a": picks}, RunOptions(scheduling=scheduling))
    assert await harness.run() == "completed"
    assert sorted(harness.event_names("node.completed", "node.skipped")) == [
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
