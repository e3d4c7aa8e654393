"""Streamed text: pieces at offsets, which replace, repeat or extend what is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.events.streamed_text import Change, KeptText, StreamedText

PIECES = st.lists(st.tuples(st.integers(0, 6), st.text("ab", max_size=4)), max_size=8)


def text_of(*pieces: tuple[int, str]) -> StreamedText:
    text = StreamedText()
    for offset, piece in pieces:
        text.merge(offset, piece)
    return text


@pytest.mark.parametrize(
    ("offset", "piece", "change", "text"),
    [
        (5, " you", Change(5, " you"), "Hello you"),
        (0, "Hel", None, "Hello"),
        (3, "lo you", Change(5, " you"), "Hello you"),
        (3, "p", Change(3, "p"), "Help"),
        (0, "Bye", Change(0, "Bye"), "Bye"),
        (6, "after a gap", None, "Hello"),
        (5, "", None, "Hello"),
    ],
)
def test_text_that_is_repeated_stays_and_other_text_replaces_it(
    offset: int, piece: str, change: Change | None, text: str
) -> None:
    streamed = text_of((0, "Hel"), (3, "lo"))
    assert streamed.merge(offset, piece) == change
    assert str(streamed) == text
    assert len(streamed) == len(text)


def test_a_piece_that_is_put_replaces_all_from_its_offset_on() -> None:
    streamed = text_of((0, "Hello"))
    streamed.put(9, "gap")
    streamed.put(0, "Hel")
    assert (str(streamed), len(streamed)) == ("Hel", 3)


@given(PIECES)
def test_a_reader_that_applies_the_changes_has_the_text(pieces: list[tuple[int, str]]) -> None:
    streamed, read = StreamedText(), ""
    for offset, piece in pieces:
        if (change := streamed.merge(offset, piece)) is not None:
            read = read[: change.offset] + change.content
        assert read == str(streamed)


@given(st.lists(st.text(max_size=4)), st.none() | st.integers(0, 12))
def test_the_begin_of_a_text_is_kept_and_the_rest_counts(
    pieces: list[str], most: int | None
) -> None:
    kept = KeptText(most)
    offsets = [kept.append(piece) for piece in pieces]
    whole = "".join(pieces)
    assert offsets == [len("".join(pieces[:n])) for n in range(len(pieces))]
    assert (str(kept), len(kept)) == (whole[:most], len(whole))
    assert kept.is_cut == (str(kept) != whole)
