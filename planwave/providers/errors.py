"""Classification of the errors of model calls: SDK and transport exceptions to ``ProviderError``.

Exceptions are classified by their class, never by their message (pydantic-ai sorts the providers'
errors into classes); ``transport.py`` raises ``ResponseError`` for errors no SDK detects.
Messages name provider, model and status and quote at most the provider's message: never a key, a
header or a URL with credentials.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from planwave.errors import ProviderError
from planwave.outbound.retry_after import retry_after_from
from planwave.providers.error_bodies import error_category, read_error

_QUOTED_CHARS = 300
_SECRET = re.compile(r"\b(?:sk|pk|key|api)[-_][\w*.-]{6,}|\bBearer\s+\S+", re.IGNORECASE)


class ResponseError(Exception):
    """A failure that ``transport.py`` detects and no SDK distinguishes; ``code`` identifies it."""

    code = "stream-truncated"
    retry = True
    """Whether the retry layer may try again before the first delta."""
    is_permanent = False
    """Whether a later call would fail in the same way."""
    limit_s: float | None = None
    """The deadline that passed, seconds."""


class ClassifiedError(NamedTuple):
    """A provider error, whether the retry layer may try again before the first delta, and the provider's words."""

    error: ProviderError
    retry: bool
    message: str = ""


TRY_AGAIN_HINT = "try again, give the node policy.retry, or choose another provider"
_HINTS = {
    "provider-unreachable": "check the network and the endpoint's address, or choose another provider",
    "rate-limited": "wait, lower max_concurrency, or set requests_per_minute for this provider",
    "quota-exhausted": "top up the account or raise its spend limit, or choose another provider",
    "provider-auth": "check the API key and what it is allowed to use",
    "unknown-model": "check the model's name and the endpoint's address",
    "context-too-long": "shorten the inputs, or choose a model with a longer context",
    "bad-request": "change what the message names, or choose another model",
    "redirected": "set the endpoint's address to where it is now; redirects are not followed",
    "provider-overloaded": TRY_AGAIN_HINT,
    "provider-error": TRY_AGAIN_HINT,
    "stream-truncated": TRY_AGAIN_HINT,
    "stream-garbage": "check that the server streams its replies, and that the address is that of its API",
    "empty-reply": TRY_AGAIN_HINT,
    "unasked-tool-call": "say in the prompt to answer in words, or choose another model",
    "content-filtered": "rephrase the prompt",
    "refused": "rephrase the prompt, or choose another model",
    "first-byte-timeout": "raise the limit first_byte_s, or choose a faster model",
    "chunk-timeout": "raise the limit chunk_gap_s, or choose a faster model",
    "call-timeout": "raise the limit call_s, or ask for less text",
}

_SENTENCES = {
    "provider-unreachable": "{who} cannot be reached",
    "rate-limited": "{who} refused the call: too many requests",
    "provider-overloaded": "{who} is overloaded",
    "provider-error": "{who} failed",
    "quota-exhausted": "{who} refused the call: the account's quota is used up",
    "provider-auth": "{who} refused the credentials",
    "unknown-model": "{who} does not know this model",
    "bad-request": "{who} refused the request",
    "context-too-long": "the prompt is too long for {who}",
    "redirected": "{who} answered with a redirect",
    "stream-truncated": "the reply of {who} was cut off before its end",
    "stream-garbage": "{who} sent something that is not a reply",
    "content-filtered": "{who} held the reply back: its content filter was triggered",
    "refused": "{who} refused to answer",
    "empty-reply": "{who} sent an empty reply",
    "unasked-tool-call": "{who} called a tool it was not given, instead of answering",
    "first-byte-timeout": "{who} did not begin to answer within {limit}",
    "chunk-timeout": "{who} fell silent in the middle of a reply, for longer than {limit}",
    "call-timeout": "the call to {who} took longer than {limit}",
}

_REQUEST_CODES = frozenset({"bad-request", "content-filtered", "refused"})


def provider_error(
    code: str,
    *,
    provider: str,
    model: str | None,
    detail: str | None = None,
    retryable: bool = False,
    status: int | None = None,
    retry_after_s: float | None = None,
    sentence: str | None = None,
    retry_in_s: float | None = None,
    limit_s: float | None = None,
) -> ProviderError:
    """Return the error of a code, with its message and hint.

    Args:
        code: A code of this module; selects the message and the hint.
        provider: The name of the provider.
        model: The model called, or None.
        detail: The message of the provider.
        retryable: Whether the node's policy may try again.
        status: The HTTP status.
        retry_after_s: The Retry-After of the provider, seconds; part of the message.
        sentence: Replaces the message of the code; ``{who}`` is the provider.
        retry_in_s: The wait that ``sentence`` mentions, seconds.
        limit_s: The deadline that passed, seconds; part of the message.
    """
    who = f"{provider} ({model})" if model else provider
    limit = "its time limit" if limit_s is None else f"{limit_s:g} s"
    message = (sentence or _SENTENCES[code]).format(who=who, limit=limit)
    if status is not None:
        message += f" (HTTP {status})"
    if retry_after_s is not None:
        message += f"; it asked to wait {retry_after_s:g} s"
    if quoted := _quote(detail):
        message += f": {quoted}"
    return ProviderError(
        message,
        provider=provider,
        model=model,
        code=code,
        hint=_HINTS.get(code),
        retryable=retryable,
        status=status,
        retry_after_s=retry_after_s if retry_in_s is None else retry_in_s,
    )


