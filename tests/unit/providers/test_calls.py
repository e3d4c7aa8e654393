from __future__ import annotations

from typing import Any

import pytest

from planwave.providers.calls import _is_strict, clean


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (closed(a={"type": "integer"}), True),
        (closed(a={"type": "array", "items": closed(b={"enum": ["x"]})}), True),
        (closed(a={"anyOf": [{"type": "null"}, closed()]}), True),
        ({"$defs": {"n": closed()}, **closed(a={"$ref": "#/$defs/n"})}, True),
        ({"type": "object"}, False),
        (closed(a={"type": "object"}), False),
        (closed(a={"type": "array", "items": {"type": "object"}}), False),
        (closed(a={"type": "string", "maxLength": 5}), False),
        ({**closed(a={"type": "string"}), "required": []}, False),
        ({"$defs": {"n": {"type": "object"}}, **closed()}, False),
        (closed(a=True), False),
    ],
)
def test_only_schemas_the_strict_modes_take_whole_are_sent_as_strict(
    schema: dict[str, Any], strict: bool
) -> None:
    assert _is_strict(schema) is strict


def test_clean_text_is_left_alone_and_lone_surrogates_become_replacement_characters() -> None:
    assert clean("plain") == "plain"
    assert clean("größe 🎉") == "größe 🎉"
    assert clean("a\ud83d b") == "a\ufffd b"
