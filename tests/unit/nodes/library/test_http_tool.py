"""The type ``http_tool``: what it sends, what comes back, and what its check finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from pydantic import SecretStr

from planwave.errors import NodeError, ToolError
from planwave.expressions import to_text
from planwave.graph.model import Node
from planwave.graph.protocols import effect_of
from planwave.nodes.agents.tool import Tool
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.http_tool import HttpTool
from planwave.nodes.registry import Registry
from planwave.nodes.secrets import Secret
from planwave.nodes.services import NodeServices
from planwave.outbound.client import OutboundClient
from tests.support.graph.bad_inputs import bad_inputs
from tests.support.graph.builders import make_graph
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import context_for, services_with
from tests.support.nodes.tool_calls import call_context, call_tool
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response
from tests.support.outbound.loopback_server import loopback_server
from tests.support.secret_spellings import CANARY, SPELLINGS, shows

CRM = Secret("crm", SecretStr("s3cret-token"), ("api.test",))
BASE: dict[str, Any] = {
    "name": "order",
    "description": "Look an order up.",
    "url": "https://api.test/orders/{id}?state={state}",
    "parameters": {
        "type": "object",
        "properties": {"id": {"type": "string"}, "state": {}, "note": {}, "tags": {}},
        "required": ["id"],
    },
}


def network(*answers: Any) -> FakeNetwork:
    return FakeNetwork(
        {"api.test": [PUBLIC], "evil.test": [PUBLIC], "inner.test": ["10.0.0.1"]}, *answers
    )


def services_on(client: OutboundClient, secrets: Sequence[Secret] = (CRM,)) -> NodeServices:
    named = {each.name: each for each in secrets}
    return services_with(lambda request: "", outbound=client, secrets=named)[0]


async def made(net: FakeNetwork, secrets: Sequence[Secret] = (CRM,), **data: Any) -> Tool:
    services = services_on(net.client(), secrets)
    context = context_for(Node("t", "http_tool", "T"), services=services)
    return await HttpTool().materialize({**BASE, **data}, "tools", context)


async def sent(net: FakeNetwork, arguments: dict[str, Any], **data: Any) -> tuple[str, bytes]:
    """Call a tool; return the head and the body of its request."""
    await (await made(net, **data)).call(arguments, call_context())
    head, _, body = net.requests[0].partition(b"\r\n\r\n")
    return head.decode(), body


async def refusal(net: FakeNetwork, *, number: str = "7", **data: Any) -> ToolError:
    tool = await made(net, **data)
    with pytest.raises(ToolError) as caught:
        await call_tool(tool, id=number)
    return caught.value


# -- the tool


@pytest.mark.parametrize(
    ("method", "effect"),
    [("GET", "read"), ("HEAD", "read"), ("POST", "write"), ("DELETE", "write")],
)
async def test_the_effect_is_that_of_the_method(method: str, effect: str) -> None:
    tool = await made(network(), method=method)
    assert (tool.effect, tool.kind, tool.approval) == (effect, "http", "never")
    facts = Registry(LIBRARY).type_info("http_tool")
    assert facts is not None
    node = Node("t", "http_tool", "T", data={**BASE, "method": method})
    assert effect_of(node, facts, make_graph(node)) == effect


async def test_the_model_sees_name_description_and_schema() -> None:
    tool = await made(network(), approval="always", timeoutS=2.5)
    assert (tool.name, tool.description) == ("order", "Look an order up.")
    assert tool.parameters == {**BASE["parameters"], "additionalProperties": False}
    assert (tool.approval, tool.timeout_s) == ("always", 2.5)


# -- the request


async def test_arguments_fill_the_address_and_the_rest_is_the_query_of_a_get() -> None:
    arguments = {"id": "ö 1", "state": "open", "note": "a&b", "tags": ["x", "y"]}
    head, body = await sent(network(), arguments, headers={"X-A": 1})
    assert head.startswith(
        "GET /orders/%C3%B6%201?state=open&note=a%26b&tags=x&tags=y HTTP/1.1\r\nHost: api.test\r\n"
    )
    assert "\r\nX-A: 1" in head
    assert "Idempotency-Key" not in head
    assert body == b""


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_the_rest_is_the_json_body_of_a_method_that_has_one(method: str) -> None:
    arguments = {"id": "1", "note": {"a": [1, None]}}
    head, body = await sent(network(), arguments, method=method)
    assert head.startswith(f"{method} /orders/1 HTTP/1.1\r\n")
    assert body == b'{"note":{"a":[1,null]}}'
    assert "\r\nContent-Type: application/json" in head
    assert "\r\nIdempotency-Key: run-1/a/call_1" in head


async def test_an_own_idempotency_key_is_kept_and_delete_has_no_body() -> None:
    head, body = await sent(
        network(), {"id": "1", "note": "x"}, method="DELETE", headers={"idempotency-key": "own"}
    )
    assert head.startswith("DELETE /orders/1?note=x HTTP/1.1\r\n")
    assert head.lower().count("idempotency-key: ") == 1
    assert "idempotency-key: own" in head
    assert body == b""


async def test_arguments_that_the_schema_does_not_have_are_refused() -> None:
    net = network()
    tool = await made(net)
    for arguments in ({"id": "1", "admin": True}, {}):
        with pytest.raises(ToolError) as caught:
            await tool.call(arguments, call_context())
        assert caught.value.code == "invalid-arguments"
    schema = {**BASE["parameters"], "additionalProperties": True}
    tool = await made(net, parameters=schema, url="https://api.test/{id}?fixed=1")
    with pytest.raises(ToolError):
        await tool.call({"id": "1", "fixed": "2"}, call_context())
    assert net.connections == []
    await tool.call({"id": "1", "more": "2"}, call_context())
    assert net.requests[0].startswith(b"GET /1?fixed=1&more=2 ")


# -- the response


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (response(b'{"a": [1]}', kind="application/json"), {"a": [1]}),
        (response(b"hi"), "hi"),
        (response(b"", status="204 No Content"), ""),
    ],
)
async def test_the_result_is_json_or_text(answer: bytes, result: Any) -> None:
    assert await call_tool(await made(network(answer)), id="1") == result


async def test_the_result_of_head_is_the_headers() -> None:
    result: Any = await call_tool(await made(network(response(etag="x")), method="HEAD"), id="1")
    assert result["etag"] == "x"


async def test_a_status_from_400_is_an_error_with_the_start_of_the_body() -> None:
    body = b'{"error": "no such order"}' + b" " * 600 + b"end"
    error = await refusal(network(response(body, status="404 Not Found")))
    assert error.code == "http-status"
    assert error.message == (
        'GET https://api.test/orders/7 answered 404 Not Found: {"error": "no such order"}'
    )
    error = await refusal(network(response(b"", status="503 Busy")))
    assert error.message == "GET https://api.test/orders/7 answered 503 Busy"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (response(b"{", kind="application/json"), "invalid-response"),
        (response(b"x" * 3_000_000), "limit-exceeded"),
        (redirect("http://inner.test/"), "address-refused"),
        (redirect("http://169.254.169.254/"), "address-refused"),
    ],
)
async def test_a_request_that_fails_is_an_error_that_the_model_sees(
    answer: bytes, code: str
) -> None:
    assert (await refusal(network(answer))).code == code


@pytest.mark.parametrize(
    "host", ["inner.test", "127.0.0.1", "[::1]", "169.254.169.254", "2130706433", "api.test:8080"]
)
async def test_a_private_address_opens_no_connection(host: str) -> None:
    net = network()
    error: NodeError | ToolError
    try:
        error = await refusal(net, url=f"http://{host}/{{id}}")
    except NodeError as refused:
        error = refused
    assert error.code in ("address-refused", "url-refused", "invalid-data")
    assert net.connections == []


@pytest.mark.skipif(not bad_inputs(), reason="no ../shared/bad_inputs.jsonl")
async def test_no_address_of_the_shared_collection_can_be_an_argument() -> None:
    net = network()
    tool = await made(net, url="https://api.test/go/{id}")
    lines = [line["input"] for line in bad_inputs() if line["area"].startswith("ssrf")]
    assert len(lines) > 20
    for each in lines:
        with suppress(ToolError):
            await call_tool(tool, id=each)
    assert {host for host, _ in net.connections} <= {PUBLIC}
    assert set(net.resolved) <= {"api.test"}


# -- secrets

SECRET = {"secretHeaders": {"Authorization": "Bearer {crm}"}}


async def test_a_secret_is_sent_in_its_header() -> None:
    head, _ = await sent(network(), {"id": "1"}, **SECRET)
    assert "\r\nAuthorization: Bearer s3cret-token" in head


async def test_a_secret_that_comes_back_is_shown_by_its_name() -> None:
    echo = b'{"headers": {"Authorization": "Bearer s3cret-token"}}'
    tool = await made(network(response(echo, kind="application/json")), **SECRET)
    assert await call_tool(tool, id="1") == {"headers": {"Authorization": "Bearer [secret crm]"}}
    head = await made(network(response(x_echo="s3cret-token")), method="HEAD", **SECRET)
    assert "s3cret-token" not in str(await call_tool(head, id="1"))
    error = await refusal(network(response(echo, status="400 s3cret-token")), **SECRET)
    assert "s3cret-token" not in error.message
    assert "[secret crm]" in error.message
    assert "s3cret-token" not in repr(tool)


LOUD = Secret("crm", SecretStr(CANARY), ("api.test",))
ANSWERS: dict[str, Callable[[str], bytes]] = {
    "JSON": lambda text: response(json.dumps({text: [text]}).encode(), kind="application/json"),
    "JSON as the service writes it": lambda text: response(
        f'{{"you": "{text}"}}'.encode(), kind="application/json"
    ),
    "text": lambda text: response(text.encode(), kind="text/html"),
    "UTF-16": lambda text: response(text.encode("utf-16"), kind="text/plain; charset=utf-16"),
    "UTF-32": lambda text: response(text.encode("utf-32-le"), kind="text/plain; charset=utf-32-le"),
    "an error": lambda text: response(f'{{"you": "{text}"}}'.encode(), status="400 Bad"),
    "an error in UTF-16": lambda text: response(
        text.encode("utf-16"), status="500 Odd", kind="text/plain; charset=utf-16"
    ),
    "an error cut within the secret": lambda text: response(
        b"x" * (500 - len(text) // 2) + text.encode(), status="400 Bad"
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_no_answer_of_a_service_shows_the_secret_that_it_got(answer: str) -> None:
    for name, spell in SPELLINGS.items():
        tool = await made(network(ANSWERS[answer](spell(CANARY))), [LOUD], **SECRET)
        try:
            shown = to_text(await call_tool(tool, id="1"))
        except ToolError as error:
            shown = error.message
        assert shows(shown) == [], name
        assert CANARY[:12] not in shown, name
        assert "[secret" in shown or "is no JSON" in shown, name


async def test_a_redirect_to_another_service_does_not_carry_the_secret() -> None:
    net = network(redirect("https://evil.test/"), response())
    await call_tool(await made(net, **SECRET), id="1")
    assert b"s3cret-token" in net.requests[0]
    assert b"s3cret-token" not in net.requests[1]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"secretHeaders": {"X-Key": "{crn}"}}, "unknown-secret"),
        (SECRET | {"url": "https://evil.test/{id}"}, "secret-refused"),
        (SECRET | {"url": "http://api.test/{id}"}, "secret-refused"),
        (SECRET | {"url": "https://api.test@evil.test/{id}"}, "invalid-data"),
        ({"secretHeaders": {"X-Key": "plain"}}, "invalid-data"),
        ({"secretHeaders": {"Host": "{crm}"}}, "invalid-data"),
    ],
)
async def test_a_secret_goes_nowhere_else(data: dict[str, Any], code: str) -> None:
    with pytest.raises(NodeError) as caught:
        await made(network(), **data)
    assert caught.value.code == code
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"


# -- the check


def found(**data: Any) -> list[tuple[str, str]]:
    registry = Registry(LIBRARY).with_providers(None, secrets={"crm"})
    findings = check_node("http_tool", {**BASE, **data}, registry=registry)
    return locations([each for each in findings if each.code != "unused-tool"])


def test_a_sound_tool_has_no_findings() -> None:
    assert found(**SECRET) == []
    assert found(headers={"X-A": "{{ goal }}"}) == []


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        ({"url": "https://{id}.test/"}, "/data/url"),
        ({"url": "https://api.test/{number}"}, "/data/url"),
        ({"url": "https://api.test/{id}?note=1"}, "/data/url"),
        ({"url": "https://api.test/{id}/{state}"}, "/data/parameters"),
        ({"name": "a b"}, "/data/name"),
        ({"method": "TRACE"}, "/data/method"),
        ({"parameters": {"type": "array"}, "url": "https://api.test/"}, "/data/parameters/type"),
        (
            {"parameters": {"type": "object", "properties": {"id": {"type": 5}}, "required": ["id"]},
             "url": "https://api.test/{id}"},
            "/data/parameters/properties/id/type",
        ),
        ({"headers": {"Host": "x"}}, "/data/headers"),
        ({"secretHeaders": {"X-Key": "none"}}, "/data/secretHeaders/X-Key"),
        ({"timeoutS": 0}, "/data/timeoutS"),
    ],
)  # fmt: skip
def test_the_check_finds_what_cannot_work(data: dict[str, Any], pointer: str) -> None:
    assert found(**data) == [("invalid-data", pointer)]


def test_an_unknown_secret_is_found_with_the_nearest_name() -> None:
    assert found(secretHeaders={"X-Key": "{crn}"}) == [
        ("unknown-secret", "/data/secretHeaders/X-Key")
    ]
    registry = Registry(LIBRARY).with_providers(None, secrets={"crm"})
    data = {**BASE, "secretHeaders": {"X-Key": "{crn}"}}
    first = check_node("http_tool", data, registry=registry)[0]
    assert first.hint == "did you mean 'crm'?"


# -- a real server


async def test_a_tool_calls_a_service_that_the_operator_allows() -> None:
    answer = response(b'{"state": "sent"}', kind="application/json")
    async with loopback_server(answer) as address:
        context = context_for(
            Node("t", "http_tool", "T"), services=services_on(OutboundClient([address]))
        )
        data = {**BASE, "url": f"http://{address}/orders/{{id}}"}
        tool = await HttpTool().materialize(data, "tools", context)
        assert await call_tool(tool, id="7") == {"state": "sent"}
        closed = context_for(Node("t", "http_tool", "T"), services=services_on(OutboundClient()))
        tool = await HttpTool().materialize(data, "tools", closed)
        with pytest.raises(ToolError) as caught:
            await call_tool(tool, id="7")
        assert caught.value.code == "url-refused"
