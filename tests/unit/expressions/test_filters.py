from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from planwave.errors import TemplateError
from planwave.expressions.filters import FILTERS, FilterCall, apply_filters
from planwave.expressions.paths import evaluate_path
from planwave.expressions.renderer import Renderer
from tests.support.expressions import plain_path

VALUES: dict[str, Any] = {
    "text": " heLLo wOrld-foo it's ",
    "number": "42",
    "decimal": "4.9",
    "word": "x1",
    "empty": "",
    "lines": "ab\ncd",
    "json": '{"a": [1, 2.5, null, "x"]}',
    "deep": "[" * 65 + "]" * 65,
    "not_a_number": "[NaN]",
    "negative": -3,
    "half": 2.5,
    "digits": 2.675,
    "minus_half": -2.5,
    "yes": True,
    "null": None,
    "numbers": [3, 1, 2, 1],
    "words": ["b", "A", "a", "B"],
    "nested": [[2], [1]],
    "nothing": [],
    "object": {"b": 1, "a": [2]},
}
TEXTS = {"text", "number", "decimal", "word", "empty", "lines"}
CALLS = [
    "abs", "bool", "capitalize", "count", "default('z')", "d('z', true)", "first", "float", "int",
    "int(7)", "float(7)", "fromjson", "fromjson('z')", "join", "join(', ')", "last", "length", "list", "lower",
    "replace('l', 'LL')", "reverse", "round", "round(1)", "sort", "split", "split('l')", "string",
    "title", "trim", "trim(' ')", "unique", "upper",
]  # fmt: skip
ON_TEXT_ONLY = {"capitalize", "lower", "replace", "string", "title", "trim", "upper"}
"""Text filters read other values as compact JSON; the engine has its own way of writing them."""


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    shared = Renderer(wall_s=60.0)
    yield shared
    asyncio.run(shared.close())


def in_process(expression: str) -> Any:
    path = plain_path(expression)
    assert path is not None, f"{expression} is not resolved in process"
    try:
        return evaluate_path(path, VALUES[path.root or ""])
    except TemplateError:
        return TemplateError


@pytest.mark.parametrize("call", CALLS)
async def test_a_filter_means_the_same_in_process_and_in_the_worker(
    call: str, renderer: Renderer
) -> None:
    names = TEXTS if call.split("(")[0] in ON_TEXT_ONLY else set(VALUES)
    compared = 0
    for name in sorted(names):
        expression = f"{name} | {call}"
        try:
            expected = await renderer.evaluate(expression, VALUES)
        except TemplateError:
            expected = TemplateError
        assert in_process(expression) == expected, expression
        compared += 1
    assert compared >= len(TEXTS)


def test_every_filter_of_the_list_is_compared() -> None:
    assert {call.split("(")[0] for call in CALLS} | {"tojson"} == set(FILTERS)


def run(name: str, value: Any, *arguments: Any) -> Any:
    return apply_filters(value, (FilterCall(name, arguments),))


def test_text_filters_read_values_as_compact_json() -> None:
    assert run("upper", {"a": [None]}) == '{"A":[NULL]}'
    assert run("string", None) == ""
    assert run("join", ["é", 1, None, {"a": 1}], "-") == 'é-1--{"a":1}'


def test_tojson_is_compact_and_not_escaped_for_html() -> None:
    assert run("tojson", {"a": "<it's>"}) == '{"a":"<it\'s>"}'


def test_mixed_lists_sort_and_unlike_values_stay_apart() -> None:
    mixed = [{"a": 1}, "b", 2, None, True, [1], "A", 1]
    assert run("sort", mixed) == [None, True, 1, 2, "A", "b", [1], {"a": 1}]
    assert run("unique", [1, True, "1", 1.0]) == [1, True, "1"]


@pytest.mark.parametrize(
    ("name", "value", "arguments"),
    [
        ("replace", "a" * 10_000, ("a", "b" * 10_000)),
        ("replace", "", ("", "b" * 9_000_000)),
        ("join", ["a"] * 10_000, ("b" * 10_000,)),
    ],
)
def test_results_are_bounded_before_they_are_made(
    name: str, value: Any, arguments: tuple[Any, ...]
) -> None:
    with pytest.raises(TemplateError) as caught:
        run(name, value, *arguments)
    assert caught.value.code == "template-too-large"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int", "9" * 500),
        ("int", float("inf")),
        ("float", "nan"),
        ("float", "inf"),
        ("round", "1"),
        ("abs", None),
        ("length", 5),
        ("first", None),
        ("split", 1),
        ("sort", 1),
    ],
)
def test_a_filter_that_does_not_fit_is_a_template_error(name: str, value: Any) -> None:
    with pytest.raises(TemplateError) as caught:
        run(name, value)
    assert caught.value.code == "template-error"


def test_rounding_never_overflows() -> None:
    assert run("round", 1e300, 15) == 1e300
    assert run("round", 5, 400) == 5
    assert run("round", 1.26, 1) == 1.3


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), (" [1, 2] ", [1, 2]), ('"a"', "a"), ("null", None), ('{"a": 1, "a": 2}', {"a": 2})],
)
def test_fromjson_reads_any_json_value(text: str, value: Any) -> None:
    assert apply_filters(text, (FilterCall("fromjson", ()),)) == value


@pytest.mark.parametrize("text", ["", "no", "[1,", "[NaN]", "[" * 65 + "]" * 65, "[" * 100_000])
def test_fromjson_refuses_other_text_unless_there_is_a_default(text: str) -> None:
    assert apply_filters(text, (FilterCall("fromjson", ("other",)),)) == "other"
    with pytest.raises(TemplateError, match="cannot read its value"):
        apply_filters(text, (FilterCall("fromjson", ()),))


async def test_what_fromjson_makes_has_reading_methods_only(renderer: Renderer) -> None:
    variables = {"text": '{"rows": [1]}', "plain": "x"}
    assert await renderer.evaluate("(text | fromjson).rows[0] + 1", variables) == 2
    assert await renderer.evaluate("plain | fromjson(plain)", variables) == "x"
    with pytest.raises(TemplateError, match="append"):
        await renderer.evaluate("(text | fromjson).rows.append(2)", variables)
