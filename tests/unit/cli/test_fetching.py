from pathlib import Path
from typing import Any

import pytest

from planwave.cli.fetching import fetch_missing, fetch_showing
from planwave.cli.interrupt import Interrupted
from planwave.errors import InputError, UnknownModel
from planwave.settings import Settings
from tests.fakes.terminal import plain_screen, terminal_screen, visible, written

NAME = "qwen2.5-coder-0.5b"


def fetch(name: str, directory: Path, *, progress: Any) -> Path:
    for done in range(0, 101):
        progress(name, done * 1_000_000, 100_000_000)
    return directory / f"{name}.gguf"


def interrupted(name: str, directory: Path, *, progress: Any) -> Path:
    raise KeyboardInterrupt


def test_a_pipe_is_told_every_tenth(tmp_path: Path) -> None:
    screen = plain_screen()
    path = fetch_showing(screen, Settings(model_dir=tmp_path), NAME, fetch)
    assert path == tmp_path / f"{NAME}.gguf"
    lines = written(screen).splitlines()
    assert lines == [f"{NAME}: {percent} % of 100 MB" for percent in range(0, 101, 10)]


def test_a_terminal_gets_a_bar_that_goes_when_it_is_done(tmp_path: Path) -> None:
    screen = terminal_screen(width=100)
    fetch_showing(screen, Settings(model_dir=tmp_path), NAME, fetch)
    assert "100.0/100.0 MB" in written(screen)
    assert visible(screen) == []


def test_a_missing_model_is_announced_in_one_line_with_size_and_place(tmp_path: Path) -> None:
    screen = plain_screen()
    fetch_missing(screen, Settings(model_dir=tmp_path), NAME, fetch)
    first = written(screen).splitlines()[0]
    assert "0.5 GB" in first
    assert str(tmp_path) in first


def test_an_interruption_says_that_nothing_fetched_is_lost(tmp_path: Path) -> None:
    screen = plain_screen()
    with pytest.raises(Interrupted, match=f"what was fetched of {NAME} is kept") as caught:
        fetch_showing(screen, Settings(model_dir=tmp_path), NAME, interrupted)
    assert caught.value.hint == f"go on: planwave model pull {NAME}"


def test_a_file_of_ones_own_is_not_to_be_fetched(tmp_path: Path) -> None:
    screen = plain_screen()
    with pytest.raises(InputError, match=r"my\.gguf is a file of your own") as caught:
        fetch_showing(screen, Settings(model_dir=tmp_path), "~/my.gguf", fetch)
    assert "planwave model pull qwen2.5-coder-1.5b" in str(caught.value.hint)


def test_a_home_directory_that_is_not_known_is_shown_as_it_was_written() -> None:
    screen = plain_screen()
    fetch_missing(screen, Settings(model_dir=Path("~nobody-of-that-name/m")), NAME, fetch)
    assert "~nobody-of-that-name/m" in written(screen)


def test_an_unknown_model_is_refused_before_anything_is_shown(tmp_path: Path) -> None:
    screen = plain_screen()
    with pytest.raises(UnknownModel):
        fetch_showing(screen, Settings(model_dir=tmp_path), "nothing", fetch)
    assert written(screen) == ""
