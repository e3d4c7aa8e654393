"""``Idempotency-Key``: a POST that is sent again gives the answer it gave, and does nothing.

A key belongs to who sent it and to its route. The first request under it does the work; the same
request again waits for it here, or is given what is kept, over restarts too, for
``idempotency_hours``. Only what made something is kept: a request that failed may be tried again
under its key.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Annotated, Any, Final, NamedTuple

from fastapi import Depends
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.access import admit
from planwave.api.problems import Refused, answer_to
from planwave.api.state import state_of
from planwave.errors import Draining, InputError, LimitExceeded, PlanwaveError
from planwave.service.service import Service
from planwave.storage.rows import encode

_log = logging.getLogger(__name__)

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "idempotency-replayed"
PATIENCE_S: Final = 30.0
"""How long a repeated request waits for the first one before it is told to come back."""
_RETRY_AFTER_S: Final = 2
MADE_NOTHING: Final = "planwave.made-nothing"
"""Set in its scope by a request that answers with a stream and tells in it that it failed."""
_PREFIX: Final = "/api/"
_SESSION: Final = "/api/session"
_SUBJECT: Final = "planwave.subject"
_OWN: Final = (b"content-length", b"content-type", b"location")
"""Headers kept with an answer."""


class Answer(NamedTuple):
    """A whole answer, as it is kept."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def has_made(self) -> bool:
        """Whether something was made."""
        return 200 <= self.status < 300

    def text(self) -> str:
        """Give headers and body as the store keeps them."""
        return encode(
            {"headers": [list(each) for each in self.headers], "body": self.body.decode()}
        )

    async def send(self, send: Send) -> None:
        """Give it once more."""
        headers = [(name.encode(), value.encode()) for name, value in self.headers]
        headers.append((REPLAYED.encode(), b"true"))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


