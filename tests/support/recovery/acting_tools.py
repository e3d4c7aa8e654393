"""Functions as tools that note what they do: the node module of a service that is killed."""

from __future__ import annotations

import asyncio
import os

import planwave
from tests.support.recovery.acts import ACT_LOG, Act, write_act

WORK_S = 0.05
"""How long a tool works after it has acted."""


async def _act(tool: str, item: str, text: str, context: planwave.ToolCallContext) -> str:
    write_act(os.environ[ACT_LOG], Act(tool, item, text, context.idempotency_key))
    await asyncio.sleep(WORK_S)
    return f"{tool} {item} {text}"


@planwave.tool(effect="read")
async def look(item: str, text: str, context: planwave.ToolCallContext) -> str:
    """Look at an item."""
    return await _act("look", item, text, context)


@planwave.tool(effect="write")
async def save(item: str, text: str, context: planwave.ToolCallContext) -> str:
    """Save an item."""
    return await _act("save", item, text, context)


@planwave.tool(effect="once")
async def send(item: str, text: str, context: planwave.ToolCallContext) -> str:
    """Send an item, once."""
    return await _act("send", item, text, context)


@planwave.tool(effect="write", approval="always")
async def order(item: str, text: str, context: planwave.ToolCallContext) -> str:
    """Order an item, if a person allows it."""
    return await _act("order", item, text, context)


@planwave.tool(effect="once", approval="always")
async def mail(item: str, text: str, context: planwave.ToolCallContext) -> str:
    """Mail an item, once, if a person allows it."""
    return await _act("mail", item, text, context)
