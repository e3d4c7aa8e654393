"""What is wrong with a request before anybody asks what it wants, and the answer to that."""

from __future__ import annotations

from typing import Final

from httptools import HttpParserError, parse_url
from websockets.http11 import MAX_LINE_LENGTH, MAX_NUM_HEADERS

from planwave.api.problems import MEDIA_TYPE, ProblemError
from planwave.errors import PlanwaveError
from planwave.ids import new_id

_BODY: Final = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that announce a body."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})


def check_head(version: str, headers: list[tuple[bytes, bytes]]) -> None:
    """Look for what llhttp lets through and RFC 9112 does not: two hosts or none, other codings.

    Raises:
        Refused: There is some.
    """
    if version not in _VERSIONS:
        raise _not_http()
    hosts = 0
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding" and value.lower() != b"chunked":
            raise ProblemError(
                400, "invalid-request", "a body comes as it is, or in chunks of that"
            )
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise ProblemError(400, "invalid-request", "a request has one header 'Host'")


def target_of(target: bytes) -> bytes:
    """Give what a request asks for; who writes a whole address may leave out its ``/``."""
    if target[:1] in (b"/", b"*"):
        return target
    parsed = parse_url(target)
    if parsed.path:
        return target
    return b"/?" + parsed.query if parsed.query else b"/"


def check_websocket(target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Look for what the WebSocket library would trip over, once it is too late for an answer.

    Raises:
        Refused: There is some.
    """
    sent = {name: value for name, value in headers if name in _BODY}
    longest = max((len(name) + len(value) for name, value in headers), default=0)
    if sent.keys() - {b"content-length"} or sent.get(b"content-length", b"0").strip(b"0"):
        raise ProblemError(400, "invalid-request", "a WebSocket's request has no body")
    if len(headers) > MAX_NUM_HEADERS or longest + 4 > MAX_LINE_LENGTH:
        raise ProblemError(431, "headers-too-large", "a WebSocket's head is smaller than that")
    if len(target) + 16 > MAX_LINE_LENGTH:
        raise ProblemError(414, "uri-too-long", "a WebSocket's address is shorter than that")


def refusal_of(error: HttpParserError) -> PlanwaveError:
    """Give the answer to what the parser refuses, or what we did while it read.

    Raises:
        HttpParserError: Neither: it is our own mistake.
    """
    cause = error.__context__
    if isinstance(cause, ProblemError):
        return cause
    if cause is None or isinstance(cause, HttpParserError):
        return _not_http()
    raise error


def _not_http() -> ProblemError:
    return ProblemError(400, "invalid-request", "this is not HTTP/1.1")


def head_of(body: bytes) -> list[tuple[str, str]]:
    """Give the headers of a problem that is answered outside the application."""
    return [
        ("content-type", MEDIA_TYPE),
        ("content-length", str(len(body))),
        ("x-request-id", new_id()),
        ("connection", "close"),
    ]
