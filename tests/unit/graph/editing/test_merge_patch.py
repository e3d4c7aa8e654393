"""JSON merge patches."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.editing.merge_patch import apply_merge_patch

RFC_7396 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]
"""The test cases of RFC 7396, appendix A."""


@pytest.mark.parametrize(("target", "patch", "result"), RFC_7396, ids=str)
def test_merge_patch_follows_rfc_7396(target: Any, patch: Any, result: Any) -> None:
    before = json.dumps([target, patch])
    assert apply_merge_patch(target, patch) == result
    assert json.dumps([target, patch]) == before


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
)


@given(VALUES, VALUES)
def test_merge_patch_is_idempotent(target: Any, patch: Any) -> None:
    once = apply_merge_patch(copy.deepcopy(target), patch)
    assert apply_merge_patch(once, patch) == once
