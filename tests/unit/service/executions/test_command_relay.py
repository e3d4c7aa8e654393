"""Commands between two openings of one database: carried out by the owner, in order, also without any note."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from planwave.errors import (
    Conflict,
    Gone,
    InputError,
    NotFound,
    PlanwaveError,
    ShuttingDown,
    StoreError,
)
from planwave.events import Event
from planwave.principals import Principal, acting_as, current_principal
from planwave.service.executions import command_relay
from planwave.service.executions.command_relay import CommandRelay
from planwave.service.executions.command_rules import Answer, Cancel, CancelNode, Command, Pause
from planwave.storage.postgres.owners import OpenCommand
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord

AT = "2026-01-01T00:00:00.000000Z"


class Pair:
    """One opening that sends commands, and one that drives ``x`` and ``y``."""

    def __init__(self, sender: PostgresStore, owner: PostgresStore) -> None:
        assert sender.owners is not None
        assert owner.owners is not None
        self.owner, self.sender = owner.owners, sender.owners
        self.carried_out: list[tuple[str, Command, str]] = []
        self.fails: list[Exception] = []
        self.events: dict[str, list[Event]] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.sends = CommandRelay(sender.owners, sender.notices, self._carry_out, self._read)
        self.carries = CommandRelay(owner.owners, owner.notices, self._carry_out, self._read)

    async def _read(self, execution_id: str, after: int) -> list[Event]:
        return [each for each in self.events.get(execution_id, ()) if each.seq > after]

    async def _carry_out(self, execution_id: str, command: Command) -> None:
        if execution_id == "x" and not isinstance(command, Cancel):
            await self.gate.wait()
        if self.fails:
            raise self.fails.pop(0)
        self.carried_out.append((execution_id, command, current_principal().account))


@pytest.fixture
async def pair(database_url: str) -> AsyncGenerator[Pair]:
    async with AsyncExitStack() as opened, asyncio.TaskGroup() as tasks:
        stores = [
            await opened.enter_async_context(PostgresStore.open(database_url, is_carried=True))
            for _ in range(2)
        ]
        for each in stores:
            await each.notices.open()
            opened.push_async_callback(each.notices.close)
        pair = Pair(*stores)
        for own in ("x", "y"):
            record = ExecutionRecord(own, None, "t", "g", "starting", AT, queued=True)
            created = Event(own, 1, AT, "execution.created", None, None, {})
            await stores[0].create_execution(record, [created])
            await pair.owner.take(own)
        running = tasks.create_task(pair.carries.run())
        yield pair
        running.cancel()
        await asyncio.wait([running])


async def test_a_command_is_carried_out_by_the_owner_for_who_gave_it(pair: Pair) -> None:
    answer = Answer("r1", {"decision": "send"}, {"id": "t1", "kind": "token", "name": "t"})
    with acting_as(Principal("token", "t1", "t")):
        account = current_principal().account
        for each in (Pause(), CancelNode("a", "enough"), answer):
            assert await pair.sends.send("x", each)
    assert pair.carried_out == [
        ("x", each, account) for each in (Pause(), CancelNode("a", "enough"), answer)
    ]
    assert not await pair.sends.send("unknown", Pause()), "nobody drives it"


@pytest.mark.parametrize("kind", [NotFound, Conflict, Gone, InputError])
async def test_a_refusal_comes_back_as_it_was(pair: Pair, kind: type[PlanwaveError]) -> None:
    pair.fails.append(kind("it is so", code="some-code", hint="do that"))
    with pytest.raises(PlanwaveError) as refused:
        await pair.sends.send("x", Cancel("enough"))
    error = refused.value
    assert type(error) is kind
    assert (error.message, error.code, error.hint) == ("it is so", "some-code", "do that")


@pytest.mark.parametrize(("message", "reads"), [("it is so", 0), ("ü\n" * 4_000, 1)])
async def test_an_outcome_that_fits_comes_with_its_note_and_is_not_read(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, message: str, reads: int
) -> None:
    monkeypatch.setattr(command_relay, "POLL_S", 60.0)
    read, asked = pair.sender.outcome, list[int]()

    async def outcome(command_id: int) -> dict[str, Any] | None:
        asked.append(command_id)
        return await read(command_id)

    monkeypatch.setattr(pair.sender, "outcome", outcome)
    pair.fails.append(Conflict(message, code="some-code"))
    with pytest.raises(Conflict) as refused:
        await pair.sends.send("x", Pause())
    assert refused.value.message == message
    assert len(asked) == reads


async def test_lost_notes_cost_a_second(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "planwave.storage.postgres.notices.PostgresNotices.publish", lambda *_: None
    )
    began = asyncio.get_running_loop().time()
    assert await pair.sends.send("x", Pause())
    assert asyncio.get_running_loop().time() - began < command_relay.POLL_S * 3


async def test_one_execution_that_is_busy_holds_up_no_other_one_and_keeps_its_order(
    pair: Pair,
) -> None:
    pair.gate.clear()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(pair.sends.send("x", CancelNode("a", str(number))))
            await asyncio.sleep(0.05)
        assert await pair.sends.send("y", Pause())
        assert await pair.sends.send("x", Cancel("enough")), "the end waits for nothing"
        assert [each[0] for each in pair.carried_out] == ["y", "x"]
        pair.carried_out.clear()
        pair.gate.set()
    assert [command for of, command, _ in pair.carried_out if of == "x"] == [
        CancelNode("a", str(number)) for number in range(3)
    ]


async def test_what_cannot_be_stored_now_is_carried_out_later(pair: Pair) -> None:
    pair.fails += [StoreError("no answer"), RuntimeError("it broke")]
    async with asyncio.timeout(10):
        assert await pair.sends.send("x", Pause())
    assert [command for _, command, _ in pair.carried_out] == [Pause()]


async def test_an_owner_that_does_not_answer_is_told_of(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_relay, "COMMAND_S", 0.2)
    pair.gate.clear()
    with pytest.raises(StoreError) as refused:
        await pair.sends.send("x", Pause())
    assert refused.value.code == "command-pending"
    pair.gate.set()
    async with asyncio.timeout(5):
        while not pair.carried_out:  # noqa: ASYNC110 - as the error says
            await asyncio.sleep(0.01)


async def test_a_command_that_came_as_the_execution_was_left_is_carried_out_at_once(
    pair: Pair,
) -> None:
    carry_out = pair.carries.carry_out_all

    async def carry_out_nothing(*_: object) -> None:
        pass

    pair.carries.carry_out_all = carry_out_nothing  # pyright: ignore[reportAttributeAccessIssue]
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        sent = tasks.create_task(pair.sends.send("x", Pause()))
        while not (late := await pair.owner.own_commands()):  # noqa: ASYNC110 - sent by another one
            await asyncio.sleep(0.01)
        pair.carries.carry_out_all = carry_out
        assert await pair.owner.release("x", 2) == late
        pair.carries.carry_out_soon(late)
        assert await sent
    assert [command for _, command, _ in pair.carried_out] == [Pause()]
    assert not await pair.sends.send("x", Pause()), "nobody drives it by now"


async def test_a_look_that_began_before_a_command_was_settled_does_not_carry_it_out_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, settle = pair.owner.own_commands, pair.owner.settle
    settled, looked_late = asyncio.Event(), asyncio.Event()

    async def look_slowly() -> list[OpenCommand]:
        found = await look()
        if found and pair.carries._under_way:  # pyright: ignore[reportPrivateUsage] - the second look
            pair.gate.set()
            await settled.wait()
            await asyncio.sleep(0.05)
            looked_late.set()
        return found

    async def settle_then(*given: Any) -> None:
        await settle(*given)
        settled.set()

    monkeypatch.setattr(pair.owner, "own_commands", look_slowly)
    monkeypatch.setattr(pair.owner, "settle", settle_then)
    pair.gate.clear()
    async with asyncio.timeout(10):
        assert await pair.sends.send("x", Pause())
        await looked_late.wait()
        assert await pair.sends.send("y", Pause())
    assert [of for of, _, _ in pair.carried_out] == ["x", "y"]


async def test_an_owner_that_goes_down_leaves_a_command_to_the_next_one(pair: Pair) -> None:
    pair.fails.append(ShuttingDown())
    assert await pair.sends.send("x", Pause()), "carried out once somebody can"
    assert [each for _, each, _ in pair.carried_out] == [Pause()]


async def test_a_command_of_another_version_is_refused_and_holds_nothing_up(pair: Pair) -> None:
    unknown = await pair.sender.add_command("x", {"kind": "Rewind", "fields": {}, "by": {}})
    assert unknown is not None
    assert await pair.sends.send("x", Pause())
    outcome = await pair.owner.outcome(unknown)
    assert outcome is not None
    assert outcome["error"]["code"] == "unknown-command"


async def test_a_command_that_an_owner_carried_out_before_it_was_gone_is_not_carried_out_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be refused by now, or undo what was commanded since."""
    settle = pair.owner.settle

    async def fail(*_: object) -> None:
        raise StoreError("this process ends here")

    monkeypatch.setattr(pair.owner, "settle", fail)
    sent: list[asyncio.Task[bool]] = []
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        for each in (Cancel("enough"), Pause()):
            sent.append(tasks.create_task(pair.sends.send("x", each, after=1)))
        while len(pair.carried_out) < 2:  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.01)
        pair.carried_out.clear()
        pair.events["x"] = [
            Event("x", 2, AT, "execution.cancelled", None, None, {"cause": "enough"})
        ]
        monkeypatch.setattr(pair.owner, "settle", settle)
    assert [each.result() for each in sent] == [True, True]
    assert {type(command) for _, command, _ in pair.carried_out} == {Pause}, (
        "of that nothing is seen"
    )
