"""Renaming a node in expressions: what is changed, and what only looks like it."""

from __future__ import annotations

import pytest

from planwave.expressions.renaming import (
    may_name_any_node,
    rename_in_expression,
    rename_in_template,
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{{ nodes["a"].output }}', '{{ nodes["b"].output }}'),
        ("{{ nodes['a'] }} and {{nodes.a}}", "{{ nodes['b'] }} and {{nodes.b}}"),
        ('{{ nodes [ "a" ].x | upper }}', '{{ nodes [ "b" ].x | upper }}'),
        ("{% for x in nodes.a.list %}{{ x }}{% endfor %}",
         "{% for x in nodes.b.list %}{{ x }}{% endfor %}"),
        ("one\r\n{{- nodes.a -}}\r\ntwo {{ nodes.a }}\n", "one\r\n{{- nodes.b -}}\r\ntwo {{ nodes.b }}\n"),
    ],
)  # fmt: skip
def test_references_are_renamed(before: str, after: str) -> None:
    assert rename_in_template(before, {"a": "b"}) == after


@pytest.mark.parametrize(
    "text",
    [
        "nodes.a",
        'nodes["a"]',
        "{# nodes.a #}",
        "{% raw %}{{ nodes.a }}{% endraw %}",
        "{{ nodes.aa }} {{ nodes.b.a }} {{ x.nodes.a }} {{ 'nodes.a' }}",
        '{{ nodes["aa"] }} {{ nodes["a" ~ x] }} {{ nodes[a] }}',
        "{{ nodes.a ! }}",
        "{{ nodes",
        "a {{ nodes }}",
        '{% set nodes = inputs %}{{ nodes["a"] }}',
        "{% for nodes in input %}{{ nodes.a }}{% endfor %}",
        "{% macro m(nodes) %}{{ nodes.a }}{% endmacro %}{{ m(input) }}",
    ],
)
def test_other_text_is_unchanged(text: str) -> None:
    assert rename_in_template(text, {"a": "b"}) == text


def test_id_that_is_no_name_is_written_in_brackets() -> None:
    renamed = rename_in_template("{{ nodes.a.output }}", {"a": "step-2.b"})
    assert renamed == '{{ nodes["step-2.b"].output }}'
    assert rename_in_template(renamed, {"step-2.b": "a"}) == '{{ nodes["a"].output }}'


def test_expression_without_braces_is_renamed() -> None:
    assert rename_in_expression("nodes.a.output > 3", {"a": "b"}) == "nodes.b.output > 3"
    assert rename_in_expression("value > 3", {"a": "b"}) == "value > 3"


@pytest.mark.parametrize(
    ("text", "is_unclear"),
    [
        ('{{ nodes["a" ~ x].output }}', True),
        ("{{ nodes[input] }}", True),
        (r'{{ nodes["\x61"].output }}', True),
        ("{% set n = nodes %}{{ n.a.output }}", True),
        ("{% set nodes = input %}{{ nodes.a }}", True),
        ("{% for id in ids %}{{ nodes[id].output }}{% endfor %}", True),
        ("{{ nodes | length }}", True),
        ("{{ nodes.a.output }}", False),
        ('{{ nodes["a"][input] }}', False),
        ("nodes of a", False),
        ("{{ nodes", False),
    ],
)
def test_what_a_rename_cannot_follow_is_known(text: str, is_unclear: bool) -> None:
    assert may_name_any_node(text) is is_unclear
