"""Each entry of the closed list gives the value that JavaScript gives, with planwave's own renderer."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from planwave.expressions.renderer import Renderer
from planwave.interop.importing.javascript.methods import FUNCTIONS, METHODS
from planwave.interop.importing.javascript.translation import (
    Embedded,
    Step,
    Untranslatable,
    Value,
    path,
    split,
    template_of,
    translate,
)
from planwave.interop.importing.javascript.values import OBJECT
from tests.support.interop.javascript import NODE, comparable, outcome, rendered, run_in_node

ROOTS = {"$json": path("input", OBJECT)}
DATA: dict[str, Any] = {
    "name": " Ada ", "mail": "A@EXAMPLE.COM", "total": 12, "price": 2.5, "items": [{"name": "lamp", "full name": "Desk"}],
    "user": None, "state": "open", "locked": False, "tags": ["new", "sale"], "id": "7", "zero": 0, "empty": "",
    "none": [], "box": {"length": 3, "a b": {"c": "deep"}}, "minus": -2.5, "path": "a-b-c", "yes": True, "one": 1,
    "text": '{"b": {"c": 2.5}}', "odd": "a b/ü&=!'()*~-_.%/", "lines": 'a\nb\n"c"',
}  # fmt: skip
VALUES: dict[str, Any] = {
    "$json.name": " Ada ",
    '$json.items[0]["full name"]': "Desk",
    "$json.user?.mail": None,
    "$json.nobody?.mail": None,
    "$json.nobody?.mail.trim()": None,
    "$json.nobody": None,
    "$json.items.length": 1,
    "$json.box.length": 3,
    "$json.name.length": 5,
    "$json.name.toUpperCase().trim()": "ADA",
    "$json.mail.toLowerCase()": "a@example.com",
    "$json.total > 10 ? 'many' : 'few'": "many",
    "$json.nobody > 10 ? 'many' : 'few'": "few",
    "$json.nick || $json.name": " Ada ",
    "$json.nick ?? 'none'": "none",
    "$json.zero ?? 5": 0,
    "$json.zero || 5": 5,
    "$json.none || 5": [],
    "$json.none ? 'true' : 'false'": "true",
    "$json.empty ? 'true' : 'false'": "false",
    "!!$json.none": True,
    '$json.state === "open" && !$json.locked': True,
    "$json.state && $json.total": 12,
    "$json.empty && $json.total": "",
    "$json.zero === false": False,
    "$json.locked === 0": False,
    "$json.yes === 1": False,
    "$json.yes == 1": True,
    "$json.state == 'open'": True,
    "$json.total == 12": True,
    "$json.id == 7": True,
    "$json.id === 7": False,
    "$json.user === undefined": False,
    "$json.nobody === undefined": True,
    "$json.user === null": True,
    "$json.nobody === null": False,
    "$json.nobody == null": True,
    "$json.user != null": False,
    "JSON.stringify($json.items)": '[{"name":"lamp","full name":"Desk"}]',
    "JSON.stringify($json.tags, null, 2)": '[\n  "new",\n  "sale"\n]',
    "$json.total * 1.19 + 2": 16.28,
    "$json.total / 5 - 1": 1.4,
    "$json.minus % 2": -0.5,
    "-$json.total": -12,
    "$json.tags.join(', ')": "new, sale",
    "$json.tags.join()": "new,sale",
    "$json.tags.includes('new')": True,
    "$json.mail.includes('@')": True,
    "[1, 'a'].includes(true)": False,
    "[1, 'a', false].includes($json.locked)": True,
    "[true].includes(1)": False,
    "[1, true].includes($json.one)": True,
    "$json.tags.includes($json.yes)": False,
    "$json.mail.startsWith('A@')": True,
    "$json.mail.endsWith('.org')": False,
    "$json.mail.indexOf('@')": 1,
    "$json.path.split('-')": ["a", "b", "c"],
    "$json.path.split('-')[1]": "b",
    "$json.path.slice(1, -1)": "-b-",
    "$json.tags.slice(1)": ["sale"],
    "$json.path.substring(2, 3)": "b",
    "$json.path.replace('-', '+')": "a+b-c",
    "$json.path.replaceAll('-', '+')": "a+b+c",
    "$json.path.charAt(2)": "b",
    "$json.path.at(-1)": "c",
    "$json.path.split('-').reverse()": ["c", "b", "a"],
    "'a'.concat($json.id, 1)": "a71",
    "[1].concat([2])": [1, 2],
    "$json.total.toString()": "12",
    "$json.total + 1": 13,
    "$json.id + 1": "71",
    "$json.id + $json.total": "712",
    "$json.total + $json.price": 14.5,
    "'Total: ' + $json.total * 2": "Total: 24",
    "'Tags: ' + $json.tags": "Tags: new,sale",
    "'Box: ' + $json.box": "Box: [object Object]",
    "'Nobody: ' + $json.nobody + $json.user": "Nobody: undefinednull",
    "`${$json.id}/${$json.total + 1}!`": "7/13!",
    "'Half: ' + 4 / 2": "Half: 2",
    "$json.tags[0] < 'z'": True,
    "$json.id < $json.total": True,
    "5 < $json.total": True,
    "Math.round($json.price)": 3,
    "Math.round($json.minus)": -2,
    "Math.floor($json.minus)": -3,
    "Math.ceil($json.minus)": -2,
    "Math.trunc($json.minus)": -2,
    "Math.max($json.total, 20, $json.price)": 20,
    "Math.min($json.total, 20)": 12,
    "Math.abs($json.minus)": 2.5,
    "Object.keys($json.box)": ["length", "a b"],
    "Object.values($json.items[0])": ["lamp", "Desk"],
    "Number($json.id) + 1": 8,
    "String($json.total)": "12",
    "Boolean($json.none)": True,
    "parseInt($json.id, 10)": 7,
    "parseInt('7.9')": 7,
    "parseFloat('7.5')": 7.5,
    '{ "id": $json.id, total: $json.total }': {"id": "7", "total": 12},
    "[$json.id, 'x', null, true]": ["7", "x", None, True],
    "$json.items[$json.zero].name": "lamp",
    r"'it\'s \"q\" \n \u00e9 \x41'": 'it\'s "q" \n é A',
    "$json.box['a b'].c": "deep",
    "($json.tags)[0]": "new",
    "JSON.parse('{\"a\": [1, null]}').a": [1, None],
    "JSON.parse($json.text).b.c": 2.5,
    "JSON.parse($json.text).nobody": None,
    "$json.total.toFixed(2)": "12.00",
    "$json.price.toFixed()": "3",
    "$json.minus.toFixed(0)": "-3",
    "(2.345).toFixed(2)": "2.35",
    "(1.005).toFixed(2)": "1.00",
    "(1.45).toFixed(1)": "1.4",
    "(0.125).toFixed(2)": "0.13",
    "(-0.125).toFixed(2)": "-0.13",
    "(8.345).toFixed(2)": "8.35",
    "'Sum: ' + ($json.total * 1.5).toFixed(1)": "Sum: 18.0",
    "Array.isArray($json.tags)": True,
    "Array.isArray($json.box)": False,
    "Array.isArray($json.nobody)": False,
    "Array.isArray($json.name)": False,
    "encodeURIComponent($json.odd)": "a%20b%2F%C3%BC%26%3D!'()*~-_.%25%2F",
    "encodeURIComponent($json.total)": "12",
    "$ifEmpty($json.empty, 'x')": "x",
    "$ifEmpty($json.nobody, 'x')": "x",
    "$ifEmpty($json.user, 'x')": "x",
    "$ifEmpty($json.none, 'x')": "x",
    "$ifEmpty({}, 'x')": "x",
    "$ifEmpty($json.zero, 'x')": 0,
    "$ifEmpty($json.locked, 'x')": False,
    "$ifEmpty($json.mail, $json.name)": "A@EXAMPLE.COM",
    r"$json.lines.replace(/\n/g, ' ')": 'a b "c"',
    r"$json.lines.replace(/\n/g, '\\n')": 'a\\nb\\n"c"'.replace("\\\\", "\\"),
    """$json.lines.replace(/"/g, "'")""": "a\nb\n'c'",
    r"$json.path.replace(/\-/, '+')": "a+b-c",
    r"$json.path.split(/-/)[2]": "c",
    r"$json.path.replaceAll(/-/g, '\/')": "a/b/c",
}
REFUSED = {
    "$json.items.map(i => i.name)": "an arrow function",
    "$now.minus({days: 7}).toISO()": "the name $now",
    "$env.API_HOST": "the name $env",
    r"$json.name.replace(/\s+/g, '-')": "a regular expression",
    "x = 1": "an assignment",
    "$json.n++": "an assignment",
    "typeof $json.n": "the operator typeof",
    "new Date()": "the operator new",
    "$json.a; $json.b": "several statements",
    "$json.a // note": "a comment",
    "$json.tags.sort()": "the method sort()",
    "$json.a == $json.b": "== between values whose types are not known",
    "Date.now()": "the name Date",
    "Math.random()": "the function Math.random()",
    "eval('1')": "the function eval()",
    "JSON.parse(5)": "JSON.parse() of what is no text",
    "$json.total.toFixed($json.n)": "the method toFixed() with such a number of places",
    "$json.name.replaceAll(/a/, 'b')": "the method replaceAll() with such a pattern",
    "$json.name.replace(/a/i, 'b')": "a regular expression",
    "$json.name.match(/a/)": "a regular expression",
    "/a/": "a regular expression",
    "$json.path.split('')": "the method split() into characters",
    "$json.path.replace('a', '$&')": "the method replace() with such a pattern",
    "$json.a ?? $json.b || 1": "?? and || without brackets",
    "'open": "a text without its closing quote",
    "$json.a +": "it is not complete",
    "$json.total == '12'": "== between values whose types are not known",
    "1 2": "'2' is not expected there",
    "": "it is not complete",
    "this.x": "this",
    "$json.constructor.constructor('x')()": "the method constructor()",
    "0x10": "a number that is not decimal",
    "[...$json.a]": "a spread",
    "$json.a & 1": "an operator on bits",
    "$json.a ** 2": "a power",
}


