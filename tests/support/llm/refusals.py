"""What real model servers refuse of a request, with their status and their words.

``refusal_of`` is what each API refuses of everybody; ``FEATURES`` is what some servers lack. A fake server
gets the names of the features that it lacks: ``FakeLLMServer(lacks={"stream_options"})``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

_FIELDS = {
    "chat": """messages model stream stream_options max_tokens max_completion_tokens temperature top_p
        tools tool_choice parallel_tool_calls response_format reasoning_effort stop seed user n store
        prompt_cache_key prompt_cache_retention metadata grammar cache_prompt id_slot
        chat_template_kwargs""",
    "responses": """input model stream instructions max_output_tokens temperature top_p tools tool_choice
        parallel_tool_calls text reasoning include store previous_response_id metadata
        prompt_cache_key prompt_cache_retention""",
    "anthropic": """messages model stream system max_tokens temperature top_p top_k tools tool_choice
        thinking output_config output_format stop_sequences metadata cache_control""",
}
"""The fields of a request that each API knows; others are refused, as Anthropic and Mistral do."""

_MAX_CACHE_MARKS = 4


class Refused(NamedTuple):
    """A response of status 400 or the like, with the words of a real server."""

    status: int
    message: str
    body: Any = None


def refusal_of(shape: str, body: dict[str, Any]) -> Refused | None:
    """Return why an API refuses a request, whoever asks."""
    unknown = body.keys() - set(_FIELDS[shape].split())
    if unknown:
        name = min(unknown)
        return Refused(400, f"{name}: Extra inputs are not permitted")
    for where, text in _texts(shape, body):
        if not text.strip():
            return Refused(400, f"{where}: text content blocks must contain non-whitespace text")
    marks = json.dumps(body).count('"cache_control"') if shape == "anthropic" else 0
    if marks > _MAX_CACHE_MARKS:
        message = "A maximum of 4 blocks with cache_control may be provided. Found {}."
        return Refused(400, message.format(marks))
    turns = body.get("messages") or []
    if shape == "anthropic" and turns and turns[-1]["role"] == "assistant":
        *_, (_, last) = [("", ""), *_content_texts("", turns[-1].get("content"))]
        if last != last.rstrip():
            message = "final assistant content cannot end with trailing whitespace"
            return Refused(400, f"messages: {message}")
    return None


def _texts(shape: str, body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every text block of a request, with its place."""
    if shape == "anthropic" and body.get("system") is not None:
        yield from _content_texts("system", body["system"])
    if shape == "responses" and body.get("instructions") is not None:
        yield "instructions", body["instructions"]
    turns = body.get("messages", body.get("input")) or []
    for number, turn in enumerate(turns if isinstance(turns, list) else []):
        where = f"messages.{number}"
        if turn.get("content") is not None:
            yield from _content_texts(where, turn["content"])
        if "output" in turn:
            yield from _content_texts(where, turn["output"])


def _content_texts(where: str, content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield where, content
    for number, block in enumerate(content if isinstance(content, list) else []):
        if "text" in block:
            yield f"{where}.content.{number}", block["text"]
        if block.get("type") == "tool_result":
            yield from _content_texts(f"{where}.content.{number}", block.get("content"))


class Feature(NamedTuple):
    """Something that some servers lack.

    Attributes:
        is_used: Whether a request uses it.
        refused: What such a server answers.
    """

    is_used: Callable[[dict[str, Any]], bool]
    refused: Refused


def _format(body: dict[str, Any]) -> str | None:
    return (body.get("response_format") or {}).get("type")


def _roles(body: dict[str, Any]) -> list[str]:
    return [turn["role"] for turn in body.get("messages", [])]


FEATURES: dict[str, Feature] = {
    "json_schema": Feature(
        lambda body: _format(body) == "json_schema",
        Refused(400, "This response_format type is unavailable now"),
    ),
    "json_mode": Feature(
        lambda body: _format(body) == "json_object",
        Refused(400, "'response_format.type' must be 'json_schema' or 'text'"),
    ),
    "tools_beside_json": Feature(
        lambda body: bool(_format(body) and body.get("tools")),
        Refused(400, "json mode cannot be combined with tool/function calling"),
    ),
    "tools": Feature(
        lambda body: bool(body.get("tools")), Refused(400, "box-1 does not support tools")
    ),
    "stream_options": Feature(
        lambda body: "stream_options" in body,
        Refused(
            422,
            "",
            {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "stream_options"],
                        "msg": "Extra inputs are not permitted",
                    }
                ]
            },
        ),
    ),
    "system_role": Feature(
        lambda body: "system" in _roles(body),
        Refused(500, "Jinja Exception: System role not supported"),
    ),
    "max_tokens": Feature(
        lambda body: "max_tokens" in body,
        Refused(
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
        ),
    ),
    "max_completion_tokens": Feature(
        lambda body: "max_completion_tokens" in body,
        Refused(400, "Unrecognized request argument supplied: max_completion_tokens"),
    ),
    "temperature": Feature(
        lambda body: "temperature" in body,
        Refused(
            400,
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the "
            "default (1) value is supported.",
        ),
    ),
    "reasoning_effort": Feature(
        lambda body: "reasoning_effort" in body,
        Refused(400, "Unrecognized request argument supplied: reasoning_effort"),
    ),
    "required_tool_choice": Feature(
        lambda body: body.get("tool_choice") not in (None, "auto", "none"),
        Refused(400, "The tool_choice parameter does not support being set to required or object"),
    ),
    "repeated_roles": Feature(
        lambda body: any(role == after == "user" for role, after in pairwise(_roles(body))),
        Refused(400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ),
    "cache_control": Feature(
        lambda body: '"cache_control"' in json.dumps(body),
        Refused(400, "system.0.cache_control: Extra inputs are not permitted"),
    ),
    "parallel_tool_calls": Feature(
        lambda body: any(len(turn.get("tool_calls") or ()) > 1 for turn in body["messages"]),
        Refused(400, "This model only supports single tool-calls at once!"),
    ),
}
"""By the reports: DeepSeek, LM Studio, Groq, Ollama, Mistral, Gemma in llama.cpp, OpenAI, Alibaba, Llama in vLLM."""


def lacking(body: dict[str, Any], lacks: Collection[str]) -> Refused | None:
    """Return the refusal of the first feature that a request uses and a server lacks."""
    used = (FEATURES[name] for name in lacks if FEATURES[name].is_used(body))
    return next((feature.refused for feature in used), None)