def after_attempts(error: ProviderError, number: int) -> ProviderError:
    """Return the error of a call that failed for good, which says how often it was tried."""
    if number == 1:
        return error
    return ProviderError(
        f"{error.message} (after {number} attempts)",
        provider=error.provider,
        model=error.model,
        code=error.code,
        hint=error.hint,
        retryable=error.retryable,
        status=error.status,
        retry_after_s=error.retry_after_s,
    )


def is_request_error(error: ProviderError) -> bool:
    """Return whether an error is about what was requested, so that no other model is to be called.

    ``context-too-long`` is not: another model may have a longer context.
    """
    return error.code in _REQUEST_CODES


def classify(
    error: Exception,
    *,
    provider: str,
    model: str,
    now: datetime | None = None,
    secret: str = "",
) -> ClassifiedError | None:
    """Return the provider error for an exception of a call, or None for a bug of planwave.

    Args:
        error: The exception of the SDK or the transport.
        provider: The name of the provider.
        model: The model called.
        now: The current time, for ``Retry-After`` dates.
        secret: The key of the call, which is removed from messages.
    """
    new_error = partial(provider_error, provider=provider, model=model)
    for cause in _chain(error):
        if isinstance(cause, ResponseError):
            return _classify_response_error(cause, new_error, secret)
        if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
            return ClassifiedError(new_error("stream-garbage", retryable=True), retry=False)
    return _classify_api(error, new_error, now or datetime.now(UTC), secret)


def _classify_response_error(
    error: ResponseError, new_error: Callable[..., ProviderError], secret: str
) -> ClassifiedError:
    """Classify what the transport found, or what the server reported with status 200."""
    body: object = getattr(error, "body", None)
    if body is None:
        detail = _redact(secret, read_error(getattr(error, "content", "")).message)
        failure = new_error(
            error.code, retryable=not error.is_permanent, detail=detail, limit_s=error.limit_s
        )
        return ClassifiedError(failure, error.retry)
    reported = read_error(body)
    code, retry = error_category(None, reported)
    failure = new_error(
        code,
        detail=_redact(secret, reported.message),
        retryable=retry,
        status=reported.status,
        retry_after_s=reported.retry_after_s if retry else None,
    )
    return ClassifiedError(failure, retry, reported.message or "")


def _classify_api(
    error: Exception, new_error: Callable[..., ProviderError], now: datetime, secret: str
) -> ClassifiedError | None:
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    import httpx2
    from pydantic_ai import exceptions as api

    reported = read_error(_body_of(error))
    status: int | None = getattr(error, "status_code", None)
    if isinstance(error, api.ModelConnectionError | httpx2.RequestError):
        return _unreachable(error, new_error)
    if isinstance(error, api.ContentFilterError):
        code, retry = "content-filtered", False
    elif isinstance(error, api.ModelAPIError):
        code, retry = error_category(status, reported)
    elif isinstance(error, api.UnexpectedModelBehavior):
        code, retry = "stream-truncated", True
    elif isinstance(error, api.UserError):
        return ClassifiedError(new_error("bad-request", detail=str(error)), retry=False)
    else:
        return None
    retry_after_s = retry_after_from(getattr(error, "headers", None), now)
    failure = new_error(
        code,
        detail=_redact(secret, reported.message),
        retryable=retry,
        status=status,
        retry_after_s=(reported.retry_after_s if retry_after_s is None else retry_after_s)
        if retry
        else None,
    )
    return ClassifiedError(failure, retry, reported.message or "")


def _body_of(error: Exception) -> object:
    """Return the whole body of an error response; the SDKs keep only what is in its field ``error``."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    import httpx2

    for cause in _chain(error):
        response = getattr(cause, "response", None)
        if isinstance(response, httpx2.Response):
            with suppress(httpx2.ResponseNotRead):
                return response.content
    return getattr(error, "body", None)


def _unreachable(error: Exception, new_error: Callable[..., ProviderError]) -> ClassifiedError:
    address, reason = _connection_fault(error)
    sentence = f"{{who}} cannot be reached at {address}" if address else None
    failure = new_error("provider-unreachable", detail=reason, sentence=sentence, retryable=True)
    return ClassifiedError(failure, True)


def _connection_fault(error: Exception) -> tuple[str | None, str | None]:
    """Return the address of a connection that failed, without credentials, and the reason."""
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    import httpx2

    address = reason = None
    for cause in _chain(error):
        if isinstance(cause, httpx2.RequestError):
            url = cause.request.url
            address = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
            reason = str(cause)
        if isinstance(cause, socket.gaierror):
            return address, "the host name cannot be resolved"
        if isinstance(cause, OSError) and cause.errno is not None:
            return address, os.strerror(cause.errno).lower()
    return address, reason


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _redact(secret: str, text: str | None) -> str | None:
    return text.replace(secret, "[hidden]") if text and secret else text


def _quote(text: str | None) -> str:
    """Return a provider's message on one line, shortened, without anything that looks like a key.

    OpenAI quotes parts of a wrong key.
    """
    if not text:
        return ""
    clean = _SECRET.sub("[hidden]", " ".join(text.split()))
    return clean if len(clean) <= _QUOTED_CHARS else clean[:_QUOTED_CHARS] + "…"
