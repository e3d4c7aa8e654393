from __future__ import annotations

import pytest

from planwave.expressions import compile_template


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
