from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import InputError
from planwave.service.executions.labels import checked_changes


def test_labels_are_one_line_each_and_kept_once() -> None:
    given = {"name": " Two\nwords ", "tags": [" a ", "b  c", "a", " "], "note": " n "}
    assert checked_changes(given) == {"name": "Two words", "tags": ("a", "b c"), "note": "n"}
    assert checked_changes({"name": "  "}) == {"name": None}
    assert checked_changes({"name": None, "starred": True}) == {"name": None, "starred": True}
    assert checked_changes({}) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "x" * 201},
        {"note": "x" * 2_001},
        {"tags": ["x" * 41]},
        {"tags": [str(n) for n in range(21)]},
    ],
)
def test_labels_are_bounded(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        checked_changes(changes)
    assert caught.value.code == "invalid-labels"
