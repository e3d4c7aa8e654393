"""Two versions on one database: a rolling upgrade to a made-up next version, and the way back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from planwave.errors import Conflict, PlanwaveError, SchemaTooNew
from planwave.events import Event
from planwave.storage.postgres.migrations import (
    KEEP_OLDEST,
    SchemaState,
    contract,
    migrate,
    schema_state,
)
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord
from tests.support.storage.next_version import NEXT_SCHEMA, UNUSED_INDEX, NextStore
from tests.support.storage.postgres_server import PostgresServer, connected

AT = "2026-01-01T00:00:00.000000Z"
LEASE_S = 0.9


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """A database of this version that may become one of the next."""
    with postgres.new_database() as own:
        yield own


def log(seq: int, text: str, of: str = "x1") -> Event:
    return Event(of, seq, AT, "node.log", "a", 1, {"text": text})


async def create(store: PostgresStore, name: str = "x1") -> None:
    record = ExecutionRecord(name, None, "t", "g", "starting", AT)
    await store.create_execution(record, [log(1, "created", name)])


async def take_over(store: PostgresStore, name: str = "x1") -> list[Event]:
    """Read an execution as its new owner, and append an event."""
    epoch = await store.claim(name)
    events = await store.events(name)
    await store.append(name, epoch, [log(len(events) + 1, f"by {epoch}", name)])
    return events


async def eventually(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - a thread of the store brings it about
            await asyncio.sleep(0.01)


def state(url: str) -> SchemaState:
    with connected(url) as connection:
        return schema_state(connection)


def test_expanding_adds_and_does_not_refuse_the_older_version(url: str) -> None:
    with connected(url) as connection:
        assert migrate(connection, NextStore.migrations) == 1
        assert migrate(connection, NextStore.migrations) == NEXT_SCHEMA
        assert migrate(connection) == NEXT_SCHEMA, "the older version changes nothing"
    assert state(url)[::2] == (NEXT_SCHEMA, 1)


async def test_both_versions_take_executions_over_from_each_other(url: str) -> None:
    async with PostgresStore.open(url) as old, NextStore.open(url) as new:
        await create(old)
        await take_over(new)
        await take_over(old)
        events = await take_over(new)
        assert [each.seq for each in events] == [1, 2, 3]
        assert await old.events("x1") == await new.events("x1")
        assert await new.colour("x1") == "blue", "a row of the older version has the new column"
        assert new.common_schema == 1
        assert await new.forms("x1") == [1, 1, 1, 1]


async def test_an_older_process_starts_beside_newer_ones_and_is_given_nothing_that_it_cannot_read(
    url: str,
) -> None:
    old = PostgresStore.open(url, lease_s=LEASE_S)
    async with NextStore.open(url, lease_s=LEASE_S) as new:
        await create(new)
        async with PostgresStore.open(url, lease_s=LEASE_S) as restarted:
            await old.close()
            assert len(await take_over(restarted)) == 1
            async with PostgresStore.open(url, read_only=True) as reader:
                assert len(await reader.events("x1")) == 2
            await asyncio.sleep(
                LEASE_S
            )  # beats of the new one, which sees that an older one is alive
            assert len(await take_over(new)) == 2
            assert await new.forms("x1") == [1, 1, 1]


async def test_the_new_form_is_written_once_no_older_process_is_alive_and_older_ones_are_refused(
    url: str,
) -> None:
    old = PostgresStore.open(url, lease_s=LEASE_S)
    async with NextStore.open(url, lease_s=LEASE_S) as new:
        await create(old)
        with connected(url) as connection:
            assert contract(connection, NextStore.migrations) == 1
        await old.close()
        await eventually(lambda: new.common_schema == NEXT_SCHEMA)
        assert len(await take_over(new)) == 1
        assert await new.forms("x1") == [1, NEXT_SCHEMA]
        assert len(await new.events("x1")) == 2
        for read_only in (False, True):
            with pytest.raises(SchemaTooNew, match="schema 2 or newer"):
                PostgresStore.open(url, read_only)
    with psycopg.connect(url) as raw:
        query = "SELECT count(*) FROM pg_indexes WHERE indexname = %s"
        assert raw.execute(query, (UNUSED_INDEX,)).fetchone() == (0,)
    assert state(url)[::2] == (NEXT_SCHEMA, NEXT_SCHEMA)


async def test_an_older_process_that_only_reads_is_refused_once_newer_ones_do_without_its_forms(
    url: str,
) -> None:
    """Nobody waits for it: it does not say that it is alive."""
    old = PostgresStore.open(url, lease_s=LEASE_S)
    async with PostgresStore.open(url, read_only=True) as reader:
        await create(old)
        async with NextStore.open(url, lease_s=LEASE_S) as new:
            await old.close()
            await eventually(lambda: new.common_schema == NEXT_SCHEMA)
            assert len(await reader.events("x1")) == 1, "it reads what it knows"
            await take_over(new)
            for read in (lambda: reader.events("x1"), lambda: reader.events_after({"x1": 0})):
                with pytest.raises(SchemaTooNew, match="schema 2 or newer"):
                    await read()
            with psycopg.connect(url) as raw:
                raw.execute("ALTER TABLE executions RENAME COLUMN status TO condition")
            for read in (
                reader.executions,
                reader.count_executions,
                lambda: reader.execution("x1"),
            ):
                with pytest.raises(SchemaTooNew, match="schema 2 or newer"):
                    await read()


async def test_what_was_changed_from_outside_is_not_taken_for_a_newer_version(url: str) -> None:
    async with PostgresStore.open(url) as store:
        await create(store)
        with psycopg.connect(url) as raw:
            raw.execute("UPDATE batches SET events = 'no JSON'")
        with pytest.raises(Conflict, match="cannot be read"):
            await store.events("x1")


async def test_an_older_process_that_was_frozen_for_longer_than_its_lease_writes_nothing_more(
    url: str,
) -> None:
    old = PostgresStore.open(url, lease_s=6)
    await create(old)
    async with NextStore.open(url, lease_s=LEASE_S) as new:
        with psycopg.connect(url, autocommit=True) as raw:
            raw.execute(
                "UPDATE holders SET expires_at = now() - interval '1 s' WHERE schema_version = 1"
            )
        await eventually(lambda: new.common_schema == NEXT_SCHEMA)
        await eventually(lambda: old.stats.fatal_error is not None)
        with pytest.raises(PlanwaveError, match="schema 2"):
            await take_over(old)
        assert len(await take_over(new)) == 1
    await old.close()


async def test_a_process_that_is_just_starting_is_waited_for(url: str) -> None:
    """Whoever raises the oldest version first sees those who were there before."""
    with connected(url) as connection:
        migrate(connection, NextStore.migrations)
    with psycopg.connect(url) as starting, ThreadPoolExecutor(1) as thread:
        starting.execute(KEEP_OLDEST)
        raising = thread.submit(raise_oldest, url)
        with psycopg.connect(url, autocommit=True) as looking:
            waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
            await eventually(lambda: looking.execute(waits).fetchone() == (1,))
        starting.execute(
            "INSERT INTO holders (holder_id, expires_at, started_at, version, schema_version) "
            "VALUES ('old', now() + interval '1 min', now(), '0', 1)"
        )
        starting.commit()
        assert raising.result() == 1
    assert state(url).oldest == 1


def raise_oldest(url: str) -> int:
    with connected(url) as connection:
        return contract(connection, NextStore.migrations)


async def test_a_step_that_fails_leaves_the_tables_as_they_were(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (step,) = NextStore.migrations
    broken = step._replace(expand=(*step.expand, "ALTER TABLE nothing ADD COLUMN x text"))
    monkeypatch.setattr(NextStore, "migrations", (broken,))
    with pytest.raises(PlanwaveError, match="nothing"):
        NextStore.open(url)
    assert state(url).version == 1
    monkeypatch.setattr(NextStore, "migrations", (step,))
    await NextStore.open(url).close()
    assert state(url).version == NEXT_SCHEMA
