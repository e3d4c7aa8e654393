"""``Idempotency-Key``: a repeated POST gets the response of the first one, and does nothing again.

A key belongs to its principal and route. The first request with it does the work; a repeated request
waits for that one, in whatever process it runs, or gets the stored response, also after a restart, for
``idempotency_hours``. Only successful responses are stored: a request that failed may be sent again with its
key. A request whose response broke off keeps its key: repeated, it runs with the same preassigned id.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.auth import authenticate
from planwave.api.dependencies import PREASSIGNED_ID, app_state
from planwave.api.problems import ProblemError, problem_response
from planwave.api.responses import NOT_REPLAYABLE, UNFINISHED
from planwave.errors import GraphInvalid, InputError, LimitExceeded, PlanwaveError
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.jsonio import dumps_exact
from planwave.service.service import Service
from planwave.storage.records import IdempotencyRecord

_log = logging.getLogger(__name__)

IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "idempotency-replayed"
WAIT_TIMEOUT_S: Final = 30.0
"""How long a repeated request waits for the first one before it is told to come back."""
_POLL_S: Final = 0.25
"""How often the store is asked for the response of another process."""
_RETRY_AFTER_S: Final = 2
_PREFIXES: Final = ("/api/", "/v1/")
_SESSION: Final = "/api/session"
_STORED_HEADERS: Final = (
    b"content-length",
    b"content-type",
    b"etag",
    b"location",
    b"x-planwave-execution-id",
)
"""Headers stored with a response."""


class StoredResponse(NamedTuple):
    """A complete response, as stored under its key."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    def serialize(self) -> str:
        """Return headers and body in the form of the store."""
        return dumps_exact(
            {"headers": [list(each) for each in self.headers], "body": self.body.decode()}
        )

    async def send(self, send: Send) -> None:
        """Send the response again."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers]
        headers.append((REPLAYED_HEADER.encode(), b"true"))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


class _InFlight:
    """A request under way with its key.

    Attributes:
        is_settled: The response is complete: it is stored, or the key is released.
        is_unstored: The request succeeded, and the store could not write the response.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.is_settled = self.is_unstored = False
        self.response: asyncio.Future[StoredResponse | None] = (
            asyncio.get_running_loop().create_future()
        )


class IdempotencyMiddleware:
    """Middleware that replays stored responses; it reads the whole body before the route runs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._in_flight: dict[str, _InFlight] = {}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or not (keys := _key_headers(scope)):
            return self._app(scope, receive, send)
        return self._handle(keys, scope, receive, send)

    async def _handle(
        self, keys: Sequence[str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        request = Request(scope, receive)
        try:
            name = (
                f"{authenticate(request).account} {scope['path']} {_validated_key(request, keys)}"
            )
            body = await request.body()
            await self._once(name, request, body, send)
        except PlanwaveError as error:
            await problem_response(error)(scope, receive, send)

    async def _once(self, name: str, request: Request, body: bytes, send: Send) -> None:
        digest = sha256(request.scope["query_string"] + b"\0" + _canonical(body)).hexdigest()
        while (claim := self._in_flight.get(name)) is not None:
            _require_same_request(claim.digest, digest)
            if (answer := await _wait_for_first(claim)) is not None:
                await answer.send(send)
                return
        claim = self._in_flight[name] = _InFlight(digest)
        try:
            await self._run_or_replay(name, claim, request, body, send)
        finally:
            self._release(name, claim)
            if (
                not claim.response.done()
            ):  # interrupted: the next waiting request is the first one now
                claim.response.set_result(None)

    async def _run_or_replay(
        self, name: str, claim: _InFlight, request: Request, body: bytes, send: Send
    ) -> None:
        service = app_state(request).service
        record = await _claimed(service, name, claim.digest)
        _require_same_request(record.digest, claim.digest)
        if record.status is not None and record.body is not None:
            answer = _parse_stored(record.status, record.body)
            claim.response.set_result(answer)
            await answer.send(send)
            return
        request.scope[PREASSIGNED_ID] = record.subject
        let_go = partial(self._release, name, claim)
        recorder = _Recorder(service, name, claim, let_go, request.scope, send)
        try:
            await self._app(request.scope, _replayed_body(body, request.receive), recorder.send)
        finally:
            if not claim.is_settled:
                await asyncio.shield(_release_key(service, name, request.scope))

    def _release(self, name: str, claim: _InFlight) -> None:
        if self._in_flight.get(name) is claim and not claim.is_unstored:
            del self._in_flight[name]


class _Recorder:
    """Passes a response on; stores it or releases the key before the last chunk is sent.

    So a client that has the whole response may reuse the key at once.
    """

    def __init__(
        self,
        service: Service,
        name: str,
        claim: _InFlight,
        let_go: Callable[[], None],
        scope: Scope,
        send: Send,
    ) -> None:
        self._service = service
        self._name = name
        self._claim = claim
        self._release = let_go
        self._scope = scope
        self._send = send
        self._held_start: Message | None = None
        self._start: Message = {}
        self._pieces: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._held_start = self._start = message
            return
        self._pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            await asyncio.shield(self._store_response())
        if self._held_start is not None:
            held, self._held_start = self._held_start, None
            await self._send(held)
        await self._send(message)

    async def _store_response(self) -> None:
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._start["headers"]
            if name.lower() in _STORED_HEADERS
        ]
        answer = StoredResponse(self._start["status"], headers, b"".join(self._pieces))
        self._claim.is_settled = True
        if UNFINISHED in self._scope:
            await _release_key(self._service, self._name, self._scope)
            self._release()
            self._claim.response.set_result(None)
            return
        if answer.is_success and NOT_REPLAYABLE not in self._scope:
            try:
                await self._service.maintenance.store_response(
                    self._name, answer.status, answer.serialize()
                )
            except PlanwaveError as error:  # the request itself has succeeded
                _log.warning("the answer under an idempotency key was not kept: %s", error)
                self._claim.is_unstored = True
        else:
            await _release_key(self._service, self._name, self._scope)
            self._release()
        self._claim.response.set_result(answer)


async def _release_key(service: Service, name: str, scope: Scope) -> None:
    """Release a key; one whose response broke off is kept, for a repetition under the same id."""
    release = service.maintenance.release_idempotency_key
    try:
        if UNFINISHED not in scope:
            await release(name)
        elif service.is_shared:  # else this process repeats it
            await release(name, keeps_subject=True)
    except PlanwaveError as error:
        _log.warning("an idempotency key was not given back: %s", error)


def takes_key(method: str, path: str) -> bool:
    """Return whether a request's ``Idempotency-Key`` is used."""
    return method == "POST" and path.startswith(_PREFIXES) and path != _SESSION


