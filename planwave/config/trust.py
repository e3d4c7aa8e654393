"""What the user of this account trusts: settings files and storage directories of folders.

A folder may come from a stranger. Therefore its ``planwave.toml`` counts only with the content that the
user has looked at, and its ``storage`` only if planwave made it for this user. Both are recorded in the
state directory of the user (``$XDG_STATE_HOME/planwave``, by default ``~/.local/state/planwave``), one
small file for each: a path, and the proof of what stands there, the SHA-256 of a settings file or the
random marker in a storage directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

_LOCK_S: Final = 2.0
"""How long one process waits for another that records something; both need some milliseconds."""
_POLL_S: Final = 0.01
_MAX_RECORD_BYTES: Final = 64 * 1024
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

_of_this_process: set[tuple[str, str]] = set()
"""What this process has recorded, also where nothing can be written."""


class Trusted(NamedTuple):
    """One thing that the user trusts.

    Attributes:
        path: A settings file, or a storage directory.
        proof: The SHA-256 of the file, or the marker in the directory.
        at: When the user trusted it, in UTC.
    """

    path: str
    proof: str
    at: str


def config_directory() -> Path | None:
    """Return the directory of the user's own settings; None if the home directory is unknown."""
    return _user_directory("XDG_CONFIG_HOME", ".config")


def state_directory() -> Path | None:
    """Return the directory of what planwave remembers; None if the home directory is unknown."""
    return _user_directory("XDG_STATE_HOME", ".local/state")


def _user_directory(variable: str, default: str) -> Path | None:
    # A relative path, or a ``~`` that stands for nothing, would be one of the working directory.
    directory, home = os.environ.get(variable, ""), os.environ.get("HOME", os.path.expanduser("~"))
    chosen = directory if os.path.isabs(directory) else os.path.join(home, default)
    return Path(chosen) / "planwave" if os.path.isabs(chosen) else None


def location(path: Path) -> str:
    """Return the absolute path of a file in its folder; links count in the folder, not in the name.

    So a link in a folder is another thing than what it points to.
    """
    if path.name in ("", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(path.parent), path.name)


def is_trusted(path: Path, proof: str) -> bool:
    """Return whether the user trusts what stands at a path."""
    return (location(path), proof) in _of_this_process or is_recorded(path, proof)


def is_recorded(path: Path, proof: str) -> bool:
    """Return whether later processes will trust what stands at a path."""
    here, folder = location(path), _records()
    record = None if folder is None else _read_record(folder / _record_name(here, proof))
    return record is not None and (record.path, record.proof) == (here, proof)


def record(path: Path, proof: str) -> bool:
    """Record that the user trusts what stands at a path, in place of what stood there before.

    Returns:
        Whether later processes know of it; without a writable home only this one does.
    """
    here = location(path)
    _of_this_process.add((here, proof))
    folder = _records()
    if folder is None:
        return False
    name = _record_name(here, proof)
    content = json.dumps(Trusted(here, proof, _now())._asdict())
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=folder)  # mode 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        Path(temporary).replace(folder / name)
    except OSError:
        return False
    _forget(here, except_name=name)
    return True


def revoke(path: Path) -> bool:
    """Forget a path; return whether it was trusted.

    Raises:
        OSError: Its record cannot be removed.
    """
    here = location(path)
    of_here = {each for each in _of_this_process if each[0] == here}
    _of_this_process.difference_update(of_here)
    return _forget(here) or bool(of_here)


def recorded() -> list[Trusted]:
    """Return all that the user trusts, by path."""
    return sorted(record for _, record in _all_records())


def sha256(content: bytes) -> str:
    """Return the proof of a settings file."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def exclusive() -> Generator[None]:
    """Let no other process of this user make a storage directory in the block, as far as possible."""
    folder, file = _records(), None
    with suppress(OSError):
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            _lock(file)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def _lock(file: int) -> None:
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                return
            time.sleep(_POLL_S)


def _records() -> Path | None:
    state = state_directory()
    return None if state is None else state / "trusted"


def _record_name(here: str, proof: str) -> str:
    return hashlib.sha256(os.fsencode(f"{here}\0{proof}")).hexdigest() + ".json"


def _all_records() -> Generator[tuple[Path, Trusted]]:
    folder = _records()
    for file in () if folder is None else folder.glob("*.json"):
        if (record := _read_record(file)) is not None:
            yield file, record


def _read_record(file: Path) -> Trusted | None:
    """Return a record; None if there is none, or another user made it or may change it."""
    content: Any = None
    with suppress(OSError, ValueError, RecursionError), file.open("rb") as opened:
        status = os.fstat(opened.fileno())
        if status.st_uid == os.geteuid() and not status.st_mode & WRITABLE_BY_OTHERS:
            content = json.loads(opened.read(_MAX_RECORD_BYTES))
    if not isinstance(content, dict):
        return None
    fields: list[Any] = [content.get(name) for name in Trusted._fields]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return Trusted(*fields) if all(isinstance(each, str) for each in fields) else None


def _forget(here: str, except_name: str | None = None) -> bool:
    removed = False
    for file, record in _all_records():
        if record.path == here and file.name != except_name:
            file.unlink(missing_ok=True)
            removed = True
    return removed


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
