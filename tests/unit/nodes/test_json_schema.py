"""Schemas of forms: which may be used, what an answer lacks, and that nothing explodes."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from planwave.nodes.json_schema import (
    MAX_PARTS,
    MAX_WORK_FOR_ALL_ERRORS,
    certain_errors,
    check_schema,
    validate,
)
from tests.support.cpu_time import cpu_within

TRAVEL: dict[str, Any] = {
    "$id": "https://example.org/travel",
    "type": "object",
    "$defs": {"day": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}},
    "properties": {
        "from": {"$ref": "#/$defs/day"},
        "to": {"$ref": "#/$defs/day"},
        "seats": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "a/b": {"const": 1},
        "$ref": {"type": "string"},
    },
    "required": ["from", "to"],
    "additionalProperties": False,
}


def doubled(times: int, leaf: Any, keyword: str = "allOf") -> dict[str, Any]:
    """Return a schema that expands to its leaf ``2 ** times`` times."""
    parts = {f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(times)}
    return {"$defs": {**parts, f"a{times}": leaf}, "$ref": "#/$defs/a0"}


def chain(length: int, *, backwards: bool = False) -> dict[str, Any]:
    names = [f"a{n}" for n in range(length)]
    names = names[::-1] if backwards else names
    parts: dict[str, Any] = {one: {"$ref": f"#/$defs/{other}"} for one, other in pairwise(names)}
    return {"$defs": {**dict(sorted(parts.items())), names[-1]: {}}}


def nested(levels: int, keyword: str = "not", inner: Any = True) -> Any:
    for _ in range(levels):
        inner = {keyword: inner}
    return inner


def looking_again(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": False}
    return schema


def test_a_usable_schema_has_no_findings() -> None:
    assert check_schema(TRAVEL) == []
    assert check_schema({}) == []
    assert check_schema(doubled(5, {"type": "string"})) == []
    assert check_schema({"allOf": [{"type": "array"}, {"not": {"$ref": "#/allOf/0"}}]}) == []
    assert check_schema(chain(30)) == check_schema(chain(30, backwards=True)) == []


def test_all_errors_of_a_schema_are_reported_with_their_pointer() -> None:
    schema = {"type": "objct", "properties": 3, "items": {"minLength": -1}, "pattern": "["}
    findings = check_schema(schema)
    assert sorted(f.pointer for f in findings) == [
        "/items/minLength", "/pattern", "/properties", "/type",
    ]  # fmt: skip
    (pattern,) = (f for f in findings if f.pointer == "/pattern")
    assert "look-around" in str(pattern.hint)


@pytest.mark.parametrize(
    ("schema", "pointer", "words"),
    [
        ({"$ref": "http://127.0.0.1:9/x"}, "/$ref", "leads out of the schema"),
        ({"$ref": "file:///etc/passwd"}, "/$ref", "leads out of the schema"),
        ({"items": {"$ref": "other.json"}}, "/items/$ref", "leads out of the schema"),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, "/$ref", "leads out"),
        ({"$ref": "#"}, "/$ref", "leads out of the schema"),
        ({"$ref": "#/$defs/a%2Fb"}, "/$ref", "no plain path"),
        ({"$ref": "#/$defs/a"}, "/$ref", "there is nothing at '#/$defs/a'"),
        ({"allOf": [{"$ref": "#/allOf/7"}]}, "/allOf/0/$ref", "there is nothing"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "/$defs/a/items/$ref", "to itself"),
        (
            {"properties": {"a": {"not": {"$ref": "#/properties/b"}}, "b": {"$ref": "#/properties/a"}}},
            "/properties/a/not/$ref",
            "leads back to itself",
        ),
        ({"$defs": {"a": {"$dynamicRef": "#a"}}}, "/$defs/a/$dynamicRef", "not for forms"),
        ({"$recursiveRef": "#"}, "/$recursiveRef", "not for forms"),
        ({"items": {"$id": "http://x/y"}}, "/items/$id", "only the whole schema"),
        ({"pattern": "(?=a)b"}, "/pattern", "regex"),
        ({"pattern": r"(a)\1"}, "/pattern", "regex"),
        ({"pattern": r"\w{5000}"}, "/pattern", "regex"),
        ({"patternProperties": {"(": {}}}, "/patternProperties", "regex"),
        (3, "", "not of type"),
        ({"title": "\ud800"}, "/title", "surrogate"),
        ({"enum": [{1: 2}]}, "/enum/0", "not text"),
        ({"$ref": "#/const", "const": {"pattern": "["}}, "/const/pattern", "regex"),
        (doubled(20, {}), "", f"more than {MAX_PARTS} parts"),
        ({"enum": list(range(MAX_PARTS))}, "", f"more than {MAX_PARTS} parts"),
        ({"patternProperties": {f"a{n}": {} for n in range(100)}}, "", "parts"),
        (looking_again(12), "", f"more than {MAX_PARTS} parts"),
        (nested(70), "/not" * 64, "json_depth is 64"),
        (chain(100), "", "deeper than 64 levels"),
        (chain(100, backwards=True), "", "deeper than 64 levels"),
    ],
)  # fmt: skip
def test_external_recursive_and_exploding_schemas_are_rejected(
    schema: Any, pointer: str, words: str
) -> None:
    with cpu_within(2):
        (finding, *_) = check_schema(schema)
    assert finding.pointer.startswith(pointer)
    assert words in finding.message
    assert validate(schema, {})[0].message.startswith("the requested form cannot be")


def test_a_valid_form_has_no_findings() -> None:
    filled = {"from": "2026-05-01", "to": "2026-05-02", "seats": [1, 2], "$ref": "x"}
    assert validate(TRAVEL, filled) == []
    assert validate({"format": "email"}, "no address") == [], "formats are hints"


def test_all_errors_of_a_form_are_reported_with_pointer_and_without_the_value() -> None:
    filled = {"from": "s3cret", "seats": [1, 0, "x"], "a/b": 2, "more": 1}
    findings = {(finding.pointer, finding.message) for finding in validate(TRAVEL, filled)}
    assert {pointer for pointer, _ in findings} == {"", "/from", "/seats/1", "/seats/2", "/a~1b"}
    assert len(findings) == 6
    assert ("", '"to" is a required property') in findings
    assert not any("s3cret" in message for _, message in findings)


def test_long_messages_are_cut() -> None:
    (finding,) = validate({"enum": [f"choice number {n}" for n in range(100)]}, "other")
    assert len(finding.message) < 400


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"pattern": "(a+)+$"}, "a" * 30_000 + "b"),
        ({"pattern": r"(x+x+)+y"}, "x" * 30_000),
        ({"uniqueItems": True}, [{"n": n} for n in range(20_000)]),
        ({"multipleOf": 7}, 10**400),
        ({"multipleOf": 5e-324}, 1e308),
        ({"anyOf": [{"type": "integer"}] * 300}, ["x" * 30] * 100),
        ({"items": {"allOf": [False] * 500}}, list(range(30))),
        (looking_again(5), {f"f{n}": n for n in range(200)}),
    ],
)
def test_the_check_of_a_form_takes_bounded_time(schema: Any, form: Any) -> None:
    with cpu_within(5):
        validate(schema, form)


def test_of_a_large_form_only_the_first_error_is_reported() -> None:
    schema = {"items": {"type": "integer"}}
    assert validate(schema, [1] * MAX_WORK_FOR_ALL_ERRORS) == []
    (finding,) = validate(schema, [*range(MAX_WORK_FOR_ALL_ERRORS), "x", "y"])
    assert finding.pointer == f"/{MAX_WORK_FOR_ALL_ERRORS}"


def test_a_form_too_large_for_its_schema_is_rejected_without_a_check() -> None:
    schema = {"items": {"anyOf": [{"type": "integer"}] * 400}}
    (finding,) = validate(schema, ["long " * 2_000] * 20)
    assert "too large" in finding.message
    (named,) = validate(schema, {"long " * 9_000: 1})
    assert "too large" in named.message


@pytest.mark.slow
def test_the_schema_library_is_loaded_only_for_forms() -> None:
    code = (
        "import sys, planwave.service.executions.answers as r, planwave.nodes.library\n"
        "r.validate_answer({'actions': ['go']}, {'decision': 'go'})\n"
        "before = 'jsonschema_rs' in sys.modules\n"
        "r.validate_answer({'actions': ['go'], 'form': {}}, {'decision': 'go'})\n"
        "print(before, 'jsonschema_rs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


CONDITIONAL: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"type": "string"}, "size": {"type": "integer"}},
    "if": {"properties": {"kind": {"const": "box"}}},
    "then": {"required": ["size"]},
    "minProperties": 2,
}


@pytest.mark.parametrize(
    ("schema", "value", "pointers"),
    [
        (TRAVEL, {"from": "?", "to": "?"}, []),
        (TRAVEL, {"from": "?"}, [""]),
        (TRAVEL, {"from": "?", "to": "soon"}, ["/to"]),
        (TRAVEL, {"from": "?", "to": "?", "seats": ["?", 0, 2]}, ["/seats/1"]),
        (TRAVEL, {"from": "?", "to": "?", "seats": "?"}, []),
        (TRAVEL, {"from": "?", "to": "?", "a~/c": "?", "d": 1}, ["/a~0~1c", "/d"]),
        ({"type": "object", "additionalProperties": False}, {"a": 1, "b": "?"}, ["/a", "/b"]),
        ({"properties": {"a": False}}, {"a": 1, "b": "?"}, ["/a"]),
        ({"properties": {"a": {"additionalProperties": False}}}, {"a": {"b": "?"}}, ["/a/b"]),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"c": "?"}, []),
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"c": 1}, [""]),
        (CONDITIONAL, {"kind": "box", "other": 1}, [""]),
        (CONDITIONAL, {"kind": "?", "other": 1}, []),
        (CONDITIONAL, {"kind": "box", "other": "?"}, []),
        ({"type": "no type"}, {"a": 1}, []),
        ({"items": {"maximum": 0}}, [1] * 3, ["/0", "/1", "/2"]),
        ({"items": {"maximum": 0}}, [1] * (MAX_WORK_FOR_ALL_ERRORS + 1), []),
    ],
)
def test_errors_are_certain_whatever_becomes_of_the_open_texts(
    schema: Any, value: Any, pointers: list[str]
) -> None:
    found = certain_errors(schema, value, "?".__eq__)
    assert sorted(each.pointer for each in found) == sorted(pointers)