def _key_headers(scope: Scope) -> list[str]:
    if not takes_key(scope["method"], scope["path"]):
        return []
    return HTTPConnection(scope).headers.getlist(IDEMPOTENCY_HEADER)


def _validated_key(request: Request, keys: Sequence[str]) -> str:
    """Return the key.

    Raises:
        InputError: ``invalid-idempotency-key``.
        LimitExceeded: It is too long.
    """
    key, *more = keys
    if more or not key or not key.isprintable():
        raise InputError(
            f"{IDEMPOTENCY_HEADER} is one printable text",
            code="invalid-idempotency-key",
            hint="a new UUID for each request will do",
        )
    most = app_state(request).settings.limits.idempotency_key_chars
    if len(key) > most:
        error = LimitExceeded("idempotency_key_chars", most, len(key), what=IDEMPOTENCY_HEADER)
        error.status_hint = 422
        raise error
    return key


def _canonical(body: bytes) -> bytes:
    """Return a body as JSON that is written in one way: order of fields and white space make no other request.

    Numbers stay what they are: 1 and 1.0 differ. What is no strict JSON stays as it came; the route refuses it.
    """
    try:
        value = parse_strict_json(body)
    except GraphInvalid:
        return body
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _require_same_request(stored_digest: str, digest: str) -> None:
    if stored_digest != digest:
        raise InputError(
            f"this {IDEMPOTENCY_HEADER} came with another request before",
            code="idempotency-key-reused",
            hint="take a new key for a new request",
        )


async def _claimed(service: Service, name: str, digest: str) -> IdempotencyRecord:
    """Claim a key, or return its record; wait while another process handles the first request.

    Raises:
        ProblemError: The first request is still running.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + WAIT_TIMEOUT_S
    while True:
        record = await service.maintenance.claim_idempotency_key(name, digest)
        if not record.is_held_elsewhere:
            return record
        if clock() > until:
            raise _still_running()
        await asyncio.sleep(_POLL_S)


async def _wait_for_first(claim: _InFlight) -> StoredResponse | None:
    """Return the response of the first request; None if that was interrupted.

    Raises:
        ProblemError: The first request is still running.
    """
    try:
        async with asyncio.timeout(WAIT_TIMEOUT_S):
            return await asyncio.shield(claim.response)
    except TimeoutError:
        raise _still_running() from None


def _still_running() -> ProblemError:
    return ProblemError(
        409,
        "request-under-way",
        f"the request that came first with this {IDEMPOTENCY_HEADER} is still under way",
        hint="send it again in a moment",
        headers={"Retry-After": str(_RETRY_AFTER_S)},
    )


def _parse_stored(status: int, text: str) -> StoredResponse:
    response: dict[str, Any] = json.loads(text)
    headers = [(name, value) for name, value in response["headers"]]
    return StoredResponse(status, headers, response["body"].encode())


def _replayed_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that repeats the body, then continues with the connection."""
    is_replayed = False

    async def replay() -> Message:
        nonlocal is_replayed
        if is_replayed:
            return await receive()
        is_replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
