from pathlib import Path
from typing import Any

import pytest

from planwave.cli.fetching import download_model, download_with_progress
from planwave.cli.interrupt import Interrupted
from planwave.errors import InputError, UnknownModel
from planwave.settings import Settings
from tests.fakes.terminal import plain_console, terminal_console, visible_lines, console_output

NAME = "qwen2.5-coder-0.5b"


def fetch(name: str, directory: Path, *, progress: Any) -> Path:
    for done in range(0, 101):
        progress(name, done * 1_000_000, 100_000_000)
    return directory / f"{name}.gguf"


def interrupted(name: str, directory: Path, *, progress: Any) -> Path:
    raise KeyboardInterrupt


def test_a_pipe_is_told_every_tenth(tmp_path: Path) -> None:
    screen = plain_console()
    path = download_with_progress(screen, Settings(model_dir=tmp_path), NAME, fetch)
    assert path == tmp_path / f"{NAME}.gguf"
    lines = console_output(screen).splitlines()
    assert lines == [f"{NAME}: {percent} % of 100 MB" for percent in range(0, 101, 10)]


def test_a_terminal_gets_a_bar_that_goes_when_it_is_done(tmp_path: Path) -> None:
    screen = terminal_console(width=100)
    download_with_progress(screen, Settings(model_dir=tmp_path), NAME, fetch)
    assert "100.0/100.0 MB" in console_output(screen)
    assert visible_lines(screen) == []


def test_a_missing_model_is_announced_in_one_line_with_size_and_place(tmp_path: Path) -> None:
    screen = plain_console()
    download_model(screen, Settings(model_dir=tmp_path), NAME, fetch)
    first = console_output(screen).splitlines()[0]
    assert "0.5 GB" in first
    assert str(tmp_path) in first


def test_an_interruption_says_that_nothing_fetched_is_lost(tmp_path: Path) -> None:
    screen = plain_console()
    with pytest.raises(Interrupted, match=f"what was fetched of {NAME} is kept") as caught:
        download_with_progress(screen, Settings(model_dir=tmp_path), NAME, interrupted)
    assert caught.value.hint == f"go on: planwave model pull {NAME}"


def test_a_file_of_ones_own_is_not_to_be_fetched(tmp_path: Path) -> None:
    screen = plain_console()
    with pytest.raises(InputError, match=r"my\.gguf is a file of your own") as caught:
        download_with_progress(screen, Settings(model_dir=tmp_path), "~/my.gguf", fetch)
    assert "planwave model pull qwen2.5-coder-1.5b" in str(caught.value.hint)


def test_a_home_directory_that_is_not_known_is_shown_as_it_was_written() -> None:
    screen = plain_console()
    download_model(screen, Settings(model_dir=Path("~nobody-of-that-name/m")), NAME, fetch)
    assert "~nobody-of-that-name/m" in console_output(screen)


def test_an_unknown_model_is_refused_before_anything_is_shown(tmp_path: Path) -> None:
    screen = plain_console()
    with pytest.raises(UnknownModel):
        download_with_progress(screen, Settings(model_dir=tmp_path), "nothing", fetch)
    assert console_output(screen) == ""
