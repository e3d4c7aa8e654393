from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import StoreError
from planwave.events import Event
from planwave.jsonio import dumps_exact, dumps_trusted, is_plain
from planwave.storage.event_codec import encode_batch

TEXT = st.text(st.characters())  # lone surrogates and NUL too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(VALUES)
def test_json_values_round_trip(value: Any) -> None:
    text = dumps_exact(value)
    assert json.loads(text) == value
    assert json.dumps(json.loads(text)) == json.dumps(value)  # 1 is not 1.0, nor True
    text.encode()  # a database takes it
    assert json.dumps(json.loads(dumps_trusted(value))) == json.dumps(value)


@given(VALUES.filter(is_plain))
def test_plain_values_have_the_same_text(value: Any) -> None:
    assert dumps_exact([None, value], plain=True) == dumps_exact([None, value])


def circle() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("-inf"), b"", {1, 2}, {(1,): 2}, object(), circle(), 10**5_000],
    ids=["nan", "infinity", "bytes", "set", "key", "object", "circle", "huge number"],
)
def test_invalid_value_is_rejected_with_its_event(value: Any) -> None:
    good = Event("x1", 6, "t", "node.log", "a", 1, {"value": 1})
    event = Event("x1", 7, "t", "node.log", "a", 1, {"value": [value]})
    with pytest.raises(StoreError, match=r"event 7 \(node.log\)") as refused:
        encode_batch("x1", [good, event])
    assert refused.value.code == "not-json"
