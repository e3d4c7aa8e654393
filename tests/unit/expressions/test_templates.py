from __future__ import annotations

import asyncio
import contextlib
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import TemplateError
from planwave.expressions import Template, VariableRef, compile_template
from planwave.expressions.renderer import Renderer
from tests.support.paths import SHARED

BAD_INPUTS = SHARED / "bad_inputs.jsonl"


class Variables(dict[str, Any]):
    """A scope that is a dict and remembers what it was asked for."""

    def __init__(self, **values: Any) -> None:
        super().__init__(values)
        self.asked: list[str] = []

    def lookup(self, root: str) -> Any:
        self.asked.append(root)
        return self[root]


class Recording:
    """An engine that answers with what it was asked."""

    max_output_bytes = 1 << 20

    async def render(self, source: str, variables: dict[str, Any]) -> str:
        return json.dumps(["render", source, variables])

    async def evaluate(self, expression: str, variables: dict[str, Any]) -> Any:
        return ["evaluate", expression, variables]


class Small(Recording):
    max_output_bytes = 10


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    shared = Renderer(wall_s=60.0)
    yield shared
    asyncio.run(shared.close())


def compiled(value: Any, **options: Any) -> Template:
    template = compile_template(value, **options)
    assert template is not None
    return template


async def resolved(text: str, **values: Any) -> Any:
    return (await compiled({"f": text}).resolve(Variables(**values), None))["f"]


def refusal(value: Any, **options: Any) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        compile_template(value, **options)
    return caught.value


def test_data_without_expressions_has_no_template() -> None:
    assert compile_template({"prompt": "hi", "n": 1, "deep": [{"a": "{x} } {"}], "z": None}) is None


async def test_a_field_that_is_one_expression_keeps_the_type() -> None:
    assert await resolved("{{ input.items }}", input={"items": [1, {"a": None}]}) == [
        1,
        {"a": None},
    ]


async def test_embedded_values_read_as_text() -> None:
    text = await resolved("{{ a }}|{{ b }}|{{ c }}|{{ d }}", a="é", b=None, c={"k": [1]}, d=True)
    assert text == 'é||{"k":[1]}|true'


async def test_every_form_of_a_plain_path_is_walked() -> None:
    value = {"a-b": [{"n": 1}, {"n": 2}], "0": "zero"}
    text = await resolved("{{ x[\"a-b\"][-1].n }}{{ x['a-b'].0.n }}{{ x.0 }}", x=value)
    assert text == "21zero"


async def test_an_undefined_path_names_field_path_and_what_is_there() -> None:
    template = compiled({"a": {"b": ["x {{ input.nmae }}"]}})
    with pytest.raises(TemplateError) as caught:
        await template.resolve(Variables(input={"name": 1}), None)
    assert caught.value.code == "template-undefined"
    assert caught.value.message == (
        "data.a.b.0: input.nmae is undefined in {{ input.nmae }}: input has name"
    )


@pytest.mark.parametrize(
    "text", ["{{ nope }}", "{{ x.a.b }}", "{{ x[3] }}", "{{ x.get }}", "{{ s.upper }}", "{{ n.a }}"]
)
async def test_a_path_that_leads_nowhere_is_undefined(text: str) -> None:
    with pytest.raises(TemplateError) as caught:
        await resolved(text, x={"a": 1}, s="text", n=None)
    assert caught.value.code == "template-undefined"


async def test_default_helps_an_undefined_path() -> None:
    assert await resolved('{{ a.b.c | default("none") | upper }}') == "NONE"


async def test_a_value_that_looks_like_a_template_is_never_rendered() -> None:
    assert await resolved("{{ input }}!", input="{{ 7*7 }}{% if %}") == "{{ 7*7 }}{% if %}!"


async def test_a_text_literal_writes_braces() -> None:
    assert await resolved('{{ "{{" }} x {{ "}}" }}') == "{{ x }}"


