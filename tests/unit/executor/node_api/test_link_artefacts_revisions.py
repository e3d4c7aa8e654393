"""Artefacts of links in executions whose graph is changed: each is closed once, and never while a node uses it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from planwave.events import Event, fold
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.model import Graph, Policy
from planwave.graph.reading.documents import read_graph
from tests.support.engine.behaviors import asks, returns_after
from tests.support.engine.event_histories import created_event
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.engine.revised_runs import change_of
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.node_api.test_link_artefacts import tasks_left

Inputs = Context = Any


class Lines:
    """What links open: a log of when each is opened and closed, and of what was used when it was not open."""

    def __init__(self) -> None:
        self.log: list[tuple[float, str]] = []
        self.misuses: list[str] = []
        self.open: set[Line] = set()

    async def make(self, data: Any, context: Context) -> Any:
        return Line(self, context.node_id)

    def note(self, text: str) -> None:
        self.log.append((asyncio.get_running_loop().time(), text))

    def use(self, *, seconds: float, clean_up_s: float = 0.0, then: Any = None) -> Any:
        """A node that uses what is linked to it, also while it cleans up."""

        async def act(inputs: Inputs, context: Context, *_: Any) -> Any:
            lines: list[Line] = await context.runtime.resolve_links(context.node_id, "t")
            for each in lines:
                each.users.add(context.node_id)
            try:
                await asyncio.sleep(seconds)
                return await then(inputs, context) if then else result_with(len(lines))
            finally:
                await asyncio.sleep(clean_up_s)
                for each in lines:
                    each.users.discard(context.node_id)
                    if each not in self.open:
                        self.misuses.append(context.node_id)

        return act


class Line:
    """Something that is opened and closed, and knows the nodes that use it."""

    def __init__(self, lines: Lines, name: str) -> None:
        self._lines, self._name = lines, name
        self.users: set[str] = set()

    async def __aenter__(self) -> Line:
        self._lines.open.add(self)
        self._lines.note(f"open {self._name}")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._lines.open.remove(self)
        self._lines.note(f"close {self._name}")
        self._lines.misuses += self.users


class Scene:
    """An execution of some nodes that use links, which is changed at given times.

    Args:
        graph: Its graph.
        acts: What its nodes do; those of later graphs, too.
        stored: Events that are stored, of an execution that goes on.
    """

    def __init__(
        self, lines: Lines, graph: Graph, acts: dict[str, Any], stored: Sequence[Event] = ()
    ) -> None:
        journal = MemoryJournal()
        events = list(stored) or [created_event(graph)]
        journal.batches.append(events)
        more: dict[str, Any] = {"last_seq": 1}
        if stored:
            more = {"history": History(events), "is_recovery": True}
        makes = {f"{each}:make": lines.make for each in "gh"}
        self.journal, self.refusals = journal, list[BaseException]()
        self.harness = ExecutionHarness(
            graph, {**makes, **acts}, RunOptions(), journal=journal, **more
        )
        self._graph, self._count = graph, 0

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_later(seconds, act)

    def revise_at(self, seconds: float, graph: Graph) -> None:
        self.at(seconds, lambda: self._revise(graph))

    def _revise(self, graph: Graph) -> None:
        self._count += 1
        change = change_of(self._graph, graph, self._count)
        self._graph = graph
        done = self.harness.execution.revise(graph, change)
        done.add_done_callback(self._note_refusal)

    def _note_refusal(self, done: asyncio.Future[None]) -> None:
        if (error := done.exception()) is not None:
            self.refusals.append(error)

    async def run(self, expected: str = "completed") -> None:
        """Run it to its end, where nothing is left of it."""
        assert await self.harness.run() == expected
        assert self.refusals == []
        assert await tasks_left() == 0


def check(lines: Lines, *expected: tuple[float, str]) -> None:
    assert lines.misuses == []
    assert lines.open == set()
    assert lines.log == [*expected]


@virtual_time
async def test_what_a_node_in_flight_uses_is_closed_with_it_and_not_with_the_execution() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=5), "late": returns_after(9)}
    scene = Scene(lines, parse_graph("g u", "g~u.t"), acts)
    scene.revise_at(2, parse_graph("g u late more", "g~u.t", "u>more"))
    await scene.run()
    check(lines, (0, "open g"), (5, "close g"))
    assert "node.completed more" in scene.harness.event_names()


@virtual_time
async def test_what_nobody_uses_any_more_is_closed_with_the_change() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=1), "ask": asks(), "late": returns_after(9)}
    scene = Scene(lines, parse_graph("g u ask", "g~u.t"), acts)
    scene.revise_at(2, parse_graph("g u ask late", "g~u.t", "u>late"))
    scene.harness.answer_after(5)
    await scene.run()
    check(lines, (0, "open g"), (2, "close g"))


@virtual_time
async def test_a_linked_node_that_is_dropped_with_its_user_is_never_opened() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=5), "v": lines.use(seconds=1)}
    graph = parse_graph("g u h v", "g~u.t", "h~v.t", "u>v")
    scene = Scene(lines, graph, acts)
    scene.revise_at(2, parse_graph("g u", "g~u.t"))
    await scene.run()
    check(lines, (0, "open g"), (5, "close g"))


@virtual_time
async def test_a_node_that_starts_after_a_change_shares_with_none_that_ran_before() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=5), "v": lines.use(seconds=6), "late": returns_after(20)}
    scene = Scene(lines, parse_graph("g u", "g~u.t"), acts)
    scene.revise_at(2, parse_graph("g u late v", "g~u.t", "g~v.t"))
    await scene.run()
    check(lines, (0, "open g"), (2, "open g"), (5, "close g"), (22, "close g"))


@virtual_time
async def test_what_a_node_in_flight_asks_for_after_changes_is_closed_with_it() -> None:
    lines = Lines()

    async def waits_first(inputs: Inputs, context: Context) -> Any:
        await asyncio.sleep(4)
        return await lines.use(seconds=3)(inputs, context)

    acts = {"u": waits_first, "late": returns_after(20)}
    scene = Scene(lines, parse_graph("g u", "g~u.t"), acts)
    scene.revise_at(1, parse_graph("g u x", "g~u.t"))
    scene.revise_at(2, parse_graph("g u x late", "g~u.t"))
    await scene.run()
    check(lines, (4, "open g"), (7, "close g"))


@virtual_time
async def test_two_changes_while_a_node_is_in_flight_close_what_each_of_them_left() -> None:
    lines = Lines()
    acts = {
        "u": lines.use(seconds=9),
        "v": lines.use(seconds=3),
        "w": lines.use(seconds=1),
        "late": returns_after(20),
    }
    scene = Scene(lines, parse_graph("g u", "g~u.t"), acts)
    scene.revise_at(2, parse_graph("g u v", "g~u.t", "g~v.t"))
    scene.revise_at(4, parse_graph("g u v w late", "g~u.t", "g~v.t", "g~w.t"))
    await scene.run()
    opened = [(0, "open g"), (2, "open g"), (4, "open g")]
    check(lines, *opened, (9, "close g"), (9, "close g"), (24, "close g"))


@virtual_time
async def test_a_cancel_after_a_change_closes_all_of_both_graphs() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=50), "v": lines.use(seconds=50, clean_up_s=0.5)}
    scene = Scene(lines, parse_graph("g u", "g~u.t"), acts)
    scene.revise_at(2, parse_graph("g u v", "g~u.t", "g~v.t"))
    scene.at(4, lambda: scene.harness.execution.cancel("enough"))
    await scene.run("cancelled")
    check(lines, (0, "open g"), (2, "open g"), (4, "close g"), (4.5, "close g"))


@pytest.mark.parametrize("how", ["is cancelled", "runs out of time"])
@virtual_time
async def test_a_node_that_ends_after_a_change_cleans_up_before_its_links_are_closed(
    how: str,
) -> None:
    lines = Lines()
    policies = {"u": Policy(timeout_s=3)} if how == "runs out of time" else {}
    acts = {"u": lines.use(seconds=50, clean_up_s=2), "late": returns_after(20)}
    scene = Scene(lines, parse_graph("g u", "g~u.t", policies=policies), acts)
    scene.revise_at(2, parse_graph("g u late", "g~u.t", policies=policies))
    if how == "is cancelled":
        scene.at(3, lambda: scene.harness.execution.cancel_node("u", "enough"))
    await scene.run("failed")
    check(lines, (0, "open g"), (5, "close g"))


@virtual_time
async def test_a_change_while_a_node_cleans_up_leaves_it_what_it_uses() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=50, clean_up_s=2), "ask": asks()}
    scene = Scene(lines, parse_graph("g u ask", "g~u.t"), acts)
    scene.at(2, lambda: scene.harness.execution.cancel_node("u", "enough"))
    scene.revise_at(3, parse_graph("g u ask x", "g~u.t"))
    scene.harness.answer_after(9)
    await scene.run("failed")
    check(lines, (0, "open g"), (4, "close g"))


@virtual_time
async def test_a_node_that_waits_opens_anew_what_it_uses_once_it_is_answered() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=1, then=asks()), "u:resume": lines.use(seconds=1)}
    scene = Scene(lines, parse_graph("g u", "g~u.t"), {**acts, "late": returns_after(20)})
    scene.revise_at(3, parse_graph("g u late", "g~u.t"))
    scene.harness.answer_after(5)
    await scene.run()
    check(lines, (0, "open g"), (3, "close g"), (5, "open g"), (23, "close g"))


@virtual_time
async def test_after_a_crash_that_follows_a_change_all_is_opened_anew() -> None:
    lines = Lines()
    acts = {"u": lines.use(seconds=5), "v": lines.use(seconds=3)}
    scene = Scene(lines, parse_graph("g u", "g~u.t"), acts)
    scene.revise_at(2, parse_graph("g u v", "g~u.t", "g~v.t"))
    scene.harness.interrupt_after(4)
    await scene.run("interrupted")
    check(lines, (0, "open g"), (2, "open g"), (4, "close g"), (4, "close g"))
    graph, _ = read_graph(fold(scene.journal.appended).graph or {})
    again = Scene(lines, graph, acts, scene.journal.appended)
    await again.run()
    assert lines.misuses == []
    assert [text for _, text in lines.log[4:]] == ["open g", "close g"]
