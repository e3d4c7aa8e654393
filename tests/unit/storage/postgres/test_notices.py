"""Notes between the openings of one database, on a real server."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic

import psycopg
import pytest

from planwave.storage.notices import MOST_BYTES, NoNotices
from planwave.storage.postgres import notices as module
from planwave.storage.postgres.notices import PostgresNotices
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.polling import until
from tests.support.storage.postgres_server import PostgresServer
from tests.unit.storage.postgres.test_store import log, record


@pytest.fixture
async def pair(database_url: str) -> AsyncIterator[tuple[PostgresNotices, PostgresNotices]]:
    """The notices of two processes."""
    both = PostgresNotices(database_url, "a"), PostgresNotices(database_url, "b")
    for each in both:
        await each.open()
    yield both
    for each in both:
        await each.close()


def end_connections(postgres: PostgresServer, name: str) -> None:
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"  # noqa: S608
    )


async def test_another_opening_gets_each_note_in_order_and_the_sender_none(
    pair: tuple[PostgresNotices, PostgresNotices],
) -> None:
    sender, other = pair
    got: list[str] = []
    own: list[str] = []
    others: list[str] = []
    other.subscribe("events", got.append)
    other.subscribe("deltas", others.append)
    sender.subscribe("events", own.append)
    texts = [f"{number} ä€😀" for number in range(500)]
    for text in texts:
        sender.publish("events", text)
    await until(lambda: len(got) >= len(texts))
    assert (got, own, others) == (texts, [], [])


async def test_a_note_comes_soon_and_thousands_a_second_lose_none(
    pair: tuple[PostgresNotices, PostgresNotices],
) -> None:
    sender, other = pair
    took: list[float] = []
    other.subscribe("deltas", lambda text: took.append(monotonic() - json.loads(text)["at"]))
    for _ in range(200):  # 4,000 in two seconds
        for _ in range(20):
            sender.publish("deltas", json.dumps({"at": monotonic(), "text": "x" * 100}))
        await asyncio.sleep(0.01)
    await until(lambda: len(took) == 4_000)
    assert sorted(took)[2_000] < 0.1


async def test_notes_of_the_greatest_size_pass(
    pair: tuple[PostgresNotices, PostgresNotices],
) -> None:
    """Of one size in characters, another in bytes; the same one twice is two notes."""
    sender, other = pair
    got: list[str] = []
    other.subscribe("chats", got.append)
    texts = ["x" * MOST_BYTES, "x" * MOST_BYTES, "€" * (MOST_BYTES // 3), "\udc80", ""]
    for text in texts:
        sender.publish("chats", text)
    await until(lambda: len(got) == len(texts))
    assert got == [*texts[:3], "?", ""]


@pytest.mark.parametrize("text", ["x" * (MOST_BYTES + 1), "€" * (MOST_BYTES // 2), "a\x1eb", "\0"])
async def test_a_note_that_cannot_be_sent_is_dropped_and_warned_of(
    pair: tuple[PostgresNotices, PostgresNotices], text: str
) -> None:
    sender, other = pair
    got: list[str] = []
    other.subscribe("watch", got.append)
    with pytest.warns(RuntimeWarning, match="'watch'"):
        sender.publish("watch", text)
    sender.publish("watch", "after")
    await until(lambda: got)
    assert got == ["after"]


async def test_a_lost_connection_is_opened_again_and_receivers_hear_of_it(
    pair: tuple[PostgresNotices, PostgresNotices],
    postgres: PostgresServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sender, other = pair
    got: list[str] = []
    back: list[str] = []
    other.subscribe("flows", got.append)
    other.on_reconnect.append(lambda: back.append("back"))
    with caplog.at_level(logging.INFO, module.__name__):
        for name in ("planwave listen", "planwave notify"):
            end_connections(postgres, name)
        await until(lambda: back)
        for number in range(200):  # what was sent into the lost connection is lost
            sender.publish("flows", str(number))
            await asyncio.sleep(0.01)
        await until(lambda: "199" in got)
    assert got == sorted(got, key=int)
    messages = [each.getMessage() for each in caplog.records if each.name == module.__name__]
    assert any("to listen was lost" in each for each in messages)
    assert any("to listen is back" in each for each in messages)


async def test_a_server_that_is_away_costs_notes_only(caplog: pytest.LogCaptureFixture) -> None:
    """Opening, publishing more than is kept, and closing neither fail nor wait."""
    away = PostgresNotices("postgresql://x@127.0.0.1:1/none", "a")
    began = monotonic()
    await away.open()
    for _ in range(1_000):
        away.publish("deltas", "x" * MOST_BYTES)
    await asyncio.sleep(0.3)
    await away.close()
    assert monotonic() - began < 3
    assert len([each for each in caplog.records if each.name == module.__name__]) == 2


async def test_what_was_published_is_sent_before_the_end(
    pair: tuple[PostgresNotices, PostgresNotices],
) -> None:
    sender, other = pair
    got: list[str] = []
    other.subscribe("outcomes", got.append)
    sender.publish("outcomes", "last")
    await sender.close()
    await until(lambda: got)


async def test_a_receiver_that_fails_does_not_stop_the_others(
    pair: tuple[PostgresNotices, PostgresNotices], caplog: pytest.LogCaptureFixture
) -> None:
    sender, other = pair
    got: list[str] = []
    other.subscribe("commands", lambda text: 1 / 0)
    other.subscribe("commands", got.append)
    sender.publish("commands", "1")
    sender.publish("commands", "2")
    await until(lambda: got == ["1", "2"])
    assert "a note was not understood" in caplog.text


_LISTENS = """
import psycopg, sys, time
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    connection.execute("LISTEN planwave_events")
    connection.execute("BEGIN")
    print("listens", flush=True)
    time.sleep(100)
