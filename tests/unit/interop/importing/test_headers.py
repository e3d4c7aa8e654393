"""Headers that no graph may set are left out of imports of every format; others that cannot be sent are lost."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing import headers
from planwave.interop.importing.conversion import Conversion
from planwave.interop.importing.headers import settle_headers
from planwave.interop.importing.secrets import MARK, Withheld
from planwave.nodes.library import LIBRARY


def _settled(node_type: str, **data: Any) -> tuple[str, dict[str, Any]]:
    node = Conversion("test").source_node("/a", "t", "A")
    target = node.becomes(node_type, data)
    settle_headers(node)
    return node.outcome, target.node["data"]


@pytest.mark.parametrize("node_type", ["fetch", "http_tool", "sse"])
@pytest.mark.parametrize("name", ["Connection", "accept-encoding", "Host", "TE"])
def test_headers_of_the_connection_are_left_out_of_requests(node_type: str, name: str) -> None:
    headers = {name: "x", "X-Id": 7, "Authorization": Withheld("Bearer ")}
    outcome, data = _settled(node_type, headers=headers, secretHeaders={name: "{a}"})
    assert outcome == "changed"
    assert data == {"headers": {"X-Id": 7, "Authorization": MARK}}


@pytest.mark.parametrize(
    "name", ["Cache-Control", "X-Content-Type-Options", "Access-Control-Allow-Origin"]
)
def test_headers_to_browsers_are_left_out_of_answers(name: str) -> None:
    outcome, data = _settled("webhook_reply", headers={name: "x", "X-Id": "7"}, status=201)
    assert outcome == "changed"
    assert data == {"headers": {"X-Id": "7"}, "status": 201}


@pytest.mark.parametrize(
    ("node_type", "headers"),
    [
        ("fetch", {"a b": "x"}), ("fetch", {"X-Id": "é"}), ("fetch", {"X-Id": "a\nb"}), ("http_tool", {"": "x"}),
        ("webhook_reply", {"X-Id": " a"}), ("webhook_reply", {"Location": "https://a.example.com/"}),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_sent_is_lost(node_type: str, headers: dict[str, Any]) -> None:
    assert _settled(node_type, headers=headers)[0] == "placeholder"


@pytest.mark.parametrize(
    ("node_type", "headers"),
    [
        ("fetch", {"X-Id": "{{ input }} é"}), ("webhook_reply", {"Location": "/a"}),
        ("webhook_reply", {"content-type": "text/html"}), ("transform", {"Connection": "x"}),
    ],
)  # fmt: skip
def test_other_headers_stay(node_type: str, headers: dict[str, Any]) -> None:
    assert _settled(node_type, headers=headers) == ("mapped", {"headers": headers})


def test_every_type_that_sends_headers_is_in_the_table() -> None:
    sending = {
        node_type.node_type
        for node_type in LIBRARY
        if "secret_headers" in getattr(getattr(node_type, "Data", None), "model_fields", ())
    }
    assert sending == {each for each, rule in headers._RULES.items() if rule is headers._REQUEST}


@pytest.mark.parametrize(
    ("url", "header", "outcome"),
    [
        ("https://a.example/x", {"Host": "a.example"}, "changed"),
        ("https://a.example:8443/x", {"host": "a.example:8443"}, "changed"),
        ("https://a.example/x", {"Host": "b.example"}, "placeholder"),
        ("https://{{ input }}/x", {"Host": "a.example"}, "placeholder"),
        ("https://[a", {"Host": "a"}, "placeholder"),
        ("https://a.example/x", {"Upgrade": "websocket"}, "placeholder"),
        ("https://a.example/x", {"Proxy-Authorization": "{{ input }}"}, "placeholder"),
    ],
)
def test_a_header_without_which_a_request_means_something_else_is_lost(
    url: str, header: dict[str, str], outcome: str
) -> None:
    assert _settled("fetch", url=url, headers=header) == (outcome, {"url": url})
