from __future__ import annotations

import os
from pathlib import Path

import pytest

from planwave.events import Event
from planwave.storage import files
from planwave.storage.files import (
    FileIdentity,
    free_bytes,
    load_artifacts,
    offload_artifacts,
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


@pytest.mark.parametrize("data", [{}, {"outputs": None}, {"outputs": {}}, {"outputs": {"o": 1}}])
def test_event_without_large_values_is_unchanged(tmp_path: Path, data: dict[str, object]) -> None:
    event = Event("x1", 1, "t", "node.completed", "a", 1, data)
    assert offload_artifacts(event, 10) == (event, [])
    assert load_artifacts(event, tmp_path) == event


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