@pytest.fixture
async def renderer() -> AsyncIterator[Renderer]:
    made = Renderer()
    yield made
    await made.close()


@pytest.mark.parametrize("text", VALUES)
async def test_an_expression_gives_its_value(text: str, renderer: Renderer) -> None:
    translated = template_of([Embedded(f" {text} ")], ROOTS)
    value = await rendered(translated.template, {"input": DATA}, renderer)
    assert comparable(value) == comparable(VALUES[text])


@pytest.mark.skipif(NODE is None, reason="there is no Node on this machine")
def test_the_values_of_the_table_are_those_of_javascript() -> None:
    found = run_in_node([(text, DATA) for text in VALUES])
    wrong = {
        text: (result, value)
        for (text, value), result in zip(VALUES.items(), found, strict=True)
        if comparable(result.get("value", result)) != comparable(value)
    }
    assert not wrong


def test_every_entry_of_the_closed_list_is_in_the_table() -> None:
    written = "\n".join(VALUES)
    additions = {"first", "last", "isEmpty", "isNotEmpty", "parseJson", "toJsonString"}
    assert not [name for name in METHODS if f".{name}(" not in written and name not in additions]
    assert not [name for name in FUNCTIONS if f"{name}(" not in written]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$json.tags.first()", "new"),
        ("$json.tags.last()", "sale"),
        ("$json.none.first()", None),
        ("$json.none.isEmpty()", True),
        ("$json.nobody.isEmpty()", True),
        ("$json.name.isNotEmpty()", True),
        ("$json.text.parseJson().b", {"c": 2.5}),
        ("$json.tags.toJsonString()", '["new","sale"]'),
        ("$json.box.toJsonString()", '{"length":3,"a b":{"c":"deep"}}'),
        ("$json.total.toJsonString()", "12"),
    ],
)
async def test_additions_of_n8n_give_their_values(
    text: str, value: Any, renderer: Renderer
) -> None:
    translated = template_of([Embedded(text)], ROOTS)
    assert await rendered(translated.template, {"input": DATA}, renderer) == value


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_counterpart_is_named(text: str) -> None:
    with pytest.raises(Untranslatable) as caught:
        translate(f" {text} ", ROOTS)
    assert caught.value.reason == REFUSED[text]
    assert caught.value.text == text.strip()


