"""Executions that were interrupted anywhere and are resumed from their stored events."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import StoreError
from planwave.events import Event, fold
from planwave.executor.recovery.history import History
from tests.support.engine.generic_nodes import TERMINAL_TYPES, ExecutionHarness, MemoryJournal
from tests.support.engine.random_schedules import ByteChoices
from tests.support.examples import examples
from tests.support.virtual_loop import virtual_time
from tests.unit.executor.driver.test_execution_properties import SETTLED, Scene

OUTCOMES = SETTLED | {"node.retrying", "node.waiting"}


class Interrupted(Scene):
    """A scene whose process ends some times, each time after some batch."""

    def __init__(self, choices: ByteChoices) -> None:
        super().__init__(choices)
        self.cancel_at = None
        self.cuts = [1 + choices.below(5) for _ in range(1 + choices.below(4))]
        self.ran: list[tuple[str, int]] = []

    async def act(self, inputs: Any, context: Any) -> Any:
        self.ran.append((context.path, context.attempt))
        return await super().act(inputs, context)

    async def run_once(self, stored: list[Event], batches: int | None) -> list[Event]:
        """Resume the execution for so many batches; return all events stored then."""
        ledger = MemoryJournal(fail_at=None if batches is None else batches + 1)
        past = History(stored) if stored else None
        harness = ExecutionHarness(
            self.graph,
            dict.fromkeys(self.plans, self.act),
            self.options,
            journal=ledger,
            history=past,
            is_recovery=past is not None and past.is_started,
        )
        harness.answer_every_request(2, None, fold(stored).requests if stored else ())
        with suppress(StoreError):  # the next batch is not stored
            await harness.run()
        return [*stored, *ledger.appended]


def settled_of(events: list[Event]) -> Counter[str | None]:
    return Counter(e.path for e in events if e.type in SETTLED)


@given(st.integers(0, 2**64))
@settings(max_examples=examples(250), deadline=None)
@virtual_time
async def test_an_interrupted_execution_ends_as_without_the_interruption(seed: int) -> None:
    # Seeds, not bytes: bytes that are made to be simple make graphs in which little happens.
    scene = Interrupted(ByteChoices(Random(seed).randbytes(260)))  # noqa: S311 - a test's choices

    stored: list[Event] = []
    for cut in scene.cuts:
        known = {(e.path, e.attempt) for e in stored if e.type in OUTCOMES}
        scene.ran.clear()
        stored = await scene.run_once(stored, cut)
        assert not known & set(scene.ran), "what had its outcome ran again"
        if stored and stored[-1].type in TERMINAL_TYPES:
            break
    else:
        stored = await scene.run_once(stored, None)
    check(scene, stored)
    if not any(node.policy.join == "any" for node in scene.graph.nodes) and (
        scene.options.on_failure == "continue"
    ):
        scene.ran.clear()
        whole = await scene.run_once([], None)
        assert ends(stored) == ends(whole)


def ends(events: list[Event]) -> dict[str, Any]:
    state = fold(events)
    nodes = {path: (node.status, node.outputs) for path, node in state.nodes.items()}
    return {"status": state.status, **nodes}


def check(scene: Interrupted, stored: list[Event]) -> None:
    assert [e.seq for e in stored] == list(range(1, len(stored) + 1))
    assert [e.type for e in stored if e.type in TERMINAL_TYPES] == [stored[-1].type]
    executed = {n.id for i, n in enumerate(scene.graph.nodes) if i not in scene.case.linked}
    assert settled_of(stored) == Counter(executed)
    waves = Counter(e.data["wave"] for e in stored if e.type == "wave.started")
    done = Counter(e.data["wave"] for e in stored if e.type == "wave.completed")
    assert all(count == 1 for count in [*waves.values(), *done.values()])
    assert done.keys() <= waves.keys()
    fold(stored)
