"""Which default storage directories are this user's own."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from planwave.config import trust
from planwave.errors import InputError
from planwave.settings import Settings
from planwave.storage.ownership import (
    DEFAULT_NAME,
    MARKER_NAME,
    is_own,
    is_remembered,
    is_trusted,
    make_directory,
    mark,
    require_trusted,
)
from planwave.storage.sqlite.store import SqliteStore

STORAGE = Path(DEFAULT_NAME)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    another_process(monkeypatch)
    return tmp_path


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_of_this_process", set())


async def make_store() -> None:
    await SqliteStore.open(STORAGE).close()


def of_a_stranger() -> None:
    STORAGE.mkdir()
    (STORAGE / "planwave.db").touch()


def test_name_is_the_default_of_the_setting() -> None:
    assert Settings.model_fields["storage_dir"].default == STORAGE


@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "empty"])
def test_directory_that_planwave_makes_is_own_in_later_processes(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_there:
        STORAGE.mkdir()
    assert is_trusted(Settings())
    asyncio.run(make_store())
    another_process(monkeypatch)
    assert is_own(STORAGE)
    assert is_remembered(STORAGE)
    assert stat.S_IMODE((STORAGE / MARKER_NAME).stat().st_mode) == 0o600
    if not is_there:
        assert stat.S_IMODE(STORAGE.stat().st_mode) == 0o700


def test_directories_are_private_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        make_directory(folder / "kept")
        make_directory(STORAGE)
    finally:
        os.umask(before)
    for each in (folder / "kept", STORAGE):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700


def test_directory_of_a_stranger_is_untrusted_until_it_is_named_or_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_a_stranger()
    assert not is_trusted(Settings())
    with pytest.raises(InputError, match="not made by planwave for you") as refused:
        require_trusted(Settings())
    assert refused.value.code == "storage-untrusted"
    assert "planwave trust ./storage" in (refused.value.hint or "")
    require_trusted(Settings(storage_dir=STORAGE))
    require_trusted(Settings().model_copy(update={"storage_dir": STORAGE}))
    with monkeypatch.context() as named:
        named.setenv("PLANWAVE_STORAGE_DIR", "storage")
        require_trusted(Settings())
    assert mark(STORAGE)
    another_process(monkeypatch)
    require_trusted(Settings())


def test_opening_a_directory_of_a_stranger_does_not_mark_it() -> None:
    of_a_stranger()
    make_directory(STORAGE)
    assert not is_own(STORAGE)


def test_directory_of_another_name_is_not_marked(folder: Path) -> None:
    make_directory(folder / "kept")
    assert list((folder / "kept").iterdir()) == []
    assert not (folder / "state").exists()


def test_moved_or_copied_directory_is_untrusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_directory(STORAGE)
    shutil.copytree(STORAGE, folder / "copy")
    shutil.move(folder / "work", folder / "elsewhere")
    monkeypatch.chdir(folder / "elsewhere")
    another_process(monkeypatch)
    assert not is_own(STORAGE)
    assert not is_own(folder / "copy")
    shutil.move(folder / "elsewhere", folder / "work")
    monkeypatch.chdir(folder / "work")
    assert is_own(STORAGE)


def test_restored_backup_is_untrusted_until_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_directory(STORAGE)
    shutil.rmtree(STORAGE)
    of_a_stranger()  # as tar unpacks it
    another_process(monkeypatch)
    assert not is_own(STORAGE)
    mark(STORAGE)
    assert is_own(STORAGE)


def test_marker_of_a_stranger_is_none_and_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    of_a_stranger()
    (STORAGE / MARKER_NAME).write_text("0" * 64)
    assert not is_own(STORAGE)
    mark(STORAGE)
    assert (STORAGE / MARKER_NAME).read_text() != "0" * 64
    another_process(monkeypatch)
    assert is_own(STORAGE)


@pytest.mark.parametrize("kind", ["link", "pipe", "long", "directory"])
def test_odd_marker_is_none(folder: Path, kind: str) -> None:
    make_directory(STORAGE)
    marker = STORAGE / MARKER_NAME
    content = marker.read_text()
    marker.unlink()
    match kind:
        case "link":
            (folder / "marker").write_text(content)
            marker.symlink_to(folder / "marker")
        case "pipe":
            os.mkfifo(marker)
        case "long":
            marker.write_text(content * 100)
        case _:
            marker.mkdir()
    assert not is_own(STORAGE)


def test_link_is_never_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_directory(STORAGE)
    (folder / "clone").mkdir()
    (folder / "clone" / "storage").symlink_to(STORAGE.absolute())
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder / "clone")
    assert not is_own(STORAGE)
    STORAGE.unlink()
    STORAGE.symlink_to(folder / "empty")
    assert not is_own(STORAGE)
    STORAGE.unlink()
    STORAGE.symlink_to("nowhere")
    assert not is_own(STORAGE)


def test_empty_directory_that_everybody_may_write_is_not_own() -> None:
    STORAGE.mkdir()
    STORAGE.chmod(0o777)
    assert not is_own(STORAGE)


@pytest.mark.parametrize("state", ["file/state", ""], ids=["not writable", "no home"])
def test_without_a_writable_home_a_fresh_directory_serves_this_process(
    folder: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("HOME", "")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / state) if state else "")
    make_directory(STORAGE)
    assert is_own(STORAGE)
    assert not is_remembered(STORAGE)
    another_process(monkeypatch)
    assert not is_own(STORAGE)
    require_trusted(Settings(storage_dir=STORAGE))


def test_processes_that_start_at_once_in_a_new_folder_all_find_it_their_own() -> None:
    program = (
        "import pathlib, sys; from planwave.storage.ownership import is_own, make_directory\n"
        "sys.stdin.readline(); here = pathlib.Path('storage')\n"
        "before = is_own(here); make_directory(here); print(before, is_own(here))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for each in started:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    assert [each.communicate()[0] for each in started] == ["True True\n"] * 4


@pytest.mark.parametrize("read_only", [True, False])
def test_pipe_in_place_of_the_database_is_an_error(read_only: bool) -> None:
    STORAGE.mkdir()
    os.mkfifo(STORAGE / "planwave.db")
    with pytest.raises(Exception, match="cannot be opened as a database"):
        SqliteStore.open(STORAGE, read_only=read_only)
