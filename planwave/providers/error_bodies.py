"""Read what model servers say of errors, in whatever form, and sort it.

Known places of the words come first; else the body itself is quoted. The codes of all APIs are in one
table; where a server names none, the HTTP status decides, and last a few phrases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

_MAX_CHARS: Final = 2_000
_DEPTH: Final = 10
_MESSAGE_FIELDS: Final = (
    "message", "msg", "detail", "error_description", "error_message", "errormessage", "error_msg",
    "error", "errors", "description", "reason", "title", "exception", "text", "raw", "errormsg",
    "faultstring", "fault", "status_msg", "base_resp", "statustext", "response",
)  # fmt: skip
"""Where the words are, best first, in lower case."""
_CODE_FIELDS: Final = frozenset(
    {"code", "type", "status", "reason", "error", "error_code", "errorcode", "__type", "error_type",
     "status_code", "statuscode", "http_status", "err_code", "errcode"}
)  # fmt: skip
_RETRYABLE: Final = frozenset({"rate-limited", "provider-overloaded", "provider-error"})

_DECISIVE: Final[Mapping[str, str]] = {
    "quota-exhausted": """insufficient_quota enforced_spend_limit_reached billing_hard_limit_reached
        billing_error credit_balance_exhausted exceeded_current_quota_error
        organization_spend_limit_exceeded project_spend_limit_exceeded
        organization_usage_limit_exceeded insufficient_balance insufficient_credits insufficient_funds
        payment_required arrearage servicequotaexceededexception""",
    "context-too-long": """context_length_exceeded exceed_context_size_error context_window_exceeded
        context_window_limit_exceeded input_too_long prompt_too_long request_too_large""",
    "provider-overloaded": """overloaded_error overloaded engine_overloaded engine_overloaded_error
        server_is_overloaded model_overloaded model_overloaded_error server_overloaded""",
    "unknown-model": "model_not_found model_not_exist unknown_model",
    "provider-auth": "invalid_api_key api_key_invalid incorrect_api_key api_key_expired",
    "content-filtered": "content_filter content_policy_violation data_inspection_failed",
}
"""Codes that say more than the status they come with."""
_GENERAL: Final[Mapping[str, str]] = {
    "rate-limited": """rate_limit_exceeded rate_limit_error rate_limit_reached_error rate_limited
        rate_limit too_many_requests throttling throttlingexception throttled resource_exhausted""",
    "provider-overloaded": """unavailable service_unavailable service_unavailable_error
        serviceunavailableexception modelnotreadyexception""",
    "provider-auth": """authentication_error invalid_authentication_error permission_error unauthenticated
        permission_denied unauthorized forbidden accessdeniedexception unrecognizedclientexception""",
    "unknown-model": "not_found_error not_found resourcenotfoundexception",
    "provider-error": """server_error api_error internal internal_error internal_server_error
        timeout_error upstream_error bad_gateway modelstreamerrorexception unknown_error""",
    "bad-request": """invalid_request_error invalid_argument bad_request validation_error
        invalid_parameter unprocessable_entity validationexception failed_precondition""",
}
_STATUS: Final[Mapping[int, str]] = {
    401: "provider-auth", 403: "provider-auth", 402: "quota-exhausted", 404: "unknown-model",
    408: "provider-error", 413: "context-too-long", 429: "rate-limited", 503: "provider-overloaded",
    529: "provider-overloaded",
}  # fmt: skip
_QUOTA_PHRASES: Final = (
    "exceeded your current quota", "credit balance is too low", "insufficient balance",
    "insufficient credit", "billing details",
)  # fmt: skip
_PHRASES: Final = (
    ("context-too-long", ("maximum context length", "reduce the length of the messages",
                          "prompt is too long", "input token count", "number of tokens allowed",
                          "input is too long", "input tokens exceeded",
                          "exceeds the available context size")),
    ("provider-auth", ("api key not valid", "invalid api key", "incorrect api key")),
    ("provider-overloaded", ("overloaded", "over capacity")),
)  # fmt: skip
"""For servers that put a code on nothing: phrases of their messages, in lower case."""


def _words(table: Mapping[str, str]) -> dict[str, str]:
    return {word: code for code, words in table.items() for word in words.split()}


_DECISIVE_WORDS: Final = _words(_DECISIVE)
_GENERAL_WORDS: Final = _words(_GENERAL)


@dataclass(frozen=True, slots=True)
class ReadError:
    """What an error body says.

    Attributes:
        message: The words for people, or None.
        codes: All codes in it, in lower case.
        status: The HTTP status that it names, or None.
        quotas: The names of the quotas that were passed (Gemini).
        retry_after_s: The seconds that it asks to wait, or None.
    """

    message: str | None
    codes: frozenset[str] = frozenset()
    status: int | None = None
    quotas: tuple[str, ...] = ()
    retry_after_s: float | None = None


def read_error(body: object) -> ReadError:
    """Read an error body: JSON of any form, or text."""
    if isinstance(body, bytes):
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            body = json.loads(body)
        except (ValueError, RecursionError):
            return ReadError(_plain(str(body)))
    message = _message(body, _DEPTH)
    if message is None and body not in (None, "", {}, []):
        message = json.dumps(body, ensure_ascii=False)[:_MAX_CHARS]
    pairs = [*_scalars(body, _DEPTH)]
    codes = {value.lower() for _, value in pairs}
    statuses = [int(value) for name, value in pairs if name in _CODE_FIELDS and _is_status(value)]
    quotas = tuple(value for name, value in pairs if name == "quotaid")
    delays = [value for name, value in pairs if name == "retrydelay"]
    return ReadError(
        message, frozenset(codes), next(iter(statuses), None), quotas, _seconds(delays)
    )


def has_words(body: object) -> bool:
    """Return whether a body says something in a known place."""
    return _message(body, _DEPTH) is not None


def error_category(status: int | None, error: ReadError) -> tuple[str, bool]:
    """Return the code of an error, and whether the retry layer may try again.

    Args:
        status: The HTTP status of the response; None where it was 200.
        error: What its body says.
    """
    code = _code(status or error.status, error, is_reported=status is None)
    return code, code in _RETRYABLE


def _code(status: int | None, error: ReadError, *, is_reported: bool) -> str:
    message = (error.message or "").lower()
    decisive = next(
        (_DECISIVE_WORDS[word] for word in error.codes if word in _DECISIVE_WORDS), None
    )
    if decisive is not None:
        return decisive
    if _is_used_up(status, error, message):
        return "quota-exhausted"
    phrased = next((code for code, phrases in _PHRASES if any(p in message for p in phrases)), None)
    if phrased is not None and not (phrased == "provider-overloaded" and (status or 500) < 500):
        return phrased
    general = [_GENERAL_WORDS[word] for word in error.codes if word in _GENERAL_WORDS]
    if status is None or (is_reported and status < 400):
        return min(general, key=[*_GENERAL].index, default="provider-error")
    if status in _STATUS:
        return _STATUS[status]
    return "bad-request" if 400 <= status < 500 else "provider-error"


def _is_used_up(status: int | None, error: ReadError, message: str) -> bool:
    """Return whether a quota is used up, and does not come back within minutes."""
    if error.quotas:
        return any("PerDay" in quota or "PerMonth" in quota for quota in error.quotas)
    if error.retry_after_s is not None or (status or 429) >= 500:
        return False
    return any(phrase in message for phrase in _QUOTA_PHRASES)


def _message(value: object, depth: int) -> str | None:
    """Return the words of a value: those of its best field, or of all its items."""
    if isinstance(value, str):
        return value.strip()[:_MAX_CHARS] or None
    if depth == 0:
        return None
    if isinstance(value, list):
        items = cast("list[object]", value)[:10]
        sentences = [text for item in items if (text := _message(item, depth - 1))]
        return "; ".join(dict.fromkeys(sentences))[:_MAX_CHARS] or None
    if not isinstance(value, Mapping):
        return None
    fields = {str(name).lower(): part for name, part in cast("Mapping[Any, object]", value).items()}
    texts = [text for name in _MESSAGE_FIELDS if (text := _message(fields.get(name), depth - 1))]
    if not texts:
        return None
    message = texts[0]
    if where := _location(fields.get("loc")):
        return f"{where}: {message}"
    if "title" in fields and (title := _message(fields["title"], 0)) and title not in message:
        message = f"{title}: {message}"
    raw = fields.get("metadata")
    if isinstance(raw, Mapping) and (inner := _raw(cast("Mapping[str, object]", raw))):
        message = f"{message}: {inner}"
    return message[:_MAX_CHARS]


def _raw(metadata: Mapping[str, object]) -> str | None:
    """Return the words of the provider behind a gateway (OpenRouter)."""
    raw = metadata.get("raw")
    return None if not raw else read_error(raw).message


def _location(loc: object) -> str | None:
    """Return the field that FastAPI names, as a path."""
    if not isinstance(loc, list):
        return None
    return ".".join(map(str, cast("list[object]", loc))) or None


def _scalars(value: object, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the short texts and numbers of a body, with the name of their field in lower case."""
    if depth == 0:
        return
    if isinstance(value, Mapping):
        for name, part in cast("Mapping[Any, object]", value).items():
            if isinstance(part, str | int) and not isinstance(part, bool):
                yield str(name).lower(), str(part)[:200]
            else:
                yield from _scalars(part, depth - 1)
    elif isinstance(value, list):
        for item in cast("list[object]", value)[:20]:
            yield from _scalars(item, depth - 1)


def _is_status(text: str) -> bool:
    return len(text) == 3 and text.isdigit() and 400 <= int(text) < 600


def _seconds(delays: list[str]) -> float | None:
    for delay in delays:
        if match := re.fullmatch(r"(\d{1,6}(?:\.\d{1,9})?)s", delay):
            return float(match[1])
    return None


def _plain(text: str) -> str | None:
    """Return a text without markup; of a page its title."""
    if title := re.search(r"<title[^>]{0,100}>([^<]{1,300})</title>", text[:20_000], re.IGNORECASE):
        return title[1].strip() or None
    return re.sub(r"<[^>]{0,300}>", " ", text[:_MAX_CHARS]).strip() or None
