from __future__ import annotations

import pytest

from planwave.errors import TemplateError
from planwave.expressions.blocks import check_blocks
from planwave.expressions.lexer import split
from tests.fakes.cpu_time import cpu_within


@pytest.mark.parametrize(
    "text",
    [
        "{% if a %}{% elif b %}{% else %}{% endif %}",
        "{%- for x in y -%}{% if x %}{% break %}{% endif %}{% else %}{% endfor %}",
        "{% set a = 1 %}{% set b, c = 1, 2 %}{% set ns.x = 1 %}",
        "{% set a %}text{% endset %}{% set a | replace('=', '') %}text{% endset %}",
        "{% macro m(a) %}{% endmacro %}{% call m(1) %}{% endcall %}",
        "{% with a = 1 %}{% endwith %}{% filter upper %}{% endfilter %}",
    ],
)
def test_balanced_blocks_pass(text: str) -> None:
    check_blocks(split(text))


@pytest.mark.parametrize(
    "text",
    [
        "{% if a %}",
        "{% endif %}",
        "{% if a %}{% endfor %}",
        "{% else %}",
        "{% for a in b %}{% elif c %}{% endfor %}",
        "{% break %}",
        "{% debug %}",
        "{% do 1 %}",
        "{% %}",
        "{% set a == 1 %}",
        "{% if 1 %}" * 65 + "{% endif %}" * 65,
    ],
)
def test_unknown_unbalanced_and_too_deep_blocks_are_syntax_errors(text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        check_blocks(split(text))
    assert caught.value.code == "template-syntax"


def test_a_long_run_of_spaces_costs_no_time() -> None:
    with cpu_within(2):
        check_blocks(split("{% set" + " " * 60_000 + "x %}{% endset %}"))


def test_blocks_nest_to_a_limit() -> None:
    check_blocks(split("{% if 1 %}" * 64 + "{% endif %}" * 64))


@pytest.mark.parametrize(
    "tag", ["include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block x"]
)
def test_tags_that_load_templates_are_forbidden(tag: str) -> None:
    with pytest.raises(TemplateError) as caught:
        check_blocks(split(f"{{% {tag} %}}"))
    assert caught.value.code == "template-forbidden"
