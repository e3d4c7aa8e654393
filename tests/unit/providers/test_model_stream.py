from __future__ import annotations

from typing import Any

import pytest

from planwave.providers.model_stream import _is_strict
from planwave.providers.protocols import PromptMessage
from tests.support.llm.client_harness import model_client_harness
from tests.support.llm.fake_llm_server import TextReply


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
def test_only_strict_schemas_are_sent_as_strict(schema: dict[str, Any], strict: bool) -> None:
    assert _is_strict(schema) is strict


async def test_estimated_usage_counts_the_conversation() -> None:
    turns = (PromptMessage("user", "a" * 40), PromptMessage("assistant", "b" * 40))
    async with model_client_harness(TextReply("four", usage=None)) as harness:
        reply = await harness.ask("box", "c" * 20, system="d" * 20, messages=turns)
        assert reply.usage.estimated
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (30, 1)
