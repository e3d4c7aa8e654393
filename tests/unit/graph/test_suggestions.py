"""Guessing which name was meant."""

from __future__ import annotations

import pytest

from planwave.graph.suggestions import closest_match


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("LLM", "llm"),
        ("Compare Results", "compare_results"),
        ("compare_result", "compare_results"),
        ("divide", None),  # only half of its letters are those of "void"
        ("zzz", None),
        ("", None),
        ("x" * 65, None),
    ],
)
def test_the_closest_known_name_is_suggested(name: str, guess: str | None) -> None:
    assert closest_match(name, ["agent", "llm", "void", "compare_results"]) == guess


def test_nothing_is_suggested_among_very_many_names() -> None:
    assert closest_match("n1", [f"N{i}" for i in range(301)]) is None
