from __future__ import annotations

import contextlib

import pytest

from planwave.errors import TemplateError
from planwave.expressions.lexer import Segment, split, has_template, tokenize
from tests.fakes.cpu_time import cpu_within


def test_a_template_is_cut_into_its_parts() -> None:
    text = "a {{ b }}{% if c %}{# d #}e{% raw %}{{ f }}{% endraw %}"
    assert split(text) == [
        Segment("text", "a "),
        Segment("expression", "b"),
        Segment("block", "if c"),
        Segment("comment", ""),
        Segment("text", "e"),
        Segment("raw", "{{ f }}"),
    ]


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ('{{ "}}" }}', '"}}"'),
        ("{{ 'it\\'s }}' }}", "'it\\'s }}'"),
        ("{{ {'a': {'b': 1}} }}", "{'a': {'b': 1}}"),
        ("{{{'a':{'b':1}}}}", "{'a':{'b':1}}"),
        ("{{ [x][0] }}", "[x][0]"),
    ],
)
def test_strings_and_brackets_hide_the_end_of_an_expression(text: str, inner: str) -> None:
    assert split(text) == [Segment("expression", inner)]


def test_whitespace_control_is_noticed_and_a_minus_is_not_mistaken_for_it() -> None:
    assert split("{{- a -}}{{ -1 }}") == [
        Segment("expression", "a", trims=True),
        Segment("expression", "-1"),
    ]


@pytest.mark.parametrize(
    "text",
    ["{{", "{{ a }", "{% if a }}", "{{ a] }}", "{{ (a] }}", "{{ 'a }}", "{# a", "{% raw %}{{ a }}"],
)
def test_what_is_opened_must_be_closed(text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        split(text)
    assert caught.value.code == "template-syntax"


def test_brackets_nest_to_a_limit() -> None:
    assert split("{{ " + "(" * 64 + "a" + ")" * 64 + " }}")
    with pytest.raises(TemplateError, match="nested deeper"):
        split("{{ " + "(" * 65 + "a" + ")" * 65 + " }}")


@pytest.mark.parametrize("piece", ["{{ 'a", "{{ a }}", "{", "}}", "{% ", "\\'", '{{ "' + "\\" * 9])
def test_cutting_is_linear_in_the_text(piece: str) -> None:
    with cpu_within(8):
        tokenize(piece * 50_000)
        with contextlib.suppress(TemplateError):
            split(piece * 50_000)


def test_single_braces_are_literal() -> None:
    assert not has_template('{"json": {"a": 1} } { { % }')
    assert has_template("{#")


def test_tokens_are_names_numbers_strings_and_operators() -> None:
    kinds = [(token.kind, token.text) for token in tokenize("é_1.a == 'b c' ** 1.5 ~ @")]
    assert kinds == [
        ("name", "é_1"),
        ("op", "."),
        ("name", "a"),
        ("op", "=="),
        ("string", "'b c'"),
        ("op", "**"),
        ("number", "1.5"),
        ("op", "~"),
        ("op", "@"),
    ]
