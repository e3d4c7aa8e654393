"""Schemas of other programs: references written out, older words made modern, cut parts loosened."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.reading.json_schemas import (
    CUT,
    loosened,
    modern,
    recursive_references,
    target_of,
    types_of,
    written_out,
)

ROOT: dict[str, Any] = {
    "$id": "https://a.test/s#",
    "$defs": {"a": {"$anchor": "named", "type": "string"}, "List[str]": {"type": "array"}},
    "prefixItems": [{"type": "null"}, {"type": "number"}],
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#/$defs/a", ROOT["$defs"]["a"]),
        ("https://a.test/s#/$defs/a", ROOT["$defs"]["a"]),
        ("#/$defs/List%5Bstr%5D", {"type": "array"}),
        ("#named", ROOT["$defs"]["a"]),
        ("#nobody", None),
        ("#/prefixItems/1", {"type": "number"}),
        ("#/prefixItems/9", None),
        ("#/prefixItems/x", None),
        ("#/$defs/a/type/deeper", None),
        ("https://elsewhere.test/s", None),
    ],
)
def test_a_reference_names_a_part_of_the_document_or_nothing(reference: str, target: Any) -> None:
    assert target_of(reference, ROOT) == target


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"type": "string", "nullable": True}, ["string", "null"]),
        ({"type": "null", "nullable": True}, "null"),
        ({"type": ["string", "string"]}, ["string"]),
    ],
)
def test_a_nullable_type_takes_null(written: dict[str, Any], read: Any) -> None:
    assert modern(written)["type"] == read


def test_the_choices_of_a_nullable_type_have_null_once() -> None:
    assert modern({"type": "string", "nullable": True, "enum": ["a"]})["enum"] == ["a", None]
    assert modern({"type": "string", "nullable": True, "enum": [None]})["enum"] == [None]
    assert modern({"required": [{}, "a"]})["required"] == [{}, "a"]


TREE = {"properties": {"next": {"$ref": "#"}, "leaf": {"$ref": "#/$defs/leaf"}}, "$defs": {"leaf": {"type": "string"}}}  # fmt: skip


def test_recursion_is_found_and_cut_at_a_depth() -> None:
    assert recursive_references(TREE) == {"#"}
    made = written_out(TREE, 1)
    assert made["properties"]["leaf"] == {"type": "string"}
    assert CUT in str(made)
    assert CUT not in str(loosened(made))


@pytest.mark.parametrize("beside", [{"description": "d"}, {"minimum": 1}])
@pytest.mark.parametrize("target", [True, False, {"type": "number"}, {"title": "t"}])
def test_what_stands_beside_a_reference_holds_too(beside: dict[str, Any], target: Any) -> None:
    root = {"$defs": {"a": target}, "properties": {"x": {"$ref": "#/$defs/a", **beside}}}
    made = str(written_out(root, 1)["properties"]["x"])
    assert all(repr(value) in made for value in beside.values())
    if isinstance(target, dict):
        assert all(repr(value) in made for value in target.values())
    if target is False:
        assert "False" in made


def test_a_reference_may_be_kept() -> None:
    root = {"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a", "title": "t"}}}  # fmt: skip
    made = written_out(root, 1, is_kept=lambda reference: True)
    assert made["properties"]["x"] == {"$ref": "#/$defs/a", "title": "t"}


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        ({"not": {CUT: True}}, {}),
        ({"properties": {"a": True}, "not": {CUT: True}}, {"properties": {"a": True}}),
        ({"if": {CUT: True}, "then": {"minimum": 1}, "else": {}}, {}),
        ({"contains": {CUT: True}, "maxContains": 1}, {"contains": {}}),
        ({"oneOf": [{CUT: True}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        (
            {"oneOf": [{CUT: True}], "anyOf": [{"type": "null"}]},
            {"anyOf": [{"type": "null"}], "allOf": [{"anyOf": [{}]}]},
        ),
    ],
)
def test_words_that_would_refuse_more_than_before_go_where_a_part_is_cut(
    schema: dict[str, Any], left: dict[str, Any]
) -> None:
    assert loosened(schema) == left


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (True, True),
        ({"type": "any"}, {}),
        ({"examples": "a"}, {"examples": ["a"]}),
        ({"examples": ["a"]}, {"examples": ["a"]}),
        ({"title": None, "description": None}, {}),
        ({"minimum": 1, "exclusiveMinimum": True}, {"exclusiveMinimum": 1}),
        ({"minimum": 1, "exclusiveMinimum": False}, {"minimum": 1}),
        ({"exclusiveMaximum": True}, {}),
        ({"maximum": 2, "exclusiveMaximum": 3}, {"maximum": 2, "exclusiveMaximum": 3}),
        ({"items": [{"type": "any"}]}, {"prefixItems": [{}]}),
        ({"items": [], "additionalItems": False}, {"items": False}),
        ({"items": {"type": "any"}}, {"items": {}}),
    ],
)
def test_older_words_are_read_as_those_of_today(older: Any, newer: Any) -> None:
    assert modern(older) == newer


@pytest.mark.parametrize(
    ("named", "types"), [("a", ("a",)), (["a", 1, "b"], ("a", "b")), (None, ()), ({}, ())]
)
def test_the_types_of_a_schema_are_those_that_it_names(named: Any, types: Any) -> None:
    assert types_of({"type": named}) == types


def test_a_schema_of_which_nothing_is_cut_stays() -> None:
    schema = {"oneOf": [{"type": "null"}], "not": {"type": "string"}}
    assert loosened(schema) == schema
