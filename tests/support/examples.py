"""How many examples a property test tries."""

from __future__ import annotations

from hypothesis import settings

_WITHOUT_A_NUMBER = 100
"""Examples of a test that names no number, in the profile that tries all; hypothesis' own default."""


def examples(count: int) -> int:
    """Return how many of a test's examples the profile of this run tries: all, or a part of them.

    To be called while a test module is imported: the profile is loaded by then.
    """
    return max(count * settings().max_examples // _WITHOUT_A_NUMBER, 1)
