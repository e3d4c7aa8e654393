"""``webhook_reply``: answer the request that started the run, which goes on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.data_fields import POLICY
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType, pass_through
from planwave.nodes.checking.node_view import NodeView
from planwave.outbound.urls import AllowedServices

_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]{0,4000}[\x21-\x7e])?|", re.ASCII)
_LOCATION: Final = "location"
_ALLOWED: Final = frozenset(
    {
        "content-disposition", "content-language", "content-type", "etag", "last-modified", _LOCATION,
        "retry-after",
    }
)  # fmt: skip
"""Headers about this one answer. All others that HTTP defines speak to browsers about every page of the
service (``NEL``, ``Alt-Svc``, ``Clear-Site-Data``, ``WWW-Authenticate``), or to proxies in front of it."""
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
_ABSOLUTE: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::\d+)?(?:[/?#][!-\[\]-~]*)?", re.ASCII)


class WebhookReplyData(NodeData):
    """The answer besides its body, which is the input."""

    status: int = Field(200, ge=200, le=599, description="The HTTP status.")
    headers: dict[str, str] = Field(
        {}, description="Headers of the answer.", json_schema_extra=POLICY
    )


class WebhookReply(NodeType):
    """Answers the request of the ``webhook`` that started the run.

    It outputs ``{"body", "status", "headers"}``. The request ends with the first answer, the run does not. A text is sent as plain text, any other
    value as JSON, unless a header ``content-type`` says otherwise. Headers are those about the answer, such as
    ``location`` (a path, or a host of the setting ``redirect_hosts``) and ``retry-after``, and ``x-`` headers that
    no proxy or browser acts on.
    """

    node_type = "webhook_reply"
    purpose = "Answer the request that started the run with the input; the run goes on."
    summary = "Answer the request that started the run."
    Data = WebhookReplyData
    plan_fields = ("status",)
    fails_permanently = True
    outputs = (Port(DEFAULT_SOURCE_HANDLE, "json"),)
    planned = False

    async def run(self, data: WebhookReplyData, inputs: Inputs, context: FlowContext) -> DataValue:
        for finding in _check_headers(data):  # those of wires were not checked before the run
            raise PermanentError(finding.message, code="invalid-data", hint=finding.hint)
        body: Json = pass_through(inputs).value
        headers: dict[str, Json] = {name.lower(): each for name, each in data.headers.items()}
        return DataValue("json", {"body": body, "status": data.status, "headers": headers})

    def check(self, data: WebhookReplyData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None:
            yield from _check_headers(data, view.index.redirect_hosts)


def is_allowed_header(name: str) -> bool:
    """Return whether an answer may have a header: it is about the answer, or for its receiver alone."""
    plain = name.lower().replace("_", "-")  # some proxies take both for one
    if plain.startswith(_OWN_PREFIX):
        return not plain.startswith(_NOT_OWN_PREFIXES)
    return name.lower() in _ALLOWED


def _check_headers(
    data: WebhookReplyData, redirect_hosts: Collection[str] | None = None
) -> Iterable[NodeFinding]:
    """Yield what is wrong with headers; with None any host may be redirected to."""
    for name, value in data.headers.items():
        pointer = f"/data/headers/{name.replace('~', '~0').replace('/', '~1')}"
        if _NAME.fullmatch(name) is None or _VALUE.fullmatch(value) is None:
            message = f"data.headers: {name!r} cannot be sent"
            hint = "names are tokens, values one line of ASCII characters"
            yield NodeFinding("invalid-data", message, pointer, hint)
        elif not is_allowed_header(name):
            message = f"data.headers: an answer may not have the header {name!r}"
            allowed = ", ".join(sorted(_ALLOWED))
            hint = (
                f"allowed are {allowed}, and headers with x- that proxies and browsers do not know"
            )
            yield NodeFinding("invalid-data", message, pointer, hint)
        elif name.lower() == _LOCATION and not _is_allowed_location(value, redirect_hosts):
            message = f"data.headers: an answer may not redirect to {short_repr(value)}"
            hint = "write a path, or have the operator add the host to the setting redirect_hosts"
            yield NodeFinding("invalid-data", message, pointer, hint)


def _is_allowed_location(value: str, hosts: Collection[str] | None) -> bool:
    if _RELATIVE.fullmatch(value) is not None:
        return True
    match = _ABSOLUTE.fullmatch(value)
    return match is not None and AllowedServices(hosts=hosts).includes_host(match[1])
