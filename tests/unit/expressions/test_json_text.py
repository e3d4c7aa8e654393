from __future__ import annotations

from typing import Any

import pytest

from planwave.expressions import copy_json, to_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("é {{", "é {{"),
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        (1.0, "1"),
        (-0.0, "0"),
        (1e16, "10000000000000000"),
        (1e22, "1e+22"),
        ([1.0], "[1.0]"),
        (2**200, str(2**200)),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (["é"], '["é"]'),
    ],
)
def test_a_value_reads_as_itself_nothing_or_compact_json(value: Any, text: str) -> None:
    assert to_text(value) == text


def test_a_copy_shares_no_container() -> None:
    value: Any = {"a": [1, {"b": []}], "c": {}}
    copy = copy_json(value)
    assert copy == value
    copy["a"][1]["b"].append(2)
    copy["c"]["d"] = 1
    assert value == {"a": [1, {"b": []}], "c": {}}
    assert copy_json("text") == "text"
