"""Which headers a request may add and an answer may have: the rules for graphs, and for what is imported."""

from __future__ import annotations

import re
from typing import Final, Literal

HeaderFault = Literal["name", "own", "value"]
"""Why a header cannot be sent: its name is none, planwave sets it by itself, or its value is none."""

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE: Final = re.compile(r"([\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?)?")
_OF_THE_CONNECTION: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that describe the connection, which the client sets by itself."""
LOCATION: Final = "location"
ANSWER_HEADERS: Final = frozenset(
    {
        "content-disposition", "content-language", "content-type", "etag", "last-modified", LOCATION,
        "retry-after",
    }
)  # fmt: skip
"""Headers about one answer. All others that HTTP defines speak to browsers about every page of the
service (``NEL``, ``Alt-Svc``, ``Clear-Site-Data``, ``WWW-Authenticate``), or to proxies in front of it."""
_ANSWER_NAME_CHARS: Final = 100
_ANSWER_VALUE_CHARS: Final = 4_002
_OWN_PREFIX: Final = "x-"
_NOT_OWN_PREFIXES: Final = (
    # Orders to proxies and servers: which file or address they answer with instead, what they cache.
    "x-accel", "x-amz", "x-appengine", "x-cache", "x-cascade", "x-cdn-", "x-edge-", "x-envoy-", "x-forwarded",
    "x-http-method", "x-kong-", "x-lighttpd", "x-litespeed", "x-lscache", "x-method-override", "x-middleware-",
    "x-nginx-", "x-original-", "x-proxy-", "x-real-ip", "x-reproxy", "x-rewrite-", "x-sendfile", "x-traefik-",
    "x-varnish",
    # Orders to browsers and crawlers, under their old and their present names.
    "x-content-security-policy", "x-content-type-options", "x-dns-prefetch-control", "x-download-options",
    "x-frame-options", "x-moz-", "x-permitted-cross-domain-policies", "x-pingback", "x-robots-tag", "x-sourcemap",
    "x-ua-compatible", "x-webkit-", "x-xss-protection",
    # What planwave says itself.
    "x-planwave-", "x-request-id",
)  # fmt: skip
"""Beginnings of headers with ``x-`` that mean something to others than the sender."""
_RELATIVE: Final = re.compile(r"(?!//)(?![A-Za-z][A-Za-z0-9+.-]*:)[!-\[\]-~]+", re.ASCII)
"""A reference without a scheme and a host, in which no browser finds one either."""


def request_header_fault(name: str, value: str) -> HeaderFault | None:
    """Return why a request cannot add a header; None if it can."""
    if _NAME.fullmatch(name) is None:
        return "name"
    if name.lower() in _OF_THE_CONNECTION:
        return "own"
    return None if _VALUE.fullmatch(value) else "value"


def answer_header_fault(name: str, value: str) -> HeaderFault | None:
    """Return why an answer cannot have a header; None if it can, whatever its address is."""
    if _NAME.fullmatch(name) is None or len(name) > _ANSWER_NAME_CHARS:
        return "name"
    if not is_answer_header(name):
        return "own"
    is_sendable = _VALUE.fullmatch(value) is not None and len(value) <= _ANSWER_VALUE_CHARS
    return None if is_sendable else "value"


def is_answer_header(name: str) -> bool:
    """Return whether an answer may have a header: it is about the answer, or for its receiver alone."""
    plain = name.lower().replace("_", "-")  # some proxies take both for one
    if plain.startswith(_OWN_PREFIX):
        return not plain.startswith(_NOT_OWN_PREFIXES)
    return name.lower() in ANSWER_HEADERS


def is_relative_location(value: str) -> bool:
    """Return whether an address that an answer redirects to stays at the host of the request."""
    return _RELATIVE.fullmatch(value) is not None
