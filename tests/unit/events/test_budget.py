from __future__ import annotations

import pytest

from planwave.events.budget import amount_text, used_text


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("usd", 0, "$0.00"),
        ("usd", 4.1, "$4.10"),
        ("usd", 0.0512, "$0.0512"),
        ("usd", 0.0000106, "$0.0000106"),
        ("tokens", 12_000, "12,000 tokens"),
        ("calls", 1, "1 call"),
        ("wall_s", 90.5, "90.5 s"),
    ],
)
def test_amounts_are_written_without_an_exponent(name: str, amount: float, text: str) -> None:
    assert amount_text(name, amount) == text


def test_what_is_used_is_written_beside_its_limit() -> None:
    used = used_text({"usd": 5, "calls": 1}, {"usd": 0.0000106, "calls": 1})
    assert used == "$0.0000106 of $5.00, 1 of 1 call"
