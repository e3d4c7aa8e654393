"""The lock that allows one writing process for a directory: an exclusive ``flock``."""

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
    """An exclusive lock of a directory, from construction to :meth:`release`.

    The file stays after the release; only the ``flock`` counts, and the kernel drops it with its
    process. The file contains the owner (``pid``, later the address and the token of its API) as
    JSON, mode 0600.

    Raises:
        StoreError: ``storage-locked``, naming the process of the owner.
        OSError: The file cannot be written or locked; the lock is not held.
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
        """Write the pid and address of the owner to the file.

        The file is never empty meanwhile, which would look like a directory without an owner: the
        new text is padded over the old one.
        """
        if self._file is not None:
            with suppress(PermissionError):  # the file of another user, who could read it anyway
                os.fchmod(self._file, 0o600)
            length = os.fstat(self._file).st_size
            os.pwrite(self._file, json.dumps(holder).encode().ljust(length), 0)

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            fcntl.flock(self._file, fcntl.LOCK_UN)  # also if a forked child has it open
            self.close()

    def close(self) -> None:
        """Close the file without touching its content."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_owner(directory: Path) -> dict[str, Any] | None:
    """Return the last owner as it wrote itself, or None. Its process may have ended."""
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
        hint="wait until it ends, or stop it",
    )


_open_locks: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


def _close_all() -> None:
    for lock in list(_open_locks):
        lock.close()


# A forked child shares the lock; if left open there, it would outlive a killed owner.
os.register_at_fork(after_in_child=_close_all)
