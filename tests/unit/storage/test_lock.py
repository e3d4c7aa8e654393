from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from planwave.errors import StoreError
from planwave.storage.lock import LOCK_NAME, START_S, DirectoryLock, is_owned, read_owner

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
        assert is_owned(tmp_path)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert not is_owned(tmp_path)
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


def test_lock_that_no_process_holds_has_no_owner(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.write_owner({"pid": os.getpid(), "url": "http://127.0.0.1:1", "token": "t"})
    lock.close()  # as a killed process leaves it
    assert (tmp_path / LOCK_NAME).read_bytes()
    assert read_owner(tmp_path) is None


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602, 0o700])
def test_owner_in_a_file_for_others_too_is_not_trusted(tmp_path: Path, mode: int) -> None:
    lock = DirectoryLock(tmp_path)
    (tmp_path / LOCK_NAME).chmod(mode)
    assert read_owner(tmp_path) is None
    (tmp_path / LOCK_NAME).chmod(0o600)
    assert read_owner(tmp_path) == {"pid": os.getpid()}
    lock.release()


@pytest.mark.parametrize(("reader", "is_trusted"), [(0, True), (1, False)])
def test_owner_in_the_file_of_another_user_is_trusted_by_root_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: int, is_trusted: bool
) -> None:
    lock, own = DirectoryLock(tmp_path), os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 0 if reader == 0 else own + 1)
    assert (read_owner(tmp_path) is not None) is is_trusted
    monkeypatch.undo()
    lock.release()


def test_lock_is_never_a_link_or_a_pipe(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").write_text("as it was")
    (tmp_path / LOCK_NAME).symlink_to(kept)
    with pytest.raises(OSError, match="symbolic link"):
        DirectoryLock(tmp_path)
    assert read_owner(tmp_path) is None
    assert kept.read_text() == "as it was"
    (tmp_path / LOCK_NAME).unlink()
    os.mkfifo(tmp_path / LOCK_NAME, 0o600)
    assert read_owner(tmp_path) is None


def test_questions_for_the_owner_make_no_start_fail(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).touch(0o600)
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            read_owner(tmp_path)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for each in threads:
        each.start()
    try:
        for _ in range(200):
            DirectoryLock(tmp_path).release()
    finally:
        over.set()
        for each in threads:
            each.join()


def test_owner_is_reported_at_once_and_a_long_question_after_half_a_second(tmp_path: Path) -> None:
    held = DirectoryLock(tmp_path)
    took_s: list[float] = []
    while not took_s or (
        min(took_s) >= START_S and len(took_s) < 10
    ):  # a busy machine takes it away
        began = time.monotonic()
        with pytest.raises(StoreError):
            DirectoryLock(tmp_path)
        took_s.append(time.monotonic() - began)
    assert min(took_s) < START_S
    held.release()
    with (tmp_path / LOCK_NAME).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        began = time.monotonic()
        with pytest.raises(StoreError):
            DirectoryLock(tmp_path)
        assert time.monotonic() - began >= START_S


def test_directory_is_owned_while_its_lock_is_held(tmp_path: Path) -> None:
    assert not is_owned(tmp_path)
    lock = DirectoryLock(tmp_path)
    assert is_owned(tmp_path)
    lock.release()
    assert not is_owned(tmp_path)
    assert not is_owned(tmp_path / "nothing there")


def test_directory_whose_lock_cannot_be_asked_counts_as_owned(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).symlink_to(tmp_path / "elsewhere")
    assert is_owned(tmp_path)