"""


async def test_a_frozen_listener_stops_no_append_and_is_warned_of(
    database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes nothing, so the queue of the server cannot shrink; a page of it is used here, not half."""
    monkeypatch.setattr(module, "_HIGH_USAGE", 0.0)
    monkeypatch.setattr(module, "_USAGE_EVERY_S", 0.05)
    store = PostgresStore.open(database_url)
    await store.notices.open()
    frozen = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _LISTENS, database_url, stdout=subprocess.PIPE
    )
    assert frozen.stdout is not None
    assert await frozen.stdout.readline()
    try:
        await store.create_execution(record(), [log(1)])
        for seq in range(2, 52):
            await store.append("x1", 1, [log(seq)])
            for _ in range(40):
                store.notices.publish("events", "x" * MOST_BYTES)
            await asyncio.sleep(0.005)
        await until(lambda: "notification queue" in caplog.text)
        assert len(await store.events("x1")) == 51
    finally:
        frozen.kill()
        await frozen.wait()
        await store.notices.close()
        await store.close()
    assert caplog.text.count("notification queue") == 1


async def test_a_store_of_one_process_has_notices_that_do_nothing() -> None:
    async with MemoryStore() as store:
        assert isinstance(store.notices, NoNotices)
        await store.notices.open()
        store.notices.subscribe("events", print)
        store.notices.publish("events", "x" * 10_000)
        await store.notices.close()


_FIRST_SENDER = (
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'planwave notify' "
    "AND datname = current_database() AND state = 'idle' AND query <> '' ORDER BY backend_start LIMIT 1"
)


@asynccontextmanager
async def frozen_sender(database_url: str) -> AsyncGenerator[None]:
    """Let the server process of the first connection that sends notes stand still, once that is in use."""
    row = None
    async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(database_url) as asking:
        await asking.set_autocommit(True)
        while row is None:
            row = await (await asking.execute(_FIRST_SENDER)).fetchone()
    os.kill(row[0], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(row[0], signal.SIGCONT)


async def test_a_server_that_stands_still_does_not_hold_up_the_end(
    pair: tuple[PostgresNotices, PostgresNotices], database_url: str
) -> None:
    sender, _ = pair
    async with frozen_sender(database_url):
        sender.publish("events", "x")
        await asyncio.sleep(0.1)
        began = monotonic()
        await sender.close()
        assert monotonic() - began < 3


def test_the_end_leaves_no_closed_file_to_a_loop_that_uses_select(database_url: str) -> None:
    async def close_while_it_sends() -> None:
        sender = PostgresNotices(database_url, "a")
        await sender.open()
        async with frozen_sender(database_url):
            sender.publish("events", "x")
            await asyncio.sleep(0.1)
            await sender.close()

    loop = partial(asyncio.SelectorEventLoop, selectors.SelectSelector())
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(close_while_it_sends())
