"""Jinja templates that are not strict give the same text as planwave templates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.expressions.renderer import Renderer
from planwave.expressions.syntax import parse_template
from planwave.interop.importing.jinja_filters import FILTERS, METHODS, TESTS, Untranslatable
from planwave.interop.importing.jinja_text import Variable, translated

VALUES: dict[str, Any] = {
    "text": "one two three",
    "number": 7,
    "yes": True,
    "items": [{"name": "a", "rank": 2}, {"name": "b"}],
    "object": {"name": "x", "list": [1, 2, 3], "empty": ""},
}
TEMPLATES = [
    "plain", "{{ text }}", "{{ missing }}", "[{{ object.nothing }}]", "{{ object['name'] }}",
    "{% if missing %}a{% else %}b{% endif %}", "{% if object.nothing %}a{% elif text %}b{% endif %}",
    "{% for item in items %}{{ loop.index }}{{ item.name }}{{ item.rank }};{% endfor %}",
    "{% for item in missing %}x{% else %}none{% endfor %}", "{% for item in object.nothing %}x{% endfor %}",
    "{% for item in items if item.rank %}{{ item.name }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% set n = items | length %}{{ n }}", "{% if text %}{% set m = 1 %}{% endif %}{{ m }}",
    "{% if missing %}{% set m = 1 %}{% endif %}[{{ m }}]", "{% set x %}a{{ text }}{% endset %}{{ x }}!",
    "{% with a = 1, b = text %}{{ a }}{{ b }}{% endwith %}", "{{ text if missing else number }}",
    "[{{ text if missing }}]", "{{ missing | default('d') }}", "{{ object.nothing | default('d') }}",
    "{{ object.empty | default('d', true) }}", "{{ missing is defined }}",
    "{{ 'y' if object.nothing is defined else 'n' }}", "{{ 'y' if missing == 'a' else 'n' }}",
    "{{ 'y' if 'two' in text else 'n' }}", "{{ 'y' if 'a' in missing else 'n' }}",
    "{{ 'y' if 1 < number < 9 else 'n' }}", "{{ (number + 1) * 2 }}", "{{ number // 2 }}", "{{ -number }}",
    "{{ 'a' ~ number ~ missing }}", "{{ missing or 'b' }}", "{{ (missing and 1) or 'c' }}",
    "{{ not missing and 'd' }}", "{{ text.split(' ')[1] }}", "{{ text.upper() }}", "{{ text | upper | lower }}",
    "{{ text | truncate(7) }}", "{{ text | truncate(9, true, '', leeway=0) }}", "{{ missing | length }}",
    "{{ items | map(attribute='name') | join(', ') }}", "{{ 'x' | int }}", "{{ '5' | int + 1 }}",
    "{{ items | selectattr('rank') | map(attribute='name') | join }}", "{{ text[:3] }}", "{{ text[-5:] }}",
    "{{ object.list[1:] | sum }}", "{{ object.list | last }}", "{{ [] | first }}", "{{ object.list | join('-') }}",
    "{{ {'a': text}.a }}", "{{ [1, text] | last }}", "{{ object.get('name') }}", "{{ range(3) | join }}",
    "{ {{ text }} }", "{{ '{' }}{{ text }}", "{%- if text -%} a {%- endif %} b", "a\n{{ text }}\n",
    "{# a comment #}b", "{% raw %}{{ text }}{% endraw %}", '{"q": "{{ text }}"}', "é {{ 'ü' }}",
    "{{ text | replace('two', '2') }}", "{{ object.list | length > 2 and text }}",
    "{% for k, v in object.items() %}{{ k }} {% endfor %}", "{{ object.list | sort(reverse=true) | join }}",
    "{% set ns = namespace(n=0) %}{% for i in object.list %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
]  # fmt: skip


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    shared = Renderer(wall_s=60.0)
    yield shared
    asyncio.run(shared.close())


def variable(name: str) -> Variable | None:
    return Variable(name) if name in VALUES else None


def in_jinja(template: str, values: dict[str, Any]) -> str:
    return jinja2.Environment().from_string(template).render(**values)  # noqa: S701 - no HTML


@pytest.mark.parametrize("template", TEMPLATES)
async def test_a_template_gives_the_text_of_jinja(template: str, renderer: Renderer) -> None:
    written = translated(template, variable)
    expected = in_jinja(template, VALUES)
    if written.prints_values:
        expected = expected.replace("True", "true").replace("False", "false")
    assert await renderer.render(written.text, VALUES) == expected


@pytest.mark.parametrize(
    ("template", "is_said"),
    [
        ("{{ text }} {{ text | upper }} {{ missing }} {{ 1 }} {{ items | length }}", False),
        ("{{ 'a' ~ text }}{{ text.strip() }}{{ text if yes else 'b' }}{{ missing | d(text) }}", False),
        ("{% set a = text %}{{ a }}{% set b %}{{ text }}{% endset %}{{ b }}", False),
        ("{% for i in items %}{{ loop.index }}{% endfor %}{{ text == 'a' }}{{ not yes }}", False),
        ("{{ true }}{{ none }}{{ 2.0 }}{{ yes is defined and 1 < 2 }}", False),
        ("{{ number }}", True), ("{{ object.name }}", True), ("{{ items[0] }}", True), ("{{ yes }}", True),
        ("{{ 'a' ~ number }}", True), ("{{ [1] }}", True), ("{{ text if yes else 2.5 }}", True),
        ("{% for i in items %}{{ i }}{% endfor %}", True), ("{{ number / 2 }}", True),
        ("{% if yes %}{% set m = [1] %}{% else %}{% set m = 'a' %}{% endif %}{{ m }}", True),
        ("{% with a = number %}{{ a }}{% endwith %}", True), ("{{ yes or 'a' }}", True),
        ("{{ missing | default(number) }}", True), ("{{ items | first }}", True),
    ],
)  # fmt: skip
async def test_values_that_may_be_no_text_are_named_and_others_written_alike(
    template: str, is_said: bool, renderer: Renderer
) -> None:
    def known(name: str) -> Variable | None:
        return Variable(name, is_text=name == "text") if name in VALUES else None

    written = translated(template, known)
    assert written.prints_values == is_said
    if not is_said:
        assert await renderer.render(written.text, VALUES) == in_jinja(template, VALUES)


@pytest.mark.parametrize("text", ["5", '{"a": 1}', "[1, 2]", "plain", "", "true"])
async def test_text_that_is_json_is_read_as_such_where_more_is_done_with_it(
    text: str, renderer: Renderer
) -> None:
    template = (
        "{{ 'list' if h is sequence and h is not string else h | length if h is string else h }}"
    )
    written = translated(template, lambda _: Variable("h", may_be_json=True)).text
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    shown = in_jinja(template, {"h": value}).replace("'", '"').replace(": ", ":")
    if isinstance(value, dict):  # an object is a sequence for Jinja
        shown = '{"a":1}'
    assert await renderer.render(written, {"h": text}) == shown.replace("True", "true")


@pytest.mark.parametrize(
    ("template", "part"),
    [
        ("{{ text | regex_replace('a', 'b') }}", "filter regex_replace"),
        ("{{ text | regex_findall('a') }}", "filter regex_findall"),
        ("{{ missing.field }}", "always failed"),
        ("{{ missing + 1 }}", "always failed"),
        ("{{ text.encode() }}", "method encode"),
        ("{{ lipsum() }}", "call of a function"),
        ("{% include 'x' %}", "tag include"),
        ("{% macro a() %}{% endmacro %}", "tag macro"),
        ("{{ text", "no Jinja template"),
        ("{{ " + "(" * 300 + "1" + ")" * 300 + " }}", "brackets that are nested too deep"),
        ("{{ " + "1 + " * 3_000 + "1 }}", "nested too deep"),
        ("{{ items | join(attribute='a') }}", "argument of the filter join"),
        ("{{ 'ab' * 2 }}", "with a text"),
        ("{{ text is callable }}", "test callable"),
        ("x" * 100_001, "longer than"),
    ],
)
def test_what_planwave_lacks_is_named(template: str, part: str) -> None:
    with pytest.raises(Untranslatable, match=part):
        translated(template, variable)


async def test_every_filter_method_and_test_of_the_tables_is_one_of_planwaves(
    renderer: Renderer,
) -> None:
    for name in FILTERS:
        assert parse_template(f"{{{{ input | {name} }}}}")
    for name in TESTS:
        assert parse_template(f"{{{{ input is {name} }}}}")
    for name in METHODS - {"get", "items", "keys", "values", "join", "replace", "count", "find"}:
        with_argument = name in ("endswith", "startswith", "rfind", "split")
        await renderer.evaluate(f"'a'.{name}({repr('a') if with_argument else ''})", {})


PIECES = st.sampled_from(
    [each.replace("{% raw %}", "").replace("{% endraw %}", "") for each in TEMPLATES]
)
ODD = st.text(alphabet="{}%#'\"ab .|()[]\n", max_size=12)


@given(st.lists(PIECES | ODD, max_size=4).map("".join))
def test_what_is_written_is_a_planwave_template(template: str) -> None:
    try:
        written = translated(template, variable).text
    except Untranslatable:
        return
    assert parse_template(written), "a text that is no template raises"
