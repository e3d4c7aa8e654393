"""Strict JSON: what is refused, and where the finger points."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.json_values import JsonLimits, checked_copy, is_storable_text, json_findings
from planwave.graph.reading import strict_json
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.jsonio import MAX_JSON_DEPTH
from tests.support.cpu_time import cpu_within

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner
        )
    ),
    max_leaves=20,
)


numbers = st.sampled_from(
    [
        "0",
        "-0",
        "-0.0",
        "1.0",
        "0.0001",
        "0.00009999",
        "1e-5",
        "1e15",
        "1E16",
        "9999999999999998.0",
        "1e22",
        "1e999",
        "-1e999",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
    ]
) | st.floats().map(json.dumps)
strings = st.sampled_from(
    [r'"\""', r'"\\"', r'"\\\""', r'"\/"', r'"\u0022"', r'"\u0000"', '"a"', '""', r'"\ud800"', '"["']
) | st.text(max_size=3).map(json.dumps)  # fmt: skip
json_texts = st.recursive(
    numbers | strings | st.sampled_from(["null", "true"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{' , '.join(items)}]")
        | st.lists(st.tuples(strings, inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f"{name}: {item}" for name, item in pairs) + "}"
        )
    ),
    max_leaves=12,
)


def errors_of(text: str | bytes, **limits: int) -> list[tuple[str, str]]:
    with pytest.raises(GraphInvalid) as caught:
        parse_strict_json(text, **limits)
    return [(d.code, d.pointer) for d in caught.value.diagnostics]


@given(json_values, st.booleans())
def test_plain_json_is_read_as_the_standard_parser_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_strict_json(text) == value
    assert parse_strict_json(text.encode()) == value


@given(json_texts, st.integers(1, 4))
def test_the_fast_path_gives_the_same_as_the_full_parser(text: str, depth: int) -> None:
    def outcome() -> str:
        try:
            return repr(parse_strict_json(text, max_depth=depth))
        except GraphInvalid as error:
            return repr(error.diagnostics)

    quick = outcome()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(strict_json, "_read_plainly", refuse)
        assert quick == outcome()


def refuse(*_: object) -> None:
    raise ValueError


@given(st.text() | st.text('[]{}",:\\ue0 1', max_size=200))
def test_no_text_raises_anything_but_graph_invalid(text: str) -> None:
    try:
        value = parse_strict_json(text)
    except GraphInvalid as error:
        assert error.diagnostics  # noqa: PT017
    else:
        assert value == json.loads(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "line 1, column 8"),
        ('{"a": 1} {"b": 2}', "text after the document at line 1, column 10"),
        ("nodes:\n  - id", "line 1, column 1"),
        ("// plan\n{}", "line 1, column 1"),
        ("{\n'a': 1}", "line 2, column 1"),
        ('{"a": "b\nc"}', "line 1, column 9"),
        ("", "the document is empty"),
        (" \n", "the document is empty"),
    ],
)
def test_invalid_json_is_reported_with_line_and_column(text: str, message: str) -> None:
    with pytest.raises(GraphInvalid, match=message) as caught:
        parse_strict_json(text)
    assert [d.code for d in caught.value.diagnostics] == ["invalid-json"]


def test_a_byte_order_mark_is_ignored() -> None:
    assert parse_strict_json("\ufeff[1]") == [1]
    assert parse_strict_json(b"\xef\xbb\xbf[1]") == [1]


def test_bytes_that_are_not_utf_8_are_rejected_with_their_position() -> None:
    with pytest.raises(GraphInvalid, match="byte 2 is 0xff"):
        parse_strict_json(b'["\xff"]')


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "9" * 400, "9" * 5000]
)
def test_numbers_outside_the_json_range_are_rejected(number: str) -> None:
    assert errors_of(f'{{"a": [1, {number}]}}') == [("invalid-number", "/a/1")]


def test_large_valid_numbers_are_accepted() -> None:
    assert parse_strict_json("[1e300, 12345678901234567890123]") == [1e300, 12345678901234567890123]


def test_each_key_that_appears_twice_is_found() -> None:
    text = '{"a": {"x~/y": {"k": 1, "k": 1, "l": 1}}, "b": 1, "b": 2}'
    assert errors_of(text) == [("duplicate-key", ""), ("duplicate-key", "/a/x~0~1y")]


@pytest.mark.parametrize("escape", ["\\ud800", "\\udc00", "x\\ud800x", "\\u0000", "\\ud800\\ud800"])
def test_text_that_cannot_be_stored_is_rejected(escape: str) -> None:
    assert errors_of(f'{{"a": ["{escape}"]}}') == [("invalid-text", "/a/0")]
    assert errors_of(f'{{"{escape}": 1}}') == [("invalid-text", "")]


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert parse_strict_json('"\\ud83d\\ude00"') == "😀"


def test_a_raw_lone_surrogate_is_rejected() -> None:
    assert errors_of('["\ud800"]') == [("invalid-text", "")]


@pytest.mark.parametrize("ends", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_nesting_is_accepted_at_the_limit_and_rejected_one_past_it(ends: tuple[str, str]) -> None:
    opening, closing = ends
    step = len(closing)
    fits = MAX_JSON_DEPTH // step
    assert parse_strict_json(opening * fits + "1" + closing * fits) is not None
    assert parse_strict_json("[" * 9 + "1" + "]" * 9, max_depth=9) is not None
    assert errors_of("[" * 10 + "1" + "]" * 10, max_depth=9) == [("limit-exceeded", "")]
    assert errors_of(opening * (fits + 1) + "1" + closing * (fits + 1)) == [("limit-exceeded", "")]


def test_a_caller_cannot_raise_the_nesting_limit() -> None:
    assert errors_of("[" * 65 + "]" * 65, max_depth=1000) == [("limit-exceeded", "")]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000, "]" * 70 + "[" * 70,
        "[" * 300 + "]" * 300,
    ],
)  # fmt: skip
def test_extreme_nesting_fails_fast_and_without_recursion(text: str) -> None:
    with cpu_within(2):
        assert errors_of(text)[0][0] in ("limit-exceeded", "invalid-json")


def test_brackets_in_strings_do_not_nest() -> None:
    text = json.dumps(["[" * 200, '\\"' + "{" * 200, {"[": ['"']}])
    assert parse_strict_json(text) == json.loads(text)


def test_unclosed_quotes_are_read_in_linear_time() -> None:
    with cpu_within(2):
        assert errors_of("[" * 65 + '"' + '\\"' * 200_000)


def test_size_counts_bytes_of_utf_8() -> None:
    assert parse_strict_json('"éé"', max_bytes=6) == "éé"
    assert errors_of('"éé"', max_bytes=5) == [("limit-exceeded", "")]
    assert errors_of('"aaaa"', max_bytes=5) == [("limit-exceeded", "")]


@given(json_values)
def test_a_valid_object_is_copied_deeply(value: Any) -> None:
    original = {"v": value}
    copy = checked_copy(original, JsonLimits())
    assert copy == original
    assert copy is not original
    assert json_findings(original) == []


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ({"a": {1, 2}}, "not-json-value", "/a"),
        ({"a": [(1,)]}, "not-json-value", "/a/0"),
        ({"a": Text("x")}, "not-json-value", "/a"),
        ({"a": {1: 2}}, "not-json-value", "/a"),
        ({"a": float("nan")}, "invalid-number", "/a"),
        ({"a": 10**400}, "invalid-number", "/a"),
        ({"a": "\ud800"}, "invalid-text", "/a"),
        ({"a": {"\0": 1}}, "invalid-text", "/a"),
        ({"a": "x" * 11}, "limit-exceeded", "/a"),
        ({"a": "é" * 6}, "limit-exceeded", "/a"),
        ({"a": [[[[]]]]}, "limit-exceeded", "/a/0/0/0"),
    ],
)
def test_values_that_are_not_json_are_rejected_by_copy_and_check(
    value: dict[str, Any], code: str, pointer: str
) -> None:
    room = JsonLimits(depth=6, string_bytes=10, levels_above=2)
    assert checked_copy(value, room) is None
    assert [(d.code, d.pointer) for d in json_findings(value, "", room)] == [(code, pointer)]


def test_a_value_that_holds_itself_is_too_deep() -> None:
    knot: list[Any] = []
    knot += [knot, knot]
    findings: list[Diagnostic] = json_findings(knot, "/x")
    assert [d.code for d in findings] == ["limit-exceeded"]
    assert "64" in findings[0].message
    assert checked_copy({"k": knot}, JsonLimits()) is None


def test_storable_text_is_measured_in_bytes() -> None:
    assert is_storable_text("é", 2)
    assert not is_storable_text("é", 1)
    assert not is_storable_text("a\0")


def test_values_are_shown_short_and_printable() -> None:
    assert short_repr("\ud800") == "'\\ud800'"
    assert [short_repr([1]), short_repr({}), short_repr(None), short_repr(False)] == [
        "an array",
        "an object",
        "null",
        "false",
    ]
    assert len(short_repr("x" * 500)) < 80
    assert short_repr("x") == "'x'"
