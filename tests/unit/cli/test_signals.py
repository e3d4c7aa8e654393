import asyncio
import os
import signal

import pytest

from planwave.cli.signals import Interrupt, Interrupted
from tests.support.cli.fake_console import plain_console


async def signalled(interrupt: Interrupt) -> None:
    """Send Ctrl-C to this process and wait until it was seen."""
    seen = asyncio.Event()
    with interrupt.on_stop(seen.set):
        os.kill(os.getpid(), signal.SIGINT)
        await seen.wait()


async def test_the_first_signal_stops_what_is_at_work() -> None:
    with Interrupt(plain_console()) as interrupt:
        await signalled(interrupt)
    assert interrupt.received == signal.SIGINT


async def test_a_signal_that_came_before_stops_what_starts_after_it() -> None:
    stops: list[str] = []
    with Interrupt(plain_console()) as interrupt:
        await signalled(interrupt)
        with interrupt.on_stop(lambda: stops.append("late")):
            assert stops == ["late"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_work_is_cancelled_by_a_signal_and_the_exit_code_tells_which(
    number: int, code: int
) -> None:
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    with Interrupt(plain_console()) as interrupt, pytest.raises(Interrupted) as caught:
        await interrupt.cancel_on_signal(work())
    assert (caught.value.exit_code, cleaned) == (code, [True])
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_work_that_ends_by_itself_gives_its_result() -> None:
    async def work() -> int:
        return 7

    with Interrupt(plain_console()) as interrupt:
        assert await interrupt.cancel_on_signal(work()) == 7
    assert interrupt.received is None


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with Interrupt(plain_console()) as interrupt:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(interrupt.cancel_on_signal(work()))
            await asyncio.sleep(0)
            task.cancel()
    assert task.cancelled()


@pytest.mark.usefixtures("hangup")
async def test_a_closed_terminal_asks_to_stop_too_and_says_so_as_the_cause() -> None:
    seen = asyncio.Event()
    with Interrupt(plain_console()) as interrupt, interrupt.on_stop(seen.set):
        os.kill(os.getpid(), signal.SIGHUP)
        await seen.wait()
        assert interrupt.cause == "stopped because the terminal was closed"


async def test_a_closed_terminal_is_ignored_where_that_was_asked_for() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt(plain_console()) as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            await signalled(interrupt)
            assert interrupt.received == signal.SIGINT
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_afterwards_the_signals_are_as_before() -> None:
    with Interrupt(plain_console()):
        pass
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


async def test_a_stop_within_a_stop_takes_its_place_and_gives_it_back() -> None:
    stops: list[str] = []

    async def works_until_stopped() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    with Interrupt(plain_console()) as interrupt, interrupt.on_stop(lambda: stops.append("all")):
        with pytest.raises(Interrupted):
            await interrupt.cancel_on_signal(works_until_stopped())
        assert stops == []
    reached = asyncio.Event()
    with Interrupt(plain_console()) as interrupt, interrupt.on_stop(reached.set):
        with interrupt.on_stop(lambda: stops.append("one")):
            pass
        os.kill(os.getpid(), signal.SIGINT)
        await reached.wait()
    assert stops == []
