from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planwave.errors import StoreError
from planwave.storage.lock import LOCK_NAME, DirectoryLock, read_owner

HOLD = """
import os, pathlib, sys
from planwave.storage.lock import DirectoryLock
lock = DirectoryLock(pathlib.Path(sys.argv[1]))
{more}
print("held", flush=True)
input()
"""
FORK = """
ready, running = os.pipe()
if os.fork() == 0:
    os.write(running, b"1")
    input()
    os._exit(0)
os.read(ready, 1)  # what a fork does in the child is done by now
"""


@pytest.mark.parametrize("more", ["", FORK], ids=["alone", "with a forked child"])
def test_killed_owner_leaves_no_lock(tmp_path: Path, more: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD.format(more=more), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"pid {holder.pid}") as refused:
            DirectoryLock(tmp_path)
        assert refused.value.code == "storage-locked"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        DirectoryLock(tmp_path).release()  # a forked child is alive until its input ends


def test_owner_publishes_its_address(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.write_owner({"pid": 1, "url": "http://127.0.0.1:1"})
    assert read_owner(tmp_path) == {"pid": 1, "url": "http://127.0.0.1:1"}
    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o777 == 0o600
    lock.release()
    lock.release()
    lock.write_owner({"pid": os.getpid()})
    assert read_owner(tmp_path) is None


def test_lock_file_is_never_without_an_owner_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, write, seen = DirectoryLock(tmp_path), os.pwrite, list[object]()
    longer = {"pid": 1, "url": "http://127.0.0.1:1", "token": "t"}

    def pwrite(descriptor: int, content: bytes, offset: int) -> int:
        seen.append(read_owner(tmp_path))
        written = write(descriptor, content, offset)
        seen.append(read_owner(tmp_path))
        return written

    monkeypatch.setattr(os, "pwrite", pwrite)
    lock.write_owner(longer)
    lock.write_owner({"pid": 1})
    assert seen == [{"pid": os.getpid()}, longer, longer, {"pid": 1}]
    monkeypatch.undo()
    lock.release()


def test_lock_file_that_others_may_read_is_closed_to_them(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).touch(0o644)
    lock = DirectoryLock(tmp_path)
    lock.write_owner({"pid": 1, "url": "http://127.0.0.1:1", "token": "hush"})
    assert (tmp_path / LOCK_NAME).stat().st_mode & 0o777 == 0o600
    lock.release()


def test_unwritable_lock_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(OSError, match="No space"):
        DirectoryLock(tmp_path)
    monkeypatch.undo()
    DirectoryLock(tmp_path).release()


def test_missing_lock_support_is_not_reported_as_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("planwave.storage.lock.fcntl.flock", fail)
    with pytest.raises(OSError, match="No locks"):
        DirectoryLock(tmp_path)


@pytest.mark.parametrize("content", ["", "[1]", "half {", "\xff"])
def test_invalid_owner_is_unknown(tmp_path: Path, content: str) -> None:
    held = DirectoryLock(tmp_path)
    (tmp_path / LOCK_NAME).write_text(content, "latin-1")
    assert read_owner(tmp_path) is None
    with pytest.raises(StoreError, match="pid unknown"):
        DirectoryLock(tmp_path)
    held.release()