@pytest.mark.parametrize(
    "text",
    ["(" * 60 + "1" + ")" * 60, "1" + "+1" * 200, "$json" + ".a" * 200, "[" * 5_000, "a" * 20_000],
)
def test_what_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(Untranslatable):
        translate(text, ROOTS)


@pytest.mark.parametrize(
    ("text", "template", "value"),
    [
        ("Dear {{ $json.mail }}!", "Dear {{ input.mail | default(none) }}!", "Dear A@EXAMPLE.COM!"),
        ('{ "a": {{ $json.total }} }', None, '{ "a": 12 }'),
        ("{{ $json.mail.toLowerCase() }}", "{{ input.mail | lower }}", "a@example.com"),
        ("{{ $json.tags.length }} {{ '}}' }}", None, "2 }}"),
        ("{{ {a: {b: 1}} }}", None, {"a": {"b": 1}}),
        ("{{ $json.user }}|{{ $json.nobody }}|{{ $json.yes }}", None, "||true"),
        (r"a \{{ b }} {{ $json.id }}", None, "a {{ b }} 7"),
        ("{% raw %} {# {{ $json.id }} #}", None, "{% raw %} {# 7 #}"),
        ("{{ $json.id }}{{ $json.id }}", None, "77"),
        ("a {{ open", None, "a {{ open"),
        ("{{{ $json.id: 1 }}}", None, None),
        ("x{{ '{' }}{{ $json.id }}", None, "x{7"),
        ("no braces", "no braces", "no braces"),
    ],
)
async def test_texts_with_expressions_become_templates(
    text: str, template: str | None, value: Any, renderer: Renderer
) -> None:
    if value is None:
        with pytest.raises(Untranslatable):
            template_of(split(text), ROOTS)
        return
    translated = template_of(split(text), ROOTS)
    assert template in (None, translated.template)
    assert await rendered(translated.template, {"input": DATA}, renderer) == value


