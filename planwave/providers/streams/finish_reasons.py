"""Why replies end, in the words of all APIs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from planwave.setting_tables import ReasonForEnd as FinishReason

_WORDS: Final[Mapping[FinishReason, str]] = MappingProxyType(
    {
        "stop": """stop stopped stop_sequence stop_word end end_turn end_of_text end_of_turn eos
            eos_token eos_found eot eot_id complete completed finish finished done normal success
            pause_turn compaction""",
        "length": """length max_tokens max_token max_length model_length max_output_tokens
            max_completion_tokens max_new_tokens max_tokens_reached token_limit token_limit_reached
            output_limit length_limit context_length context_length_exceeded context_window_exceeded
            model_context_window_exceeded limit truncated incomplete""",
        "tool_calls": "tool_calls tool_call tool_use function_call function_calls tools",
        "content_filter": """content_filter content_filtered content_policy content_policy_violation
            safety recitation blocklist prohibited_content spii image_safety image_recitation language
            sensitive guardrail guardrails guardrail_intervened moderation blocked filtered
            model_armor risk_control""",
        "refusal": "refusal refused",
        "error": """error server_error internal_error internal_server_error engine_error model_error
            network_error connection_error abort aborted cancel cancelled canceled failed failure
            timeout timed_out insufficient_system_resource malformed_function_call malformed_tool_call
            malformed_response malformed_model_output unexpected_tool_call too_many_tool_calls
            no_image other overloaded""",
    }
)


def _letters(word: str) -> str:
    return re.sub(r"[^a-z]", "", word.lower()).removeprefix("finishreason")


_TABLE: Final[Mapping[str, FinishReason]] = {
    _letters(word): reason for reason, words in _WORDS.items() for word in words.split()
}


def finish_reason_of(
    word: str, own: Mapping[str, FinishReason] | None = None
) -> FinishReason | None:
    """Return the reason that a word of any API names, in any case of letters; None if unknown.

    Args:
        word: As the server wrote it: ``MAX_TOKENS``, ``max-tokens``, ``maxTokens``, ``FinishReason.MAX_TOKENS``.
        own: More words, of one server.
    """
    letters = _letters(word)
    for name, reason in (own or {}).items():
        if _letters(name) == letters:
            return reason
    return _TABLE.get(letters)
