from __future__ import annotations

import os
from pathlib import Path

import pytest

from planwave.events import Event
from planwave.storage import files
from planwave.storage.files import bring_back, put_aside, write_whole


def test_a_whole_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"new", ["f.json"])


def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.json"
    write_whole(path, b"old")

    def fail(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert (path.read_bytes(), os.listdir(tmp_path)) == (b"old", ["f.json"])


@pytest.mark.parametrize("data", [{}, {"outputs": None}, {"outputs": {}}, {"outputs": {"o": 1}}])
def test_an_event_without_large_values_stays_itself(
    tmp_path: Path, data: dict[str, object]
) -> None:
    event = Event("x1", 1, "t", "node.completed", "a", 1, data)
    assert put_aside(event, 10) == (event, [])
    assert bring_back(event, tmp_path) == event
