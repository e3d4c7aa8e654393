from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from planwave.storage.sql import idempotency
from planwave.storage.sqlite.store import SqliteStore

AT, LATER, EXPIRED = "2026-01-01T10", "2026-01-01T11", "2026-01-01T00"


async def test_response_survives_a_restart(tmp_path: Path) -> None:
    first = SqliteStore.open(tmp_path)
    await first.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
    await first.store_response("k", 201, '{"execution_id": "x"}')
    await first.close()
    again = SqliteStore.open(tmp_path)
    stored = await again.claim_idempotency_key("k", "d", LATER, expired=EXPIRED)
    assert (stored.is_new, stored.status, stored.body) == (False, 201, '{"execution_id": "x"}')
    assert stored.created_at == AT
    await again.close()


async def test_key_of_closed_store_is_given_to_one_repeated_request(
    tmp_path: Path,
) -> None:
    first = SqliteStore.open(tmp_path)
    taken = await first.claim_idempotency_key("k", "d", AT, expired=EXPIRED)
    assert not (await first.claim_idempotency_key("k", "d", LATER, expired=EXPIRED)).is_new
    await first.close()
    again = SqliteStore.open(tmp_path)
    other = await again.claim_idempotency_key("k", "another body", LATER, expired=EXPIRED)
    assert (other.is_new, other.digest, other.status) == (False, "d", None)
    async with asyncio.TaskGroup() as group:
        requested = [
            group.create_task(again.claim_idempotency_key("k", "d", LATER, expired=EXPIRED))
            for _ in range(9)
        ]
    found = [task.result() for task in requested]
    assert sum(each.is_new for each in found) == 1
    assert {each.subject for each in found} == {taken.subject}
    await again.store_response("k", 202, "{}")
    stored = await again.idempotency_record("k")
    assert stored is not None
    assert (stored.status, stored.subject) == (202, taken.subject)
    await again.close()


async def test_expired_keys_are_deleted_in_batches(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    for number in (0, idempotency.DELETE_BATCH_SIZE, 2 * idempotency.DELETE_BATCH_SIZE + 1):
        async with asyncio.TaskGroup() as group:
            for n in range(number):
                group.create_task(store.claim_idempotency_key(f"k{n}", "d", AT, expired=EXPIRED))
        before = store.commits
        assert await store.delete_expired_keys(AT) == 0
        assert await store.delete_expired_keys(LATER) == number
        assert store.commits - before == 2 + number // idempotency.DELETE_BATCH_SIZE
    await store.close()


TAKE = f"""
import asyncio, pathlib, sys
from planwave.storage.sqlite.store import SqliteStore

async def main():
    store = SqliteStore.open(pathlib.Path(sys.argv[1]))
    print((await store.claim_idempotency_key("k", "d", {AT!r}, expired={EXPIRED!r})).subject, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_key_of_killed_process_is_given_to_repeated_request(tmp_path: Path) -> None:
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TAKE, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert killed.stdout is not None
    subject = (await killed.stdout.readline()).decode().strip()
    assert killed.pid is not None
    os.kill(killed.pid, signal.SIGKILL)
    await killed.communicate()
    store = SqliteStore.open(tmp_path)
    stored = await store.claim_idempotency_key("k", "d", LATER, expired=EXPIRED)
    assert (stored.is_new, stored.subject) == (True, subject)
    await store.close()
