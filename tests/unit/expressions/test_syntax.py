from __future__ import annotations

import contextlib
from collections.abc import Iterable

import minijinja
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import TemplateError
from planwave.expressions import compile_template, has_template
from planwave.expressions.filters import FILTERS
from planwave.expressions.syntax import ENGINE_FILTERS, ENGINE_TESTS, parse_template
from tests.support.cpu_time import cpu_within


def parts(text: str) -> list[str] | None:
    """Return the literals of a template, and the sources of its paths."""
    found = parse_template(text).parts
    if found is None:
        return None
    return [part if isinstance(part, str) else part.source for part in found]


def code(text: str) -> str:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    return caught.value.code


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n b {# c", "{# in line 2, column 4 is never closed"),
        ("a\r\nb {#", "{# in line 2, column 3 is never closed"),
        ("{{ a }}\n\n  {{- b", "{{- in line 3, column 3 is never closed"),
        ("{{ a }", "{{ in line 1, column 1 is never closed"),
        ("é {% if a", "{% in line 1, column 3 is never closed"),
        ("{% raw %} {{ a }}", "{% raw %} in line 1, column 1 is never closed"),
        ("{% raw %}", "{% raw %} in line 1, column 1 is never closed"),
        ("{{ 'a }}", "the text that begins in line 1, column 4 is never closed"),
    ],
)
def test_a_delimiter_that_is_never_closed_is_located(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert caught.value.message == message


def test_text_and_plain_paths_are_the_parts_of_a_template() -> None:
    assert parts("a {{ b }} c\r\n{{d.e}}") == ["a ", "b", " c\r\n", "d.e"]
    text = "{% raw %}{{ f }}{% endraw %}{{ b }}{# d #}"
    assert "".join(parts(text) or ()) == "{{ f }}b"
    assert parts("{% if a %}b{% endif %}") is None


@pytest.mark.parametrize(
    "space", ["\n", "\r", "\r\n", "\x0b", "\x0b\x1c", "\x0b\x1d", "\x85", "\xa0"]
)
def test_white_space_around_expressions_stays_as_it_is(space: str) -> None:
    assert parts(f"{space}{{{{ a }}}}{space}") == [space, "a", space]
    assert parts(f"{{{{ a |{space}upper }}}}") == [f"a |{space}upper"]


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("{{ a + 1 }}", "a + 1"),
        ("{{- a -}}", "a"),
        ("{{ -1 }}", "-1"),
        ("{{ {'a': {'b': 1}} }}", "{'a': {'b': 1}}"),
        ("{{{'a':{'b':1}}}}", "{'a':{'b':1}}"),
        ("{{ [x][0] }}", "[x][0]"),
        ("{{ '}}' ~ a }}", "'}}' ~ a"),
        ("{{ a + 1 }} ", None),
        ("{{ a -}} ", None),
        ("{# b #}{{ a + 1 }}", None),
        ("{{ a + 1 }}{% if b %}{% endif %}", None),
        ("{{ a }}{{ a + 1 }}", None),
    ],
)
def test_a_single_expression_for_the_engine_is_known(text: str, expression: str | None) -> None:
    parsed = parse_template(text)
    assert (parsed.parts, parsed.expression) == (None, expression)


def test_a_comment_beside_a_path_makes_a_text_of_it() -> None:
    assert parts("{# a #}{{ b }}") != ["b"]


@pytest.mark.parametrize(
    ("text", "source"),
    [('{{ "}}" }}', '"}}"'), ("{{ 'it\\'s }}' }}", "'it\\'s }}'"), ("{{ a['}}'] }}", "a['}}']")],
)
def test_strings_hide_the_end_of_an_expression(text: str, source: str) -> None:
    assert parts(text) == [source]


def test_text_literals_that_the_engines_read_differently_are_left_to_the_renderer() -> None:
    assert [parts(f"{{{{ '{text}' }}}}") for text in (r"\u0041", r"\/\d", "a\rb")] == [None] * 3
    assert roots(r"{{ nodes['a\x41'] }}") == {("nodes", None)}


