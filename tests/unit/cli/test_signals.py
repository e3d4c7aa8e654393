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


async def test_first_signal_cancels_work() -> None:
    with Interrupt(plain_console()) as interrupt:
        await signalled(interrupt)
    assert interrupt.received == signal.SIGINT


async def test_earlier_signal_cancels_later_work() -> None:
    stops: list[str] = []
    with Interrupt(plain_console()) as interrupt:
        await signalled(interrupt)
        with interrupt.on_stop(lambda: stops.append("late")):
            assert stops == ["late"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_signal_sets_the_exit_code(number: int, code: int) -> None:
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


async def test_finished_work_returns_its_result() -> None:
    async def work() -> int:
        return 7

    with Interrupt(plain_console()) as interrupt:
        assert await interrupt.cancel_on_signal(work()) == 7
    assert interrupt.received is None


async def test_other_cancellation_is_passed_on() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    with Interrupt(plain_console()) as interrupt:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(interrupt.cancel_on_signal(work()))
            await asyncio.sleep(0)
            task.cancel()
    assert task.cancelled()


@pytest.mark.usefixtures("hangup")
async def test_hangup_cancels_with_its_cause() -> None:
    seen = asyncio.Event()
    with Interrupt(plain_console()) as interrupt, interrupt.on_stop(seen.set):
        os.kill(os.getpid(), signal.SIGHUP)
        await seen.wait()
        assert interrupt.cause == "stopped because the terminal was closed"


async def test_ignored_hangup_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interrupt(plain_console()) as interrupt:
            os.kill(os.getpid(), signal.SIGHUP)
            await signalled(interrupt)
            assert interrupt.received == signal.SIGINT
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_signal_handlers_are_restored() -> None:
    with Interrupt(plain_console()):
        pass
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


async def test_nested_handlers_are_restored() -> None:
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
