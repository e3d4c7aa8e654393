from __future__ import annotations

import contextlib
from collections.abc import Iterable

import minijinja
import pytest

from planwave.errors import TemplateError
from planwave.expressions import compile_template
from planwave.expressions.filters import FILTERS
from planwave.expressions.syntax import (
    ENGINE_FILTERS,
    ENGINE_TESTS,
    Segment,
    check_blocks,
    has_template,
    split,
    tokenize,
)
from tests.support.cpu_time import cpu_within


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


def roots(text: str) -> set[tuple[str, str | None]]:
    template = compile_template([text])
    assert template is not None
    return {(reference.root, reference.key) for reference in template.references}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ a + b.c }}", {("a", None), ("b", None)}),
        ("{{ nodes['x-1'].output + nodes.y.output }}", {("nodes", "x-1"), ("nodes", "y")}),
        ("{{ nodes[input] }}!", {("nodes", None), ("input", None)}),
        ("{{ nodes.get('a') + 1 }}", {("nodes", None)}),
        ("{{ nodes | length + 1 }}", {("nodes", None)}),
        ("{{ (nodes)['a'] }}", {("nodes", None)}),
        ("{{ nodes['a\\n'] + 1 }}", {("nodes", None)}),
        ("{% for x, y in zs %}{{ x + y + loop.index }}{% endfor %}", {("zs", None)}),
        ("{% for input in inputs %}{{ input }}{% endfor %}", {("input", None), ("inputs", None)}),
        ("{% set a = b %}{{ a }}", {("b", None)}),
        ("{% macro m(p) %}{{ p }}{{ q }}{% endmacro %}{{ m(1) }}", {("q", None)}),
        ("{% with a = b %}{{ a }}{% endwith %}", {("b", None)}),
        ("{% if a is not none and 'x' in b %}{% endif %}", {("a", None), ("b", None)}),
        ("{{ a | map(attribute='x') | replace(b, 'c') }}", {("a", None), ("b", None)}),
        ("{% filter upper %}{{ a }}{% endfilter %}", {("a", None)}),
        ("{{ range(3) }}{{ namespace(a=b) }}", {("b", None)}),
        ("{{ 'a b' ~ \"c\" }}{# d #}{% raw %}{{ e }}{% endraw %}", set()),
        ("{% if x %}{{ {'k': v} }}{% endif %}", {("x", None), ("v", None)}),
        ("{{ nodes }}", {("nodes", None)}),
        ("{{ nodes.a }}", {("nodes", "a")}),
        ("{{ 'literal' | upper }}", set()),
    ],
)
def test_references_are_the_names_from_outside(
    text: str, expected: set[tuple[str, str | None]]
) -> None:
    assert roots(text) == expected


def guards(template: str) -> set[tuple[str, bool]]:
    compiled = compile_template(template)
    assert compiled is not None
    return {(reference.root, reference.guarded) for reference in compiled.references}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("the default is {{ a }}", {("a", False)}),
        ("{{ a | default('x') }}{{ b }}", {("a", True), ("b", False)}),
        ("{{ a | d('x') }} and {{ a }}", {("a", True), ("a", False)}),
        ("{{ a | upper | default('x') }}", {("a", False)}),
        ("{{ a | default(1) + 1 }}{{ b + 1 }}", {("a", True), ("b", False)}),
        ("{% if a is defined %}{{ a }}{% endif %}{{ b }}", {("a", True), ("b", False)}),
        ("{% if a is not undefined %}{{ a }}{% endif %}", {("a", True)}),
        ("{{ 'x | default' ~ a }}", {("a", False)}),
    ],
)
def test_a_variable_is_guarded_where_the_template_copes_with_its_absence(
    template: str, expected: set[tuple[str, bool]]
) -> None:
    assert guards(template) == expected


def test_the_parameters_of_a_call_block_are_its_own() -> None:
    template = "{% macro m() %}{{ caller(1) }}{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}"
    compiled = compile_template(template)
    assert compiled is not None
    assert compiled.references == ()


def test_handles_read_through_inputs_are_named() -> None:
    compiled = compile_template("{{ inputs.a }}{{ inputs['b c'] + inputs.get('d') }}")
    assert compiled is not None
    assert {reference.key for reference in compiled.references} == {"a", "b c", None}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ nodes.a.output }}", ("a", "output")),
        ("{{ nodes['a']['condition-0'].x[0] | upper }}", ("a", "condition-0")),
        ("{{ nodes.a }}", ("a", None)),
        ("{{ nodes.a[0] }}", ("a", None)),
        ("{{ nodes['a'].output ~ '!' }}", ("a", "output")),
        ("{% if nodes.a['else'].x == 1 %}y{% endif %}", ("a", "else")),
        ("{{ nodes.a.items() | list }}", ("a", None)),
        ("{{ nodes.a.get('output') ~ '' }}", ("a", None)),
        ("{{ nodes.a[input] ~ '' }}", ("a", None)),
        ("{{ nodes.a['x' ~ input] }}", ("a", None)),
        ("{% for h in nodes.a | items %}{{ h }}{% endfor %}", ("a", None)),
        ("{{ nodes.get('a').output ~ '' }}", (None, None)),
        ("{{ nodes[input].output }}", (None, None)),
        ("{{ inputs.a.b }}", ("a", None)),
        ("{{ inputs.a.b ~ '' }}", ("a", None)),
    ],
)
def test_the_output_that_is_read_of_a_node_is_named(
    template: str, expected: tuple[str | None, str | None]
) -> None:
    compiled = compile_template(template)
    assert compiled is not None
    found = {(r.key, r.handle) for r in compiled.references if r.root in ("nodes", "inputs")}
    assert found == {expected}