@pytest.mark.parametrize(
    "text",
    [
        "{{", "{{ a }", "{% if a }}", "{{ a] }}", "{{ (a] }}", "{{ 'a }}", "{# a", "{#",
        "{% raw %}{{ a }}", "{% raw %}", "{% if a %}", "{% endif %}", "{% if a %}{% endfor %}",
        "{% else %}", "{% for a in b %}{% elif c %}{% endfor %}", "{% break %}", "{% debug %}",
        "{% do 1 %}", "{% print 1 %}", "{% autoescape 1 %}{% endautoescape %}", "{% %}", "{{ }}",
        "{% set a == 1 %}", "{{ a b }}", "{{ a $ b }}", "{% for true in a %}{% endfor %}",
        "{{ a[" + "9" * 5_000 + "] }}", "{{ " + "not " * 5_000 + "a }}", "{{ '\ud800", "{{ \ud800 }}",
        "{% if 1 %}" * 65 + "{% endif %}" * 65,
    ],
)  # fmt: skip
def test_what_is_no_template_is_a_syntax_error(text: str) -> None:
    assert code(text) == "template-syntax"


def test_an_error_names_its_line() -> None:
    with pytest.raises(TemplateError, match=r"^expected }}, found 'c' \(line 3\)$"):
        parse_template("a\r\n\r\n{{ b c }}")


@pytest.mark.parametrize("brackets", ["()", "[]", ("{1:", "}"), ("a(not -b[", "])")])
def test_brackets_nest_to_a_limit_that_the_stack_of_a_service_has_room_for(
    brackets: tuple[str, str],
) -> None:
    opening, closing = brackets
    depth = 32 // sum(opening.count(bracket) for bracket in "([{")

    def parse(times: int, frames: int) -> None:
        if frames:
            parse(times, frames - 1)
        else:
            parse_template("{{ " + opening * times + "a" + closing * times + " }}")

    parse(depth, 200)
    with pytest.raises(TemplateError, match="nested deeper"):
        parse(depth + 1, 0)


def test_blocks_nest_to_a_limit() -> None:
    parse_template("{% if 1 %}" * 64 + "{% endif %}" * 64)
    with pytest.raises(TemplateError, match="nested deeper"):
        parse_template("{% if 1 %}" * 65 + "{% endif %}" * 65)


@pytest.mark.parametrize(
    "text",
    [
        "{{ 'a" * 9_000,
        "{{ a }}" * 3_000,
        "{% " * 9_000,
        "{{ a" + "+a" * 9_000 + " }}",
        "{% if a %}" + "{% elif a %}" * 2_000 + "{% endif %}",
        "{% set" + " " * 60_000 + "x %}{% endset %}",
    ],
)
def test_parsing_is_linear_in_the_text(text: str) -> None:
    with cpu_within(3), contextlib.suppress(TemplateError):
        parse_template(text)


def test_the_parsed_form_of_a_text_is_kept() -> None:
    assert parse_template("{{ a.b }}") is parse_template("{{ a.b }}")


def test_single_braces_are_literal() -> None:
    assert not has_template('{"json": {"a": 1} } { { % }')
    assert has_template("{#")


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
    assert parse_template(text).parts is None


@pytest.mark.parametrize(
    "tag", ["include 'x'", "import 'x' as y", "from 'x' import y", "extends 'x'", "block x"]
)
def test_tags_that_load_templates_are_forbidden(tag: str) -> None:
    assert code(f"{{% {tag} %}}") == "template-forbidden"


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
    added = ["fromjson"]  # by the worker
    assert unknown_to_the_engine(ENGINE_FILTERS, "'a' | {}", "UnknownFilter") == added
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
        ("{{ (nodes)['a'] }}", {("nodes", "a")}),
        ("{{ (nodes | first)['a'] }}", {("nodes", None)}),
        ("{% for x, y in zs %}{{ x + y + loop.index }}{% endfor %}", {("zs", None)}),
        ("{% for input in inputs %}{{ input }}{% endfor %}", {("input", None), ("inputs", None)}),
        ("{% set a = b %}{{ a }}", {("b", None)}),
        ("{% macro m(p) %}{{ p }}{{ q }}{% endmacro %}{{ m(1) }}", {("q", None)}),
        ("{% with a = b %}{{ a }}{% endwith %}", {("b", None)}),
        ("{% if a is not none and 'x' in b %}{% endif %}", {("a", None), ("b", None)}),
        ("{{ a | map(attribute='x') | replace(b, 'c') }}", {("a", None), ("b", None)}),
        ("{% filter upper %}{{ a }}{% endfilter %}", {("a", None)}),
        ("{{ range(3) }}{{ namespace(a=b) }}", {("b", None)}),
        ("{{ [range] }}{{ range(3) }}", {("range", None)}),
        ("{% set range = a %}{{ [range] }}", {("a", None)}),
        ("{{ (f or g)(x) }}", {("f", None), ("g", None), ("x", None)}),
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


