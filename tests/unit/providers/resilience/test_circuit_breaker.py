from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from planwave.errors import ProviderError
from planwave.providers.resilience.circuit_breaker import CircuitBreaker, RetryBudget
from tests.support.virtual_loop import virtual_time

DOWN = ProviderError("down", provider="box", code="provider-overloaded")


class Watch:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def circuit_of(failures: int = 2, clock: Any = None) -> CircuitBreaker:
    return CircuitBreaker(failures, 1.0, 5.0, clock=clock or Watch())


def opened(failures: int = 2, clock: Any = None) -> CircuitBreaker:
    circuit = circuit_of(failures, clock)
    for number in range(failures):
        circuit.record_failure(number, DOWN)
    assert circuit.is_open
    return circuit


def test_failures_in_a_row_open_it_and_an_answer_between_them_starts_the_count_anew() -> None:
    circuit = circuit_of(failures=2)
    circuit.record_failure("a", DOWN)
    circuit.record_success("b")
    circuit.record_failure("c", DOWN)
    assert not circuit.is_open
    circuit.record_failure("d", DOWN)
    assert circuit.cause is DOWN
    assert not circuit.try_acquire("e")


def test_after_a_delay_that_doubles_up_to_its_longest_one_probe_goes_through() -> None:
    watch = Watch()
    circuit = opened(clock=watch)
    delays: list[float] = []
    for number in range(5):
        delays.append(circuit.retry_in())
        watch.now += delays[-1]
        assert circuit.try_acquire(number)
        assert circuit.is_probe(number)
        assert (circuit.try_acquire("other"), circuit.retry_in()) == (False, math.inf)
        circuit.record_failure(number, DOWN)
    assert delays == [1, 2, 4, 5, 5]


def test_a_probe_that_is_answered_closes_it_and_the_next_delay_is_the_first_again() -> None:
    watch = Watch()
    circuit = opened(failures=1, clock=watch)
    for delay in (1, 2):
        watch.now += delay
        circuit.try_acquire("probe")
        circuit.record_failure("probe", DOWN)
    watch.now += 4
    circuit.try_acquire("probe")
    circuit.record_success("probe")
    assert (circuit.is_open, circuit.retry_in()) == (False, 0)
    circuit.record_failure("later", DOWN)
    assert circuit.retry_in() == 1


def test_a_wait_that_was_asked_for_puts_the_probe_off() -> None:
    circuit = circuit_of(failures=1)
    circuit.record_failure("a", DOWN, wait_s=30)
    assert circuit.retry_in() == circuit.estimated_retry_in() == 30


def test_while_it_is_open_only_the_probes_word_counts() -> None:
    watch = Watch()
    circuit = opened(clock=watch)
    circuit.record_success("under way")
    circuit.record_failure("under way", DOWN, wait_s=99)
    assert (circuit.is_open, circuit.retry_in()) == (True, 1)
    watch.now += 1
    circuit.try_acquire("probe")
    circuit.record_success("under way")
    assert circuit.is_open
    assert circuit.estimated_retry_in() == 1


def test_a_probe_that_leaves_without_a_word_makes_room_for_another() -> None:
    watch = Watch()
    circuit = opened(clock=watch)
    watch.now += 1
    assert circuit.try_acquire("gone")
    circuit.release("other")
    assert not circuit.try_acquire("next")
    circuit.release("gone")
    assert circuit.try_acquire("next")


@virtual_time
async def test_those_who_wait_are_woken_when_a_probe_is_due_and_when_it_closes() -> None:
    loop = asyncio.get_running_loop()
    circuit = opened(clock=loop.time)
    through: list[tuple[int, float]] = []

    async def call(number: int) -> None:
        while not circuit.try_acquire(number):
            assert await circuit.wait(60)
        if circuit.is_probe(number):
            await asyncio.sleep(7)
            circuit.record_success(number)
        through.append((number, loop.time()))

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(call(number))
    assert [at for _, at in through] == [8, 8, 8, 8]


@virtual_time
async def test_who_cannot_wait_long_enough_is_told_at_once() -> None:
    loop = asyncio.get_running_loop()
    circuit = circuit_of(1, loop.time)
    circuit.record_failure("a", DOWN, wait_s=30)
    assert not await circuit.wait(29)
    assert loop.time() == 0
    assert await circuit.wait(30)
    assert loop.time() == 30


@virtual_time
async def test_who_waits_for_a_probe_under_way_waits_no_longer_than_it_has_time() -> None:
    loop = asyncio.get_running_loop()
    circuit = opened(clock=loop.time)
    assert await circuit.wait(5)
    assert circuit.try_acquire("probe")
    assert not await circuit.wait(5)
    assert loop.time() == pytest.approx(6)


def test_a_lone_call_has_all_its_second_tries_and_then_the_window_has_to_pass() -> None:
    watch = Watch()
    budget = RetryBudget(clock=watch)
    for _ in range(10):
        assert budget.wait_s() == 0
        budget.spend(is_retry=True)
        watch.now += 0.5
    assert budget.wait_s() == 5
    watch.now += 5
    assert budget.wait_s() == 0


def test_second_tries_are_at_most_a_tenth_of_the_requests_of_a_window() -> None:
    watch = Watch()
    budget = RetryBudget(clock=watch)
    for _ in range(300):
        budget.spend(is_retry=False)
    tries = 0
    while budget.wait_s() == 0:
        budget.spend(is_retry=True)
        tries += 1
    assert tries == 30
    watch.now += 10
    assert budget.wait_s() == 0


def test_a_window_that_ends_by_a_rounding_error_lets_no_crowd_through() -> None:
    watch = Watch()
    watch.now = 6.01
    assert (6.01 + 10) - 6.01 < 10
    budget = RetryBudget(clock=watch)
    for _ in range(10):
        budget.spend(is_retry=True)
    watch.now = 6.01 + 10
    tries = 0
    while budget.wait_s() == 0 and tries < 100:
        budget.spend(is_retry=True)
        tries += 1
    assert tries == 10