async def test_resolving_leaves_the_compiled_value_as_it_was() -> None:
    value = {"a": ["{{ x }}", {"b": "lit"}], "c": {"d": []}}
    before = copy.deepcopy(value)
    result = await compiled(value).resolve(Variables(x=5), None)
    result["c"]["d"].append(1)
    result["a"][1]["b"] = "changed"
    assert (value, result["a"][0]) == (before, 5)


async def test_only_the_named_fields_hold_templates() -> None:
    value = {"prompt": "{{ x }}", "code": "{{ not closed"}
    template = compiled(value, fields=("prompt",))
    assert await template.resolve(Variables(x=1), None) == {"prompt": 1, "code": "{{ not closed"}
    assert compile_template(value, fields=()) is None


async def test_a_root_is_asked_for_once_and_only_when_used() -> None:
    scope = Variables(a=1, b=2)
    await compiled(["{{ a }}", "{{ a }}{{ a }}"]).resolve(scope, None)
    assert scope.asked == ["a"]


async def test_a_single_text_can_be_a_template() -> None:
    assert await compiled("{{ a }}").resolve(Variables(a=[1]), None) == [1]


def test_references_name_roots_node_ids_and_fields() -> None:
    template = compiled(
        {"p": '{{ nodes["a-1"].output }} {{ nodes.b.output }}', "q/~": "{{ input.x }} {{ handle }}"}
    )
    assert template.references == (
        VariableRef("nodes", "a-1", "/p", handle="output"),
        VariableRef("nodes", "b", "/p", handle="output"),
        VariableRef("input", None, "/q~1~0"),
        VariableRef("handle", None, "/q~1~0"),
    )


async def test_one_complex_expression_is_evaluated_with_the_variables_it_names() -> None:
    scope = Variables(input=1, nodes={"a": 1, "b": 2}, goal="unused")
    result = await compiled({"f": "{{ input + nodes['a'] }}"}).resolve(scope, Recording())
    assert result["f"] == ["evaluate", "input + nodes['a']", {"input": 1, "nodes": {"a": 1}}]


async def test_a_computed_node_id_sends_all_nodes() -> None:
    scope = Variables(input="a", nodes={"a": 1, "b": 2})
    result = await compiled(["{{ nodes[input] }}"]).resolve(scope, Recording())
    assert result[0][2] == {"input": "a", "nodes": {"a": 1, "b": 2}}


async def test_blocks_are_rendered_by_the_engine() -> None:
    text = "{% for x in input %}{{ x }}{% endfor %}"
    result = await compiled([text]).resolve(Variables(input=[1]), Recording())
    assert json.loads(result[0]) == ["render", text, {"input": [1]}]


async def test_an_engine_template_without_an_engine_is_a_clear_error() -> None:
    with pytest.raises(TemplateError, match="render worker") as caught:
        await resolved("{{ 1 + 1 }}")
    assert caught.value.code == "template-unavailable"


async def test_output_over_the_limit_is_refused() -> None:
    template = compiled(["{{ a }}-{{ a }}"])
    assert await template.resolve(Variables(a="éé"), Small()) == ["éé-éé"]
    with pytest.raises(TemplateError) as caught:
        await template.resolve(Variables(a="éé!"), Small())
    assert caught.value.code == "template-too-large"


async def test_a_value_that_is_not_json_is_a_template_error() -> None:
    with pytest.raises(TemplateError, match="not JSON"):
        await resolved("{{ a }}!", a=object())


def test_a_text_at_the_limit_passes_and_one_byte_more_does_not() -> None:
    assert compile_template({"p": "é" * 5}, max_bytes=10) is None
    error = refusal({"p": "é" * 5 + "x"}, max_bytes=10)
    assert (error.code, error.message.split(":")[0]) == ("template-too-large", "data.p")


def test_data_nested_without_end_is_refused() -> None:
    value: Any = "{{ x }}"
    for _ in range(5000):
        value = [value]
    assert refusal(value).code == "template-syntax"


@pytest.mark.parametrize(
    "text",
    ["{{ a", "{{ }}", "{% if a %}", "{{ a. }}", "{{ a | }}", "{# x", "{% raw %}", "{{ 'a }}"],
)
def test_broken_syntax_is_refused_and_names_the_field(text: str) -> None:
    error = refusal({"deep": [text]})
    assert (error.code, error.message.split(":")[0]) == ("template-syntax", "data.deep.0")


