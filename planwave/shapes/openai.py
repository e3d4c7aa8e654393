"""Shapes of the OpenAI API, as far as planwave fills them."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class ModelResponse(TypedDict):
    """A model: a flow that is published as one, or `planwave/planner`."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelsResponse(TypedDict):
    """The models that the token may use."""

    object: Literal["list"]
    data: list[ModelResponse]


class ChatCompletionResponse(TypedDict):
    """An answer as a chat completion."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[dict[str, Any]]
    """One: `{index, message, logprobs, finish_reason}`."""
    usage: dict[str, Any]
    """The tokens of the whole execution; `prompt_tokens_details.cached_tokens` of them were read from a provider's cache."""


class ResponsesResponse(TypedDict):
    """An answer as a response."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Literal["completed", "failed", "in_progress", "incomplete"]
    model: str
    output: list[dict[str, Any]]
    """Items: `reasoning`, `message`, `function_call`."""
    parallel_tool_calls: bool
    tool_choice: str
    tools: list[dict[str, Any]]
    error: dict[str, Any] | None
    incomplete_details: dict[str, Any] | None
    instructions: str | None
    metadata: dict[str, Any]
    usage: dict[str, Any] | None
    """The tokens of the whole execution."""


class OpenAIErrorDetails(TypedDict):
    """What failed."""

    message: str
    type: str
    param: str | None
    """The field of the body, such as `messages[0].content`."""
    code: str | None
    """Stable; the codes of planwave, and `model_not_found`."""


class OpenAIError(TypedDict):
    """A failure in the form of OpenAI."""

    error: OpenAIErrorDetails
