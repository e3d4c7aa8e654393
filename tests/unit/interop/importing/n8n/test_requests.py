"""Requests of n8n as ``fetch``: what is sent, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.executor.options import RunOptions
from planwave.interop.importing.importer import Imported
from tests.support.conformance.converted_runs import ConvertedGraph, RuleModels, run_converted
from tests.support.interop.imports import findings_of, outcomes
from tests.support.interop.n8n import by_name, imported, node, workflow
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response

_HOST = "a.example.com"
_START = node("Start", "manualTrigger")


def _data(**fields: Any) -> dict[str, Any]:
    given = [{"name": k, "value": v, "type": "any"} for k, v in fields.items()]
    return node("Data", "set", {"assignments": {"assignments": given}}, version=3.4)


def _request(version: float = 4.2, **parameters: Any) -> Imported:
    ask = node("Ask", "httpRequest", {"url": f"https://{_HOST}/x", **parameters}, version=version)
    return imported(workflow(_START, _data(n=5, t="a b/é&"), ask, ways="Start > Data, Data > Ask"))


async def _sent(made: Imported) -> bytes:
    net = FakeNetwork({_HOST: [PUBLIC]}, response())
    graph = {name: made.document[name] for name in ("nodes", "edges")}
    assert not findings_of(made)
    run = await run_converted(
        ConvertedGraph(graph, RunOptions()), RuleModels(lambda *_: ""), outbound=net.client()
    )
    assert run.statuses[-1] == "completed"
    return net.requests[0]


def _pairs(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {"parameters": [{"name": name, "value": value} for name, value in pairs]}


async def test_rows_that_were_not_filled_in_are_left_out() -> None:
    empty = {
        "parameters": [{}, {"name": "", "value": ""}, {"name": "a", "value": "={{ $json.n }}"}]
    }
    made = _request(
        sendQuery=True, queryParameters=empty, sendHeaders=True, headerParameters={"parameters": [{}]},
    )  # fmt: skip
    assert (await _sent(made)).startswith(b"GET /x?a=5 ")
    assert "headers" not in by_name(made)["Ask"]["data"]


async def test_a_query_and_headers_in_json_are_read() -> None:
    made = _request(
        sendQuery=True, specifyQuery="json", jsonQuery='{"a": "x y", "b": 2, "none": null}',
        sendHeaders=True, specifyHeaders="json", jsonHeaders='{"X-Id": "7"}',
    )  # fmt: skip
    sent = await _sent(made)
    assert sent.startswith(b"GET /x?a=x+y&b=2 ") or sent.startswith(b"GET /x?a=x%20y&b=2 ")
    assert b"x-id: 7" in sent.lower()


def test_a_secret_in_headers_in_json_is_named() -> None:
    made = _request(
        sendHeaders=True, specifyHeaders="json", jsonHeaders='{"Authorization": "Bearer sk-abcdefghijkl1234567890"}',
    )  # fmt: skip
    assert by_name(made)["Ask"]["data"]["secretHeaders"] == {"Authorization": "Bearer {ask}"}


async def test_a_form_is_encoded() -> None:
    made = _request(
        method="POST", sendBody=True, contentType="form-urlencoded",
        bodyParameters=_pairs(("a b", "={{ $json.t }}"), ("n", "={{ $json.n }}"), ("fixed", "1+1")),
    )  # fmt: skip
    sent = await _sent(made)
    assert b"content-type: application/x-www-form-urlencoded" in sent.lower()
    assert sent.endswith(b"a%20b=a%20b/%C3%A9%26&n=5&fixed=1%2B1")


async def test_the_type_of_a_body_is_that_of_its_headers() -> None:
    made = _request(
        method="POST", sendBody=True, contentType="raw", rawContentType="text/csv", body="a;b",
        sendHeaders=True, headerParameters=_pairs(("Content-Type", "text/plain")),
    )  # fmt: skip
    sent = (await _sent(made)).lower()
    assert sent.count(b"content-type:") == 1
    assert b"content-type: text/plain" in sent


async def test_an_older_request_without_settings_is_sent() -> None:
    made = _request(
        1, requestMethod="DELETE", queryParametersUi={"parameter": []}, jsonParameters=False
    )
    assert (await _sent(made)).startswith(b"DELETE /x ")


@pytest.mark.parametrize(
    "parameters",
    [
        {"sendQuery": True, "queryParameters": {"parameters": [{"name": "", "value": "x"}]}},
        {"sendQuery": True, "queryParameters": {"parameters": [{"name": "={{ $json.n }}", "value": "x"}]}},
        {"sendQuery": True, "queryParameters": _pairs(("a", "1"), ("a", "2"))},
        {"sendQuery": True, "specifyQuery": "json", "jsonQuery": '{"a": [1]}'},
        {"sendQuery": True, "specifyQuery": "json", "jsonQuery": "[1]"},
        {"sendQuery": True, "specifyQuery": "json", "jsonQuery": '={"a": "{{ $json.n }}"}'},
        {"sendHeaders": True, "specifyHeaders": "json", "jsonHeaders": "none"},
        {"sendBody": True, "contentType": "multipart-form-data"}, {"sendBody": True, "contentType": "binaryData"},
        {"sendBody": True, "contentType": "form-urlencoded", "specifyBody": "string", "body": "a=b"},
        {"sendBody": True, "bodyParameters": {"parameters": [{"name": "f", "parameterType": "formBinaryData"}]}},
        {"version": 1, "responseFormat": "file"}, {"version": 1, "queryParametersUi": {"parameter": [{"name": "a", "value": "b"}]}},
        {"version": 1, "sendBinaryData": True},
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_lost(parameters: dict[str, Any]) -> None:
    made = _request(
        **{"method": "POST", **parameters} if "version" not in parameters else parameters
    )
    assert outcomes(made)["Ask"] == "placeholder"