def test_loading_other_templates_is_refused() -> None:
    assert refusal({"p": "{% include 'x' %}"}).code == "template-forbidden"


# --- every hostile template of the shared list -------------------------------------------------


def expanded(value: Any) -> str:
    match value:
        case {"$repeat": [opening, count, closing]}:
            return opening * count + closing * count
        case {"$wrap": [prefix, count, suffix, *char]}:
            return prefix + (char[0] if char else "x") * count + suffix
        case _:
            return value


def hostile() -> list[Any]:
    if not BAD_INPUTS.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason="the shared folder is absent"))]
    rows = [json.loads(line) for line in BAD_INPUTS.read_text("utf-8").splitlines()]
    return [pytest.param(row, id=row["id"]) for row in rows if row["target"] == "template"]


HARMLESS = {"TPL-122", "TPL-123", "TPL-124"}
"""An attribute that is undefined on JSON: the engine gives an empty or plain-data answer."""
LEAKS = ("<class", "__globals__", "builtin", "<frame", "uid=", "root:", "object at 0x", "<function")


@pytest.mark.parametrize("row", hostile())
async def test_hostile_templates_do_as_the_list_expects(
    row: dict[str, Any], renderer: Renderer
) -> None:
    await renderer.render("{{ 1 + 1 }}", {})
    outcome = await attempted(expanded(row["input"]), renderer)
    if row["expect"].startswith("accept"):
        assert not isinstance(outcome, TemplateError)
    elif row["id"] not in HARMLESS:
        assert isinstance(outcome, TemplateError)
        assert outcome.code.startswith("template-")
        assert outcome.message.startswith("data.f:")
    if not isinstance(outcome, TemplateError):
        assert not any(leak in json.dumps(outcome) for leak in LEAKS)
    assert await renderer.render("{{ 1 + 1 }}", {}) == "2"


async def attempted(text: str, renderer: Renderer) -> Any:
    scope = Variables(
        x={"a": [1]}, data={"b": 1}, html="<script>alert(1)</script>", input="hi", goal="g"
    )
    try:
        template = compile_template({"f": text}, max_bytes=64 << 10)
        return None if template is None else await template.resolve(scope, renderer)
    except TemplateError as error:
        return error


async def test_arithmetic_keeps_its_type_and_markup_is_not_escaped(renderer: Renderer) -> None:
    scope = Variables(html="<b>")
    template = compiled(["{{ 7*7 }}", "{{ html }} {{ 1 + 1 }}"])
    assert await template.resolve(scope, renderer) == [49, "<b> 2"]


@pytest.mark.parametrize(
    "expression",
    [
        "x['__class__']",
        "x|attr('__class__')",
        "x.get.__self__",
        "x.keys().mapping.__class__",
        "x.a.__len__",
        "x.a.sort()",
        "x.a.append(2)",
        "x.a.clear()",
        "x.pop('a')",
        "x.setdefault('q', 1)",
        "range.__class__",
        "[x]|map(attribute='__class__')|first",
    ],
)
async def test_no_attribute_or_writing_method_of_python_is_reachable(
    expression: str, renderer: Renderer
) -> None:
    outcome = await attempted(f"{{{{ {expression} + 0 }}}}", renderer)
    assert isinstance(outcome, TemplateError), outcome


# --- properties --------------------------------------------------------------------------------

PIECES = st.sampled_from(
    ["{{", "}}", "{%", "%}", "{#", "#}", "{", " ", "a", ".", "[", "]", "(", ")", "|", "'", '"']
) | st.sampled_from(
    ["\\", "upper", "if", "endif", "for", "in", "raw", "endraw", "set", "=", "-", "0", "nodes", "é"]
)
SOURCES = st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | SOURCES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def outcome_of(value: Any) -> Template | TemplateError | None:
    try:
        return compile_template(value)
    except TemplateError as error:
        return error


