"""One HTTP request: what is sent, what comes out, and which responses fail the node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import SecretStr

import planwave
from planwave.errors import ExecutionFailed, LimitExceeded, NodeError
from planwave.executor.options import RunOptions
from planwave.expressions import to_text
from planwave.graph.model import DataValue, Graph, Node, Policy
from planwave.graph.protocols import ExecutionResult, effect_of
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.fetch import Fetch
from planwave.nodes.registry import Registry
from planwave.nodes.secrets import Secret
from planwave.nodes.services import NodeServices
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import (
    context_for,
    last_item,
    make_inputs,
    services_with,
)
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response
from tests.support.secret_spellings import CANARY, SPELLINGS, shows
from tests.support.virtual_loop import VirtualLoop
from tests.unit.nodes.library.test_http_tool import ANSWERS

NODE = Node("get", "fetch", "Get")
URL = "https://api.test/v1"


def network(*answers: Any) -> FakeNetwork:
    names = {"api.test": [PUBLIC], "evil.test": [PUBLIC], "inner.test": ["10.0.0.1"]}
    return FakeNetwork(names, *answers)


def services_on(net: FakeNetwork, **options: Any) -> NodeServices:
    return services_with(lambda request: "", outbound=net.client(), **options)[0]


async def fetched(
    net: FakeNetwork, data: dict[str, Any], *inputs: Any, **options: Any
) -> dict[str, DataValue]:
    context = context_for(NODE, services=services_on(net, **options))
    data = {"url": URL, **data}
    result = await last_item(Fetch().execute(data, make_inputs(*inputs), context))
    assert isinstance(result, ExecutionResult)
    return dict(result.outputs)


async def failure(net: FakeNetwork, **data: Any) -> NodeError:
    with pytest.raises(NodeError) as caught:
        await fetched(net, data)
    return caught.value


# -- the request


async def test_a_request_has_method_parameters_headers_and_body() -> None:
    net = network()
    data = {
        "url": f" {URL}?a=1#part\n",
        "method": "PUT",
        "params": {"b": ["x y", 2], "c": True},
        "headers": {"X-Key": "k", "X-Number": 3},
        "body": "größe",
    }
    await fetched(net, data)
    head, _, body = net.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"PUT /v1?a=1&b=x+y&b=2&c=true HTTP/1.1\r\nHost: api.test\r\n")
    assert b"\r\nX-Key: k" in head
    assert b"\r\nX-Number: 3" in head
    assert body == "größe".encode()


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, b"application/json"),
        ({"content-type": "application/x.y+json"}, b"application/x.y+json"),
    ],
)
async def test_json_is_sent_with_its_content_type(headers: dict[str, str], kind: bytes) -> None:
    net = network()
    await fetched(net, {"method": "POST", "json": {"a": [1, None]}, "headers": headers})
    head, _, body = net.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"a":[1,null]}'
    assert head.lower().count(b"content-type: ") == 1
    assert b"content-type: " + kind in head.lower()


@pytest.mark.parametrize(
    ("field", "value", "sent"),
    [
        ("url", "https://api.test/wired", b"GET /wired "),
        ("method", "DELETE", b"DELETE /v1 "),
        ("params", {"q": "w"}, b"GET /v1?q=w "),
        ("headers", {"X-W": "wired"}, b"\r\nX-W: wired\r\n"),
        ("body", "wired", b"\r\n\r\nwired"),
        ("json", ["wired"], b'\r\n\r\n["wired"]'),
    ],
)
async def test_every_field_is_an_input(field: str, value: Any, sent: bytes) -> None:
    net = network()
    await fetched(net, {}, (field, value))
    assert sent in net.requests[0]


async def test_two_bodies_fail_before_a_request_is_sent() -> None:
    net = network()
    error = await failure(net, method="POST", body="x", json={})
    assert (error.code, error.retryable, net.connections) == ("invalid-data", False, [])


# -- the response


@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        ("application/json", b'{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
        ("application/problem+json; charset=utf-8", b'"\xc3\xa4"', "ä"),
        ("Application/JSON", b"", None),
        ("text/plain", b'{"a": 1}', '{"a": 1}'),
        ("text/html; charset=iso-8859-1", b"\xe4", "ä"),
        ("text/html; charset=\"utf-8\"", b"\xc3\xa4", "ä"),
        ("text/html", b"\xe4", "\ufffd"),
        ("application/atom+xml", b"<a/>", "<a/>"),
        ("application/octet-stream", b"words", "words"),
        ("text/plain", b"", ""),
    ],
)  # fmt: skip
async def test_the_output_is_json_where_the_content_type_says_so_and_text_elsewhere(
    kind: str, body: bytes, value: Any
) -> None:
    outputs = await fetched(network(response(body, kind=kind, x_page="2")), {})
    assert outputs["output"].value == value
    assert outputs["status"] == DataValue("integer", 200)
    assert outputs["headers"].value["content-type"] == kind
    assert outputs["headers"].value["x-page"] == "2"


async def test_a_head_request_has_headers_only() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n"
    outputs = await fetched(network(head), {"method": "HEAD"})
    assert outputs["output"].value is None
    assert outputs["headers"].value["content-length"] == "9"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"<html>"),
        ("application/json", b"[NaN]"),
        ("application/json", b"[" * 100_000),
        ("image/png", b"\x89PNG\r\n\x1a\n\xff"),
        ("application/octet-stream", b"\xff\xfe\x00"),
    ],
)
async def test_a_response_that_is_neither_json_nor_text_fails(kind: str, body: bytes) -> None:
    error = await failure(network(response(body, kind=kind)))
    assert error.code == "invalid-response"
    assert URL in error.message


@pytest.mark.parametrize("charset", ["nonsense", "punycode", "idna", "unicode_escape", "hex"])
async def test_a_charset_that_is_none_of_text_is_read_as_utf_8(charset: str) -> None:
    body = "xn--ä \\ud800".encode() + b"\xff"
    kind = f"text/plain; charset={charset}"
    outputs = await fetched(network(response(body, kind=kind)), {})
    assert "xn--ä \\ud800\ufffd" in [value.value for value in outputs.values()]


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        ("400 Bad Request", False), ("401 Unauthorized", False), ("404 Not Found", False),
        ("408 Request Timeout", True), ("429 Too Many Requests", True),
        ("500 Internal Server Error", True), ("503 Service Unavailable", True),
    ],
)  # fmt: skip
async def test_a_status_from_400_on_fails_the_node(status: str, retryable: bool) -> None:
    error = await failure(network(response(status=status)), url=f"{URL}?key=secret")
    assert (error.code, error.retryable) == ("http-status", retryable)
    assert error.message == f"GET {URL} answered {status}"


async def test_other_statuses_complete_the_node() -> None:
    for status in ("201 Created", "304 Not Modified"):
        outputs = await fetched(network(response(b"", status=status)), {})
        assert outputs["status"].value == int(status[:3])


async def test_a_refused_address_fails_for_good_without_a_connection() -> None:
    net = network(redirect("http://inner.test/"))
    error = await failure(net, url="http://inner.test/")
    assert (error.code, error.retryable, net.connections) == ("address-refused", False, [])
    error = await failure(net)
    assert (error.code, net.connections) == ("address-refused", [(PUBLIC, 443)])


async def test_a_large_response_is_an_exceeded_limit() -> None:
    outbound = network(response(b"x" * 101)).client(body_bytes=100)
    services, _ = services_with(lambda request: "", outbound=outbound)
    context = context_for(NODE, services=services)
    with pytest.raises(LimitExceeded, match="fetch_bytes"):
        await last_item(Fetch().execute({"url": URL}, make_inputs(), context))


@pytest.mark.parametrize("services", [None, services_with(lambda request: "")[0]])
async def test_a_run_without_a_client_fails_the_node(services: NodeServices | None) -> None:
    with pytest.raises(NodeError) as caught:
        await last_item(
            Fetch().execute({"url": URL}, make_inputs(), context_for(NODE, services=services))
        )
    assert caught.value.code == "no-outbound"


# -- retries


def retried(net: FakeNetwork, backoff_s: float, limits: Limits | None = None) -> list[float]:
    """Run a node with three attempts; return the delays between them."""
    policy = {"retry": {"attempts": 3, "backoffS": backoff_s}}
    node = {"id": "get", "type": "fetch", "data": {"url": URL}, "policy": policy}

    async def run() -> list[float]:
        built = planwave.build({"nodes": [node], "edges": []}, registry=Registry(LIBRARY))
        found = planwave.run(
            built,
            services=services_on(net, limits=limits),
            options=RunOptions(),
            check=False,
        )
        return [e.data["delay_s"] async for e in found if e.type == "node.retrying"]

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def test_a_retry_waits_for_the_time_that_the_service_asks_for() -> None:
    busy = response(status="503 Service Unavailable", retry_after="7")
    assert retried(network(busy, busy, response()), 0) == [7, 7]
    assert retried(network(busy, busy, response()), 5) == [7, 10]


def test_the_time_that_a_service_asks_for_is_limited() -> None:
    busy = response(status="429 Too Many Requests", retry_after="100000")
    assert retried(network(busy, response()), 0) == [60]
    assert retried(network(busy, response()), 0, Limits(retry_after_s=2)) == [2]


def test_a_permanent_failure_is_not_retried() -> None:
    net = network(response(status="404 Not Found"))
    assert retried(net, 0) == []
    assert len(net.requests) == 1


# -- what is recorded


@pytest.mark.parametrize("body", [b"hi", b'\xff\xfe"'], ids=["text", "other bytes"])
async def test_a_response_is_not_requested_again_by_an_attempt_that_is_entered_again(
    body: bytes,
) -> None:
    store = MemoryStore()
    net = network(response(body, x_version="1"), response(b"changed"))
    found = [await fetched(net, {}, recorder=store) for _ in range(2)]
    assert found[0] == found[1]
    assert len(net.requests) == 1
    assert (await fetched(net, {"params": {"a": 1}}, recorder=store))["output"].value == "changed"


async def test_a_response_that_fails_the_node_fails_it_again() -> None:
    store, net = MemoryStore(), network(response(status="404 Not Found"), response())
    for _ in range(2):
        with pytest.raises(NodeError, match="404"):
            await fetched(net, {}, recorder=store)
    assert len(net.requests) == 1


async def test_values_of_headers_are_not_recorded() -> None:
    store = MemoryStore()
    await fetched(network(response()), {"headers": {"Authorization": "canary"}}, recorder=store)
    ((call,),) = (await store.calls(["run-1"])).values()
    assert "canary" not in str(call)
    assert call.reply["request"]["headers"] == ["Authorization"]


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"method": "POST"}, b"run-1/get/0"),
        ({"method": "DELETE", "headers": {"idempotency-key": "mine"}}, b"mine"),
        ({"method": "GET"}, None),
    ],
)
async def test_a_request_that_writes_has_an_idempotency_key(
    data: dict[str, Any], key: bytes | None
) -> None:
    net = network(response())
    await fetched(net, data)
    lines = net.requests[0].lower().split(b"\r\n")
    keys = [line.partition(b": ")[2] for line in lines if line.startswith(b"idempotency-key")]
    assert keys == ([] if key is None else [key])


# -- checks and effects


@pytest.mark.parametrize(
    ("data", "inputs", "found"),
    [
        ({"url": URL, "headers": {"X-Key": "{{ input }}"}}, ["input"], []),
        ({"url": "{{ input.link }}"}, ["input"], []),
        ({"url": "https://{{ input }}/"}, ["input"], []),
        ({"url": "ftp://example.com/"}, [], [("invalid-data", "/data/url")]),
        ({"url": "ftp://example.com/"}, ["url"], []),
        ({"url": "http://user:pw@example.com/"}, [], [("invalid-data", "/data/url")]),
        ({"url": "http://2130706433/"}, [], [("invalid-data", "/data/url")]),
        ({"url": "http://wiki.internal:8080/"}, [], []),
        ({}, [], [("missing-required-input", "/data/url")]),
        ({"url": URL, "method": "TRACE"}, [], [("invalid-data", "/data/method")]),
        ({"url": URL, "headers": {"Host": "x"}}, [], [("invalid-data", "/data/headers")]),
        ({"url": URL, "headers": {"a": "b\r\nc: d"}}, [], [("invalid-data", "/data/headers")]),
        ({"url": URL, "body": "a", "json": 1}, [], [("invalid-data", "/data/json")]),
        ({"url": URL, "body": "a", "json": 1}, ["json"], []),
    ],
)  # fmt: skip
def test_a_request_that_cannot_be_sent_is_an_error_of_the_check(
    data: dict[str, Any], inputs: list[str], found: list[tuple[str, str]]
) -> None:
    assert locations(check_node("fetch", data, inputs=inputs)) == found


@pytest.mark.parametrize(
    ("data", "wired", "effect"),
    [
        ({}, "url", "read"),
        ({"method": "GET"}, "input", "read"),
        ({"method": "HEAD"}, "input", "read"),
        ({"method": "POST"}, "input", "write"),
        ({"method": "DELETE"}, "input", "write"),
        ({"method": "GET"}, "method", "write"),
        ({"method": 1}, "input", "write"),
    ],
)  # fmt: skip
def test_the_effect_depends_on_the_method(data: Any, wired: str, effect: str) -> None:
    facts = Registry(LIBRARY).type_info("fetch")
    assert facts is not None
    node = Node("n", "fetch", "N", data={"url": URL, **data})
    graph = Graph((node,), (make_edge("s", "n", target_handle=wired),))
    assert effect_of(node, facts, graph) == effect
    once = node._replace(policy=Policy(effect="once"))
    assert effect_of(once, facts, graph) == "once"


# -- secrets

SECRET = {"secretHeaders": {"Authorization": "Bearer {crm}"}}


async def recorded(
    net: FakeNetwork, data: dict[str, Any], value: str = "s3cret-token"
) -> tuple[str, str]:
    """Run a fetch with a secret; return its output or its error, and all that is stored of the run."""
    store = MemoryStore()
    secrets = {"crm": Secret("crm", SecretStr(value), ("api.test",))}
    services = services_on(net, secrets=secrets, recorder=store)
    graph = {"nodes": [{"id": "get", "type": "fetch", "data": {"url": URL, **data}}], "edges": []}
    registry = Registry(LIBRARY).with_providers(None, secrets={"crm"})
    try:
        result = await planwave.run(graph, registry=registry, services=services, store=store)
    except ExecutionFailed as failed:
        result = failed.result
    calls = await store.calls([result.execution_id])
    events = await store.events(result.execution_id)
    output = result.outputs["get"]["output"].value if result.error is None else result.error
    stored = [each.data for each in events]
    return to_text(output), f"{stored} {calls} {result.document}"


async def test_a_secret_is_sent_in_its_header_and_stored_nowhere() -> None:
    net = network(response(b'{"you": "Bearer s3cret-token"}', kind="application/json"))
    output, stored = await recorded(net, {"method": "POST", **SECRET})
    assert b"\r\nAuthorization: Bearer s3cret-token" in net.requests[0]
    assert json.loads(output) == {"you": "Bearer [secret crm]"}
    assert "Bearer {crm}" in stored
    assert "s3cret-token" not in stored


@pytest.mark.parametrize("answer", ANSWERS)
async def test_no_response_shows_the_secret_that_its_service_got(answer: str) -> None:
    for name, spell in SPELLINGS.items():
        output, stored = await recorded(network(ANSWERS[answer](spell(CANARY))), SECRET, CANARY)
        assert shows(output) == [], name
        assert shows(stored) == [], name
        assert CANARY[:12] not in output, name


async def test_a_redirect_to_another_service_does_not_carry_the_secret() -> None:
    net = network(redirect("https://evil.test/"), response())
    await recorded(net, SECRET)
    assert b"s3cret-token" in net.requests[0]
    assert b"s3cret-token" not in net.requests[1]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"secretHeaders": {"X-Key": "{crn}"}}, "unknown-secret"),
        (SECRET | {"url": "https://evil.test/"}, "secret-refused"),
        (SECRET | {"url": "http://api.test/"}, "secret-refused"),
        ({"secretHeaders": {"X-Key": "plain"}}, "invalid-data"),
        ({"secretHeaders": {"Host": "{crm}"}}, "invalid-data"),
    ],
)
async def test_a_secret_goes_nowhere_else(data: dict[str, Any], code: str) -> None:
    net = network()
    secrets = {"crm": Secret("crm", SecretStr("s3cret-token"), ("api.test",))}
    with pytest.raises(NodeError) as caught:
        await fetched(net, data, secrets=secrets)
    assert caught.value.code == code
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
    assert net.requests == []


def test_headers_with_secrets_are_checked() -> None:
    registry = Registry(LIBRARY).with_providers(None, secrets={"crm"})

    def found(written: dict[str, str]) -> list[tuple[str, str]]:
        data = {"url": URL, "secretHeaders": written}
        return locations(check_node("fetch", data, registry=registry))

    assert found({"Authorization": "Bearer {crm}"}) == []
    assert found({"X-Key": "{crn}"}) == [("unknown-secret", "/data/secretHeaders/X-Key")]
    assert found({"X-Key": "none"}) == [("invalid-data", "/data/secretHeaders/X-Key")]
    assert found({"Host": "{crm}"}) == [("invalid-data", "/data/secretHeaders")]
