"""Schemas of servers: whatever they are, planwave offers its tool, and refuses nothing that fits the schema."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from planwave.graph.reading.json_schemas import parts_of
from planwave.nodes.agents.server_schemas import MAX_BYTES, usable_schema
from planwave.nodes.json_schema import MAX_PARTS, check_schema, validate

TEXT: dict[str, Any] = {"type": "string"}
ZOD_EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
ZOD_DURATION = (
    r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$"
)


def with_a(part: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, **more}


class Tree(BaseModel):
    """A recursive type, as pydantic writes it."""

    name: str
    parent: Tree | None = None
    children: list[Tree] = []


@pytest.mark.parametrize(
    ("part", "left", "left_out"),
    [
        ({**TEXT, "format": "email", "pattern": ZOD_EMAIL}, {**TEXT, "format": "email"}, "pattern"),
        ({**TEXT, "pattern": ZOD_DURATION}, TEXT, "pattern"),
        ({**TEXT, "pattern": r"(a)\1"}, TEXT, "pattern"),
        ({**TEXT, "pattern": "[^]"}, TEXT, "pattern"),
        ({**TEXT, "pattern": "^.{0,5000}$"}, TEXT, "pattern"),
        ({**TEXT, "pattern": 7}, TEXT, "pattern"),
        ({"type": "file", "title": "A"}, {"title": "A"}, "type"),
        ({"type": "any", "title": "A"}, {"title": "A"}, None),
        ({**TEXT, "description": None, "title": None}, TEXT, None),
        ({**TEXT, "examples": "a"}, {**TEXT, "examples": ["a"]}, None),
        ({**TEXT, "required": True}, TEXT, "required"),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}, None),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}, None),
        (
            {"items": [TEXT, {}], "additionalItems": False},
            {"prefixItems": [TEXT, {}], "items": False},
            None,
        ),
        ({**TEXT, "nullable": True}, {"type": ["string", "null"], "nullable": True}, None),
        ({"properties": ["b"], "additionalProperties": False}, {}, "properties"),
        ("text", {}, None),
        (None, {}, None),
        ({"not": {"pattern": "(?=a)"}}, {}, "not/pattern"),
        ({"oneOf": [{"pattern": "(?=a)"}, TEXT]}, {"anyOf": [{}, TEXT]}, "oneOf/0/pattern"),
        (
            {"if": {"pattern": "(?=a)"}, "then": {"minLength": 3}, "else": False},
            {},
            "if/pattern",
        ),
        (
            {"patternProperties": {"^(?=a)": {}, "^b": TEXT}, "additionalProperties": False},
            {"patternProperties": {"^b": TEXT}},
            "patternProperties/^(?=a)",
        ),
        ({"$ref": "https://example.com/s"}, {}, None),
        ({"$ref": "#/$defs/none", "description": "b"}, {"description": "b"}, None),
        ({"$id": "https://x/y", **TEXT}, TEXT, None),
        (True, True, None),
        ({"const": 1}, {"const": 1}, None),
        ({"dependentRequired": {"b": ["c"]}}, {"dependentRequired": {"b": ["c"]}}, None),
    ],
)  # fmt: skip
def test_what_planwave_cannot_check_is_dropped_and_named(
    part: Any, left: Any, left_out: str | None
) -> None:
    given_schema = with_a(part)
    found = usable_schema(copy.deepcopy(given_schema))
    assert found.schema == with_a(left)
    assert check_schema(dict(found.schema)) == []
    if left_out is not None:
        assert f"/properties/a/{left_out}" in found.note
    else:
        assert bool(found.left_out) == (part in ("text", None) or "$ref" in json.dumps(part))


def test_a_schema_that_can_be_checked_stays_as_it_is() -> None:
    schema = with_a({"$ref": "#/$defs/B"}, **{"$defs": {"B": TEXT}}, required=["a"])
    assert usable_schema(schema) == (schema, ())
    assert usable_schema(with_a(TEXT, required=["a", "a"])) == (with_a(TEXT, required=["a"]), ())


def test_a_reference_with_an_odd_name_is_written_out() -> None:
    listed = {"type": "array", "items": TEXT}
    schema = with_a({"$ref": "#/$defs/List%5Bstr%5D"}, **{"$defs": {"List[str]": listed}})
    assert usable_schema(schema) == (with_a(listed), ())


def depth_of(schema: Any) -> int:
    inner = schema.values() if isinstance(schema, dict) else schema
    return 1 + max(map(depth_of, inner), default=0) if isinstance(schema, (dict, list)) else 0


@pytest.mark.parametrize(
    "schema",
    [
        Tree.model_json_schema(),
        with_a({"type": "array", "items": {"$ref": "#"}}),
        with_a({"$ref": "#/$defs/B"}, **{"$defs": {"B": {"$ref": "#/$defs/C"}, "C": {"$ref": "#/$defs/B"}}}),
        with_a({"$ref": "#/properties/a"}),
        {
            "type": "object",
            "properties": {"expression": {"$ref": "#/$defs/E"}},
            "$defs": {"E": {"oneOf": [{"type": "number"}, {
                "type": "object", "properties": {"left": {"$ref": "#/$defs/E"}, "right": {"$ref": "#/$defs/E"}},
                "additionalProperties": False,
            }]}},
        },
    ],
)  # fmt: skip
def test_recursion_is_cut_at_a_depth_and_deeper_values_fit(schema: dict[str, Any]) -> None:
    found = usable_schema(schema)
    assert check_schema(dict(found.schema)) == []
    assert "$ref" not in json.dumps(found.schema)
    assert "times in itself" in found.note
    deep: Any = {"name": "n", "children": [], "parent": None}
    for _ in range(8):
        deep = {"name": "n", "children": [deep], "parent": None}
    if "children" in schema.get("properties", ()):
        assert validate(dict(found.schema), deep) == []
        assert validate(dict(found.schema), {**deep, "name": 7}) != []


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "d" * 50} for n in range(900)}},
        {"type": "object", "properties": {f"p{n}": {"enum": [*range(50)]} for n in range(90)}},
        {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": "^a"} for n in range(300)}},
        {"type": "object", "properties": {f"p{n}": {} for n in range(3_000)}},
        {"type": "object", "description": "x" * 70_000, "properties": {"p0": TEXT}},
        {"type": "object", "description": "x" * 700_000, "properties": {"p0": TEXT}},
    ],
)  # fmt: skip
def test_a_schema_that_is_too_large_is_made_smaller(schema: dict[str, Any]) -> None:
    found = usable_schema(schema)
    assert check_schema(dict(found.schema)) == []
    assert len(json.dumps(found.schema)) <= MAX_BYTES
    assert "too large" in found.note
    is_named = len(schema["properties"]) <= MAX_PARTS and len(json.dumps(schema)) < 500_000
    assert found.schema["properties"].keys() == (schema["properties"] if is_named else {}).keys()


ODD_PARTS: list[Any] = [
    {"pattern": "(?!a)"}, {"type": "any"}, {"type": "file"}, {"title": None}, {"examples": "a"},
    {"exclusiveMinimum": True, "minimum": 1}, {"items": [{}, True]}, {"$ref": "#"}, {"$ref": "#/$defs/D"},
    {"$ref": "#/$defs/List%5Bstr%5D"}, {"$ref": "http://x/y"}, {"required": ["a", "a"]}, {"$dynamicRef": "#d"},
    {"properties": [1]}, {"enum": 7}, {"$id": "x"}, {"minimum": "1"}, {"patternProperties": {"(?=b)": {}}},
]  # fmt: skip
PLAIN_PARTS: list[Any] = [
    True,
    TEXT,
    {"type": "integer"},
    {"enum": ["a", 1]},
    {"const": None},
    {"type": "null"},
]
NAMES = st.sampled_from(["a", "b", "$top", "my key", "List[str]"])


def _combined(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    listed = st.lists(parts, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, parts, max_size=3)
    one = st.sampled_from(["not", "if", "then", "else", "contains", "items", "additionalProperties",
                           "propertyNames", "unevaluatedProperties"])  # fmt: skip
    return st.one_of(
        st.builds(lambda word, inner: {word: inner}, one, parts),
        st.builds(lambda word, inner: {word: inner}, st.sampled_from(["anyOf", "oneOf", "allOf"]), listed),
        st.builds(lambda inner: {"type": "object", "properties": inner}, named),
        st.builds(lambda inner: {"dependentSchemas": inner}, named),
        st.builds(lambda one, two: {**one, **two} if isinstance(one, dict) and isinstance(two, dict) else one,
                  parts, parts),
    )  # fmt: skip


PARTS = st.recursive(st.sampled_from([*ODD_PARTS, *PLAIN_PARTS]), _combined, max_leaves=8)
SOUND = st.recursive(st.sampled_from(PLAIN_PARTS), _combined, max_leaves=8)


@given(st.dictionaries(NAMES, PARTS, max_size=3), st.dictionaries(st.just("D"), PARTS), PARTS)
def test_any_schema_of_an_object_can_be_offered(
    properties: dict[str, Any], defs: dict[str, Any], beside: Any
) -> None:
    more = beside if isinstance(beside, dict) else {}
    schema = {**more, "type": "object", "properties": properties, "$defs": defs}
    before = copy.deepcopy(schema)
    found = usable_schema(schema)
    assert schema == before
    assert check_schema(dict(found.schema)) == []
    assert found.schema["type"] == "object"


VALUES = st.recursive(
    st.none() | st.integers(0, 2) | st.sampled_from(["a", "b", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=5,
)


@given(SOUND, st.dictionaries(NAMES, VALUES, max_size=3), st.data())
def test_what_fits_a_schema_fits_its_copy(part: Any, value: dict[str, Any], data: Any) -> None:
    """A pattern that no text fails is put somewhere, so that the schema has to be adapted there."""
    schema = with_a(
        part,
        **{key: part[key] for key in ("not", "oneOf", "if") if key in part}
        if isinstance(part, dict)
        else {},
    )
    fits = not check_schema(schema) and not validate(schema, value)
    poisoned = copy.deepcopy(schema)
    places = [each for each in _dicts(poisoned) if each is not poisoned.get("properties")]
    data.draw(st.sampled_from(places))["pattern"] = "(?=)"
    found = usable_schema(poisoned)
    assert not fits or validate(dict(found.schema), value) == [], found


def _dicts(schema: Any) -> list[dict[str, Any]]:
    """Return the schemas in a generated one."""
    return [part for _, part in parts_of(schema)]
