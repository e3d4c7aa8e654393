"""Texts that resolve to themselves."""

from __future__ import annotations

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.expressions import compile_template, escape_templates, is_literal

PIECES = st.sampled_from(
    ["{{", "}}", "{%", "%}", "{#", "#}", "{% raw %}", "{% endraw %}", "{%endraw%}", "{%- endraw -%}",
     "endraw", "raw", " ", "\n", "a", "input", "{", "}", "-"]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS)
def test_an_escaped_text_is_literal_and_has_nothing_to_resolve(text: str) -> None:
    escaped = escape_templates(text)
    assert is_literal(escaped)
    template = compile_template({"text": escaped})
    assert template is None or list(template.references) == []
    environment = jinja2.Environment(keep_trailing_newline=True, autoescape=False)  # noqa: S701
    assert environment.from_string(escaped).render() == text


@given(TEXTS)
def test_what_counts_as_literal_resolves_nothing(text: str) -> None:
    if is_literal(text):
        template = compile_template({"text": text})
        assert template is None or list(template.references) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ input }}",
        "{% if x %}y{% endif %}",
        "{# a comment #}",
        "{% raw %}{{ x }}{% endraw %}{{ input }}",
        "{% raw %}{%endraw%}{{ input }}{% raw %}{% endraw %}",
        "{% raw %}{%- endraw -%}{{ input }}{% raw %}{% endraw %}",
        "{# {% raw %} #}{{ input }}{# {% endraw %} #}",
        "{% raw %}{{ input }}",
    ],
)
def test_a_text_with_a_template_is_not_literal(text: str) -> None:
    assert not is_literal(text)


def test_texts_inside_of_values_are_escaped() -> None:
    assert escape_templates({"a": ["{{ x }}", 1, None]}) == {
        "a": ["{% raw %}{{ x }}{% endraw %}", 1, None]
    }
