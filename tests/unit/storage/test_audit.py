"""The audit log: chains over processes and days, and what a check of them finds."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from planwave.principals import Principal, acting_as
from planwave.storage import audit
from planwave.storage.audit import AuditLog, AuditUnavailable, audit_files, read_entries, verify


class Clock:
    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


async def written(storage: Path, processes: int = 2) -> None:
    """Let processes write a few entries each, over two days."""
    clock = Clock()
    for _ in range(processes):
        log = AuditLog(storage, clock)
        async with asyncio.TaskGroup() as tasks:
            for number in range(3):
                tasks.create_task(log.append({"action": "x", "number": number}))
        clock.at += timedelta(days=1)
        await log.append({"action": "y"})
        await log.close()
        clock.at += timedelta(seconds=1)


async def test_log_is_one_chain_over_processes_and_days(tmp_path: Path) -> None:
    await written(tmp_path)
    assert len(audit_files(tmp_path)) == 4
    assert verify(tmp_path) == []
    assert [each["action"] for each in read_entries(tmp_path)] == ["x", "x", "x", "y"] * 2
    modes = {each.stat().st_mode & 0o777 for each in audit_files(tmp_path)}
    assert modes == {0o600}
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o700


async def test_every_flipped_byte_is_found_with_its_file(tmp_path: Path) -> None:
    await written(tmp_path, 1)
    for path in audit_files(tmp_path):
        content = path.read_bytes()
        for at in range(0, len(content), 7):
            flipped = content[at] ^ 1
            path.write_bytes(content[:at] + bytes([flipped]) + content[at + 1 :])
            found = verify(tmp_path)
            assert found, f"byte {at} of {path.name}"
            line = content[:at].count(b"\n") + 1
            assert (path.name, line) in {(each.file, each.line) for each in found} or {
                each.file for each in found
            } & {path.name}
        path.write_bytes(content)
    assert verify(tmp_path) == []


async def test_removed_line_swapped_lines_and_missing_file_are_found(tmp_path: Path) -> None:
    await written(tmp_path)
    files = audit_files(tmp_path)
    for path in files:
        content = path.read_bytes()
        lines = content.splitlines(keepends=True)
        is_last = path == files[-1]
        for number in range(len(lines) - is_last):  # the very end of a log has no successor
            path.write_bytes(b"".join(lines[:number] + lines[number + 1 :]))
            assert verify(tmp_path), f"line {number + 1} of {path.name}"
        path.write_bytes(b"".join(reversed(lines)))
        assert verify(tmp_path)
        path.write_bytes(content[:-5])
        assert verify(tmp_path), "a cut line"
        path.write_bytes(content)
    content = files[1].read_bytes()
    files[1].unlink()
    assert [each.file for each in verify(tmp_path)] == [files[2].name]
    files[1].write_bytes(content)
    assert verify(tmp_path) == []
    files[0].unlink()  # as retention does
    assert verify(tmp_path) == []


async def test_line_that_a_killed_process_left_half_written_is_no_finding(tmp_path: Path) -> None:
    await written(tmp_path, 1)
    with audit_files(tmp_path)[-1].open("ab") as last:
        last.write(b'{"at":"half a li')
    assert verify(tmp_path)
    log = AuditLog(tmp_path)
    await log.append({"action": "z"})
    assert verify(tmp_path) == []


async def test_log_that_cannot_be_written_says_so_and_goes_on_later(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    log = AuditLog(tmp_path)
    with pytest.raises(AuditUnavailable):
        await log.append({"action": "x"})
    assert log.is_broken
    await log.record("x", {})  # only logged
    with pytest.raises(AuditUnavailable):
        await log.record("x", {}, is_strict=True)
    (tmp_path / "audit").unlink()
    await log.append({"action": "y"})
    assert not log.is_broken
    assert [each["action"] for each in read_entries(tmp_path)] == ["y"]
    assert verify(tmp_path) == []


async def test_concurrent_entries_share_a_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = 0
    sync = audit.os.fsync

    def counted(descriptor: int) -> None:
        nonlocal syncs
        syncs += 1
        sync(descriptor)

    monkeypatch.setattr(audit.os, "fsync", counted)
    log = AuditLog(tmp_path)
    await log.append({"action": "first"})
    syncs = 0
    async with asyncio.TaskGroup() as tasks:
        for number in range(100):
            tasks.create_task(log.append({"action": "x", "number": number}))
    assert syncs <= 3
    assert len(list(read_entries(tmp_path))) == 101


async def test_entry_names_the_principal(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    with acting_as(Principal("token", "t1", "crm")):
        await log.record("execution.created", {"execution_id": "e"})
    entry: dict[str, Any] = next(read_entries(tmp_path))
    assert entry["principal"] == {"kind": "token", "id": "t1", "name": "crm"}
    assert entry["ids"] == {"execution_id": "e"}


async def test_whole_old_files_are_deleted_but_the_newest(tmp_path: Path) -> None:
    await written(tmp_path)
    log = AuditLog(tmp_path)
    assert log.prune(datetime.now(UTC) - timedelta(days=1)) == 0
    assert log.prune(datetime.now(UTC) + timedelta(days=1)) == 3
    assert verify(tmp_path) == []
    opened = json.loads(audit_files(tmp_path)[0].read_bytes().splitlines()[0])
    assert opened["before"]["lines"] > 0
