"""The headers of answers to webhooks: which names and locations are taken, written and as data."""

from __future__ import annotations

import asyncio

import pytest

from planwave.errors import PermanentError
from planwave.graph.model import Node
from planwave.nodes.library.webhook_reply import WebhookReply, WebhookReplyData
from planwave.nodes.registry import Registry
from tests.support.graph.builders import make_graph
from tests.support.nodes.node_context import context_for, make_inputs


def words(text: str) -> list[str]:
    return text.split()


ALLOWED = words("""
Content-Type content-disposition Content-Language Location Retry-After ETag Last-Modified X-Tea x-order-id
X-RateLimit-Limit x-correlation-id X-Content-Hash x-original x-shopify-topic X-Frame
""")
REFUSED = words("""
Accept-CH Accept-Ranges Access-Control-Allow-Credentials Access-Control-Allow-Headers
Access-Control-Allow-Origin Access-Control-Expose-Headers Age Allow Alt-Svc Alt-Used Authentication-Info
Authorization Cache-Control CDN-Cache-Control Clear-Site-Data Connection Content-Encoding Content-Length
Content-Location Content-Range Content-Security-Policy Content-Security-Policy-Report-Only Cookie
Critical-CH Cross-Origin-Embedder-Policy Cross-Origin-Opener-Policy Cross-Origin-Resource-Policy Date
Deprecation Document-Policy Expect-CT Expires Feature-Policy Forwarded Host Keep-Alive Link Memento-Datetime
NEL No-Vary-Search Observe-Browsing-Topics Origin-Agent-Cluster Origin-Trial P3P Permissions-Policy Pragma
Proxy-Authenticate Proxy-Authentication-Info Public-Key-Pins Referrer-Policy Refresh Report-To
Reporting-Endpoints Server Server-Timing Service-Worker-Allowed Service-Worker-Navigation-Preload Set-Cookie
Set-Cookie2 Set-Login SourceMap Speculation-Rules Status Strict-Transport-Security Supports-Loading-Mode
Surrogate-Control Surrogate-Key TE Timing-Allow-Origin Tk Trailer Transfer-Encoding Upgrade
Use-As-Dictionary Vary Via WWW-Authenticate Warning
X-Accel-Redirect X_Accel_Redirect x-accel-buffering X-Accel-Expires X-Accel-Charset X-Accel-Limit-Rate X-Sendfile
X-SENDFILE-Type X-LIGHTTPD-send-file X-LiteSpeed-Location X-Reproxy-URL X-AppEngine-BlobKey X-Cascade
X-Envoy-Immediate-Health-Check-Fail X-Forwarded-For x-forwarded-host X-Forwarded-Proto X-Forwarded-Prefix
X-Real-IP X-Original-URL X-Rewrite-URL X-HTTP-Method-Override X-Method-Override X-Middleware-Rewrite
X-Cache X-Cache-Status X-Varnish X-Request-Id x-request_id X-Planwave-Execution-Id X-Frame-Options
X-Content-Type-Options X-Content-Security-Policy X-WebKit-CSP X-XSS-Protection X-DNS-Prefetch-Control
X-Permitted-Cross-Domain-Policies X-UA-Compatible X-Robots-Tag X-SourceMap X-Pingback X-Download-Options
""")
RELATIVE = [
    "/orders/17",
    "/",
    "?page=2",
    "#end",
    "orders/17",
    "/a?to=http://b",
    "../x",
    "%2f%2fevil.example",
]
LISTED = ["https://shop.example/x", "http://shop.example:8080", "https://a.parts.example?q=1"]
ELSEWHERE = words("""
https://evil.example //evil.example /\\evil.example \\\\evil.example https://shop.example@evil.example
https:evil.example https:/evil.example https:\\\\evil.example javascript:alert(1) data:text/html,x http://
https://shop.example.evil.example https://parts.example https://evilshop.example https://shop.example\\@evil.example
""")
TYPES = Registry([WebhookReply], redirect_hosts=["shop.example", "*.parts.example"])


def errors_of(headers: dict[str, str], types: Registry = TYPES) -> list[str]:
    graph = make_graph(Node("r", "webhook_reply", "R", data={"headers": headers}))
    found = types.check(graph.by_id["r"], graph)
    return [each.pointer for each in found if each.severity == "error"]


def fails(headers: dict[str, str]) -> bool:
    """Run the node with headers that no check has seen."""
    data, inputs = WebhookReplyData(headers=headers), make_inputs({})
    try:
        asyncio.run(WebhookReply().run(data, inputs, context_for(Node("r", "webhook_reply", "R"))))
    except PermanentError as error:
        return error.code == "invalid-data"
    return False


@pytest.mark.parametrize("name", [*ALLOWED, *REFUSED])
def test_only_headers_about_the_answer_are_sent(name: str) -> None:
    is_refused = name in REFUSED
    for spelled in (name, name.lower(), name.upper()):
        assert errors_of({spelled: "1"}) == [f"/data/headers/{spelled}"] * is_refused
        assert fails({spelled: "1"}) is is_refused


@pytest.mark.parametrize("value", [*RELATIVE, *LISTED, *ELSEWHERE, "/\t/evil.example"])
def test_answers_redirect_to_the_service_and_to_listed_hosts(value: str) -> None:
    is_refused = value not in (*RELATIVE, *LISTED)
    assert errors_of({"Location": value}) == ["/data/headers/Location"] * is_refused
    none_listed = Registry([WebhookReply], redirect_hosts=[])
    assert bool(errors_of({"Location": value}, none_listed)) is (value not in RELATIVE)
