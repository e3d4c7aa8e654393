"""Errors of the parser: in planwave's words, with the place, and with a hint where one helps."""

from __future__ import annotations

import pytest

from planwave.errors import TemplateError
from planwave.expressions.errors import LITERAL_HINT
from planwave.expressions.syntax import parse_template


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("{{ }}", "an expression is missing before }}", LITERAL_HINT),
        ("{% if %}", "an expression is missing before %}", LITERAL_HINT),
        ("{{ a | }}", "expected a name, found }}", LITERAL_HINT),
        ("{{ a = 1 }}", "expected }}, found '='", LITERAL_HINT),
        ("{{ (1 }}", "expected ')', found '}'", LITERAL_HINT),
        ("{{ a ~ }}", "unexpected }}", LITERAL_HINT),
        (
            "a\n{{ b ! }}",
            "the character '!' in line 2, column 6 cannot stand in an expression",
            LITERAL_HINT,
        ),
        ("{% for a in b %}", "{% for %} is never closed: {% endfor %} is missing", None),
        ("{% if a %}b{% else %}", "{% if %} is never closed: {% endif %} is missing", None),
        ("{% endif %}", "{% endif %} belongs to no block that is open", None),
        ("a\n{% else %}", "{% else %} belongs to no block that is open (line 2)", None),
        (
            "{% if a %}{% endfor %}",
            "{% endfor %} is inside {% if %}, which needs {% endif %} first",
            None,
        ),
    ],
)
def test_an_error_of_the_parser_says_what_is_wrong(
    text: str, message: str, hint: str | None
) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_template(text)
    assert (caught.value.code, caught.value.message, caught.value.hint) == (
        "template-syntax",
        message,
        hint,
    )
