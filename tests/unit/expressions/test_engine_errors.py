"""Every kind of error of the engine has a sentence of planwave that names the part that failed."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from planwave.expressions.engine_errors import describe
from planwave.expressions.render_worker import RenderEnvironment, RenderError

VARIABLES = {"x": {"y": 1}, "s": "text"}

CASES = {
    # -- names
    "{{ foo(1) }}": 'unknown function in "foo(1)"',
    "{{ 1 | nope }}": 'unknown filter in "nope"',
    "{{ [1] | map('nope') | list }}": """unknown filter in "map('nope')\"""",
    "{{ 1 is nope }}": 'unknown test in "nope"',
    "{{ s.foo() }}": 'unknown method in "foo()"',
    "{{ self.foo() }}": "unknown block in the template",
    "{{ missing.a }}": "missing is undefined",
    "one\n{{ x.y.z }}": "x.y.z is undefined (line 2)",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f() }}": 'a value in "a" is undefined',
    "{% include 'a' %}": """a template cannot load another one: "include 'a'\"""",
    "{% extends 'a' %}": """a template cannot load another one: "extends 'a'\"""",
    # -- arguments
    "{{ s | upper(1, 2) }}": 'too many arguments, or an unknown one, in "upper(1, 2)"',
    "{{ [1] | unique(foo=1) }}": 'too many arguments, or an unknown one, in "unique(foo=1)"',
    "{{ s | replace('b') }}": """an argument is missing in "replace('b')\"""",
    # -- values
    "{{ 1 + 'a' }}": """+ cannot be applied to number and text in "1 + 'a'\"""",
    "{{ none + x }}": '+ cannot be applied to null and object in "none + x"',
    "{{ -'a' }}": """cannot calculate "-'a'\"""",
    "{{ 1 / 0 }}": 'division by zero in "1 / 0"',
    "{{ 2 ** 5000 }}": 'the result is too large in "2 ** 5000"',
    "{{ range('a') }}": """cannot calculate "range('a')": cannot convert text to integer""",
    "{{ s | split(1) }}": 'cannot calculate "split(1)": value is not text',
    "{{ x in 5 }}": 'cannot calculate "x in 5": cannot perform a containment check on this value',
    "{{ dict(1) }}": 'cannot calculate "dict(1)"',
    "{% for i in 5 %}{% endfor %}": 'cannot calculate "5": number is not iterable',
    "{% for a, b in [[1]] %}{% endfor %}": (
        'the value does not have one item for each name in "a, b"'
    ),
    "{{ {[1]: 2} }}": "a list or an object cannot be a key",
    "{{ 1 is divisibleby(0) }}": "the template cannot be rendered with these values",
    # -- the template
    "{{ 1 if }}": 'the template cannot be parsed at "}}"',
    "{% for i in range(99999) %}{% set a = i %}{% endfor %}": "the template does too much work",
}


@pytest.mark.parametrize("source", CASES)
def test_an_error_names_the_part_that_failed(source: str) -> None:
    request = {"op": "render", "source": source, "variables": VARIABLES}
    with pytest.raises(RenderError) as caught:
        RenderEnvironment(1_000, 100_000).answer(request)
    assert str(caught.value) == CASES[source]


class Engine(NamedTuple):
    """An error as the engine raises it."""

    kind: str
    detail: str | None = None
    line: int | None = 1
    range: tuple[int, int] | None = (3, 6)


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("BadEscape", "template-syntax", 'a text has an escape that does not exist: "abc"'),
        ("BadInclude", "template-forbidden", 'a template cannot load another one: "abc"'),
        ("BadSerialization", "template-error", 'the value cannot be written as JSON: "abc"'),
        ("EvalBlock", "template-error", 'the block cannot be rendered: "abc"'),
        ("NonKey", "template-error", 'this value cannot be a key of an object: "abc"'),
        ("NonPrimitive", "template-error", 'text, a number or a boolean is needed in "abc"'),
        ("WriteFailure", "template-error", "the template cannot be rendered with these values"),
        ("Unknown", "template-error", "the template cannot be rendered with these values"),
    ],
)
def test_a_rare_kind_has_its_sentence(kind: str, code: str, message: str) -> None:
    assert describe(Engine(kind, "words of the engine"), "{{ abc }}") == (code, message)


def test_long_parts_are_shortened_and_ranges_count_bytes() -> None:
    error = Engine("MissingArgument", range=(3, 303))
    assert describe(error, "{{ " + "ä" * 200)[1] == f'an argument is missing in "{"ä" * 80}…"'
    assert describe(Engine("InvalidOperation", None, None, None), "{{ a }}")[1] == (
        "the template cannot be rendered with these values"
    )
    assert describe(Engine("MissingArgument", range=(9, 9)), "{{ a }}")[1] == (
        "an argument is missing in the template"
    )
