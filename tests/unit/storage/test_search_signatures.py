from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planwave.storage.search_signatures import (
    TESTS,
    merge_signatures,
    signature_of,
)
from planwave.storage.search_signatures import (
    tests_of as bits_of,
)


def may_have(signature: bytes, word: str) -> bool:
    """Return what a database finds; its positions are from 1."""
    tests = bits_of(word)
    assert len(tests) == TESTS
    return all(signature[position - 1] in some_bytes for position, some_bytes in tests)


@given(st.text(max_size=60), st.text(min_size=1, max_size=30), st.text(max_size=60))
def test_a_signature_has_every_part_of_its_texts(before: str, word: str, after: str) -> None:
    signature = signature_of("first", before + word + after)
    assert may_have(signature, word)
    assert may_have(merge_signatures(signature_of("x"), signature), word)


def test_most_words_that_a_text_lacks_are_told_from_its_signature() -> None:
    text = " ".join(f"{n:x}" for n in range(10_000, 11_200))
    absent = [f"word{n}" for n in range(100)]
    signature = signature_of(text)
    assert sum(may_have(signature, word) for word in absent) < 3


def test_a_word_of_one_letter_is_told_too() -> None:
    assert not may_have(signature_of("abc"), "z")
    assert may_have(signature_of("東京"), "京")
