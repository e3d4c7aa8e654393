"""Requests to the service as plain values, and the parts of HTTP that both clients share."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypedDict, cast
from urllib.parse import quote

import httpx2

from planwave.client.errors import error_from_problem, unexpected_response
from planwave.errors import InputError, PlanwaveError, Unreachable

NO_BODY: Final = object()
"""Marks a request without a body; None is the JSON null."""


class RequestSpec(NamedTuple):
    """One request.

    Attributes:
        method: ``GET``, ``POST``, ``PUT`` or ``DELETE``.
        path: The path below the address of the service.
        query: The query parameters.
        body: JSON, or ``NO_BODY``.
        key: The ``Idempotency-Key``: a repeated request returns the same response.
        if_match: The version that the changed object must have; ``*`` for any.
        is_text: Whether the response is text and not JSON.
        timeout_s: Time limit of the response in place of that of the client.
    """

    method: str
    path: str
    query: Mapping[str, Any] = {}
    body: Any = NO_BODY
    key: str | None = None
    if_match: str | None = None
    is_text: bool = False
    timeout_s: float | None = None


class ExecutionsQuery(TypedDict, total=False):
    """Which executions a list has, as ``GET /api/executions`` describes it; what is None does not count."""

    status: str | None
    q: str | None
    since: str | None
    until: str | None
    plan_id: str | None
    tag: str | None
    starred: bool | None
    waiting: bool
    sort: str
    order: str
    cursor: str | None
    limit: int | None


def get(*path: str, **query: Any) -> RequestSpec:
    """Return a GET request."""
    return RequestSpec("GET", _path(path), _without_none(query))


def post(
    *path: str,
    body: Mapping[str, Any] | None = None,
    key: str | None = None,
    if_match: str | None = None,
) -> RequestSpec:
    """Return a POST request."""
    content = NO_BODY if body is None else _without_none(body)
    return RequestSpec("POST", _path(path), body=content, key=key, if_match=if_match)


def patch(*path: str, body: Mapping[str, Any], if_match: str | None = None) -> RequestSpec:
    """Return a PATCH request; nulls inside the body are sent."""
    return RequestSpec("PATCH", _path(path), body=body, if_match=if_match)


def put(
    *path: str, body: Mapping[str, Any], if_match: str | None = None, **query: Any
) -> RequestSpec:
    """Return a PUT request."""
    content = _without_none(body)
    return RequestSpec("PUT", _path(path), _without_none(query), content, if_match=if_match)


def delete(*path: str, **query: Any) -> RequestSpec:
    """Return a DELETE request."""
    return RequestSpec("DELETE", _path(path), _without_none(query))


def create_plan(
    prompt: str,
    provider: str | None,
    model: str | None,
    key: str | None,
    answers: Mapping[str, str] | None,
    *,
    stream: bool = False,
) -> RequestSpec:
    """Return the request that plans a goal; with ``stream`` the response is an event stream."""
    body = {"prompt": prompt, "provider": provider, "model": model, "answers": answers or None}
    call = post("api", "plan", body=body, key=key)
    return call._replace(query={"stream": 1}) if stream else call


def execute(
    what: str | Mapping[str, Any],
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
    require_approval: bool = False,
) -> RequestSpec:
    """Return the request that executes a stored plan (by id) or a graph."""
    source = {"plan_id": what} if isinstance(what, str) else {"graph": what}
    how = {"inputs": inputs, "options": options, "require_approval": require_approval}
    body = {**source, **how, "start": start}
    return post("api", "execute", body=body, key=key)


def execute_flow(
    flow: str,
    revision: int | None,
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    start: bool,
    key: str | None,
    require_approval: bool = False,
) -> RequestSpec:
    """Return the request that executes a flow, or one of its revisions."""
    source = {"flow": flow, "revision": revision}
    how = {"inputs": inputs, "options": options, "require_approval": require_approval}
    body = {**source, **how, "start": start}
    return post("api", "execute", body=body, key=key)


def run(
    prompt: str,
    provider: str | None,
    model: str | None,
    inputs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    key: str | None,
    require_approval: bool = False,
) -> RequestSpec:
    """Return the request that plans a goal and runs the plan."""
    body = {
        "prompt": prompt,
        "provider": provider,
        "model": model,
        "inputs": inputs,
        "options": options,
        "require_approval": require_approval,
    }
    return post("api", "run", body=body, key=key)


def answer(execution_id: str, request_id: str, answer: Any) -> RequestSpec:
    """Return the request that sends an answer; nulls of the answer are sent too."""
    path = _path(("api", "executions", execution_id, "requests", request_id))
    return RequestSpec("POST", path, body=answer)


def cancel(execution_id: str, cause: str | None, node: str | None) -> RequestSpec:
    """Return the request that cancels an execution, or one node of it."""
    return post("api", "executions", execution_id, "cancel", body={"cause": cause, "node": node})


def fork_changes(
    rerun: Sequence[str],
    changes: Mapping[str, Any] | None,
    graph: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return what a fork changes, as a body says it."""
    return {"rerun": list(rerun), "changes": changes, "graph": graph, "options": options}


def fork(
    execution_id: str, changes: Mapping[str, Any], start: bool, key: str | None
) -> RequestSpec:
    """Return the request that forks an execution."""
    return post(
        "api", "executions", execution_id, "fork", body={**changes, "start": start}, key=key
    )


