"""What is JSON: the value that comes back once it was stored, or the reason why there is none."""

from __future__ import annotations

import enum
import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from planwave.graph.json_values import (
    MAX_VALUE_DEPTH,
    NotJson,
    json_findings,
    to_json,
    to_json_each,
)
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
def test_a_converted_value_equals_the_stored_one(value: Any) -> None:
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
def test_tuples_become_lists_and_subclasses_plain_values(value: Any, stored: Any) -> None:
    converted = to_json(value)
    assert converted == stored
    assert repr(converted) == repr(stored)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1}, "a set"),
        ([b"x"], "a bytes"),
        ({"a": object()}, "an object"),
        (math.nan, "the number nan"),
        ([-math.inf], "the number -inf"),
        ("\ud800", "text with a lone surrogate"),
        ({"\ud800": 1}, "an object with the key '\\ud800'"),
        ({7: 1}, "an object with the key 7"),
        (1 << 14_001, "an integer of more than 4000 digits"),
        (nested_lists(MAX_VALUE_DEPTH + 1), "nested deeper than 200"),
    ],
)
def test_a_value_that_is_not_json_is_rejected_with_its_reason(value: Any, reason: str) -> None:
    with pytest.raises(NotJson) as caught:
        to_json(value)
    assert str(caught.value) == reason


def test_a_value_that_contains_itself_is_nested_too_deep() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    with pytest.raises(NotJson, match="nested deeper"):
        to_json(cyclic)


def test_values_by_name_may_each_have_the_maximal_depth() -> None:
    assert to_json_each({"a": (1,), "b": nested_lists(MAX_VALUE_DEPTH)})["a"] == [1]
    with pytest.raises(NotJson, match="the key 7"):
        to_json_each({7: 1})


class AModel(BaseModel):
    text: str


@dataclass
class ADataclass:
    text: str


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (AModel, "write AModel.model_json_schema(), which is the JSON Schema of its values"),
        (ADataclass, "write pydantic.TypeAdapter(ADataclass).json_schema(), which is the JSON "
         "Schema of its values"),
        (ValueError, "write its name as text: 'ValueError'"),
    ],
)  # fmt: skip
def test_a_class_in_place_of_json_has_a_hint_that_names_what_works(kind: type, hint: str) -> None:
    (finding,) = json_findings({"outputSchema": kind})
    assert finding.message == f"/outputSchema is the Python class {kind.__name__}, not a JSON value"
    assert finding.hint == hint
