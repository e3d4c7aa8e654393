"""What is JSON: the value that comes back once it was stored, or the reason why there is none."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.json_values import MAX_VALUE_DEPTH, NotJson, to_json, to_json_each
from planwave.jsonio import dumps_exact
from tests.support.graph.json_values import nested_lists


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Bag(dict[str, Any]):
    """An object of a class of its own."""


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    | st.tuples(inner, inner),
    max_leaves=10,
)  # fmt: skip


@given(VALUES)
def test_a_value_is_what_the_store_gives_back(value: Any) -> None:
    assert to_json(value) == json.loads(dumps_exact(value))


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({"a": {"b": (None,)}}, {"a": {"b": [None]}}),
        (Colour.RED, "red"),
        ([Level.HIGH], [3]),
        ({Colour.RED: 1}, {"red": 1}),
        (Bag(a=Bag()), {"a": {}}),
        ("a\0b", "a\0b"),
        (10**400, 10**400),
        (nested_lists(MAX_VALUE_DEPTH), nested_lists(MAX_VALUE_DEPTH)),
    ],
)
def test_tuples_are_lists_and_subclasses_are_plain(value: Any, stored: Any) -> None:
    made = to_json(value)
    assert made == stored
    assert repr(made) == repr(stored)


def test_what_is_plain_already_is_not_copied() -> None:
    value: Any = {"a": [1, 2.5, "é", None, True, {}]}
    assert to_json(value) is value


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({1}, "a set"),
        ([b"x"], "a bytes"),
        ({"a": object()}, "a object"),
        (math.nan, "the number nan"),
        ([-math.inf], "the number -inf"),
        ("\ud800", "text with a lone surrogate"),
        ({"\ud800": 1}, "an object with the key '\\ud800'"),
        ({7: 1}, "an object with the key 7"),
        (1 << 14_001, "an integer of more than 4000 digits"),
        (nested_lists(MAX_VALUE_DEPTH + 1), "nested deeper than 200"),
    ],
)
def test_what_is_not_json_is_named(value: Any, fault: str) -> None:
    with pytest.raises(NotJson) as caught:
        to_json(value)
    assert str(caught.value) == fault


def test_a_knot_is_nested_too_deep() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(NotJson, match="nested deeper"):
        to_json(knot)


def test_values_by_name_may_each_be_as_deep_as_a_value() -> None:
    assert to_json_each({"a": (1,), "b": nested_lists(MAX_VALUE_DEPTH)})["a"] == [1]
    with pytest.raises(NotJson, match="the key 7"):
        to_json_each({7: 1})
