"""What only a database that several processes write has to show: races, lost connections, dead processes."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import psycopg
import pytest

from planwave.errors import PlanwaveError, StaleEpoch, StoreError
from planwave.events import Event
from planwave.storage.access_tokens import AccessTokenRecord
from planwave.storage.chats import ChatRecord
from planwave.storage.postgres.connection import connect
from planwave.storage.postgres.holder import LEASE_S
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.records import ExecutionRecord, PlanRecord, PlanRevision
from planwave.storage.triggers import TriggerRecord
from tests.support.polling import until
from tests.support.storage.postgres_server import PostgresServer

AT = "2026-01-01T00:00:00.000000Z"
EXPIRED = "2025-01-01T00:00:00.000000Z"
RACES = 40


def log(seq: int, of: str = "x1", **data: Any) -> Event:
    return Event(of, seq, AT, "node.log", "a", 1, data)


def result(seq: int, value: Any, of: str = "x1") -> Event:
    outputs = {"output": {"type": "text", "value": value}}
    return Event(of, seq, AT, "node.completed", "a", 1, {"outputs": outputs, "duration_s": 1})


def record(name: str = "x1", **facts: Any) -> ExecutionRecord:
    return ExecutionRecord(name, facts.pop("plan_id", None), "t", "g", "starting", AT, **facts)


def flow(name: str, plan_id: str) -> PlanRecord:
    return PlanRecord(plan_id, AT, "g", "t", "h", {}, name=name)


@pytest.fixture
async def stores(database_url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    async with AsyncExitStack() as stack:
        both = [PostgresStore.open(database_url, artifact_bytes=1_000) for _ in range(2)]
        for each in both:
            await stack.enter_async_context(each)
        yield both[0], both[1]


async def outcome(of: Awaitable[Any]) -> Any:
    """Return the result, or the code of the error."""
    try:
        return await of
    except PlanwaveError as error:
        return error.code


async def race(*calls: Awaitable[Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(outcome(call)) for call in calls]
    return [task.result() for task in tasks]


async def test_one_of_two_processes_claims_a_key(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    for number in range(RACES):
        key = f"k{number}"
        both = await race(
            *(each.claim_idempotency_key(key, "d", AT, expired=EXPIRED) for each in stores)
        )
        assert sorted(each.is_new for each in both) == [False, True]
        assert both[0].subject == both[1].subject


async def test_one_of_two_processes_claims_a_delivery(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    await stores[0].save_plan(flow("f", "p"))
    await stores[0].triggers.create(TriggerRecord("t", "p", "n", "webhook", AT))
    for number in range(RACES):
        both = await race(
            *(each.triggers.claim("t", f"k{number}", AT, expired=EXPIRED) for each in stores)
        )
        assert sorted(each.is_new for each in both) == [False, True]


async def test_what_a_closed_or_dead_process_claimed_is_free(
    stores: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    first, second = stores
    claimed = await first.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
    assert not (await second.claim_idempotency_key("k", "d", AT, expired=EXPIRED)).is_new
    with psycopg.connect(database_url, autocommit=True) as server:
        server.execute("UPDATE holders SET expires_at = clock_timestamp() - interval '1 s'")
    again = await second.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
    assert (again.is_new, again.subject) == (True, claimed.subject)
    await second.close()
    assert (await first.claim_idempotency_key("k", "d", AT, expired=EXPIRED)).is_new


async def test_a_process_that_was_frozen_changes_no_claim_that_another_one_took(
    stores: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    frozen, second = stores
    await second.save_plan(flow("f", "p"))
    await second.triggers.create(TriggerRecord("t", "p", "n", "webhook", AT))
    for each in stores:
        await each.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
        await each.triggers.claim("t", "k", AT, expired=EXPIRED)
        with psycopg.connect(database_url, autocommit=True) as server:
            server.execute("UPDATE holders SET expires_at = clock_timestamp() - interval '1 s'")
    await frozen.release_idempotency_key("k")
    await frozen.triggers.release("t", "k")
    await frozen.store_response("k", 500, "late")
    await frozen.triggers.settle("t", "k", "late")
    await second.store_response("k", 201, "first")
    await second.triggers.settle("t", "k", "started")
    stored = await frozen.idempotency_record("k")
    assert stored is not None
    assert (stored.status, stored.body) == (201, "first")
    (delivery,) = (await frozen.triggers.deliveries(["t"]))["t"]
    assert delivery.outcome == "started"


async def claims(store: PostgresStore) -> list[bool]:
    """Claim a key and a delivery; return whether they are new."""
    key = await store.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
    return [key.is_new, (await store.triggers.claim("t", "k", AT, expired=EXPIRED)).is_new]


async def lose_answer(of: Awaitable[Any], store: PostgresStore) -> None:
    """Commit a write whose caller gets no answer."""
    commit = store._transactions.commit

    def commit_and_break() -> None:
        commit()
        del store._transactions.commit
        store._transactions._raw.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    store._transactions.commit = commit_and_break
    assert await outcome(of) == "store-unreachable"


async def leave(of: Coroutine[Any, Any, Any], store: PostgresStore) -> None:
    """Leave before a write is done, which is done all the same."""
    async with asyncio.TaskGroup() as group:
        left = group.create_task(of)
        await asyncio.sleep(0)
        left.cancel()
    await store.save_plan(flow("other", "other"))


@pytest.mark.parametrize("lose", [lose_answer, leave])
async def test_a_claim_that_its_caller_does_not_know_of_is_free_for_the_next_one(
    stores: tuple[PostgresStore, PostgresStore], lose: Callable[..., Awaitable[None]]
) -> None:
    store, other = stores
    await store.save_plan(flow("f", "p"))
    await store.triggers.create(TriggerRecord("t", "p", "n", "webhook", AT))
    claim_key = partial(store.claim_idempotency_key, "k", "d", AT, expired=EXPIRED)
    claim_delivery = partial(store.triggers.claim, "t", "k", AT, expired=EXPIRED)
    for _ in range(2):
        for claim in (claim_key, claim_delivery):
            await lose(claim(), store)
    assert await claims(other) == [False, False]
    both = await race(*(claims(store) for _ in range(8)))
    assert sum(key for key, _ in both) == sum(delivery for _, delivery in both) == 1
    # Others that leave took nothing.
    for claim in (claim_key, claim_delivery):
        await lose(claim(), store)
    assert await claims(store) == [False, False]
    await lose(store.release_idempotency_key("k"), store)
    await lose(store.triggers.release("t", "k"), store)
    assert await claims(store) == [True, True]


async def test_a_trigger_is_deleted_while_a_delivery_is_claimed(
    stores: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = stores
    commit = second._transactions.commit

    def commit_late() -> None:
        time.sleep(0.01)
        commit()

    monkeypatch.setattr(second._transactions, "commit", commit_late)
    for number in range(RACES):
        own = f"p{number}"
        await first.save_plan(flow(own, own))
        await first.triggers.create(TriggerRecord(own, own, "n", "webhook", AT))
        deletion = first.triggers.delete(own) if number % 2 else first.delete_plan(own, force=True)
        deleted, claimed = await race(
            deletion, second.triggers.claim(own, "k", AT, expired=EXPIRED)
        )
        assert deleted in (True, None)
        assert claimed == "not-found" or claimed.is_new
        assert await first.triggers.deliveries([own]) == {}


async def test_what_a_killed_process_claimed_is_free_after_its_lease(database_url: str) -> None:
    lease_s = 0.5
    killed = PostgresStore.open(database_url, lease_s=lease_s)
    await killed.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
    assert killed._holder is not None
    killed._holder._ended.set()  # says no longer that it is alive, and withdraws nothing
    began = time.monotonic()
    async with PostgresStore.open(database_url) as store:
        while not (await store.claim_idempotency_key("k", "d", AT, expired=EXPIRED)).is_new:
            assert time.monotonic() - began < LEASE_S / 2
            await asyncio.sleep(lease_s / 10)
    await killed.close()


async def test_one_of_two_processes_takes_a_name(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    for number in range(RACES):
        both = await race(
            *(each.save_plan(flow(f"f{number}", f"p{number}-{n}")) for n, each in enumerate(stores))
        )
        assert sorted(map(str, both)) == ["None", "name-taken"]


async def test_a_plan_is_deleted_or_an_execution_of_it_begins(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = stores
    for number in range(RACES):
        await first.save_plan(flow(f"f{number}", f"p{number}"))
        deleted, _ = await race(
            first.delete_plan(f"p{number}", force=True),
            second.create_execution(record(f"x{number}", plan_id=f"p{number}"), []),
        )
        is_there = await first.plan(f"p{number}") is not None
        assert is_there == (deleted == "plan-in-use")


async def test_a_chat_or_a_trigger_pins_a_revision_or_the_revision_is_removed(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = stores
    kinds = set[object]()
    for number in range(RACES):
        own = f"p{number}"
        present = flow(f"f{number}", own)
        await first.save_plan(present)
        for revision in (1, 2, 3):
            superseded = PlanRevision(own, revision, "h", "t", "api", "", AT, 0, 0, {})
            document = {"revision": revision + 1}
            newer = replace(present, document=document, edits=revision, sound_revision=revision + 1)
            save = first.revisions.save(newer, superseded, after=revision - 1, most=3)
            if revision < 3:
                await save
                continue
            if number % 2:
                pin = second.chats.create(ChatRecord(own, AT, AT, plan_id=own, plan_revision=2))
            else:
                bound = TriggerRecord(own, own, "n", "webhook", AT, revision=2)
                pin = second.triggers.create(bound)
            saved, pinned = await race(save, pin)
        assert saved is True
        is_there = await first.revisions.get(own, 2) is not None
        assert (is_there, pinned) in ((True, True), (False, "not-found"))
        kinds.add(pinned)
    assert kinds == {True, "not-found"}, "both happen"


async def test_two_flows_that_are_deleted_leave_their_token_together(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    for number in range(RACES):
        both = (f"p{number}", f"q{number}")
        for each in both:
            await stores[0].save_plan(flow(each, each))
        token = AccessTokenRecord(f"t{number}", "t", f"d{number}", ("run",), both, AT)
        await stores[0].access_tokens.create(token)
        await race(
            *(store.delete_plan(of, force=True) for store, of in zip(stores, both, strict=True))
        )
    assert await stores[0].access_tokens.all() == []


async def test_the_owner_before_appends_nothing_that_the_one_after_does_not_see(
    stores: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = stores
    assert first._transactions is not None
    commit = first._transactions.commit

    def late() -> None:
        time.sleep(0.005)
        commit()

    async def take_over(own: str) -> int:
        await second.claim(own)
        return len(await second.events(own))

    for number in range(RACES):
        own = f"x{number}"
        await first.create_execution(record(own), [log(1, own)])
        with monkeypatch.context() as patched:
            patched.setattr(first._transactions, "commit", late)
            appended, seen = await race(first.append(own, 1, [log(2, own)]), take_over(own))
        assert (appended, seen) in ((None, 2), ("late-writer", 1))
        with pytest.raises(StaleEpoch):
            await first.append(own, 1, [log(seen + 1, own)])
        await second.append(own, 2, [log(seen + 1, own)])


async def test_a_late_answer_does_not_let_the_owner_before_go_on(
    stores: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its events are stored, and the owner after has seen them: it starts what follows, once."""
    monkeypatch.setattr("planwave.storage.postgres.store.LATE_APPEND_S", 0.05)
    first, second = stores
    assert first._transactions is not None
    await first.create_execution(record(), [log(1)])
    commit, committed = first._transactions.commit, threading.Event()

    def answer_late() -> None:
        commit()
        committed.set()
        time.sleep(0.3)

    async def take_over() -> int:
        await asyncio.to_thread(committed.wait, 60)
        return await second.claim("x1")

    monkeypatch.setattr(first._transactions, "commit", answer_late)
    assert await race(first.append("x1", 1, [log(2)]), take_over()) == ["late-writer", 2]
    assert [each.seq for each in await second.events("x1")] == [1, 2]


