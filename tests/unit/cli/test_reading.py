import io
import sys
from pathlib import Path

import pytest

from planwave.cli import reading
from planwave.cli.reading import read_goal, read_json_file, read_source
from planwave.errors import InputError, NotFound


class Stdin(io.TextIOWrapper):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))


def test_a_file_is_read_whole_under_its_name(tmp_path: Path) -> None:
    (tmp_path / "g.json").write_bytes(b"{}")
    source = read_source(str(tmp_path / "g.json"))
    assert source == (str(tmp_path / "g.json"), b"{}")


def test_json_is_read_from_a_file_or_stdin_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "v.json").write_bytes(b'"v"')
    assert read_json_file(str(tmp_path / "v.json")) == b'"v"'
    monkeypatch.setattr(sys, "stdin", Stdin(b"[1]"))
    assert read_json_file("-") == b"[1]"
    with pytest.raises(NotFound):
        read_json_file(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be read"):
        read_json_file(str(tmp_path))


def test_a_dash_is_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"{}"))
    assert read_source("-") == ("stdin", b"{}")
    monkeypatch.setattr(sys, "stdin", Stdin("\ufeffGezeiten erklären\n".encode()))
    assert read_goal("-") == "Gezeiten erklären"
    assert read_goal(" as written ") == " as written "


@pytest.mark.parametrize("name", ["none.json", ""])
def test_a_missing_file_is_said_so_with_the_way_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match=f"there is no file '{name}'") as caught:
        read_source(name)
    assert "--json > FILE" in str(caught.value.hint)


@pytest.mark.parametrize("name", [".", "x" * 5000, "a\0b"])
def test_what_cannot_be_read_is_named_in_one_line(name: str) -> None:
    with pytest.raises(InputError, match="cannot be read: ") as caught:
        read_source(name)
    assert len(caught.value.message) < 300
    assert "- for stdin" in str(caught.value.hint)


def test_a_closed_stdin_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for read in (read_source, read_goal):
        with pytest.raises(InputError, match="stdin is closed"):
            read("-")


def test_a_huge_file_and_a_huge_stdin_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 10)
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(InputError, match="big' is larger than"):
        read_source(str(tmp_path / "big"))
    monkeypatch.setattr(sys, "stdin", Stdin(b"x" * 11))
    with pytest.raises(InputError, match="stdin is larger than"):
        read_goal("-")


def test_a_goal_that_is_no_text_names_the_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(b"ab\xff"))
    with pytest.raises(InputError, match="not UTF-8: byte 2 is 0xff"):
        read_goal("-")
