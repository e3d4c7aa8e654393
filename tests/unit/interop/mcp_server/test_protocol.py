"""Clients are told of changed tools, whatever other clients do."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from planwave.interop.mcp_server import protocol
from planwave.interop.mcp_server.protocol import ToolChanges


class Session:
    """A session, which may be one whose client reads nothing."""

    def __init__(self, *, is_stuck: bool = False) -> None:
        self.told = 0
        self.is_stuck = is_stuck

    async def send_tool_list_changed(self) -> None:
        self.told += 1
        if self.is_stuck:
            await asyncio.get_running_loop().create_future()


def listing(session: Session, session_id: str) -> Any:
    headers = {"mcp-session-id": session_id}
    request = SimpleNamespace(headers=headers)
    return SimpleNamespace(
        protocol_version=LATEST_HANDSHAKE_VERSION, session=session, request=request
    )


async def test_client_that_does_not_read_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "_TELL_S", 0.01)
    changes, stuck, other = ToolChanges(), Session(is_stuck=True), Session()
    for name, session in (("1", stuck), ("2", other)):
        changes.add(listing(session, name))
    async with asyncio.timeout(30):
        for _ in range(2):
            await changes.announce()
    assert (stuck.told, other.told) == (1, 2)
