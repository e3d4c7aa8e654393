"""Every line of the shared collection about URLs and MCP servers: refused, and nothing is connected."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import planwave
from planwave.errors import LimitExceeded, McpError, NodeError, OutboundError, PermanentError
from planwave.graph.model import Node
from planwave.nodes.agents.linked_tools import with_unique_names
from planwave.nodes.agents.tool import Tool
from planwave.nodes.library.fetch import Fetch
from planwave.nodes.library.mcp_server import McpServer
from planwave.nodes.registry import Registry
from planwave.outbound.images import fetch_image
from planwave.settings import McpServerSettings
from tests.support.graph.bad_inputs import bad_inputs, expanded
from tests.support.graph.builders import make_edge, make_graph
from tests.support.mcp.servers import Marks, hostile_program, servers_of
from tests.support.nodes.node_context import context_for, last_item, make_inputs, services_with
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response

AREAS = ("mcp", "mcp-behaviour", "ssrf-address", "ssrf-url")
LINES = [line for line in bad_inputs() if line["area"] in AREAS]
NAMES = {
    "localhost": ["127.0.0.1"],
    "localhost.": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "multi.test": [(PUBLIC, "10.0.0.1")],
    "example.com": [PUBLIC],
    "evil.test": [PUBLIC],
    "public.test": [PUBLIC],
    "other.test": [PUBLIC],
}


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")


async def fetch(network: FakeNetwork, url: str, client: Any = None, **data: Any) -> Any:
    """Run a ``fetch`` node."""
    services = services_with(lambda request: "", outbound=client or network.client())[0]
    context = context_for(Node("get", "fetch", "Get"), services=services)
    return await last_item(Fetch().execute({"url": url, **data}, make_inputs(), context))


# -- URLs


async def refused_before_a_connection(url: str) -> None:
    url = url.partition(" (A=")[0]
    network = FakeNetwork(NAMES)
    with pytest.raises(NodeError) as caught:
        await fetch(network, url)
    assert caught.value.code in ("address-refused", "url-refused")
    with pytest.raises(OutboundError):
        await fetch_image(network.client(), url)
    assert network.connections == []


async def only_the_vetted_answer_is_connected(url: str) -> None:
    network = FakeNetwork({"rebind.test": [PUBLIC, "127.0.0.1"]})
    url = url.partition(" (A=")[0]
    await fetch(network, url)
    assert network.connections == [(PUBLIC, 80)]
    with pytest.raises(NodeError, match="a loopback address"):
        await fetch(network, url)
    assert network.connections == [(PUBLIC, 80)]


async def a_redirect_to_a_file_is_refused(url: str) -> None:
    network = FakeNetwork(NAMES, redirect("file:///etc/passwd"))
    with pytest.raises(NodeError, match="only http:// and https:// are allowed"):
        await fetch(network, url)
    assert network.connections == [(PUBLIC, 443)]


async def a_redirect_to_another_origin_drops_credentials(url: str) -> None:
    network = FakeNetwork(NAMES, redirect("https://other.test/"), response())
    headers = {"Authorization": "Bearer s", "Cookie": "s=1"}
    await fetch(network, url.partition(" ")[0], headers=headers)
    first, second = (each.lower() for each in network.requests)
    for name in (b"authorization: ", b"cookie: "):
        assert name in first
        assert name not in second


async def a_gzip_bomb_is_decoded_to_the_limit_only(url: str) -> None:
    bomb = gzip.compress(bytes(16 * 1024 * 1024)) * 64
    network = FakeNetwork(NAMES, response(bomb, content_encoding="gzip"))
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded, match="limit fetch_bytes"):
            await fetch(network, url.partition(" ")[0])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * 1024 * 1024


async def an_endless_body_is_left_at_the_limit(url: str) -> None:
    def pieces() -> Any:
        yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        for _ in range(10 * 1024):
            yield b"100000\r\n" + bytes(1024 * 1024) + b"\r\n"

    network = FakeNetwork(NAMES, pieces)
    with pytest.raises(LimitExceeded, match="limit fetch_bytes"):
        await fetch(network, url.partition(" ")[0])
    assert network.bytes_read < 4 * 1024 * 1024


async def two_requests_share_no_cookie(url: str) -> None:
    network = FakeNetwork(NAMES, response(set_cookie="s=1; Path=/"))
    client = network.client()
    for _ in range(2):
        await fetch(network, url.partition(" ")[0], client)
    assert not any(b"\r\ncookie:" in each.lower() for each in network.requests)


async def a_template_leads_to_no_host_that_the_operator_does_not_list(url: str) -> None:
    """What a graph puts into a query leaves for the hosts of ``outbound_hosts`` only."""
    written = url.replace("upstream", 'nodes["upstream"].output')
    upstream = Node("upstream", "json", "Upstream", data={"value": {"secret": "s3cret"}})

    async def run(*hosts: str) -> tuple[FakeNetwork, planwave.RunResult]:
        network = FakeNetwork(NAMES)
        client = network.client(hosts=hosts)
        services = services_with(lambda request: "", outbound=client)[0]
        leak = Node("leak", "fetch", "Leak", data={"url": written})
        graph = make_graph(upstream, leak, edges=(make_edge("upstream", "leak"),))
        return network, await planwave.run(graph, services=services, check=False)

    network, found = await run("public.test")
    assert (found.status, found.failures[0].code) == ("failed", "url-refused")
    assert (network.resolved, network.connections) == ([], [])
    network, found = await run("*.test")
    assert (found.status, len(network.connections)) == ("completed", 1)
    assert b"GET /?leak=s3cret " in network.requests[0]


URLS: dict[str, Callable[[str], Awaitable[None]]] = {
    "URL-225": only_the_vetted_answer_is_connected,
    "URL-252": a_redirect_to_a_file_is_refused,
    "URL-254": a_redirect_to_another_origin_drops_credentials,
    "URL-255": a_gzip_bomb_is_decoded_to_the_limit_only,
    "URL-256": an_endless_body_is_left_at_the_limit,
    "URL-260": two_requests_share_no_cookie,
    "URL-261": a_template_leads_to_no_host_that_the_operator_does_not_list,
}
"""The lines about more than one request, or about its response; all others connect to nothing."""


# -- MCP servers: how they are reached


def findings(data: dict[str, Any]) -> list[Any]:
    registry = Registry([McpServer], mcp_servers={"box": None})
    node = Node("m", "mcp_server", "M", data=data)
    found = registry.check(node, make_graph(node))
    return [each for each in found if each.pointer.startswith("/data/") or each.severity == "error"]


def no_graph_says_how_a_server_is_reached(config: dict[str, Any]) -> None:
    """Whatever the way out of other programs was: a graph has the name of a server, nothing else."""
    found = findings({"server": "box", **config})
    assert {each.code for each in found} == {"invalid-data"}
    assert {each.pointer for each in found} == {f"/data/{name}" for name in config}
    assert findings(config) != []


def the_settings_refuse_it_too(config: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        McpServerSettings(**config)


async def the_operator_cannot_connect_there(config: dict[str, Any]) -> None:
    table: dict[str, Any] = {"url": config["url"]}
    headers = config.get("headers", {})
    table |= {"header_env": {name: "BOX_HEADER" for name in headers}}
    servers = servers_of(environment={"BOX_HEADER": "".join(headers.values())}, box=table)
    with pytest.raises((McpError, OutboundError)) as caught:
        async with servers.connection("box"):
            pass
    assert (
        "may not be requested" in caught.value.message or "cannot be sent" in caught.value.message
    )


SETTINGS = frozenset({"MCP-428", "MCP-429", "MCP-430", "MCP-437"})
CONNECTIONS = frozenset({"MCP-434", "MCP-436"})


# -- MCP servers: what they do


async def tools_of_one_name_are_told_apart(marks: Marks) -> None:
    """They begin with the name of their server; what still collides is an error."""
    tables = {name: hostile_program(marks, "plain") for name in ("files", "web")}
    services = services_with(lambda request: "", mcp=servers_of(**tables))[0]

    async def tools_of(server: str, stack: AsyncExitStack, **data: Any) -> list[Tool]:
        context = context_for(Node(f"n-{server}", "mcp_server", server), services=services)
        data = {"server": server, **data}
        return await stack.enter_async_context(
            await McpServer().materialize(data, "tools", context)
        )

    async with AsyncExitStack() as stack:
        named = [*await tools_of("files", stack), *await tools_of("web", stack)]
        assert [tool.name for tool in with_unique_names(named, "agent")] == ["files_act", "web_act"]
        bare = [
            *await tools_of("files", stack, prefix=""),
            *await tools_of("web", stack, prefix=""),
        ]
        told_apart = with_unique_names(bare, "agent")
        assert [tool.name for tool in told_apart] == ["act_n-files", "act_n-web"]
        with pytest.raises(PermanentError, match="two tools of the name 'act_n'"):
            with_unique_names([replace(tool, node_id="n") for tool in bare], "agent")


async def a_silent_server_is_killed_with_its_group(marks: Marks) -> None:
    servers = servers_of({"mcp_connect_s": 0.5}, box=hostile_program(marks, "silent"))
    with pytest.raises(McpError) as caught:
        async with servers.connection("box"):
            pass
    assert caught.value.code == "mcp-start-failed"
    assert "did not answer within 0.5 s" in caught.value.message
    await marks.all_gone()
    assert len(marks.pids) == 1


async def a_child_that_outlives_its_server_is_killed(marks: Marks) -> None:
    async with servers_of(box=hostile_program(marks, "fork")).connection("box"):
        pass
    await marks.all_gone()
    assert len(marks.pids) == 2


BEHAVIOURS: dict[str, Callable[[Marks], Awaitable[None]]] = {
    "MCP-439": tools_of_one_name_are_told_apart,
    "MCP-442": a_silent_server_is_killed_with_its_group,
    "MCP-445": a_child_that_outlives_its_server_is_killed,
}


@pytest.mark.skipif(not LINES, reason="no ../shared/bad_inputs.jsonl")
@pytest.mark.parametrize("line", LINES, ids=lambda line: line["id"])
async def test_a_line_of_the_shared_collection_does_no_harm(
    line: dict[str, Any], marks: Marks
) -> None:
    """A new line about behaviour has no entry in the table and fails."""
    given = expanded(line["input"])
    if line["area"] == "mcp-behaviour":
        await BEHAVIOURS[line["id"]](marks)
    elif line["area"] == "mcp":
        no_graph_says_how_a_server_is_reached(given)
        if line["id"] in SETTINGS:
            the_settings_refuse_it_too(given)
        if line["id"] in CONNECTIONS:
            await the_operator_cannot_connect_there(given)
    else:
        await URLS.get(line["id"], refused_before_a_connection)(given)


@pytest.mark.skipif(not LINES, reason="no ../shared/bad_inputs.jsonl")
def test_every_entry_of_the_tables_is_a_line_of_the_shared_collection() -> None:
    ids = {line["id"] for line in LINES}
    assert {line["area"] for line in LINES} == set(AREAS)
    assert ids >= URLS.keys() | BEHAVIOURS.keys() | SETTINGS | CONNECTIONS
