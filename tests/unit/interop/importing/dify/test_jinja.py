"""Jinja2 templates: what renders there renders here, what would differ is named."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.expressions.filters import FILTERS
from planwave.expressions.syntax import ENGINE_FILTERS, ENGINE_TESTS
from planwave.interop.importing.dify import jinja
from planwave.interop.importing.dify.jinja import KNOWN_FILTERS, KNOWN_TESTS
from planwave.interop.importing.importer import Imported, import_text
from planwave.testing import run_sync
from tests.support.interop.dify_apps import app, chain, data_of, open_graph_of, start, step


def converted(text: str, **names: list[str]) -> Imported:
    variables = [{"variable": name, "value_selector": value} for name, value in names.items()]
    made = step("t", "template-transform", template=text, variables=variables)
    return import_text(app([start("v", optional="o"), made], chain("s", "t")))


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("plain { } text", "", "plain { } text"),
        ("{{ x }}", "a", "a"),
        ("{{ x.gone }}!", {"a": 1}, "!"),
        ("{{ undefined_name }}!", "", "!"),
        ("{% for a in x %}{{ a.b }}{{ loop.index }}{% endfor %}", [{"b": 1}, {}], "112"),
        ("{% set y = x ~ 'b' %}{{ y }}", "a", "ab"),
        ("{{ x | upper }}{# no #}", "a", "A"),
        ("{% if x %}yes{% else %}no{% endif %}", "", "no"),
        ("{% raw %}{{ x }}{% endraw %}", "", "{{ x }}"),
        ("{{ x[0] }}{{ x[-1] }}", ["a", "b"], "ab"),
    ],
)
def test_a_template_renders_as_there(text: str, value: Any, expected: str) -> None:
    made = converted(text, x=["s", "v"])
    assert made.report["summary"]["placeholder"] == 0
    assert run_sync(open_graph_of(made), {"v": value}).output == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n", "a"), ("a\n\n", "a\n"), ("a\r\nb\rc\r\n", "a\nb\nc"), ("\n", ""), ("{{ x }}\n", "v")],
)
def test_lines_end_as_jinja_reads_them_and_the_last_newline_is_left_out(
    text: str, expected: str
) -> None:
    assert run_sync(open_graph_of(converted(text, x=["s", "v"])), {"v": "v"}).output == expected


@pytest.mark.parametrize("name", ["nodes", "input", "item", "value"])
def test_names_that_are_ours_are_bound_last(name: str) -> None:
    made = converted(f"{{{{ {name} }}}}{{{{ b }}}}", **{name: ["s", "v"], "b": ["s", "optional"]})
    assert run_sync(open_graph_of(made), {"v": "a"}).output == "ao"


@pytest.mark.parametrize(
    "text",
    [
        "{{ x | center(3) }}",
        "{% include 'x' %}",
        "{{ x is callable }}",
        "{{ lipsum() }}",
        "{{ x",
        "{% for %}",
        "api_key: sk-test0123456789abcdef",
    ],
)
def test_what_templates_here_do_not_have_makes_the_step_a_placeholder(text: str) -> None:
    made = converted(text, x=["s", "v"])
    assert made.document["nodes"][1]["type"] == "placeholder"
    assert "sk-test" not in str(made)


def test_filters_and_tests_that_count_as_known_are_there() -> None:
    assert ENGINE_FILTERS | FILTERS.keys() >= KNOWN_FILTERS
    assert KNOWN_TESTS <= ENGINE_TESTS


def test_how_values_are_written_is_a_change_only_where_they_may_be_no_text() -> None:
    assert converted("{{ x }}", x=["s", "v"]).report["summary"]["changed"] == 0
    changed = converted("{% for a in x %}{{ a }}{% endfor %}", x=["s", "v"])
    assert changed.report["summary"]["changed"] == 1
    assert data_of(changed, "t")["text"].endswith("{% for a in x %}{{ a }}{% endfor %}")


@given(st.lists(st.sampled_from([
    "{{ a }}", "{{a.b}}", "{{- x['y z'][0] -}}", '{{ q["r"] }}', "{{ true }}", "{{ none.a }}", "{{ self }}", "é",
    "{{ loop }}", "}}", "{ {", "{{ a.b.c }}", "{{ é }}", "{{ not }}", "\n", "{# {{ c }} #}", "{% raw %}", "{{ 1 }}",
    "{{ if }}", "{", "{{ a }", "{{ lipsum }}",
]), max_size=4).map("".join))  # fmt: skip
def test_names_of_plain_templates_are_those_that_jinja_finds(text: str) -> None:
    """Templates that only print names are not parsed: what is said of them is what parsing would give."""
    quick = converted(text, x=["s", "v"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja, "_PRINTED", re.compile("(?!)()"))
        patch.setattr(jinja, "_TAG", re.compile(""))
        assert converted(text, x=["s", "v"]) == quick
