"""Signatures of texts: which sequences of up to three characters occur in a text, as bits of one small value.

A text whose signature lacks a bit of a word does not have the word. So a search reads one kilobyte of most
texts in place of all of it, in any database, and no index has to be maintained while executions run: a
full-text index took milliseconds of each execution. A bit may be there by chance; what is left is searched.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

_BYTES: Final = 1024
_WIDTH: Final = 3
TESTS: Final = 6
"""How many bits of a word are tested."""

_WITH_BIT: Final = tuple(bytes(n for n in range(256) if n >> bit & 1) for bit in range(8))
"""For each bit the bytes that have it."""


def signature_of(*texts: str) -> bytes:
    """Return the signature of some texts."""
    signature = 0
    for text in texts:
        parts = {
            text[n : n + width]
            for width in range(1, _WIDTH + 1)
            for n in range(len(text) - width + 1)
        }
        for part in parts:
            for place in _places(part):
                signature |= 1 << place
    return signature.to_bytes(_BYTES, "little")


def merge_signatures(one: bytes, other: bytes) -> bytes:
    """Return the signature of the texts of both."""
    return bytes(a | b for a, b in zip(one, other, strict=True))


def tests_of(word: str) -> list[tuple[int, bytes]]:
    """Return ``TESTS`` tests of a word that is not empty: the position of a byte, from 1, and the bytes that it may be.

    Those of its end come first: ids of one time begin alike, so that tests of their begin leave out nothing.
    """
    width = min(_WIDTH, len(word))
    parts = dict.fromkeys(word[n : n + width] for n in range(len(word) - width + 1))
    places = [place for part in parts for place in _places(part)]
    # Spread over a long word; those of a short one are repeated.
    chosen = [
        places[test * max(len(places), TESTS) // TESTS % len(places)] for test in range(TESTS)
    ]
    return [(place // 8 + 1, _WITH_BIT[place % 8]) for place in reversed(chosen)]


def _places(part: str) -> tuple[int, ...]:
    """Return the bits of a sequence; a short one has two, as there are few to test."""
    content = part.encode("utf-8", "surrogatepass")
    first = crc32(content) % (8 * _BYTES)
    return (first,) if len(part) == _WIDTH else (first, crc32(content + b"\n") % (8 * _BYTES))
