from __future__ import annotations

import pytest

from planwave.nodes.agents.tool_function import read_docstring

PLAIN = """Send a mail
to a customer.

It leaves at once.

Args:
    to: The address.
    text (str): What it says,
        in any length: a line or more.

    note: Seen by nobody.

Returns:
    to: Not an argument.
"""


@pytest.mark.parametrize(
    ("text", "summary", "arguments"),
    [
        (
            PLAIN,
            "Send a mail to a customer.",
            {
                "to": "The address.",
                "text": "What it says, in any length: a line or more.",
                "note": "Seen by nobody.",
            },
        ),
        ("\n    Args:\n        to: The address.\n    ", "", {"to": "The address."}),
        ("Send.", "Send.", {}),
        (None, "", {}),
    ],
)
def test_the_first_paragraph_and_the_arguments_are_read(
    text: str | None, summary: str, arguments: dict[str, str]
) -> None:
    def function() -> None: ...

    function.__doc__ = text
    assert read_docstring(function) == (summary, arguments)
