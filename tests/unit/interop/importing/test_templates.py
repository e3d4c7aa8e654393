from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planwave.expressions import has_template
from planwave.interop.importing.templates import inserted, literal, output_of, path, quoted
from tests.support.expressions import rendered


@given(st.text(alphabet="{}%# 'a\"\\\n", max_size=20))
def test_a_literal_renders_to_its_text(text: str) -> None:
    template = literal(text)
    assert (rendered(template) if has_template(template) else template) == text


def test_a_text_without_braces_is_its_own_literal() -> None:
    assert literal("plain } text") == "plain } text"


def test_expressions() -> None:
    assert path("input", ["a", 0, "b c"]) == 'input.a[0]["b c"]'
    assert output_of('the "first"') == 'nodes["the \\"first\\""].output'
    assert inserted(output_of("a", "errors", ["x"])) == '{{ nodes["a"].errors.x }}'
    assert quoted("ä") == '"ä"'
