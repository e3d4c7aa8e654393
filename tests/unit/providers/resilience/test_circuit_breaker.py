from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from planwave.errors import ProviderError
from planwave.log_records import FIELDS, words_of
from planwave.providers.resilience.circuit_breaker import CircuitBreaker, RetryBudget
from tests.support.virtual_loop import virtual_time

DOWN = ProviderError("down", provider="box", model="box-1", code="provider-overloaded")


class Watch:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def circuit_of(failures: int = 2, clock: Any = None) -> CircuitBreaker:
    return CircuitBreaker(failures, 1.0, 5.0, clock=clock or Watch())


def open_circuit(failures: int = 2, clock: Any = None) -> CircuitBreaker:
    circuit = circuit_of(failures, clock)
    for number in range(failures):
        circuit.record_failure(number, DOWN)
    assert circuit.is_open
    return circuit


def test_circuit_opens_after_consecutive_failures() -> None:
    circuit = circuit_of(failures=2)
    circuit.record_failure("a", DOWN)
    circuit.record_success("b")
    circuit.record_failure("c", DOWN)
    assert not circuit.is_open
    circuit.record_failure("d", DOWN)
    assert circuit.cause is DOWN
    assert not circuit.try_acquire("e")


def test_one_probe_passes_after_a_doubling_delay() -> None:
    watch = Watch()
    circuit = open_circuit(clock=watch)
    delays: list[float] = []
    for number in range(5):
        delays.append(circuit.retry_in())
        watch.now += delays[-1]
        assert circuit.try_acquire(number)
        assert circuit.is_probe(number)
        assert (circuit.try_acquire("other"), circuit.retry_in()) == (False, math.inf)
        circuit.record_failure(number, DOWN)
    assert delays == [1, 2, 4, 5, 5]


def test_successful_probe_closes_and_resets_the_delay() -> None:
    watch = Watch()
    circuit = open_circuit(failures=1, clock=watch)
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


def test_retry_after_delays_the_probe() -> None:
    circuit = circuit_of(failures=1)
    circuit.record_failure("a", DOWN, wait_s=30)
    assert circuit.retry_in() == circuit.estimated_retry_in() == 30


def test_only_the_probe_counts_while_open() -> None:
    watch = Watch()
    circuit = open_circuit(clock=watch)
    circuit.record_success("under way")
    circuit.record_failure("under way", DOWN, wait_s=99)
    assert (circuit.is_open, circuit.retry_in()) == (True, 1)
    watch.now += 1
    circuit.try_acquire("probe")
    circuit.record_success("under way")
    assert circuit.is_open
    assert circuit.estimated_retry_in() == 1


def test_released_probe_lets_another_through() -> None:
    watch = Watch()
    circuit = open_circuit(clock=watch)
    watch.now += 1
    assert circuit.try_acquire("gone")
    circuit.release("other")
    assert not circuit.try_acquire("next")
    circuit.release("gone")
    assert circuit.try_acquire("next")


@virtual_time
async def test_waiters_are_woken_by_probe_and_close() -> None:
    loop = asyncio.get_running_loop()
    circuit = open_circuit(clock=loop.time)
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
async def test_wait_beyond_the_limit_fails_at_once() -> None:
    loop = asyncio.get_running_loop()
    circuit = circuit_of(1, loop.time)
    circuit.record_failure("a", DOWN, wait_s=30)
    assert not await circuit.wait(29)
    assert loop.time() == 0
    assert await circuit.wait(30)
    assert loop.time() == 30


@virtual_time
async def test_wait_for_a_running_probe_is_limited() -> None:
    loop = asyncio.get_running_loop()
    circuit = open_circuit(clock=loop.time)
    assert await circuit.wait(5)
    assert circuit.try_acquire("probe")
    assert not await circuit.wait(5)
    assert loop.time() == pytest.approx(6)


def test_retry_budget_refills_with_its_window() -> None:
    watch = Watch()
    budget = RetryBudget(clock=watch)
    for _ in range(10):
        assert budget.wait_s() == 0
        budget.spend(is_retry=True)
        watch.now += 0.5
    assert budget.wait_s() == 5
    watch.now += 5
    assert budget.wait_s() == 0


def test_retries_are_at_most_a_tenth_of_requests() -> None:
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


def test_rounding_does_not_exceed_the_retry_budget() -> None:
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


def test_the_log_says_when_a_circuit_opens_and_closes(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    circuit = open_circuit(clock=watch)
    watch.now += 10
    assert circuit.try_acquire("probe")
    circuit.record_failure("probe", DOWN)
    watch.now += 10
    assert circuit.try_acquire("probe")
    circuit.record_success("probe")
    lines = [each for each in caplog.records if each.name == "planwave.provider"]
    about = {"provider": "box", "model": "box-1", "code": "provider-overloaded"}
    assert [(words_of(each), getattr(each, FIELDS)) for each in lines] == [
        ("circuit open: calls wait", {**about, "failures": 2, "next_try_s": 1.0}),
        ("circuit closed: the provider answers again", {**about, "open_s": 20.0}),
    ]
