"""The blocks of calls: of tools, and of other agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planwave.events.chat_events.blocks import Block
from planwave.events.types import error_message
from planwave.expressions.json_text import to_text


def call_block(block_id: str, path: str, data: Mapping[str, Any]) -> Block:
    """Return the block of a call of a tool that has started."""
    return {
        "type": "tool_call",
        "id": block_id,
        "nodeId": path,
        "toolCallId": data.get("call_id"),
        "toolName": data.get("name"),
        "toolArgs": data.get("arguments"),
        "status": "running",
        "result": None,
        "error": None,
    }


def member_block(block_id: str, path: str, data: Mapping[str, Any]) -> Block:
    """Return the block of a task that was given to another agent."""
    agent: Mapping[str, Any] = data.get("agent") or {}
    arguments: Mapping[str, Any] = data.get("arguments") or {}
    return {
        "type": "member_run",
        "id": block_id,
        "nodeId": path,
        "memberRunId": block_id,
        "memberName": agent.get("name") or data.get("name"),
        "task": to_text(arguments.get("task")),
        "status": "running",
        "blocks": [],
        "result": None,
        "error": None,
    }


def shown_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error as a chat shows it."""
    shown: dict[str, Any] = {"code": error.get("code"), "message": error_message(dict(error))}  # pyright: ignore[reportArgumentType]
    return shown | ({"hint": error["hint"]} if error.get("hint") else {})
