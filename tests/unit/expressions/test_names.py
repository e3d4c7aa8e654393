from __future__ import annotations

from collections.abc import Iterable

import minijinja
import pytest

from planwave.errors import TemplateError
from planwave.expressions import compile_template
from planwave.expressions.filters import FILTERS
from planwave.expressions.names import ENGINE_FILTERS, ENGINE_TESTS

ENGINE = minijinja.Environment()


def unknown_to_the_engine(names: Iterable[str], expression: str, kind: str) -> list[str]:
    found: list[str] = []
    for name in sorted(names):
        try:
            ENGINE.eval_expr(expression.format(name))
        except minijinja.TemplateError as error:
            if error.kind == kind:
                found.append(name)
    return found


def test_the_engine_has_every_filter_and_test_that_is_listed() -> None:
    assert unknown_to_the_engine(["no_such"], "'a' | {}", "UnknownFilter") == ["no_such"]
    assert unknown_to_the_engine(ENGINE_FILTERS, "'a' | {}", "UnknownFilter") == []
    assert unknown_to_the_engine(ENGINE_TESTS, "'a' is {}", "UnknownTest") == []


def test_every_filter_that_runs_in_process_is_one_of_the_engines() -> None:
    assert FILTERS.keys() <= ENGINE_FILTERS


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ input | jsonify }}", "no filter 'jsonify'"),
        ("{{ (input) | upper | shout }}", "no filter 'shout'"),
        ("{% for x in input | shuffle %}{% endfor %}", "no filter 'shuffle'"),
        ("{% if input is empty %}x{% endif %}", "no test 'empty'"),
        ("{{ input is not blank }}", "no test 'blank'"),
    ],
)
def test_a_misspelt_name_is_found_before_a_run(template: str, message: str) -> None:
    with pytest.raises(TemplateError, match=message) as caught:
        compile_template({"text": template})
    assert caught.value.code == "template-forbidden"
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    "template",
    [
        "{{ input | dictsort }}",
        "{{ 'a | nope' ~ input }}",
        "{{ input is not none and input is defined }}",
        "{{ input is in [1, 2] }}",
        "{% filter upper %}{{ input }}{% endfilter %}",
        "{# x | nope #}{% raw %}{{ x | nope }}{% endraw %}",
    ],
)
def test_names_of_the_engine_are_left_alone(template: str) -> None:
    assert compile_template({"text": template}) is not None
