"""Faults of the processes of an installation, one after the other while executions run, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle, islice
from typing import Final, NamedTuple

from tests.support.scale.account import Account
from tests.support.scale.installation import FAULTS, Installation
from tests.support.scale.role_process import RoleProcess

_DRIVEN_S: Final = 5.0
"""After so long without an execution in each worker further ones are started."""
Fault = Callable[[RoleProcess], object]
"""What happens to a process."""


class Failure(NamedTuple):
    """One fault of one process.

    Attributes:
        pid: The process.
        at: When, in seconds since 1970.
    """

    pid: int
    at: float


async def let_fail(
    installation: Installation,
    api: RoleProcess,
    workers: Sequence[RoleProcess],
    faults: Sequence[Fault],
    repair: Fault,
    times: int = FAULTS,
) -> list[Failure]:
    """Let workers fail while they drive, in turn, and repair them once others have taken over.

    The next ones fail while executions of the time before still run, and the ones before still start. Some other is
    ready by then; whoever ends late, as one does that hung, is started again meanwhile.

    Args:
        installation: Where.
        api: Starts the executions.
        workers: More than fail at once.
        faults: What happens to so many of them at once.
        repair: What is done afterwards; who has ended then is started again.
        times: How often.
    """
    failures: list[Failure] = []
    in_turn = cycle(workers)
    for _ in range(times):
        victims = list(islice(in_turn, len(faults)))
        others = [each for each in workers if each not in victims]
        await installation.ready(api, *victims)
        await installation.any_ready(others)
        await driven_by_all(installation, api, victims)
        lost: list[str] = []
        began = time.time()
        for victim, fail in zip(victims, faults, strict=True):
            lost += installation.last_run_by(
                victim
            )  # Temporal may hand it to the next one that fails
            failures.append(Failure(victim.pid, time.time()))
            fail(victim)
        await installation.taken_over(lost, began, others)
        for victim in victims:
            repair(victim)
            if victim.has_ended():
                victim.launch()
    return failures


async def driven_by_all(
    installation: Installation, api: RoleProcess, workers: Sequence[RoleProcess]
) -> None:
    """Start executions until each worker drives some of them."""
    ids: list[str] = []

    def are_driven() -> bool:
        return all(installation.drives(each, ids) for each in workers)

    while not are_driven():
        ids += await installation.create(api)
        with suppress(TimeoutError):
            await installation.until(are_driven, within_s=_DRIVEN_S)


async def settle_accounts(
    installation: Installation, api: RoleProcess, failures: Sequence[Failure] = ()
) -> tuple[Account, list[float]]:
    """Wait until all executions have ended; nothing may be lost or done twice.

    Returns:
        The account, and how long each execution of a process that failed stood still, in seconds.
    """
    histories = await installation.ended(api)
    account = installation.account(histories)
    takeovers = [each for one in failures for each in installation.takeover_s(histories, *one)]
    slowest = f" takeovers={len(takeovers)} slowest={max(takeovers):.1f} s" if takeovers else ""
    print(f"{account}{slowest}")  # noqa: T201 - for the closing note
    assert account.faults() == {}, installation.report(())
    return account, takeovers
