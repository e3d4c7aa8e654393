"""Tasks and goals: what they may name, what they render to, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import TemplateError
from planwave.expressions import check_task, compile_task, compile_template, escape_templates
from planwave.interop.importing.templates import literal
from tests.unit.expressions.test_literals import TEXTS

NAMES = ("city", "days", "trip")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def rendered(text: str, **inputs: object) -> str:
    template = compile_task(text)
    return text if template is None else template.render(inputs)


def codes(text: str, *names: str) -> list[str]:
    return [error.code for error in check_task(text, names)]


def test_an_input_takes_the_place_of_its_name() -> None:
    text = "Plan {{ days }} days in {{ city | upper }} for {{ trip.who }}."
    assert rendered(text, city="Lisbon", days=3, trip={"who": "Ann"}) == (
        "Plan 3 days in LISBON for Ann."
    )


@given(TEXTS)
def test_a_text_without_braces_and_one_that_is_escaped_are_themselves(text: str) -> None:
    assert rendered(escape_templates(text)) == text
    assert codes(escape_templates(text)) == []


@given(TEXTS)
def test_a_text_of_another_program_is_itself(text: str) -> None:
    assert rendered(literal(text)) == text
    assert codes(literal(text)) == []


@given(TEXTS, JSON)
def test_what_an_input_holds_is_never_rendered_again(text: str, value: object) -> None:
    shown = rendered("{{ city }}", city=text)
    assert shown == text
    outer = rendered(escape_templates(text) + "{{ city }}", city=value)
    assert outer == text + rendered("{{ city }}", city=value)


@given(
    st.lists(st.sampled_from(["a ", "{{ city }}", "{{ days | upper }}", "{ }", "\n"]), max_size=6)
)
def test_a_task_renders_as_the_same_text_does_as_data(pieces: list[str]) -> None:
    text = "x" + "".join(pieces)  # alone, a path keeps its type in data
    as_data = compile_template(text)
    as_task = compile_task(text)
    assert (as_data is None) == (as_task is None)
    if as_data is not None and as_task is not None:
        assert [each.root for each in as_data.references] == list(as_task.names)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{{ town }}", "template-undefined"),
        ("{{ input }}", "template-undefined"),
        ("{{ goal }}", "template-undefined"),
        ("{{ nodes.a.output }}", "template-undefined"),
        ("{{ city", "template-syntax"),
        ("{{ }}", "template-syntax"),
        ("{% if city %}x{% endif %}", "template-forbidden"),
        ("{% include 'x' %}", "template-forbidden"),
        ("{# a remark #}", "template-forbidden"),
        ("{{ city }}{# a remark #}", "template-forbidden"),
        ("{{ city ~ days }}", "template-forbidden"),
        ("{{ 1 + 1 }}", "template-forbidden"),
        ("{{ range(3) }}", "template-forbidden"),
        ("{{ city | shout }}", "template-forbidden"),
    ],
)
def test_anything_else_in_braces_is_an_error_with_a_way_out(text: str, code: str) -> None:
    (error,) = check_task(text, NAMES)
    assert error.code == code
    assert error.hint


def test_each_unknown_name_is_an_error_of_its_own() -> None:
    first, second = check_task("{{ a }} {{ city }} {{ b }} {{ a }}", NAMES)
    assert "'a' is no input of this flow: its inputs are city, days, trip" in first.message
    assert "'b'" in second.message


def test_single_braces_are_text() -> None:
    text = 'Reply as {"city": {"days": 3}} } } { {'
    assert codes(text) == []
    assert rendered(text) == text


def test_literal_braces_can_be_written() -> None:
    assert rendered('{{ "{{" }} and {% raw %}{{ x }}{% endraw %}, {{ city }}', city="Rome") == (
        "{{ and {{ x }}, Rome"
    )


def test_a_long_text_is_refused_before_it_is_read() -> None:
    (error,) = check_task("{{ city }}" * 9, NAMES, max_bytes=50)
    assert error.code == "template-too-large"
    with pytest.raises(TemplateError) as caught:
        rendered("{{ city }}" * 8, city="x" * 200_000)
    assert caught.value.code == "template-too-large"


def test_an_input_without_a_value_is_an_error_that_names_it() -> None:
    with pytest.raises(TemplateError, match="'city' is undefined"):
        rendered("{{ city }}")
    assert rendered("{{ city | default('Rome') }}") == "Rome"
