"""Whether a storage directory is one that planwave made for this user.

A default ``./storage`` may come with a folder from a stranger: its executions would go on, its tokens and
triggers would be valid. Therefore planwave writes a random marker into a directory that it makes, and
records path and marker in the state directory of the user (``trust``). A directory that the user names
needs none.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planwave.config import trust
from planwave.errors import InputError
from planwave.storage.files import require_directory

if TYPE_CHECKING:
    from planwave.settings import Settings

MARKER_NAME: Final = "planwave.id"
_MARKER: Final = re.compile(rb"[0-9a-f]{64}")
DEFAULT_NAME: Final = "storage"


def is_trusted(settings: Settings) -> bool:
    """Return whether the storage directory may be written, and what is in it may run.

    Its user has named it, planwave made it for this user, or there is nothing in it.
    """
    return "storage_dir" in settings.model_fields_set or is_own(settings.storage_dir)


def require_trusted(settings: Settings) -> None:
    """Check that the storage directory may be written.

    Raises:
        InputError: ``storage-untrusted``.
    """
    if not is_trusted(settings):
        raise untrusted_error(settings.storage_dir)


def untrusted_error(directory: Path) -> InputError:
    """Return the error for a directory that may be read only."""
    return InputError(
        f"./{directory} was not made by planwave for you, and can only be read",
        code="storage-untrusted",
        hint=f"trust what is in it: planwave trust ./{directory}; or name a directory: --storage DIR",
    )


def is_own(directory: Path) -> bool:
    """Return whether planwave made a directory for this user, or there is nothing yet.

    A link is never own: it may point anywhere.
    """
    if _is_marked(directory) or _is_unused(directory):
        return True
    # Another process may be making it just now, and has marked it at the end of this block.
    with trust.exclusive():
        return _is_marked(directory)


def is_remembered(directory: Path) -> bool:
    """Return whether later processes will find that planwave made a directory."""
    marker = _read_marker(directory)
    return marker is not None and trust.is_recorded(directory, marker)


def make_directory(directory: Path) -> None:
    """Make a storage directory, mode 0700; mark it if it may be the default one of its folder.

    Raises:
        StoreError: ``store-unusable``.
        OSError: It cannot be made.
    """
    may_be_default = directory.name == DEFAULT_NAME
    with trust.exclusive() if may_be_default else nullcontext():
        is_unused = may_be_default and _is_unused(directory)
        require_directory(directory)
        directory.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            directory.mkdir(mode=0o700)
        if is_unused:
            mark(directory)


def mark(directory: Path) -> bool:
    """Mark a directory as this user's; return whether later processes will know of it.

    Raises:
        OSError: The marker cannot be written.
    """
    marker = secrets.token_hex(32)
    is_remembered = trust.record(directory, marker)
    file, unfinished = directory / MARKER_NAME, directory / f".{MARKER_NAME}.{os.getpid()}.tmp"
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, marker.encode())
    finally:
        os.close(handle)
    unfinished.replace(file)
    return is_remembered


def _is_unused(directory: Path) -> bool:
    """Return whether a directory is missing, or this user's and empty."""
    try:
        status = os.lstat(directory)
        is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        return is_own and not status.st_mode & stat.S_IWOTH and not os.listdir(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_marked(directory: Path) -> bool:
    marker = _read_marker(directory)
    return marker is not None and trust.is_trusted(directory, marker)


def _read_marker(directory: Path) -> str | None:
    with suppress(OSError):
        if directory.is_symlink():
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(directory / MARKER_NAME, flags)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                content = file.read(128)
                return content.decode() if _MARKER.fullmatch(content) else None
    return None
