"""One writing process a directory: an exclusive ``flock`` that the kernel drops with its holder."""

from __future__ import annotations

import fcntl
import json
import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from planwave.errors import StoreError

LOCK_NAME: Final = "planwave.lock"


class DirectoryLock:
    """The right to write into a directory, from construction to :meth:`release`.

    The file stays behind; only the ``flock`` counts, so a killed holder leaves nothing stale. The
    holder's facts (``pid``, later the address of its API) are in the file as JSON, mode 0600.

    Raises:
        StoreError: ``storage-locked``, naming the process that holds it.
        OSError: The disk takes no file or knows no locks; nothing is held.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_NAME
        self._file: int | None = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.write_owner({"pid": os.getpid()})
        except BlockingIOError as error:
            self.close()
            raise _locked_error(directory) from error
        except OSError:
            self.close()
            raise
        _open_locks.add(self)

    def write_owner(self, holder: dict[str, Any]) -> None:
        """Write into the file how the holder can be reached."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(holder).encode(), 0)

    def release(self) -> None:
        """Let others write."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            fcntl.flock(self._file, fcntl.LOCK_UN)  # also where a child just forked has it open
            self.close()

    def close(self) -> None:
        """Close the file without touching its content."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_owner(directory: Path) -> dict[str, Any] | None:
    """Give what the last holder wrote about itself, or None. It may be gone: only a try can tell."""
    with suppress(OSError, ValueError):
        holder = json.loads((directory / LOCK_NAME).read_text("utf-8"))
        if isinstance(holder, dict):
            return holder  # pyright: ignore[reportUnknownVariableType]
    return None


def _locked_error(directory: Path) -> StoreError:
    pid = (read_owner(directory) or {}).get("pid", "unknown")
    return StoreError(
        f"{str(directory)!r} is locked by pid {pid}: one process writes at a time",
        code="storage-locked",
        hint="wait until it ends, stop it, or set PLANWAVE_STORAGE_DIR to another directory",
    )


_open_locks: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


def _close_all() -> None:
    for lock in list(_open_locks):
        lock.close()


# A forked child shares the lock; kept open there, it would outlive a killed holder.
os.register_at_fork(after_in_child=_close_all)
