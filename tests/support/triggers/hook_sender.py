"""A sender of webhooks, and the service behind them, in process."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import httpx2
from pydantic import SecretStr
from standardwebhooks import Webhook

from planwave.ids import new_id
from planwave.nodes.secrets import Secret
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET: Final = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
PLAIN_SECRET: Final = "a plain secret"
SECRETS: Final = {
    name: Secret(name, SecretStr(value), ())
    for name, value in (("main", SECRET), ("next", OTHER_SECRET), ("plain", PLAIN_SECRET))
}
FLOW_EDGE: Final = {"channel": "flow"}


def hook_flow(*nodes: Mapping[str, Any], **data: Any) -> dict[str, Any]:
    """Return a graph: a webhook named ``hook``, and other nodes one after the other behind it."""
    hook = {"id": "hook", "type": "webhook", "data": {"secrets": ["main"], **data}}
    chain = [hook, *(nodes or (text("echo", "got {{ input.body }}"),))]
    pairs = pairwise(chain)
    edges = [{"source": a["id"], "target": b["id"], "data": FLOW_EDGE} for a, b in pairs]
    return {"nodes": chain, "edges": edges}


def text(node_id: str, written: str) -> dict[str, Any]:
    """Return a ``text`` node."""
    return {"id": node_id, "type": "text", "data": {"text": written}}


def signed(body: str, message_id: str | None = None, secret: str = SECRET) -> dict[str, str]:
    """Return the headers of a message as the package of Standard Webhooks signs it."""
    message_id, now = message_id or f"msg_{new_id()}", datetime.now(UTC)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, now, body),
        "content-type": "application/json",
    }


async def send(
    calls: httpx2.AsyncClient, hook_id: str, body: Any, query: str = "", **headers: str
) -> httpx2.Response:
    """Send a signed request; ``headers`` come on top, ``message_id`` identifies it."""
    content = json.dumps(body)
    own = signed(content, headers.pop("message_id", None))
    return await calls.post(f"/hooks/{hook_id}{query}", content=content, headers={**own, **headers})


async def listening(calls: InProcessClient, graph: Mapping[str, Any], **more: Any) -> str:
    """Save a flow and listen for its entry node; return the id of the trigger."""
    flow = await calls.post_json("/api/flows", {"name": f"Flow {new_id()}", "graph": graph}, 201)
    body = {"plan_id": flow["plan_id"], **more}
    return (await calls.post_json("/api/triggers", body, 201))["trigger_id"]


@asynccontextmanager
async def hook_service(
    settings: Mapping[str, Any] | None = None, **parts: Any
) -> AsyncGenerator[InProcessClient]:
    """Open an application whose operator has set the secrets of this module."""
    own = dependencies(**{"secrets": SECRETS, **parts})
    async with in_process_client(own, **(settings or {})) as calls:
        yield calls