# --- parity with MiniJinja -------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "input", "inputs", "nodes", "goal", "é_1", "loop"])
LITERALS = st.sampled_from(
    ["1", "2.5", "'x y'", '"}}"', r"'\d\n'", "true", "none", "[]", "{}", "''"]
)
INFIX = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", ">=", "and", "or", "in", "not in"]
)
CALLS = st.sampled_from(
    [
        "upper",
        "default(1)",
        "d",
        "join(', ')",
        "replace('a', b)",
        "map(attribute='x')",
        "sort(true)",
    ]
)
TESTS = st.sampled_from(
    ["defined", "not defined", "none", "odd", "in [a]", "eq(b)", "divisibleby 3"]
)
TRIMS = st.sampled_from(["", "", "-"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return the expressions that can be made from smaller ones."""
    return st.one_of(
        st.tuples(inner, INFIX, inner).map(" ".join),
        st.tuples(inner, inner, inner).map("{0[0]} if {0[1]} else {0[2]}".format),
        st.tuples(inner, inner).map("({0[0]}, {0[1]})".format),
        st.tuples(inner, inner).map("[{0[0]}, {0[1]}]".format),
        st.tuples(inner, inner).map("{{'k': {0[0]}, {0[1]}: 1}}".format),
        st.tuples(inner, inner).map("{0[0]}[{0[1]}]".format),
        st.tuples(inner, inner).map("({0[0]})[{0[1]}:]".format),
        st.tuples(NAMES, inner).map("{0[0]}.get({0[1]}, key=1)".format),
        st.tuples(inner, CALLS).map("({0[0]} | {0[1]})".format),
        st.tuples(inner, TESTS).map("({0[0]} is {0[1]})".format),
        inner.map("not ({})".format),
        inner.map("-({})".format),
        inner.map("{}.b".format),
        inner.map("{}.0['c']".format),
    )


EXPRESSIONS = st.recursive(NAMES | NAMES | LITERALS, larger, max_leaves=6)


def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return the blocks that can stand around a text."""
    return st.one_of(
        st.tuples(EXPRESSIONS, inner, inner).map(
            "{{% if {0[0]} -%}}{0[1]}{{% elif b %}}{0[2]}{{% else %}}c{{% endif %}}".format
        ),
        st.tuples(EXPRESSIONS, inner).map(
            "{{% for a, b in ({0[0]}) if a %}}{0[1]}{{% continue %}}{{% else %}}c{{% endfor %}}".format
        ),
        st.tuples(EXPRESSIONS, inner).map("{{% set a = {0[0]} %}}{0[1]}".format),
        st.tuples(CALLS, inner).map("{{% set b | {0[0]} %}}{0[1]}{{% endset %}}".format),
        st.tuples(EXPRESSIONS, inner).map(
            "{{% with a = {0[0]}, b = a %}}{0[1]}{{% endwith %}}".format
        ),
        st.tuples(EXPRESSIONS, inner).map(
            "{{% macro m(a, b={0[0]}) %}}{0[1]}{{% endmacro %}}".format
        ),
        st.tuples(EXPRESSIONS, inner).map("{{% call(a) m({0[0]}) %}}{0[1]}{{% endcall %}}".format),
        st.tuples(CALLS, inner).map("{{% filter {0[0]} %}}{0[1]}{{% endfilter %}}".format),
        inner.map("{{% raw %}}{}{{% endraw %}}".format),
    )


PARTS = st.one_of(
    st.tuples(TRIMS, EXPRESSIONS, TRIMS).map("{{{{{0[0]} {0[1]} {0[2]}}}}}".format),
    st.sampled_from(["text\r\n", "{", " }} ", "{# {{ #}", r"\d"]),
)
TEMPLATES = st.lists(st.recursive(PARTS, around, max_leaves=4), min_size=1, max_size=4).map("".join)


def accepted_by_the_engine(text: str) -> bool:
    try:
        ENGINE.add_template("t", text)
    except minijinja.TemplateError:
        return False
    return True


@settings(deadline=None)
@given(TEMPLATES)
def test_a_template_is_accepted_if_the_engine_accepts_it(text: str) -> None:
    try:
        parsed = parse_template(text)
    except TemplateError:
        assert not accepted_by_the_engine(text)
        return
    assert accepted_by_the_engine(text)
    found = {variable.name for variable in parsed.variables or parsed.references}
    looked_up = ENGINE.undeclared_variables_in_str(text, nested=True)
    assert found >= {name.partition(".")[0] for name in looked_up}
