"""Usage that is reported again is counted once; no paid call is left out."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planwave.events import UsageTotal
from planwave.events.chat_chunks import chunks
from tests.support.engine.event_story import EventStory

GRAPH: dict[str, Any] = {"nodes": [{"id": "a", "type": "x", "name": "A", "data": {}}], "edges": []}


class Story(EventStory):
    """An execution of one node ``a`` that calls models."""

    def __init__(self) -> None:
        super().__init__()
        self.add("execution.created", graph=GRAPH).add("execution.started", waves=1)

    def add_event(
        self, kind: str, path: str | None = "a", attempt: int = 1, /, **data: Any
    ) -> Story:
        return self.add(kind, path, None if path is None else attempt, **data)

    def start(self, attempt: int = 1, **data: Any) -> Story:
        return self.add_event("node.started", "a", attempt, wave=1, **data)

    def use(self, tokens: int, attempt: int = 1, *, recorded: bool = False) -> Story:
        more = {"recorded": True} if recorded else {}
        usage = {"provider": "p", "model": "m", "input_tokens": tokens, "output_tokens": 1}
        return self.add_event("usage", "a", attempt, **usage, cost_usd=0.5, **more)

    def again(self, epoch: int = 2, reentry: int = 1) -> Story:
        self.add_event("execution.resumed", None, reason="recovery", epoch=epoch)
        return self.start(reentry=reentry)

    @property
    def total(self) -> UsageTotal:
        assert self.state.nodes["a"].usage == self.state.usage
        return self.state.usage

    @property
    def read(self) -> int:
        return self.total.input_tokens


def test_a_recorded_call_that_was_reported_before_is_counted_once() -> None:
    story = Story().start().use(10).use(20).again().use(10, recorded=True).use(20, recorded=True)
    assert (story.total.calls, story.read, story.total.cost_usd) == (2, 30, 1.0)
    story.use(5).again(3, 2)
    for tokens in (10, 20, 5):
        story.use(tokens, recorded=True)
    assert story.read == 35


def test_a_paid_but_unreported_call_is_counted_when_its_recording_is_reported() -> None:
    story = Story().start().use(10).again().use(10, recorded=True).use(10, recorded=True)
    assert story.read == 20
    story.again(3, 2).use(10, recorded=True).use(10, recorded=True)
    assert story.read == 20


def test_the_first_call_may_be_the_unreported_one() -> None:
    assert Story().start().again().use(10, recorded=True).read == 10


def test_a_call_without_a_recording_is_counted_again() -> None:
    assert Story().start().use(10).again().use(10).read == 20


def test_calls_of_each_attempt_are_counted() -> None:
    story = Story().start().use(10).add_event("node.retrying", "a", 1, next_attempt=2)
    assert story.start(2).use(10, 2).read == 20


def test_usage_reported_again_after_parking_is_counted_once() -> None:
    story = Story().start().use(10)
    for _ in range(3):
        story.add_event("node.parked").add_event("node.unparked").use(10, recorded=True)
    assert story.read == 10


def test_usage_reported_again_after_parking_and_a_restart_is_counted_once() -> None:
    story = Story().start().use(10).add_event("node.parked").add_event("node.unparked")
    story.use(10, recorded=True).use(7)
    story.add_event("execution.resumed", None, reason="recovery", epoch=2)
    story.use(10, recorded=True).use(7, recorded=True)
    assert story.read == 17


def test_calls_after_an_answer_are_counted_separately() -> None:
    story = Story().start().use(10).add_event("node.waiting", request_id="r", request={})
    story.add_event("node.answered", request_id="r", answer="yes")
    story.add_event("execution.resumed", None, reason="recovery", epoch=2).use(10, recorded=True)
    assert story.read == 20, "its call after the answer was paid, and nobody had told of it"


def test_usage_reported_again_by_an_interrupted_node_is_counted_once() -> None:
    story = Story().start().use(10)
    story.add_event("execution.resumed", None, reason="recovery", epoch=2)
    story.add_event(
        "node.waiting", request_id="r", request={"kind": "interrupted"}, interrupted=True
    )
    story.add_event("node.answered", request_id="r", answer={"decision": "run_again"})
    assert story.start(reentry=1).use(10, recorded=True).read == 10


def test_a_pause_by_request_does_not_start_a_new_count() -> None:
    story = Story().start().use(10).again().use(10, recorded=True)
    story.add_event("execution.paused", None, reason="paused by request")
    story.add_event("execution.resumed", None, reason="resumed", epoch=2).use(10, recorded=True)
    assert story.read == 20


def test_recordings_reported_first_by_an_attempt_were_paid_elsewhere() -> None:
    story = Story().start().use(10, recorded=True)
    assert story.read == 0
    assert story.again().use(10, recorded=True).read == 0


def test_malformed_usage_counts_as_a_call_without_tokens() -> None:
    story = Story().start().add_event("usage", input_tokens={"odd": [1]}, provider=None)
    story.again().add_event("usage", input_tokens={"odd": [1]}, provider=None, recorded=True)
    assert (story.total.calls, story.read) == (1, 0)


def test_provider_and_model_are_those_of_the_last_report() -> None:
    node = Story().start().use(10).again().use(10, recorded=True).state.nodes["a"]
    assert (node.provider, node.model) == ("p", "m")


async def test_chunks_count_as_the_state_does() -> None:
    story = Story().start().use(10).again().use(10, recorded=True).use(3)
    story.add_event("node.completed", outputs={}).add_event("execution.completed", None)
    *_, last = [chunk async for chunk in chunks(story.events)]
    assert last["usage"]["prompt_tokens"] == story.read == 13


@given(st.integers(0, 2**64))
def test_paid_calls_are_counted_once_at_any_point_of_interruption(seed: int) -> None:
    """A node makes the same calls in each process; a paid call is recorded, then perhaps reported."""
    choose = Random(seed)  # noqa: S311 - a test's choices
    calls = [choose.choice((1, 2, 3)) for _ in range(choose.randrange(1, 6))]
    story, recorded_calls = Story().start(), 0
    for life in range(2, 30):
        count = choose.randrange(0, len(calls) + 1)
        for number, tokens in enumerate(calls[:count]):
            is_recorded = number < recorded_calls
            recorded_calls = max(recorded_calls, number + 1)
            if number == count - 1 and choose.random() < 0.5:
                break  # it is recorded, and the process ends before the report
            story.use(tokens, recorded=is_recorded)
        if life == 6:
            break
        story.again(life, life - 1)
    for number, tokens in enumerate(calls):
        if number == 0:
            story.again(50, 50)
        story.use(tokens, recorded=number < recorded_calls)
    assert story.read == sum(calls)
    assert story.total.calls == Counter(calls).total()


@given(st.lists(st.integers(0, 10**12), max_size=30), st.randoms(use_true_random=False))
def test_the_sum_of_costs_is_exact_in_any_order(picodollars: list[int], rng: Random) -> None:
    rng.shuffle(picodollars)
    total = UsageTotal()
    for each in picodollars:
        usage: Any = {
            "input_tokens": 1,
            "output_tokens": 1,
            "cost_usd": float(Decimal(each) / 10**12),
        }
        total = total.plus(usage)
    assert (total.cost_usd or 0.0) == float(Decimal(sum(picodollars)) / 10**12)