async def test_each_claim_has_an_epoch_of_its_own(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    await stores[0].create_execution(record(), [])
    epochs = await race(*(stores[n % 2].claim("x1") for n in range(RACES)))
    assert sorted(epochs) == list(range(2, RACES + 2))


async def test_jobs_that_wait_for_each_other_are_all_done(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    """Batches of the two lock the same plans in opposite orders, which the server ends for one of them."""
    names = [f"p{n}" for n in range(12)]
    for each in names:
        await stores[0].save_plan(flow(each, each))
    forward = (stores[0].save_plan(flow(each, each)) for each in names)
    backward = (stores[1].save_plan(flow(each, each)) for each in reversed(names))
    assert set(await race(*forward, *backward)) == {None}


async def test_a_process_that_is_frozen_in_a_transaction_holds_nothing_for_long(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = stores
    await first.create_execution(record(), [log(1)])
    transactions = first._transactions
    transactions.begin()
    transactions.execute("SELECT 1 FROM executions FOR UPDATE")
    began = time.monotonic()
    assert await second.claim("x1") == 2
    assert time.monotonic() - began < LEASE_S / 2
    assert await outcome(first.append("x1", 1, [log(2)])) in ("store-unreachable", "late-writer")
    assert await outcome(first.append("x1", 1, [log(2)])) == "late-writer"


def end_connections(postgres: PostgresServer, url: str) -> None:
    database = url.rpartition("/")[2]
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"  # noqa: S608
    )


async def test_lost_connections_are_opened_again(
    stores: tuple[PostgresStore, PostgresStore], postgres: PostgresServer, database_url: str
) -> None:
    store = stores[0]
    await store.create_execution(record(), [log(1)])
    end_connections(postgres, database_url)
    seq = 2
    while await outcome(store.append("x1", 1, [log(seq)])) is not None:
        assert store.stats.status == "store-unreachable"
        await asyncio.sleep(0.01)
    assert [each.seq for each in await store.events("x1")] == [1, 2]
    await until(lambda: store.stats.status == "ok")


async def test_a_failure_ends_without_another_write(
    stores: tuple[PostgresStore, PostgresStore],
    postgres: PostgresServer,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("planwave.storage.sql.writer._PROBE_INTERVAL_S", 0.01)
    store = stores[0]
    await store.create_execution(record(), [log(1)])
    end_connections(postgres, database_url)
    assert await outcome(store.append("x1", 1, [log(2)])) == "store-unreachable"
    await until(lambda: store.stats.status == "ok")


async def test_a_connection_that_ends_within_a_statement_fails_that_write_only(
    postgres: PostgresServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.storage.postgres.store._WRITER_LOCK_TIMEOUT_MS", 5_000)
    async with PostgresStore.open(database_url) as store:
        with psycopg.connect(database_url) as other:
            other.execute("SELECT pg_advisory_xact_lock(hashtextextended('plan\x1fp', 0))")

            def waits() -> bool:
                waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
                return other.execute(waiting).fetchone() is not None

            async with asyncio.TaskGroup() as group:
                saved = group.create_task(outcome(store.save_plan(flow("f", "p"))))
                await until(waits)
                postgres.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE wait_event = 'advisory'"
                )
            assert saved.result() == "store-unreachable"
        assert await outcome(store.save_plan(flow("f", "p"))) is None


@pytest.mark.parametrize(
    "error", [psycopg.OperationalError("refused"), psycopg.errors.ConnectionTimeout("expired")]
)
async def test_a_server_that_is_away_for_several_writes_is_used_again(
    stores: tuple[PostgresStore, PostgresStore],
    postgres: PostgresServer,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    error: psycopg.Error,
) -> None:
    store = stores[0]
    await store.create_execution(record(), [log(1)])

    def refuse() -> NoReturn:
        raise error

    with monkeypatch.context() as away:
        away.setattr(store._transactions, "_connect", refuse)
        end_connections(postgres, database_url)
        for _ in range(4):
            assert await outcome(store.append("x1", 1, [log(2)])) == "store-unreachable"
    await store.append("x1", 1, [log(2)])
    assert [each.seq for each in await store.events("x1")] == [1, 2]


async def test_a_store_closes_while_the_server_is_away(
    database_url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore.open(database_url)
    holder = store._holder
    assert holder is not None

    def refuse() -> NoReturn:
        raise psycopg.OperationalError("refused")

    for each in (store._transactions, holder._transactions):
        monkeypatch.setattr(each, "_connect", refuse)
    end_connections(postgres, database_url)
    for _ in range(2):
        assert await outcome(store.create_execution(record(), [])) == "store-unreachable"
    await store.close()


def test_closing_a_connection_logs_nothing(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    PostgresTransactions(partial(connect, database_url)).close()
    assert caplog.text == ""


async def test_a_commit_whose_answer_was_lost_is_not_stored_twice(
    stores: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores[0]
    await store.create_execution(record(), [log(1)])
    commit = store._transactions.commit

    def lose_answer() -> None:
        commit()
        monkeypatch.undo()
        store._transactions._raw.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(store._transactions, "commit", lose_answer)
    assert await outcome(store.append("x1", 1, [log(2), log(3)])) == "store-unreachable"
    await store.append("x1", 1, [log(2), log(3)])
    assert [each.seq for each in await store.events("x1")] == [1, 2, 3]
    other = await outcome(store.append("x1", 1, [log(2, message="another"), log(3)]))
    assert other == "duplicate-seq"


@pytest.mark.parametrize("events", [[], [log(1), log(2)], [result(1, "x" * 5_000)]])
async def test_a_creation_whose_answer_was_lost_is_done(
    stores: tuple[PostgresStore, PostgresStore],
    monkeypatch: pytest.MonkeyPatch,
    events: list[Event],
) -> None:
    store = stores[0]
    commit = store._transactions.commit

    def lose_answer() -> None:
        commit()
        monkeypatch.undo()
        store._transactions._raw.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(store._transactions, "commit", lose_answer)
    await store.create_execution(record(), events)
    assert await store.events("x1") == events
    assert await outcome(store.create_execution(record(), events)) == "duplicate-execution"


async def test_a_creation_is_repeated_when_the_server_is_back(
    stores: tuple[PostgresStore, PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = stores[0]
    commit = store._transactions.commit

    def lose_answer() -> None:
        commit()
        store._transactions._raw.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def refuse() -> NoReturn:
        raise psycopg.OperationalError("refused")

    with monkeypatch.context() as away:
        away.setattr(store._transactions, "commit", lose_answer)
        away.setattr(store._transactions, "_connect", refuse)
        for _ in range(2):
            code = await outcome(store.create_execution(record(), [log(1)]))
            assert code == "store-unreachable"
    other = await outcome(store.create_execution(record(), [log(1, message="another")]))
    assert other == "duplicate-execution"
    await store.create_execution(record(), [log(1)])
    assert await store.events("x1") == [log(1)]


async def test_a_large_value_is_kept_as_long_as_an_execution_uses_it(
    stores: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    first, second = stores
    value = "x" * 5_000
    for own in ("x1", "x2"):
        await first.create_execution(record(own), [result(1, value, own)])
        ended = Event(own, 2, AT, "execution.cancelled", None, None, {"reason": ""})
        await first.append(own, 1, [ended])
    with psycopg.connect(database_url, autocommit=True) as server:

        def count() -> int:
            row = server.execute("SELECT count(*) FROM artifacts").fetchone()
            assert row is not None
            return row[0]

        assert count() == 1
        await second.delete_execution("x1")
        assert count() == 1
        assert (await first.events("x2"))[0].data["outputs"]["output"]["value"] == value
        await second.delete_execution("x2")
        assert count() == 0


async def test_a_large_value_that_is_deleted_meanwhile_is_there_for_the_next(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    first, second = stores
    value = "x" * 5_000
    ended = {"reason": ""}
    for number in range(RACES):
        old, new = f"a{number}", f"b{number}"
        await first.create_execution(
            record(old),
            [result(1, value, old), Event(old, 2, AT, "execution.cancelled", None, None, ended)],
        )
        await race(
            first.delete_execution(old),
            second.create_execution(record(new), [result(1, value, new)]),
        )
        (event,) = await first.events(new)
        assert event.data["outputs"]["output"]["value"] == value
        await second.append(new, 1, [Event(new, 2, AT, "execution.cancelled", None, None, ended)])
        await second.delete_execution(new)


async def test_texts_have_no_character_that_the_database_has_not(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    plan = PlanRecord("p", AT, "a\0goal", "a\0title", "h", {"text": "\0"})
    await stores[0].save_plan(plan)
    stored = await stores[1].plan("p")
    assert stored is not None
    assert (stored.title, stored.document) == ("a\ufffdtitle", {"text": "\0"})
    await stores[0].create_execution(record(), [log(1, text="\0")])
    assert (await stores[1].events("x1"))[0].data == {"text": "\0"}


async def test_the_size_is_that_of_the_database(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    assert (await stores[0].load()).size > 1_000_000


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://u:hush@127.0.0.1:9/db", "'db' on 127.0.0.1"),
        ("postgresql://u:hush@nowhere.invalid/db", "'db' on nowhere.invalid"),
        ("postgresql://u:hush%x@127.0.0.1/db", "cannot be read: its form"),
        ("postgresql://u:hush@127.0.0.1/db?sslmod=require", 'parameter: "sslmod"'),
    ],
)
def test_a_server_that_does_not_answer_is_named_without_its_password(url: str, reason: str) -> None:
    with pytest.raises(StoreError, match=reason) as refused:
        PostgresStore.open(url)
    assert refused.value.code == "database-unusable"
    assert "database_url" in f"{refused.value.message}; {refused.value.hint}"
    shown = "".join(traceback.format_exception(refused.value))
    assert "hush" not in f"{shown}{refused.value.hint}"


async def test_the_url_may_have_options_of_the_server(postgres: PostgresServer) -> None:
    with postgres.new_database() as database:
        postgres.execute("CREATE SCHEMA other", database.rpartition("/")[2])
        url = f"{database}?options=-csearch_path%3Dother&connect_timeout=3"
        async with PostgresStore.open(url) as store:
            await store.create_execution(record(), [log(1)])
            assert [each.seq for each in await store.events("x1")] == [1]
        with psycopg.connect(database) as server:
            assert server.execute("SELECT count(*) FROM other.executions").fetchone() == (1,)


async def test_a_role_without_a_privilege_is_told_which_one(
    postgres: PostgresServer, database_url: str
) -> None:
    name = database_url.rpartition("/")[2]
    postgres.execute("DROP ROLE IF EXISTS limited; CREATE ROLE limited LOGIN", name)
    url = database_url.replace("postgres@", "limited@")
    with pytest.raises(StoreError, match="permission denied") as refused:
        PostgresStore.open(url)
    assert "the owner of the database" in str(refused.value.hint)
    postgres.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO limited", name)
    postgres.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO limited", name)
    postgres.execute("GRANT ALL ON SCHEMA public TO limited", name)
    try:
        async with PostgresStore.open(url) as store:
            await store.create_execution(record(), [log(1)])
            postgres.execute("REVOKE INSERT ON batches FROM limited", name)
            with pytest.raises(StoreError, match="denied for table batches") as refused:
                await store.append("x1", 1, [log(2)])
            assert refused.value.code == "store-failed"
            assert "the owner of the database" in str(refused.value.hint)
            await store.save_plan(flow("f", "p"))
            assert store.stats.status == "ok"
            postgres.execute("REVOKE SELECT ON batches FROM limited", name)
            with pytest.raises(StoreError, match="denied for table batches") as refused:
                await store.events("x1")
            assert "the owner of the database" in str(refused.value.hint)
            postgres.execute("GRANT ALL ON batches TO limited", name)
            await store.append("x1", 1, [log(2)])
    finally:
        postgres.execute("DROP OWNED BY limited; DROP ROLE limited", name)


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer) -> None:
    postgres.execute("CREATE DATABASE other ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(StoreError, match="encoding is SQL_ASCII") as refused:
        PostgresStore.open(postgres.url("other"))
    assert "ENCODING 'UTF8'" in str(refused.value.hint)
    postgres.execute("DROP DATABASE other WITH (FORCE)")


async def test_a_closed_store_says_so(stores: tuple[PostgresStore, PostgresStore]) -> None:
    await stores[0].close()
    await stores[0].close()
    assert await outcome(stores[0].create_execution(record(), [])) == "store-closed"
    assert await outcome(stores[0].plans()) == "store-closed"
    assert await stores[1].plans() == []
