"""The hub as a source: asked cheaply, believed only by hash, never in the way."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from planwave.providers import local_sources
from planwave.providers.local_catalogue import MODEL_FILES
from planwave.providers.local_sources import from_hub

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
    monkeypatch.setattr(local_sources, "_PROBE_S", 0.01)
    assert not fetched(hub, tmp_path, monkeypatch)
    assert hub.asked == []
    let_go.set()
