"""Between calls and HTTP: what both clients do in the same way."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any, Final, cast

import httpx2

from planwave.client.calls import NO_BODY, RequestSpec, get
from planwave.client.failures import error_from_problem, unexpected_response
from planwave.errors import InputError, PlanwaveError, Unreachable

CONNECT_TIMEOUT_S: Final = 10.0
NO_CONTENT: Final = 204
STREAM_TIMEOUT: Final = httpx2.Timeout(60.0, connect=CONNECT_TIMEOUT_S)
"""A stream says something at least every 15 s; a minute of silence is a broken connection."""
_JSON: Final = "application/json"
_ATTEMPTS: Final = 8
_MAX_DELAY_S: Final = 8.0
_MAX_RETRY_AFTER_S: Final = 60.0
"""However long a service asks to be left alone."""


def request_arguments(call: RequestSpec) -> dict[str, Any]:
    """Give the arguments of a request."""
    headers = {} if call.key is None else {"idempotency-key": call.key}
    if call.if_match is not None:
        headers["if-match"] = f'"{call.if_match}"'
    made = {"method": call.method, "url": call.path, "params": call.query, "headers": headers}
    if call.body is None:  # which the library takes for no body
        return {**made, "content": b"null", "headers": {**headers, "content-type": _JSON}}
    return made if call.body is NO_BODY else {**made, "json": call.body}


def event_stream_request(execution_id: str, after: int) -> RequestSpec:
    """Ask for the events after a cursor."""
    return get("api", "executions", execution_id, "events", after=after)


def validated_url(url: str) -> str:
    """Give where a service is, without a slash at the end.

    Raises:
        InputError: ``invalid-url``.
    """
    with suppress(httpx2.InvalidURL):
        address = httpx2.URL(url)
        if address.scheme in ("http", "https") and address.host:
            return url.rstrip("/")
    raise InputError(
        "the address of the service cannot be used",
        code="invalid-url",
        hint="write it like http://127.0.0.1:8000",
    )


def auth_headers(token: str | None) -> dict[bytes, bytes]:
    """Give the headers of every request.

    Raises:
        InputError: ``invalid-token``; the token is not told.
    """
    if token is None:
        return {}
    if not token.strip() or not token.isprintable():
        raise InputError("the token is empty, or cannot be sent in a header", code="invalid-token")
    return {b"authorization": b"Bearer " + token.encode()}


def parse_response(response: httpx2.Response) -> Any:
    """Give the JSON of an answer, None for one without content.

    Raises:
        PlanwaveError: The answer is a problem, or no JSON.
    """
    if not response.is_success:
        raise error_from_response(response, response.content)
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise unexpected_response("no JSON") from error


def is_stream(response: httpx2.Response) -> bool:
    """Say whether an answer is an event stream; where it is over there is none, and no content.

    Raises:
        PlanwaveError: It is neither.
    """
    if response.status_code == NO_CONTENT:
        return False
    if response.headers.get("content-type", "").partition(";")[0] != "text/event-stream":
        raise unexpected_response("no event stream")
    return True


def error_from_response(response: httpx2.Response, content: bytes) -> PlanwaveError:
    """Give the exception an answer other than success stands for."""
    try:
        problem: Any = json.loads(content)
    except ValueError:
        problem = {}
    said = cast("dict[str, Any]", problem) if isinstance(problem, dict) else {}
    return error_from_problem(response.status_code, said)


class RetryPolicy:
    """How long to wait before connecting again, and when to give up.

    Pauses double from a quarter of a second to 8 s, with jitter; whatever is given in between
    begins them anew.
    """

    def __init__(self) -> None:
        self._failures = 0

    def next_delay(self, progressed: bool, error: PlanwaveError | None = None) -> float:
        """Give the seconds to wait before the next connection.

        Args:
            progressed: Whether the last one gave anything.
            error: Why it ended; None where it just did.

        Raises:
            PlanwaveError: That one, or that it always ends, after eight in a row for nothing.
        """
        self._failures = 0 if progressed else self._failures + 1
        if self._failures >= _ATTEMPTS:
            raise error or Unreachable("the event stream ends again and again before its end")
        asked = getattr(error, "retry_after_s", None)
        least = min(float(asked), _MAX_RETRY_AFTER_S) if isinstance(asked, int | float) else 0.0
        if progressed:
            return least
        longest = min(0.25 * 2 ** (self._failures - 1), _MAX_DELAY_S)
        return max(least, longest * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
