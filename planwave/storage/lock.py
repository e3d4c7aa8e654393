"""The lock that allows one writing process for a directory: an exclusive ``flock``."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from planwave.errors import StoreError

LOCK_NAME: Final = "planwave.lock"
START_S: Final = 0.5
"""How long an owner that starts tries again while others only ask whether the lock is held."""
_RETRY_S: Final = 0.01
_PRIVATE_MODE: Final = 0o600
_SAFE_OPEN: Final = os.O_NOFOLLOW | os.O_NONBLOCK
"""A link would name another file, and to open a pipe would wait for its other end."""


class DirectoryLock:
    """An exclusive lock of a directory, from construction to ``release``.

    The file stays after the release; only the ``flock`` counts, and the kernel drops it with its
    process. The file contains the owner (``pid``, later the address and the token of its API) as
    JSON, mode 0600.

    Raises:
        StoreError: ``storage-locked``, naming the process of the owner.
        OSError: The file cannot be written or locked, or is a link; the lock is not held.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK_NAME
        self._file: int | None = os.open(
            self._path, os.O_RDWR | os.O_CREAT | _SAFE_OPEN, _PRIVATE_MODE
        )
        try:
            _lock_exclusively(self._file)
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
                os.fchmod(self._file, _PRIVATE_MODE)
            length = os.fstat(self._file).st_size
            os.pwrite(self._file, json.dumps(holder).encode().ljust(length), 0)

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        """Write the address and the token of the API of this process; see ``Store.publish_address``."""
        owner: dict[str, Any] = {"pid": os.getpid()}
        if url is not None:
            owner |= {"url": url, "token": token}
            if not is_service:
                owner["is_service"] = False
        self.write_owner(owner)

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


def _lock_exclusively(file: int) -> None:
    """Lock a file; wait for processes that only ask for its owner, not for an owner.

    Raises:
        BlockingIOError: Another process owns it, or asked all the time.
        OSError: The file system has no locks.
    """
    until = time.monotonic() + START_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if _is_held(file) or time.monotonic() > until:
                raise
            time.sleep(_RETRY_S)


def _is_held(file: int) -> bool:
    """Return whether another process owns the lock of a file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def is_owned(directory: Path) -> bool:
    """Return whether a live process owns a directory; True also where this cannot be found out.

    Without an owner an execution whose status says that it runs was interrupted: see
    ``planwave.storage.records.is_interrupted``.
    """
    try:
        with _open_lock_file(directory) as file:
            return _is_held(file)
    except FileNotFoundError:
        return False
    except OSError:  # the file of another user, a link, a file system without locks
        return True


def read_owner(directory: Path) -> dict[str, Any] | None:
    """Return the process that holds the lock of a directory, as it describes itself.

    None if no process holds it, whatever the file says, or if its description is not to be trusted:
    the file belongs to another user (unless this process is root), or others may use it.
    """
    with suppress(OSError, ValueError, RecursionError), _open_lock_file(directory) as file:
        status = os.fstat(file)
        is_private = stat.S_ISREG(status.st_mode) and status.st_mode & 0o777 == _PRIVATE_MODE
        if not is_private or os.geteuid() not in (0, status.st_uid) or not _is_held(file):
            return None
        holder = json.loads(os.pread(file, status.st_size, 0))
        if isinstance(holder, dict):
            return holder  # pyright: ignore[reportUnknownVariableType]
    return None


@contextmanager
def _open_lock_file(directory: Path) -> Generator[int]:
    file = os.open(directory / LOCK_NAME, os.O_RDONLY | _SAFE_OPEN)
    try:
        yield file
    finally:
        os.close(file)


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
