from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import TemplateError
from planwave.expressions.filters import UNDEFINED_VALUE
from planwave.expressions.paths import evaluate_path
from tests.support.expressions import plain_path


def value_of(source: str, root: Any) -> Any:
    path = plain_path(source)
    assert path is not None
    return evaluate_path(path, root)


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        ("input", ()),
        ("input.items[0].name", ("items", 0, "name")),
        ("nodes['a-b'][\"c d\"]", ("a-b", "c d")),
        ("input[-1]", (-1,)),
        ("input['it\\'s']", ("it's",)),
        ("input.0", (0,)),
        ("input.1.5", (1, 5)),
    ],
)
def test_plain_paths_are_read_into_steps(source: str, steps: tuple[Any, ...]) -> None:
    path = plain_path(source)
    assert path is not None
    assert path.steps == steps


@pytest.mark.parametrize(
    "source",
    [
        "a + 1",
        "a()",
        "a.b()",
        "a[b]",
        "a[1:2]",
        "not a",
        "true",
        "1",
        "[a]",
        "a if b else c",
        "a | wordwrap(9)",
        "a | replace(b, 'c')",
        "a | replace('b')",
        "a | sort(attribute='x')",
        "a | round('x')",
        "a is defined",
        "a ~ b",
        "a['\\x41']",
    ],
)
def test_more_than_a_plain_path_is_left_to_the_engine(source: str) -> None:
    assert plain_path(source) is None


@pytest.mark.parametrize(
    "source",
    ["", "a.", "a |", "a | 5", "a b", "a" + ".b" * 65, "a" + "|upper" * 17, "a[" + "9" * 500 + "]"],
)
def test_malformed_and_endless_paths_are_refused(source: str) -> None:
    with pytest.raises(TemplateError) as caught:
        plain_path(source)
    assert caught.value.code == "template-syntax"


def test_paths_and_filter_chains_reach_their_limits() -> None:
    assert plain_path("a" + ".b" * 64) is not None
    assert plain_path("a" + "|upper" * 16) is not None


@pytest.mark.parametrize(
    ("root", "seen"),
    [
        ({}, "input is an empty object"),
        ([1], "input is a list of 1"),
        (None, "input is null"),
        ("x", "input is text"),
        (5, "input is not an object"),
        ({str(n): n for n in range(9)}, "input has 0, 1, 2, 3, 4, 5, 6, 7, …"),
    ],
)
def test_the_error_says_what_stands_where_the_path_ends(root: Any, seen: str) -> None:
    with pytest.raises(TemplateError) as caught:
        value_of("input.a.b", root)
    assert caught.value.message.endswith(seen)
    assert caught.value.message.startswith("input.a is undefined")


def test_an_unknown_root_is_named() -> None:
    with pytest.raises(TemplateError, match="'inptu' is undefined"):
        value_of("inptu", UNDEFINED_VALUE)


def test_the_first_of_nothing_is_undefined_until_default_helps() -> None:
    with pytest.raises(TemplateError) as caught:
        value_of("input | first", [])
    assert caught.value.code == "template-undefined"
    with pytest.raises(TemplateError):
        value_of("input | first | upper", [])
    assert value_of("input | first | default('-')", []) == "-"


def test_a_text_literal_may_take_filters() -> None:
    assert value_of("'a\\n\\\\b' | upper", None) == "A\n\\B"


def test_negative_and_word_arguments_are_literals() -> None:
    assert value_of("input.x | default(-1.5)", {}) == -1.5
    assert value_of("input.x | default(none)", {}) is None
    assert value_of("input | default('empty', true)", "") == "empty"