class _Claim:
    """A request under way with its key.

    Attributes:
        is_settled: It was answered; what it made is kept, or its key was given back.
        is_only_here: It made something, and the store could not keep the answer.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.is_settled = self.is_only_here = False
        self.answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()


class Idempotency:
    """Pure ASGI, inside gate and bounds: it has a request's body read before its route runs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._claims: dict[str, _Claim] = {}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or not (keys := _keys(scope)):
            return self._app(scope, receive, send)
        return self._heed(keys, scope, receive, send)

    async def _heed(self, keys: Sequence[str], scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            name = f"{admit(request)} {scope['path']} {_checked(request, keys)}"
            body = await request.body()
            await self._once(name, request, body, send)
        except PlanwaveError as error:
            await answer_to(error)(scope, receive, send)

    async def _once(self, name: str, request: Request, body: bytes, send: Send) -> None:
        digest = sha256(request.scope["query_string"] + b"\0" + body).hexdigest()
        while (claim := self._claims.get(name)) is not None:
            _check_same(claim.digest, digest)
            if (answer := await _first(claim)) is not None:
                await answer.send(send)
                return
        claim = self._claims[name] = _Claim(digest)
        try:
            await self._do_or_tell(name, claim, request, body, send)
        finally:
            self._let_go(name, claim)
            if not claim.answer.done():  # cut off: whoever waits is first now
                claim.answer.set_result(None)

    async def _do_or_tell(
        self, name: str, claim: _Claim, request: Request, body: bytes, send: Send
    ) -> None:
        service = state_of(request).service
        kept = await service.remember(name, claim.digest)
        _check_same(kept.digest, claim.digest)
        if not kept.is_new:
            if kept.status is None or kept.body is None:
                raise _under_way()
            answer = _read(kept.status, kept.body)
            claim.answer.set_result(answer)
            await answer.send(send)
            return
        request.scope[_SUBJECT] = kept.subject
        let_go = partial(self._let_go, name, claim)
        recorder = _Recorder(service, name, claim, let_go, request.scope, send)
        try:
            await self._app(request.scope, _again(body, request.receive), recorder.send)
        finally:
            if not claim.is_settled:
                await asyncio.shield(_give_back(service, name))

    def _let_go(self, name: str, claim: _Claim) -> None:
        if self._claims.get(name) is claim and not claim.is_only_here:
            del self._claims[name]


class _Recorder:
    """Passes an answer on, and keeps it or gives the key back before its last piece goes out.

    So whoever has the whole answer may send the next request under the key at once.
    """

    def __init__(
        self,
        service: Service,
        name: str,
        claim: _Claim,
        let_go: Callable[[], None],
        scope: Scope,
        send: Send,
    ) -> None:
        self._service = service
        self._name = name
        self._claim = claim
        self._let_go = let_go
        self._scope = scope
        self._send = send
        self._held: Message | None = None
        self._start: Message = {}
        self._pieces: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._held = self._start = message
            return
        self._pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            await asyncio.shield(self._settle())
        if self._held is not None:
            held, self._held = self._held, None
            await self._send(held)
        await self._send(message)

    async def _settle(self) -> None:
        headers = [
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self._start["headers"]
            if name.lower() in _OWN
        ]
        answer = Answer(self._start["status"], headers, b"".join(self._pieces))
        self._claim.is_settled = True
        if answer.has_made and MADE_NOTHING not in self._scope:
            try:
                await self._service.keep_answer(self._name, answer.status, answer.text())
            except PlanwaveError as error:  # what was asked is done; that comes first
                _log.warning("the answer under an idempotency key was not kept: %s", error)
                self._claim.is_only_here = True
        else:
            await _give_back(self._service, self._name)
            self._let_go()
        self._claim.answer.set_result(answer)


async def _give_back(service: Service, name: str) -> None:
    try:
        await service.forget(name)
    except PlanwaveError as error:
        _log.warning("an idempotency key was not given back: %s", error)


async def makes(connection: HTTPConnection) -> str | None:
    """Have a route that makes something make nothing when draining.

    Returns:
        The id chosen with the request's key for what it makes; None without a key. Done again after
        a crash, the request is given the same id.

    Raises:
        Draining: The service is going down.
    """
    if state_of(connection).service.is_draining:
        raise Draining
    return connection.scope.get(_SUBJECT)


async def makes_execution(connection: HTTPConnection) -> str | None:
    """Do as :func:`makes`, and count an execution.

    Raises:
        Draining: The service is going down.
        Busy: This principal made too many within a minute.
    """
    principal = admit(connection)
    subject = await makes(connection)
    state_of(connection).access.count_execution(principal)
    return subject


SubjectDep = Annotated[str | None, Depends(makes)]
"""For routes that make something."""
ExecutionSubjectDep = Annotated[str | None, Depends(makes_execution)]
"""For routes that make an execution."""


def takes_key(method: str, path: str) -> bool:
    """Say whether a request's ``Idempotency-Key`` is looked at; before any route, that is."""
    return method == "POST" and path.startswith(_PREFIX) and path != _SESSION


def _keys(scope: Scope) -> list[str]:
    if not takes_key(scope["method"], scope["path"]):
        return []
    return HTTPConnection(scope).headers.getlist(HEADER)


def _checked(request: Request, keys: Sequence[str]) -> str:
    """Give the key.

    Raises:
        InputError: ``invalid-idempotency-key``.
        LimitExceeded: It is too long.
    """
    key, *more = keys
    if more or not key or not key.isprintable():
        raise InputError(
            f"{HEADER} is one printable text",
            code="invalid-idempotency-key",
            hint="a new UUID for each request will do",
        )
    most = state_of(request).settings.limits.idempotency_key_chars
    if len(key) > most:
        error = LimitExceeded("idempotency_key_chars", most, len(key), what=HEADER)
        error.status_hint = 422
        raise error
    return key


def _check_same(kept: str, given: str) -> None:
    if kept != given:
        raise InputError(
            f"this {HEADER} came with another request before",
            code="idempotency-key-reused",
            hint="take a new key for a new request",
        )


async def _first(claim: _Claim) -> Answer | None:
    """Wait for the first request; None where it was cut off.

    Raises:
        Refused: It takes long.
    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.shield(claim.answer)
    except TimeoutError:
        raise _under_way() from None


def _under_way() -> Refused:
    return Refused(
        409,
        "request-under-way",
        f"the request that came first with this {HEADER} is still under way",
        hint="send it again in a moment",
        headers={"Retry-After": str(_RETRY_AFTER_S)},
    )


def _read(status: int, text: str) -> Answer:
    kept: dict[str, Any] = json.loads(text)
    headers = [(name, value) for name, value in kept["headers"]]
    return Answer(status, headers, kept["body"].encode())


def _again(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more, then what the connection has to say."""
    is_told = False

    async def told() -> Message:
        nonlocal is_told
        if is_told:
            return await receive()
        is_told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return told