def preview_fork(execution_id: str, changes: Mapping[str, Any]) -> RequestSpec:
    """Return the request that says what a fork would reuse."""
    return post("api", "executions", execution_id, "fork", "preview", body=changes)


def _path(parts: tuple[str, ...]) -> str:
    return "/" + "/".join(quote(part, safe="") for part in parts)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


CONNECT_TIMEOUT_S: Final = 10.0
NO_CONTENT: Final = 204
STREAM_TIMEOUT: Final = httpx2.Timeout(60.0, connect=CONNECT_TIMEOUT_S)
"""The service sends to a stream at least every 15 s; after a minute the connection is broken."""
_JSON: Final = "application/json"
_ANY: Final = "*"
"""Matches every version; it is no version itself, and so has no quotes."""
STREAM_ATTEMPTS: Final = 8
_MAX_DELAY_S: Final = 8.0
_MAX_RETRY_AFTER_S: Final = 60.0
"""The longest wait for the Retry-After of a service."""


def request_arguments(call: RequestSpec) -> dict[str, Any]:
    """Return the arguments of ``httpx2.Client.request``."""
    headers = {} if call.key is None else {"idempotency-key": call.key}
    if call.if_match is not None:
        headers["if-match"] = _ANY if call.if_match == _ANY else f'"{call.if_match}"'
    arguments: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": call.query,
        "headers": headers,
    }
    if call.timeout_s is not None:
        arguments["timeout"] = httpx2.Timeout(call.timeout_s, connect=CONNECT_TIMEOUT_S)
    if call.body is None:  # for httpx2 None means no body
        return {**arguments, "content": b"null", "headers": {**headers, "content-type": _JSON}}
    return arguments if call.body is NO_BODY else {**arguments, "json": call.body}


def event_stream_request(execution_id: str, after: int) -> RequestSpec:
    """Return the request for the events after a cursor."""
    return get("api", "executions", execution_id, "events", after=after)


def reply_stream_request(chat_id: str, message_id: str, after: int) -> RequestSpec:
    """Return the request for the events of a reply after a cursor."""
    return get("api", "chats", chat_id, "messages", message_id, "events", after=after)


def validated_url(url: str) -> str:
    """Return the address of a service without a trailing slash.

    Raises:
        InputError: ``invalid-url``.
    """
    with suppress(httpx2.InvalidURL):
        address = httpx2.URL(url)
        if address.scheme in ("http", "https") and address.host and not address.userinfo:
            return url.rstrip("/")
    raise InputError(
        "the address of the service cannot be used",
        code="invalid-url",
        hint="write it like http://127.0.0.1:8000",
    )


def auth_headers(token: str | None) -> dict[bytes, bytes]:
    """Return the headers of every request.

    Raises:
        InputError: ``invalid-token``; the message does not contain the token.
    """
    if token is None:
        return {}
    if not token.strip() or not token.isprintable():
        raise InputError("the token is empty, or cannot be sent in a header", code="invalid-token")
    return {b"authorization": b"Bearer " + token.encode()}


def parse_response(response: httpx2.Response, *, is_text: bool = False) -> Any:
    """Return the JSON of a response, None if it has no content; or its text.

    Raises:
        PlanwaveError: The response is a problem, or not JSON.
    """
    if not response.is_success:
        raise error_from_response(response, response.content)
    if is_text:
        return response.content.decode()
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise unexpected_response("not JSON") from error


def is_stream(response: httpx2.Response) -> bool:
    """Return whether a response is an event stream; False for 204, when the stream has ended.

    Raises:
        PlanwaveError: The response is neither.
    """
    if response.status_code == NO_CONTENT:
        return False
    if response.headers.get("content-type", "").partition(";")[0] != "text/event-stream":
        raise unexpected_response("not an event stream")
    return True


def error_from_response(response: httpx2.Response, content: bytes) -> PlanwaveError:
    """Return the exception for an error response."""
    try:
        problem: Any = json.loads(content)
    except ValueError:
        problem = {}
    fields = cast("dict[str, Any]", problem) if isinstance(problem, dict) else {}
    return error_from_problem(response.status_code, fields)


class RetryPolicy:
    """The delays before reconnecting, and the number of retries.

    Delays double from 0.25 s to 8 s, with jitter; an event in between resets them.

    Args:
        attempts: Connections without an event after which the stream is given up.
    """

    def __init__(self, attempts: int = STREAM_ATTEMPTS) -> None:
        self._attempts = attempts
        self._failures = 0

    def next_delay(self, progressed: bool, error: PlanwaveError | None = None) -> float:
        """Return the seconds to wait before the next connection.

        Args:
            progressed: Whether the last connection delivered an event.
            error: The error that ended it, or None.

        Raises:
            PlanwaveError: ``error``, or ``Unreachable``, after so many connections without an event.
        """
        self._failures = 0 if progressed else self._failures + 1
        if self._failures >= self._attempts:
            raise error or Unreachable("the event stream ends again and again before its end")
        retry_after = getattr(error, "retry_after_s", None)
        minimum = 0.0
        if isinstance(retry_after, int | float):
            minimum = min(float(retry_after), _MAX_RETRY_AFTER_S)
        if progressed:
            return minimum
        delay = min(0.25 * 2 ** (self._failures - 1), _MAX_DELAY_S)
        return max(minimum, delay * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
