"""Disks that fail: under SQLite (``faulty_disk``), under power (``PowerCutSimulator``), or for want of room.

``faulty_disk`` puts a layer between SQLite and its files, through SQLite's own interface for that
(https://sqlite.org/vfs.html). What happens above it is real; only what the disk answers is made up.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

OK: Final = 0
FULL: Final = 13
"""SQLITE_FULL"""
FSYNC_FAILED: Final = 10 | 4 << 8
"""SQLITE_IOERR_FSYNC"""

_WRITE = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_TRUNCATE = CFUNCTYPE(c_int, c_void_p, c_int64)
_SYNC = CFUNCTYPE(c_int, c_void_p, c_int)
_WRITE_CALL = CFUNCTYPE(c_int64, c_int, c_void_p, c_size_t, use_errno=True)
_PWRITE_CALL = CFUNCTYPE(c_int64, c_int, c_void_p, c_size_t, c_int64, use_errno=True)


class _Methods(Structure):
    """``sqlite3_io_methods``."""

    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", _WRITE),
        ("truncate", _TRUNCATE),
        ("sync", _SYNC),
        ("others", c_void_p * 13),
    ]


class _File(Structure):
    """``sqlite3_file``."""

    _fields_ = [("methods", POINTER(_Methods))]


class _Vfs(Structure):
    """``sqlite3_vfs``."""


# The name as an address: SQLite relies on its staying where it is.
_OPEN = CFUNCTYPE(c_int, POINTER(_Vfs), c_void_p, POINTER(_File), c_int, c_void_p)
_SET_CALL = CFUNCTYPE(c_int, POINTER(_Vfs), c_char_p, c_void_p)
_Vfs._fields_ = [
    ("version", c_int),
    ("file_size", c_int),
    ("longest_path", c_int),
    ("next", c_void_p),
    ("name", c_char_p),
    ("own", c_void_p),
    ("open", _OPEN),
    ("others", c_void_p * 12),
    ("set_call", _SET_CALL),
    ("get_call", c_void_p),
    ("next_call", c_void_p),
]


def _library() -> Any:
    """Give the SQLite that Python uses, or skip the test."""
    try:
        import _sqlite3

        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        library.sqlite3_vfs_register.argtypes = [POINTER(_Vfs), c_int]
    except (AttributeError, OSError):
        pytest.skip("this Python does not let one reach into its SQLite")
    return library


class FaultyDisk:
    """What lies under SQLite's files.

    Attributes:
        on_sync: Asked before each fsync of a file; another answer than ``OK`` is its failure.
        on_write: Asked before each write of so many bytes.
        after_sync: Called after each successful fsync.
        after_write: Called after each write: offset and content; size and None where it cut the file.
        syncs: Names of the files that were synced.
    """

    def __init__(self) -> None:
        self.on_sync: Callable[[Path], int] = lambda _: OK
        self.on_write: Callable[[Path, int], int] = lambda *_: OK
        self.after_sync: Callable[[Path], None] = lambda _: None
        self.after_write: Callable[[Path, int, bytes | None], None] = lambda *_: None
        self.syncs: list[str] = []
        self._paths: dict[int, Path] = {}
        self._own: dict[int, _Methods] = {}

    def wrap_file(self, address: int, path: Path, file: Any) -> None:
        """Come between SQLite and a file it has opened."""
        self._paths[address] = path
        theirs = ctypes.addressof(file.methods.contents)
        if theirs not in self._own:
            self._own[theirs] = self._between(file.methods.contents)
        file.methods = ctypes.pointer(self._own[theirs])

    def _between(self, theirs: _Methods) -> _Methods:
        write_on, truncate_on, sync_on = theirs.write, theirs.truncate, theirs.sync

        def write(file: int, content: int, size: int, offset: int) -> int:
            path = self._paths[file]
            found = self.on_write(path, size) or write_on(file, content, size, offset)
            if found == OK:
                self.after_write(path, offset, ctypes.string_at(content, size))
            return found

        def truncate(file: int, size: int) -> int:
            found = truncate_on(file, size)
            self.after_write(self._paths[file], size, None)
            return found

        def sync(file: int, flags: int) -> int:
            path = self._paths[file]
            self.syncs.append(path.name)
            found = self.on_sync(path) or sync_on(file, flags)
            if found == OK:
                self.after_sync(path)
            return found

        own = _Methods.from_buffer_copy(theirs)
        own.write, own.truncate, own.sync = _WRITE(write), _TRUNCATE(truncate), _SYNC(sync)
        return own


_referenced_by_sqlite: list[Any] = []
"""What SQLite may still point to: nothing of it is ever freed."""


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    """Have every database that is opened meanwhile lie on a ``FaultyDisk``; close it before."""
    library, disk = _library(), FaultyDisk()
    usual = library.sqlite3_vfs_find(None)
    layer = _Vfs.from_buffer_copy(usual.contents)
    layer.name = b"faulty"
    open_on = usual.contents.open

    def open_file(_: Any, name: int | None, file: Any, flags: int, mode: int) -> int:
        found = open_on(usual, name, file, flags, mode)
        if found == OK and name is not None and file.contents.methods:
            path = Path(os.fsdecode(ctypes.string_at(name)))
            disk.wrap_file(ctypes.addressof(file.contents), path, file.contents)
        return found

    layer.open = _OPEN(open_file)
    _referenced_by_sqlite.append((layer, disk))
    library.sqlite3_vfs_register(ctypes.byref(layer), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(layer))
        library.sqlite3_vfs_register(usual, 1)


@contextmanager
def short_writes(seed: int) -> Iterator[Counter[str]]:
    """Have the system take only a part of what SQLite writes (``cut``), or be ``interrupted``."""
    library, rng, counts = _library(), random.Random(seed), Counter[str]()  # noqa: S311 - a test repeats
    usual = library.sqlite3_vfs_find(None)
    libc = ctypes.CDLL(None, use_errno=True)

    def cut(call: Any, file: int, content: int, size: int, *offset: int) -> int:
        chance = rng.random()
        if chance < 0.1:
            counts["interrupted"] += 1
            ctypes.set_errno(errno.EINTR)
            return -1
        if chance < 0.5 and size > 1:
            counts["cut"] += 1
            size = rng.randrange(1, size)
        return call(file, content, size, *offset)

    calls: dict[bytes, Any] = {}  # which one it is depends on how SQLite was built
    for name in ("write", "pwrite", "pwrite64"):
        kind = _WRITE_CALL if name == "write" else _PWRITE_CALL
        calls[name.encode()] = kind(partial(cut, kind((name, libc))))
    _referenced_by_sqlite.append(calls)
    for name, call in calls.items():
        usual.contents.set_call(usual, name, ctypes.cast(call, c_void_p))
    try:
        yield counts
    finally:
        for name in calls:
            usual.contents.set_call(usual, name, None)


class PowerCutSimulator:
    """What would be left in a directory if the power were cut: what was synced, for certain.

    Of writes that were not, any part may be there; a file whose directory entry was not synced is
    not. Plain files count as far as ``os.fsync`` was called for them and for their directory.

    Args:
        disk: What lies under the database.
        directory: What is looked at.
        seed: Decides which writes that were not synced are there nevertheless.
    """

    def __init__(self, disk: FaultyDisk, directory: Path, seed: int) -> None:
        self._directory = directory
        self._random = random.Random(seed)  # noqa: S311 - a test repeats
        self._files: dict[str, bytes] = {}
        self._unsynced: dict[str, list[tuple[int, bytes | None]]] = {}
        self._inodes: dict[int, bytes] = {}
        disk.after_sync = self._synced
        disk.after_write = self._wrote

    def _synced(self, path: Path) -> None:
        self._files[path.name] = path.read_bytes()
        self._unsynced[path.name] = []

    def _wrote(self, path: Path, offset: int, content: bytes | None) -> None:
        self._unsynced.setdefault(path.name, []).append((offset, content))

    def fsync(self, file: int) -> None:
        """Stand in for ``os.fsync``."""
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        if not path.is_dir():
            self._inodes[path.stat().st_ino] = path.read_bytes()
            return
        for entry in path.iterdir():
            content = self._inodes.get(entry.stat().st_ino)
            if content is not None:
                self._files[str(entry.relative_to(self._directory))] = content

    def write_surviving_files(self, target: Path) -> Path:
        """Make a directory of what is left."""
        for name, content in list(self._files.items()):
            if not (self._directory / name).exists():
                continue  # SQLite syncs the directory before it relies on a file being gone
            left = bytearray(content)
            for offset, written in self._unsynced.get(name, ()):
                if self._random.random() < 0.5:
                    continue
                if written is None:
                    del left[offset:]
                else:
                    left.extend(bytes(max(0, offset - len(left))))
                    cut = self._random.choice((len(written), len(written) // 2))
                    left[offset : offset + cut] = written[:cut]
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(left)
        return target


@contextmanager
def small_disk(place: Path, size: str, *, read_only: bool = False) -> Iterator[Path]:
    """Mount a disk of that size, in memory; skip the test where that is not allowed."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}{',ro' * read_only}", "tmpfs", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("disks can be mounted here by nobody but root, if at all")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)


def fill_disk(directory: Path, *, free_bytes: int = 0) -> Path:
    """Use up all room on a disk but so many bytes; give the file to delete for it."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        with suppress(OSError):  # there is no room
            while file.write(bytes(4096)):
                pass
        file.truncate(max(0, file.tell() - free_bytes))
    return ballast
