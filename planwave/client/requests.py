"""Requests to the service as plain values, and the parts of HTTP that both clients share."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

import httpx2

from planwave.client.errors import error_from_problem, unexpected_response
from planwave.errors import InputError, PlanwaveError, Unreachable

NO_BODY: Final = object()
"""Stands where a request has none; None is JSON's null."""


class RequestSpec(NamedTuple):
    """One request.

    Attributes:
        method: ``GET``, ``POST``, ``PUT`` or ``DELETE``.
        path: Below the service's address.
        query: Without the parameters that are not given.
        body: JSON, or ``NO_BODY``.
        key: ``Idempotency-Key``: sent again, the request gives the same answer once more.
        if_match: The version that what is to be changed has to have.
    """

    method: str
    path: str
    query: Mapping[str, Any] = {}
    body: Any = NO_BODY
    key: str | None = None
    if_match: str | None = None


def get(*path: str, **query: Any) -> RequestSpec:
    """Read something."""
    return RequestSpec("GET", _path(path), _without_none(query))


def post(*path: str, body: Mapping[str, Any] | None = None, key: str | None = None) -> RequestSpec:
    """Have something done."""
    return RequestSpec(
        "POST", _path(path), body=NO_BODY if body is None else _without_none(body), key=key
    )


def put(*path: str, body: Mapping[str, Any], if_match: str | None) -> RequestSpec:
    """Have something changed."""
    return RequestSpec("PUT", _path(path), body=_without_none(body), if_match=if_match)


def delete(*path: str) -> RequestSpec:
    """Remove something."""
    return RequestSpec("DELETE", _path(path))


def create_plan(
    prompt: str, provider: str | None, model: str | None, key: str | None, *, stream: bool = False
) -> RequestSpec:
    """Plan a goal; ``stream`` has its progress told."""
    body = {"prompt": prompt, "provider": provider, "model": model}
    call = post("api", "plan", body=body, key=key)
    return call._replace(query={"stream": 1}) if stream else call


def execute(
    what: str | Mapping[str, Any],
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
) -> RequestSpec:
    """Execute a stored plan (its id) or a graph."""
    named = {"plan_id": what} if isinstance(what, str) else {"graph": what}
    body = {**named, "inputs": inputs, "options": options, "start": start}
    return post("api", "execute", body=body, key=key)


def execute_flow(
    flow_id: str,
    version: str | None,
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
) -> RequestSpec:
    """Execute a flow, or one of its versions."""
    named = {"flow_id": flow_id, "version": version}
    body = {**named, "inputs": inputs, "options": options, "start": start}
    return post("api", "execute", body=body, key=key)


def run(
    prompt: str,
    provider: str | None,
    model: str | None,
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    key: str | None,
) -> RequestSpec:
    """Plan a goal and run the plan."""
    body = {
        "prompt": prompt,
        "provider": provider,
        "model": model,
        "inputs": inputs,
        "options": options,
    }
    return post("api", "run", body=body, key=key)


def answer(execution_id: str, request_id: str, given: Any) -> RequestSpec:
    """Answer a request; of the answer everything is sent, nulls too."""
    path = _path(("api", "executions", execution_id, "requests", request_id))
    return RequestSpec("POST", path, body=given)


def cancel(execution_id: str, cause: str | None, node: str | None) -> RequestSpec:
    """Stop an execution, or one node of it."""
    return post("api", "executions", execution_id, "cancel", body={"cause": cause, "node": node})


def fork(
    execution_id: str,
    rerun: Sequence[str],
    changes: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
) -> RequestSpec:
    """Make a changed execution out of one."""
    body = {"rerun": list(rerun), "changes": changes, "options": options, "start": start}
    return post("api", "executions", execution_id, "fork", body=body, key=key)


def _path(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


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
