"""The audit log of processes that share a database: what each writes, and what a check of all finds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta

import pytest

from planwave.storage.audit import AuditLog, AuditUnavailable, read_entries, verify
from planwave.storage.postgres.audit import PostgresAuditFiles
from tests.support.storage.postgres_server import PostgresServer
from tests.unit.storage.test_audit import Clock


async def written(url: str, clock: Clock, days: int = 2) -> None:
    """Let two processes write at a time, over days; one of them is killed."""
    logs = [AuditLog(PostgresAuditFiles(url), clock) for _ in range(2)]
    for day in range(days):
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                for log in logs:
                    tasks.create_task(log.append({"action": "x", "day": day, "number": number}))
        clock.at += timedelta(days=1)
    clock.at -= timedelta(hours=13)
    await logs[0].close()
    logs[1]._files.close()
    clock.at += timedelta(hours=13)


def change(postgres: PostgresServer, url: str, sql: str) -> None:
    postgres.execute(sql, url.rpartition("/")[2])


async def test_processes_write_at_a_time_and_all_they_wrote_is_whole(database_url: str) -> None:
    clock = Clock()
    await written(database_url, clock)
    await written(database_url, clock)
    log = PostgresAuditFiles(database_url)
    assert verify(log) == []
    entries = list(read_entries(log))
    assert len(entries) == 24
    assert len({each["instance"] for each in entries}) == 4
    assert len(log.names()) == 8
    log.close()


@pytest.mark.parametrize(
    ("tampering", "found"),
    [
        (
            "UPDATE audit_lines SET line = replace(line, '\"number\":1', '\"number\":7') "
            "WHERE (file, number) = (SELECT max(file), 3 FROM audit_lines)",
            "the line was changed",
        ),
        (
            "DELETE FROM audit_lines WHERE number = 3 AND file = (SELECT max(file) FROM audit_lines)",
            "the line before was changed or removed",
        ),
        (
            "DELETE FROM audit_lines WHERE number = 1 AND file = (SELECT max(file) FROM audit_lines)",
            "the line before was changed or removed",
        ),
        (
            "DELETE FROM audit_lines WHERE number > 2 AND file = "
            "(SELECT DISTINCT file FROM audit_lines ORDER BY file OFFSET 1 LIMIT 1)",
            "lines are missing",
        ),
        (
            "DELETE FROM audit_lines WHERE file = "
            "(SELECT DISTINCT file FROM audit_lines ORDER BY file OFFSET 1 LIMIT 1)",
            "it follows",
        ),
    ],
)
async def test_what_is_changed_or_removed_is_found(
    postgres: PostgresServer, database_url: str, tampering: str, found: str
) -> None:
    clock = Clock()
    await written(database_url, clock)
    await written(database_url, clock)
    change(postgres, database_url, tampering)
    log = PostgresAuditFiles(database_url)
    assert any(found in str(each) for each in verify(log))
    log.close()


async def test_old_files_are_deleted_and_the_rest_is_whole(database_url: str) -> None:
    clock = Clock()
    await written(database_url, clock, days=4)
    await written(database_url, clock, days=1)
    log = PostgresAuditFiles(database_url)
    assert AuditLog(log).prune(datetime(2026, 1, 3, tzinfo=UTC)) == 4
    assert verify(log) == []
    assert {each["at"][:10] for each in read_entries(log)} == {
        "2026-01-03",
        "2026-01-04",
        "2026-01-05",
    }
    log.close()


async def test_a_lost_connection_costs_one_entry_and_no_line(
    postgres: PostgresServer, database_url: str
) -> None:
    files = PostgresAuditFiles(database_url)
    log = AuditLog(files)
    await log.append({"action": "x"})
    name = database_url.rpartition("/")[2]
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608
    )
    with pytest.raises(AuditUnavailable, match="audit log in the database"):
        await log.append({"action": "y"})
    assert log.is_broken
    await log.append({"action": "z"})
    await log.close()
    assert verify(files) == []
    assert [each["action"] for each in read_entries(files)] == ["x", "z"]
    files.close()


_WRITES = """
import asyncio, sys
from planwave.storage.audit import AuditLog
from planwave.storage.postgres.audit import PostgresAuditFiles

async def main():
    log = AuditLog(PostgresAuditFiles(sys.argv[1]))
    number = 0
    while True:
        number += 1
        await log.append({"action": "x", "number": number})
        print(number, flush=True)

asyncio.run(main())
"""


async def test_a_killed_process_leaves_what_it_had_written_and_a_log_that_is_whole(
    database_url: str,
) -> None:
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITES, database_url, stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout is not None
    last = 0
    while last < 20:
        last = int(await writer.stdout.readline())
    os.kill(writer.pid, signal.SIGKILL)
    await writer.wait()
    files = PostgresAuditFiles(database_url)
    assert verify(files) == []
    numbers = [each["number"] for each in read_entries(files)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= last
    assert json.loads(files.read(files.names()[0]).splitlines()[0])["action"] == "log.opened"
    files.close()
