from __future__ import annotations

from dataclasses import replace

import pytest

from planwave.nodes.agents.tool_function import tool
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.settings import Limits
from tests.support.nodes.held_nodes import HeldNode
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import dependencies


async def test_providers_are_listed_with_reason_when_unavailable() -> None:
    async with in_process_client(dependencies()) as calls:
        found = await calls.get_json("/api/providers")
        assert found["providers"] == ["openai", "own", "tiny"]
        assert found["default_models"]["openai"] == "gpt"
        assert found["models"]["own"] == ["one", "two"]
        (off,) = [each for each in found["details"] if not each["available"]]
        assert (off["name"], off["reason"], off["how_to_enable"]) == (
            "off",
            "no key",
            "set OFF_KEY",
        )


async def test_mcp_servers_are_listed_by_name_and_kind_alone() -> None:
    parts = replace(dependencies(), mcp_servers={"files": "stdio", "tickets": "http"})
    async with in_process_client(parts) as calls:
        assert await calls.get_json("/api/mcp-servers") == {
            "servers": [{"name": "files", "kind": "stdio"}, {"name": "tickets", "kind": "http"}]
        }


async def test_node_types_are_listed_with_ports_and_schema() -> None:
    async with in_process_client(dependencies(types=[HeldNode()])) as calls:
        found = await calls.get_json("/api/node-types")
        types = {each["node_type"]: each for each in found["node_types"]}
        assert list(types) == sorted(types)
        assert {"agent", "if", "start", "held"} <= set(types)
        assert "userPrompt" in types["agent"]["schema"]["properties"]
        assert [port["name"] for port in types["if"]["outputs"]] == ["condition-{i}", "false"]
        assert (types["start"]["entry"], types["held"]["schema"]) == (True, {"type": "object"})
        sockets = {each["type"]: each for each in found["socket_types"]}
        port = types["text"]["outputs"][0]
        assert (port["color"], port["shape"]) == (
            sockets["text"]["color"],
            sockets["text"]["shape"],
        )


async def test_tools_are_listed_with_schema_effect_and_origin() -> None:
    catalogue = Registry(LIBRARY)
    parts = replace(dependencies(), catalogue=catalogue)

    @tool(effect="read", timeout_s=2.0, registry=catalogue)
    def look_up(number: int) -> str:
        """Look an order up."""
        return ""

    async with in_process_client(parts) as calls:
        assert await calls.get_json("/api/tools") == {
            "tools": [
                {
                    "name": "look_up",
                    "description": "Look an order up.",
                    "effect": "read",
                    "approval": "never",
                    "timeout_s": 2.0,
                    "parameters": dict(look_up.tool.parameters),
                    "origin": {"kind": "module", "name": __name__},
                }
            ]
        }


async def test_limits_are_listed_with_values_of_settings() -> None:
    limits = Limits(page_items=7)
    async with in_process_client(dependencies(limits=limits)) as calls:
        found = (await calls.get_json("/api/limits"))["limits"]
        assert {each["name"]: each["value"] for each in found} == limits.model_dump()
        page = next(each for each in found if each["name"] == "page_items")
        assert page == {
            "name": "page_items",
            "value": 7,
            "default": 200,
            "hard_cap": 1_000,
            "unit": "count",
            "what": "Items on one page of a list.",
            "variable": "PLANWAVE_LIMIT_PAGE_ITEMS",
        }


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("body_bytes", "bytes"),
        ("goal_chars", "characters"),
        ("drain_s", "seconds"),
        ("requests_per_s", "per second"),
        ("executions_per_minute", "per minute"),
        ("idempotency_hours", "hours"),
        ("nodes", "count"),
    ],
)
async def test_limit_has_unit(name: str, unit: str) -> None:
    async with in_process_client(dependencies()) as calls:
        found = (await calls.get_json("/api/limits"))["limits"]
        assert next(each for each in found if each["name"] == name)["unit"] == unit