def test_a_text_says_that_lists_look_different_in_it() -> None:
    assert template_of(split("Tags: {{ $json.tags }}"), ROOTS).has_structures
    assert not template_of(split("Tags: {{ $json.tags.join(', ') }}"), ROOTS).has_structures
    assert not template_of(split("{{ $json.tags }}"), ROOTS).has_structures


async def test_a_variable_resolves_as_many_steps_as_it_knows(renderer: Renderer) -> None:
    seen: list[Any] = []

    def node(steps: Any) -> tuple[Value, int]:
        seen.append(steps)
        name, *_ = steps[0].arguments
        return path(f'nodes["{name}"].output'), 3

    value = translate("$('Shop').item.json.lamps[0]['a b'].trim()", {"$": node})
    assert value.plain == 'nodes["Shop"].output.lamps[0]["a b"] | trim'
    assert seen[0][:3] == [Step(arguments=("Shop",)), Step("item"), Step("json")]


_LEAVES = [
    "'a'", "'ab'", "''", "'5'", "0", "1", "2.5", "-3", "true", "false", "null", "undefined", "[1, 'a']", "[]",
    *(f"$json.{key}" for key in "snfzbloeiuw"), "$json.o.k", "$json.q.r", "$json.q?.r", "$json.l[0]",
    "$json.l[1]", "$json['w x']", "$json.o.items",
]  # fmt: skip
_OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "===",
    "!==",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "&&",
    "||",
    "??",
]
_CALLS = [name for name in FUNCTIONS if name not in ("Math.max", "Math.min")]
_METHODS = [
    "length", "toUpperCase()", "trim()", "toString()", "join()", 'split("a")', "slice(1)", "slice(-2, -1)",
    "at(0)", "charAt(1)", "replace('a', 'b')", "replaceAll('a', 'bb')",
    "toFixed(1)", "toFixed()", "replace(/a/g, 'b')", "split(/a/)",
]  # fmt: skip
_VALUES: list[Any] = [
    None, 0, 1, -2, 7, 100, 0.5, -1.5, 2.25, True, False, "", "a", "ab", "aXa", "5", "0", "Zed", "undefined", "é",
    [], ["a"], ["a", "b", 3], [1, 2], {"z": 0}, {"k": "v"}, {"k": 1, "items": [1]},
]  # fmt: skip


def _expression(rng: random.Random, depth: int) -> str:
    if depth <= 0:
        return rng.choice(_LEAVES)

    def inner() -> str:
        return _expression(rng, depth - 1)

    shapes = [
        lambda: f"({inner()} {rng.choice(_OPERATORS)} {inner()})",
        lambda: f"({inner()} {rng.choice(_OPERATORS)} {inner()})",
        lambda: f"({inner()} ? {inner()} : {inner()})",
        lambda: f"!{inner()}",
        lambda: f"{rng.choice(_CALLS)}({inner()})",
        lambda: f"({inner()}).{rng.choice(_METHODS)}",
        lambda: (
            f"({inner()}).{rng.choice(['includes', 'startsWith', 'endsWith', 'concat'])}({inner()})"
        ),
        lambda: f"Math.max({inner()}, {inner()})",
        lambda: f"$ifEmpty({inner()}, {inner()})",
        lambda: f"`x${{{inner()}}}y`",
        lambda: f"({inner()})?.{rng.choice(['trim()', 'k', 'length', 'k.trim()'])}",
        lambda: f"{{a: {inner()}}}",
    ]
    return rng.choice(shapes)()


@pytest.mark.skipif(NODE is None, reason="there is no Node on this machine")
@pytest.mark.parametrize("seed", range(6))
async def test_generated_expressions_give_the_value_of_javascript_or_fail(
    seed: int, renderer: Renderer
) -> None:
    """Where JavaScript has a value, planwave has the same one or an error; it has no other one."""
    rng = random.Random(seed)  # noqa: S311 - a test
    cases: list[tuple[str, Any]] = []
    templates: list[str] = []
    while len(cases) < 250:
        text = _expression(rng, rng.randrange(1, 4))
        try:
            translated = template_of([Embedded(text)], ROOTS)
        except Untranslatable:
            continue
        keys = [*"snfzbloeiuw", "w x", "q"]
        cases.append((text, {key: rng.choice(_VALUES) for key in keys if rng.random() < 0.85}))
        templates.append(translated.template)
    equal = 0
    for (text, value), template, expected in zip(cases, templates, run_in_node(cases), strict=True):
        found = await outcome(template, {"input": value}, renderer)
        if "value" in expected and "value" in found:
            assert comparable(found["value"]) == comparable(expected["value"]), (
                text,
                json.dumps(value),
                template,
            )
            equal += 1
    assert equal > 100
