"""Who drives an execution, the outbox to the carrier, and the commands for others, as two openings see them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, nullcontext
from datetime import UTC, datetime

import pytest

from planwave.errors import Conflict, NotFound, QuotaExceeded, StaleEpoch
from planwave.events import Event
from planwave.principals import Principal
from planwave.providers.protocols import CallKey
from planwave.service.quotas import Quotas
from planwave.storage.postgres import owners as owners_module
from planwave.storage.postgres.owners import ExecutionOwners
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import DRIVEN_ELSEWHERE, ExecutionRecord
from tests.support.llm.fake_providers import DEFAULT_LIMITS

AT = "2026-01-01T00:00:00.000000Z"
RACES = 40


def created(of: str) -> list[Event]:
    return [Event(of, 1, AT, "execution.created", None, None, {})]


async def add(store: PostgresStore, own: str, *, queued: bool = True) -> None:
    record = ExecutionRecord(own, None, "t", "g", "starting", AT, queued=queued)
    await store.create_execution(record, created(own))


def of(store: PostgresStore) -> ExecutionOwners:
    assert store.owners is not None
    return store.owners


@pytest.fixture
async def two(database_url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    async with AsyncExitStack() as opened:
        first, second = [
            await opened.enter_async_context(PostgresStore.open(database_url, is_carried=True))
            for _ in range(2)
        ]
        yield first, second


async def test_what_is_accepted_is_in_the_outbox_until_the_carrier_knows_it(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    await add(first, "queued")
    await add(first, "later", queued=False)
    assert await of(second).unsubmitted(0, 10) == ["queued"]
    assert await of(second).unsubmitted(60, 10) == [], "not that old yet"
    await first.claim("later", queued=True)
    assert await of(second).unsubmitted(0, 10) == ["queued", "later"]
    before = await of(second).clock()
    await first.claim("queued")
    await of(second).submitted(["queued"], before)
    assert await of(second).unsubmitted(0, 10) == ["later", "queued"], "it has more to do since"
    await of(second).submitted(["queued"], await of(second).clock())
    await of(second).take("later")
    assert await of(first).unsubmitted(0, 10) == [], "one was submitted, one is driven already"


async def test_a_command_claims_only_what_nobody_else_drives(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    await add(first, "x")
    taken = await of(first).take("x")
    assert (taken.epoch, taken.takeovers) == (2, 0)
    with pytest.raises(Conflict) as refused:
        await second.claim("x")
    assert refused.value.code == DRIVEN_ELSEWHERE
    assert await of(second).is_elsewhere("x")
    assert not await of(first).is_elsewhere("x")
    await first.append("x", taken.epoch, [Event("x", 2, AT, "node.log", "a", 1, {})])
    assert await first.claim("x") == 3, "its owner may"
    await of(first).release("x", taken.epoch)
    assert await second.claim("x") == 4
    with pytest.raises(NotFound):
        await second.claim("unknown")


async def test_whoever_is_given_an_execution_takes_it_from_its_owner(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    await add(first, "x")
    before = await of(first).take("x")
    taken = await of(second).take("x")
    assert taken.takeovers == 1
    with pytest.raises(StaleEpoch):
        await first.append("x", before.epoch, [Event("x", 2, AT, "node.log", "a", 1, {})])
    await of(first).release("x", before.epoch)
    assert await of(first).is_elsewhere("x"), "the late release of another epoch changes nothing"
    await of(second).release("x", taken.epoch)
    assert (await of(first).take("x")).takeovers == 0, "it came to rest meanwhile"


async def test_an_owner_that_is_gone_is_none(
    two: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    first, second = two
    await add(first, "x")
    gone = PostgresStore.open(database_url, is_carried=True)
    await of(gone).take("x")
    command = await of(second).add_command("x", {"kind": "pause"})
    assert await of(second).left_commands(0) == []
    await gone.close()
    assert [each.command_id for each in await of(second).left_commands(0)] == [command]
    assert await second.claim("x") == 3


async def test_commands_reach_the_owner_and_their_outcome_who_asked(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    for own in ("x", "y"):
        await add(first, own)
    await of(first).take("x")
    await of(second).take("y")
    command = await of(second).add_command("x", {"kind": "pause"})
    await of(first).add_command("y", {"kind": "resume"})
    (own,) = await of(first).own_commands()
    assert (own.command_id, own.execution_id, own.command) == (command, "x", {"kind": "pause"})
    assert await of(second).outcome(command) is None
    await of(first).settle(command, {"error": None})
    await of(first).settle(command, {"error": "late"})
    assert await of(second).outcome(command) == {"error": None}, "settled once"
    assert await of(first).own_commands() == []


async def test_a_command_that_meets_a_release_is_refused_or_found(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    for number in range(RACES):
        own = f"x{number}"
        await add(first, own)
        taken = await of(first).take(own)
        command, left = await asyncio.gather(  # noqa: TID251 - both come to their end
            of(second).add_command(own, {"kind": "pause"}), of(first).release(own, taken.epoch)
        )
        assert [each.command_id for each in left] == ([] if command is None else [command])
    await add(first, "x")
    before = await of(first).take("x")
    await of(second).take("x")
    await of(first).add_command("x", {"kind": "pause"})
    assert await of(first).release("x", before.epoch) == [], "it is the new owner's"


async def test_one_of_a_command_and_a_drive_at_the_same_time_comes_first(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    for number in range(RACES):
        await add(first, f"x{number}")
        claim, taken = await asyncio.gather(  # noqa: TID251 - errors are looked at
            second.claim(f"x{number}"), of(first).take(f"x{number}"), return_exceptions=True
        )
        assert not isinstance(taken, BaseException), "to drive is never refused"
        if isinstance(claim, BaseException):
            assert isinstance(claim, Conflict)
            assert taken.epoch == 2, "a refused claim leaves no epoch behind"
        else:
            assert {claim, taken.epoch} == {2, 3}


async def test_old_commands_and_owners_of_what_has_ended_are_forgotten(
    two: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    first, _ = two
    await add(first, "x")
    gone = PostgresStore.open(database_url, is_carried=True)
    taken = await of(gone).take("x")
    await gone.append("x", taken.epoch, [Event("x", 2, AT, "execution.completed", None, None, {})])
    command = await of(first).add_command("x", {"kind": "pause"})
    assert command is not None
    await gone.close()
    assert await of(first).add_command("x", {"kind": "pause"}) is None, "its owner is gone"
    await of(first).forget_old()
    assert await of(first).left_commands(0), "not a day old"
    await of(first).settle(command, {})
    assert (await of(first).take("x")).takeovers == 0, "the row of the dead owner was deleted"


async def test_a_quota_counts_what_any_process_drives_as_running(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    """One token has three executions: two processes drive one each, and one waits."""
    principal = Principal("token", "t1", "name")
    for store, own in zip((two[0], two[1], two[0]), ("x", "y", "z"), strict=True):
        record = ExecutionRecord(own, None, "t", "g", "starting", AT, created_by=principal)
        await store.create_execution(record, created(own))
    await of(two[0]).take("x")
    await of(two[1]).take("y")
    for store in two:
        assert await store.count_open(principal.account) == 3
        assert await of(store).count_driven(principal.account) == 2
        assert await of(store).count_driven("another") == 0
        for most, is_admitted in ((1, False), (2, True)):
            limits = DEFAULT_LIMITS.model_copy(update={"waiting_executions": most})
            with nullcontext() if is_admitted else pytest.raises(QuotaExceeded):
                async with Quotas(store, limits, lambda _: 0).admit(record):
                    pass


async def test_a_process_records_no_call_of_an_execution_that_another_one_took_over(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    """It would make the call beside the one that the other process makes."""
    frozen, second = two
    begun = CallKey("x", "a", 1, 0, "begun")
    await add(frozen, "x")
    await of(frozen).take("x")
    await frozen.record(begun._replace(ordinal=1), {})
    await of(second).take("x")
    with pytest.raises(StaleEpoch):
        await frozen.record(begun, {"at": "late"})
    await second.record(begun, {"at": AT})
    assert await frozen.recorded(begun) == {"at": AT}
    for number in range(RACES):
        own = f"x{number}"
        await add(frozen, own)
        await of(frozen).take(own)
        key = CallKey(own, "a", 1, 0, "begun")

        async def record_late(key: CallKey = key) -> str:
            try:
                await frozen.record(key, {})
            except StaleEpoch:
                return "refused"
            return "recorded"

        async def take_over(key: CallKey = key) -> str:
            await of(second).take(key.execution_id)
            return "new" if await second.recorded(key) is None else "begun"

        async with asyncio.TaskGroup() as group:
            late = group.create_task(record_late())
            seen = group.create_task(take_over())
        assert (late.result(), seen.result()) in (("recorded", "begun"), ("refused", "new"))


async def test_what_nobody_started_is_not_submitted(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    await add(first, "x", queued=False)
    await first.claim("x")
    assert await of(second).unsubmitted(0, 10) == []


async def test_all_that_has_not_ended_and_is_not_driven_can_be_submitted_again(
    two: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    first, second = two
    for own, queued in (("queued", True), ("unstarted", False), ("paused", True), ("driven", True)):
        await add(first, own, queued=queued)
    for own, kind in (("paused", "execution.paused"), ("ended", "execution.completed")):
        if own == "ended":
            await add(first, own)
        taken = await of(first).take(own)
        await first.append(own, taken.epoch, [Event(own, 2, AT, kind, None, None, {})])
        await of(first).release(own, taken.epoch)
    await of(first).take("driven")
    await of(first).submitted(["queued"], await of(first).clock())
    await of(second).submit_open()
    await of(second).submit_open()
    assert sorted(await of(second).unsubmitted(0, 10)) == ["paused", "queued"]


async def test_a_call_is_recorded_by_its_owner_alone(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    await add(first, "x")
    await of(first).take("x")
    taken = await of(second).take("x")
    await of(second).release("x", taken.epoch)
    with pytest.raises(StaleEpoch):
        await first.record(CallKey("x", "a", 1, 0, "hash"), {})


async def test_what_needs_a_capability_is_known_and_counted_until_a_process_drives_it(
    two: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    first, second = two
    for own in ("any", "bound", "unstarted", "later"):
        record = ExecutionRecord(
            own, None, "t", "g", "starting", AT,
            queued=own != "unstarted", needs="local" if own in ("bound", "unstarted") else None,
        )  # fmt: skip
        await first.create_execution(record, created(own))
    stored = await second.execution("bound")
    assert stored is not None
    assert stored.needs == "local"
    assert await of(second).needs_of(["any", "bound", "none"]) == {"bound": ("local", False)}
    assert await of(second).waiting() == (3, {"local": 1}, {})
    capable = PostgresStore.open(database_url, is_carried=True, capabilities=["local"])
    taken = await of(capable).take("bound")
    for own in ("bound", "later"):
        epoch = taken.epoch if own == "bound" else (await of(first).take(own)).epoch
        owner = capable if own == "bound" else first
        await owner.append(own, epoch, [Event(own, 2, AT, "execution.started", None, None, {})])
    await of(first).add_need("later", "local")
    assert await of(second).waiting() == (1, {}, {"local": 1}), "both are driven"
    await capable.close()
    assert await of(second).waiting() == (1, {"local": 1}, {}), "its process is gone"
    assert await of(second).needs_of(["later"]) == {"later": ("local", False)}


async def test_commands_of_a_deleted_execution_go_with_it_once_nobody_waits(
    two: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    commands: list[int] = []
    for own in ("deleted", "kept"):
        await add(first, own)
        await of(first).take(own)
        command = await of(second).add_command(own, {"kind": "cancel", "cause": "a secret"})
        assert command is not None
        commands.append(command)
        await of(first).settle(command, {"error": None})
    ended = [Event("deleted", 2, AT, "execution.cancelled", None, None, {})]
    await first.append("deleted", 2, ended)
    await first.delete_execution("deleted")
    await of(first).forget_old()
    assert await of(second).outcome(commands[0]) == {"error": None}, "its caller may wait for that"
    monkeypatch.setattr(owners_module, "_LEFT_S", 0.0)
    await of(first).forget_old()
    assert [await of(second).outcome(each) for each in commands] == [None, {"error": None}]


async def test_the_owner_of_what_has_ended_is_forgotten_although_its_process_lives(
    two: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = two
    for own, ended_at in (("long", AT), ("now", datetime.now(UTC).isoformat())):
        await add(first, own)
        taken = await of(first).take(own)
        ended = Event(own, 2, ended_at, "execution.completed", None, None, {})
        await first.append(own, taken.epoch, [ended])
    await add(first, "open")
    await of(first).take("open")
    await of(first).forget_old()
    found = {own: await of(second).is_elsewhere(own) for own in ("long", "now", "open")}
    assert found == {"long": False, "now": True, "open": True}