@settings(deadline=None)
@given(JSON)
def test_compiling_raises_nothing_but_template_errors(value: Any) -> None:
    outcome = outcome_of(value)
    if isinstance(outcome, TemplateError):
        assert outcome.code in ("template-syntax", "template-forbidden")
    else:
        assert outcome is None or isinstance(outcome, Template)


@settings(deadline=None)
@given(JSON)
def test_resolving_raises_nothing_but_template_errors(value: Any) -> None:
    template = outcome_of(value)
    if isinstance(template, Template):
        scope = Variables(a={"a": [1]}, nodes={})
        with contextlib.suppress(TemplateError):
            asyncio.run(template.resolve(scope, None))
        assert set(scope.asked) <= {reference.root for reference in template.references}


@settings(deadline=None)
@given(st.text().filter(lambda text: not any(mark in text for mark in ("{{", "{%", "{#"))))
def test_literal_text_stays_identical(text: str) -> None:
    value = {"literal": text, "f": "{{ x }}"}
    resolved_value = asyncio.run(compiled(value).resolve(Variables(x=1), None))
    assert resolved_value["literal"] is text
    assert compile_template({"literal": text}) is None


@settings(deadline=None)
@given(st.text(), SOURCES)
def test_values_pass_through_as_they_are(prefix: str, value: str) -> None:
    literal = prefix.replace("{", "(")
    template = compiled([literal + "{{ x }}", "{{ x }}"])
    whole = asyncio.run(template.resolve(Variables(x=value), None))
    assert whole == [literal + value, value]


# -- numbers

EDGES = [
    sign * (base + step)
    for base in (0, 2**31, 2**53, 2**63, 2**64, 2**127, 2**128, 10**40, 10**300)
    for step in (-1, 0, 1)
    for sign in (1, -1)
]
NUMBERS = st.one_of(
    st.sampled_from(EDGES),
    st.sampled_from([float(each) for each in EDGES]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-0.0, 1.0, 0.1 + 0.2, 1e16, 1e21, 1e22, 5e-324]),
)
WAYS = (
    "{{ n }}", "<{{ n }}>", "{% if true %}{{ n }}{% endif %}", "{% for each in [n] %}{{ each }}{% endfor %}",
    "{% set m = n %}{{ m }}", "{% for each in l %}{{ each }}{% endfor %}", "{% if l %}{{ l[0] }}{% endif %}",
    "{% if o %}{{ o.n }}{% endif %}", "{{ l[0] }}!", "{% macro show(x) %}{{ x }}{% endmacro %}{{ show(n) }}",
)  # fmt: skip


@given(NUMBERS)
@settings(deadline=None)
def test_a_number_has_one_text_by_every_way_or_an_error_that_names_it(
    renderer: Renderer, number: float
) -> None:
    scope = Variables(n=number, l=[number], o={"n": number})
    texts: set[str] = set()
    for way in WAYS:
        try:
            text = asyncio.run(compiled(f"{way} ").resolve(scope, renderer))
            texts.add(text.strip(" <>!"))
        except TemplateError as error:
            if f"the integer {number} has more than 128 bits" not in error.message:
                raise
    (text,) = texts
    assert json.loads(text) == number


@given(st.integers(2**128, 10**60), st.sampled_from(["n + 1", "n * 2", "-n", "n | abs", "n / 3"]))
@settings(deadline=None)
def test_no_digits_are_lost_without_a_word(
    renderer: Renderer, number: int, expression: str
) -> None:
    source = f"x {{% if true %}}{{{{ {expression} }}}}{{% endif %}}"
    with pytest.raises(TemplateError, match=f"the integer {number} "):
        asyncio.run(compiled(source).resolve(Variables(n=number), renderer))


@given(NUMBERS, NUMBERS)
@settings(deadline=None)
def test_numbers_of_any_size_compare(renderer: Renderer, one: float, other: float) -> None:
    scope = Variables(one=one, other=other)
    found = asyncio.run(
        compiled("{% if one < other %}1{% else %}0{% endif %}").resolve(scope, renderer)
    )
    assert found in (str(int(one < other)), str(int(float(one) < float(other))))
