"""What servers refuse of a request, recognised by their words, and what is asked for in its place.

Servers put no code on "I do not take this option", so the words decide, and only about what the refused
request really had. Each refusal is learned for the model (``capabilities.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, cast

from planwave.providers.capabilities import Capabilities
from planwave.providers.errors import ClassifiedError
from planwave.providers.protocols import Api

_CODES: Final = frozenset({"bad-request", "provider-error", "unknown-model"})
_VALUE_WORDS: Final = re.compile(
    r"too (large|small|big|high|low|long|many)|less than|greater than|at (most|least)|between|"
    r"\brange\b|exceed|positive|<=|>=|\u2264|\u2265"
)
"""Words about the value of an option, not about the option."""
_FORMS: Final[Mapping[Api, tuple[str, ...]]] = {
    "chat": ("schema", "json", "tool", "none"),
    "responses": ("schema", "json", "tool", "none"),
    "messages": ("schema", "tool", "none"),
}

_Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that a server may refuse.

    Attributes:
        entry: The entry of the capabilities.
        is_sent: Whether a request has it.
        words: What the message of a server that refuses it says, in lower case.
        instead: What the entry is then; None where there is nothing left to try.
        is_value: Whether the message may also be about its value, which is the caller's.
    """

    entry: str
    is_sent: Callable[[_Body], bool]
    words: str
    instead: Callable[[Capabilities, Api], Any]
    is_value: bool = False


class Learned(NamedTuple):
    """What a refusal shows.

    Attributes:
        changes: Entries of the capabilities, and what they are now.
        is_guess: Whether the server has said nothing.
    """

    changes: dict[str, Any]
    is_guess: bool = False


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _turns(body: _Body) -> list[dict[str, Any]]:
    turns = body.get("messages")
    return cast("list[dict[str, Any]]", turns) if isinstance(turns, list) else []


def _asks_for_json(body: _Body) -> bool:
    formats = (body.get("response_format"), _object(body.get("output_config")).get("format"))
    text = _object(_object(body.get("text")).get("format"))
    return any(formats) or text.get("type") in ("json_schema", "json_object")


def _has_system(body: _Body) -> bool:
    return any(turn.get("role") in ("system", "developer") for turn in _turns(body))


def _repeats_roles(body: _Body) -> bool:
    roles = [turn.get("role") for turn in _turns(body)]
    return any(role == after != "tool" for role, after in pairwise(roles))


def _calls_several(body: _Body) -> bool:
    return any(len(turn.get("tool_calls") or ()) > 1 for turn in _turns(body))


def _has_cache_marks(body: _Body) -> bool:
    return '"cache_control"' in json.dumps(body)


def _next_form(capabilities: Capabilities, api: Api) -> str | None:
    forms = _FORMS[api]
    at = forms.index(capabilities.structured_output)
    return forms[at + 1] if at + 1 < len(forms) else None


def _other_field(capabilities: Capabilities, _: Api) -> str:
    is_old = capabilities.max_tokens_field == "max_tokens"
    return "max_completion_tokens" if is_old else "max_tokens"


def _no(_: Capabilities, __: Api) -> bool:
    return False


REFUSALS: Final[tuple[Refusal, ...]] = (
    Refusal(
        "prompt_cache",
        _has_cache_marks,
        r"cache.?(control|point)|(prompt|context).?cach|cach\w* (is|are) not|not support.{0,20}cach|"
        r"\bephemeral\b|(system|content)\b.{0,40}\b(valid |be a |type: ?)str(ing)?\b",
        _no,
    ),
    Refusal(
        "tools_beside_schema",
        lambda body: _asks_for_json(body) and bool(body.get("tools")),
        r"(json|response.?format|schema|structured).*(tool|function)|"
        r"(tool|function).*(json|response.?(format|mime)|structured)",
        _no,
    ),
    Refusal(
        "structured_output",
        _asks_for_json,
        r"response.?format|json.?(schema|object|mode)|structured.?output|guided|grammar|"
        r"output.?(config|format)|text\.format",
        _next_form,
    ),
    Refusal(
        "structured_output",
        lambda body: not _asks_for_json(body) and bool(body.get("tools")),
        r"(does not|doesn't|not) support (tool|function)|(tool|function)s? ?(use|call\w*)? (is|are) not "
        r"(supported|available)|no endpoints found that support tool",
        lambda capabilities, _: "none" if capabilities.structured_output == "tool" else None,
    ),
    Refusal(
        "stream_usage",
        lambda body: "stream_options" in body,
        r"stream.?options|include.?usage",
        _no,
    ),
    Refusal(
        "repeated_roles",
        _repeats_roles,
        r"alternat|consecutive|successive|in a row|same role|two (user|system)|multiple (user|system)",
        _no,
    ),
    Refusal(
        "system_role",
        _has_system,
        r"(system|developer)\W{0,3}(role|message|prompt|instruction)|role\b.{0,60}\b(system|developer)|"
        r"(system|developer)\W.{0,40}\b(role|not one of|unsupported|not supported)|messages.{0,20}role",
        lambda capabilities, _: "user" if capabilities.system_role != "user" else None,
    ),
    Refusal(
        "max_tokens_field",
        lambda body: "max_tokens" in body or "max_completion_tokens" in body,
        r"max_(completion_)?tokens",
        _other_field,
        is_value=True,
    ),
    Refusal("temperature", lambda body: "temperature" in body, r"temperature", _no, is_value=True),
    Refusal(
        "reasoning_effort",
        lambda body: "reasoning_effort" in body,
        r"reasoning.?effort|\breasoning\b|thinking",
        _no,
    ),
    Refusal(
        "required_tool_choice",
        lambda body: body.get("tool_choice") not in (None, "auto", "none"),
        r"tool.?choice|\brequired\b.*\btool",
        _no,
    ),
    Refusal(
        "parallel_tool_calls",
        _calls_several,
        r"parallel.?tool|(single|one|multiple|several) (tool|function).?call",
        _no,
    ),
)
"""In the order in which they are looked for; the first that fits is learned."""
_GUESSES: Final[tuple[tuple[str, Callable[[_Body], bool]], ...]] = (
    ("stream_usage", lambda body: "stream_options" in body),
    ("prompt_cache", _has_cache_marks),
)
"""What most servers refuse that refuse without a word, of each API."""


def learned_from(
    failure: ClassifiedError, sent: _Body, api: Api, capabilities: Capabilities
) -> Learned | None:
    """Return the entry that an error shows to be otherwise, or None.

    Args:
        failure: The error of the call.
        sent: The body of the request.
        api: The API that was called.
        capabilities: What was believed of the model.
    """
    status, message = failure.error.status, failure.message.lower()
    if failure.error.code not in _CODES or status is None:
        return None
    for refusal in REFUSALS:
        if not refusal.is_sent(sent) or not re.search(refusal.words, message):
            continue
        if refusal.is_value and _VALUE_WORDS.search(message):
            continue
        instead = refusal.instead(capabilities, api)
        if instead is not None:
            return Learned({refusal.entry: instead})
    if not message and status in (400, 422):
        guess = next((entry for entry, is_sent in _GUESSES if is_sent(sent)), None)
        return None if guess is None else Learned({guess: False}, is_guess=True)
    return None
