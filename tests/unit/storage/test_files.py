from __future__ import annotations

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import pytest

from planwave.errors import StoreError
from planwave.storage import files
from planwave.storage.files import (
    FileIdentity,
    free_bytes,
    require_directory,
    write_atomically,
)


def test_file_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"new", ["f.json"])


def test_failed_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.json"
    write_atomically(path, b"old")

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["f.json"])


def test_file_may_change_in_place(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    identity = FileIdentity(path)
    path.write_text("new, and longer")
    path.chmod(0o600)
    identity.check()


@pytest.mark.parametrize("way", ["deleted", "moved", "replaced", "folder moved"])
def test_replaced_file_is_detected(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "CHECK_INTERVAL_S", 0.0)
    folder = tmp_path / "folder"
    folder.mkdir()
    one, two = folder / "one", folder / "two"
    one.write_text("1")
    two.write_text("2")
    identity = FileIdentity(one, two)
    identity.check()
    if way == "deleted":
        two.unlink()
    elif way == "moved":
        two.rename(folder / "three")
    elif way == "replaced":
        write_atomically(two, b"2")
    else:
        folder.rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="deleted, moved or replaced") as gone:
            identity.check()
        assert gone.value.filename == str(one if way == "folder moved" else two)


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileIdentity(tmp_path / "nothing")


def test_free_bytes_are_within_the_file_system(tmp_path: Path) -> None:
    found = os.statvfs(tmp_path)
    assert 0 < free_bytes(tmp_path) <= found.f_blocks * found.f_frsize


def _require_as_nobody(directory: Path, results: Connection) -> None:
    os.setuid(_NOBODY)
    try:
        require_directory(directory)
    except StoreError as error:
        results.send((error.code, error.message, error.hint))
    else:
        results.send(None)


_NOBODY: Final = 65_534


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode", [0o755, 0o700])
@pytest.mark.parametrize("name", ["storage", "."])
def test_storage_in_a_directory_of_another_user_is_refused(mode: int, name: str) -> None:
    with tempfile.TemporaryDirectory() as place:  # the parents of tmp_path are closed to others
        Path(place).chmod(mode)
        reader, writer = multiprocessing.Pipe(duplex=False)
        with reader, writer:
            directory = Path(place) / name
            process = multiprocessing.get_context("fork").Process(
                target=_require_as_nobody, args=(directory, writer)
            )
            process.start()
            assert reader.poll(60)
            code, message, hint = reader.recv()
            assert code == "store-unusable"
            refusal = f"the storage directory '{directory}' cannot be used: Permission denied"
            assert message.startswith(refusal)
            assert hint == "check its owner and permissions, or choose another directory"
            process.join()
            assert process.exitcode == 0


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_storage_below_a_read_only_directory_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(StoreError, match="Permission denied") as caught:
        require_directory(tmp_path / "storage")
    assert caught.value.code == "store-unusable"


def test_storage_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file' is not a directory"):
        require_directory(tmp_path / "file" / "storage")
