"""The fault matrix of changes: workers are killed while a model changes the plan of what they drive.

The settings are those of ``test_workers_fail``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle, islice

import pytest

from planwave.events import Event
from tests.support.cli.command_process import PLANWAVE
from tests.support.llm.fake_llm_server import FakeLLMServer, fake_llm_in_thread
from tests.support.scale.account import account_of
from tests.support.scale.changed_plans import (
    CHANGED,
    DYING_PLANWAVE,
    NODES,
    OPTIONS,
    GatedReplies,
    asked_of,
    die_file,
    died_file,
)
from tests.support.scale.installation import FAULTS, Installation
from tests.support.scale.role_process import RoleProcess

pytestmark = pytest.mark.scale

WORKERS, EXECUTIONS = 3, 6
_DRIVEN_S = 5.0
"""After so long without a change in the worker that is to die further executions are started."""


def start(
    installation: Installation, llm: FakeLLMServer, program: str = PLANWAVE
) -> tuple[RoleProcess, list[RoleProcess]]:
    env = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": llm.openai_url}
    workers = [installation.start("worker", program=program, env=env) for _ in range(WORKERS)]
    return installation.start("serve", env=env), workers


async def begin(installation: Installation, api: RoleProcess) -> list[str]:
    return await installation.create(api, EXECUTIONS, CHANGED, OPTIONS)


async def written_now(installation: Installation, llm: FakeLLMServer, begun: Sequence[str]) -> str:
    """Wait until a model is asked again for a change of each of some executions; return one of them.

    Its first reply to each is recorded by then, so that none is paid for again.
    """

    def are_written() -> bool:
        asked = asked_of(llm)
        return all(asked[each, 1] for each in begun)

    await installation.until(are_written)
    return begun[0]


async def completed_beside(installation: Installation, execution_id: str) -> None:
    """Wait until the step that runs beside the one that fails has completed, while its plan is being changed."""
    async with installation.store_type.open(installation.url, read_only=True) as store:
        while ("node.completed", "beside") not in {  # noqa: ASYNC110 - in another process
            (each.type, each.path) for each in await store.events(execution_id)
        }:
            await asyncio.sleep(0.05)


def settle(installation: Installation, histories: dict[str, list[Event]]) -> None:
    """Count what became of the executions; nothing may be lost or done twice, and each was changed once."""
    account = account_of(histories, installation.all_runs(), NODES)
    print(account)  # noqa: T201 - for the closing note
    assert account.faults() == {}, installation.report(())
    kinds = ("plan.requested", "plan.revised", "plan.refused")
    for events in histories.values():
        assert [each.type for each in events if each.type in kinds] == [*kinds[:2]]


async def test_workers_are_killed_while_a_model_writes_a_change(installation: Installation) -> None:
    """Another one asks the model again; what it had replied before is served, and paid for once."""
    replies, ids, killed = GatedReplies(), list[str](), list[str]()
    with fake_llm_in_thread(reply_to=replies) as llm:
        api, workers = start(installation, llm)
        for _ in range(FAULTS):
            await installation.ready(api, *workers)
            replies.gate.clear()
            begun = await begin(installation, api)
            ids += begun
            killed.append(await written_now(installation, llm, begun))
            await completed_beside(installation, killed[-1])
            drivers = {run.execution_id: run.pid for run in installation.all_runs()}
            victim = next(each for each in workers if each.pid == drivers[killed[-1]])
            victim.kill()
            replies.gate.set()
            victim.launch()
        settle(installation, await installation.ended(api, ids))
        asked = asked_of(llm)
    assert {asked[each, 0] for each in ids} == {1}, "a reply that was recorded is paid for again"
    assert all(asked[each, 1] > 1 for each in killed), "no fault met a model that writes"
    again = sum(asked[each, 1] - 1 for each in ids)
    print(f"calls={asked.total()} cut off and made again={again}")  # noqa: T201 - for the closing note


async def test_workers_are_killed_between_a_change_and_its_starts(
    installation: Installation,
) -> None:
    """The change is stored with what starts by it, so that another one begins that, and none of it twice."""
    ids: list[str] = []
    run_log = installation.group.run_log
    with fake_llm_in_thread(reply_to=GatedReplies()) as llm:
        api, workers = start(installation, llm, DYING_PLANWAVE)
        for victim in islice(cycle(workers), FAULTS):
            await installation.ready(api, *workers)
            die_file(run_log).write_text(str(victim.pid), "utf-8")
            while not victim.has_ended():
                ids += await begin(installation, api)
                with suppress(TimeoutError):
                    await installation.until(victim.has_ended, within_s=_DRIVEN_S)
            victim.launch()
        settle(installation, await installation.ended(api, ids))
    died = [line.split() for line in died_file(run_log).read_text("utf-8").splitlines()]
    assert len(died) == FAULTS
    for execution_id, pid in died:
        begun = [each.pid for each in installation.all_runs() if each[:2] == (execution_id, "new")]
        assert begun, "what was to start never began"
        assert int(pid) not in begun
