"""A service whose notifications go to a network in memory, on a clock that follows the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pydantic import SecretStr
from standardwebhooks import Webhook

from planwave.ids import new_id
from planwave.nodes.secrets import Secret
from planwave.service.flows.flow_queries import FlowRef
from planwave.service.service import Service
from planwave.setting_tables import NotificationSettings
from planwave.storage.notifications import NotificationRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.outbound.fake_network import PUBLIC, Answer, FakeNetwork, response
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import OTHER_SECRET, SECRETS

ACCEPTED: Final = response(b"", status="204 No Content")
FAILING: Final = response(b"no", status="503 Service Unavailable")


class Received(NamedTuple):
    """A message as its receiver got it."""

    path: str
    headers: Mapping[str, str]
    body: str

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body)

    def signature_of(self, secret: str) -> str:
        """Return the signature as the package of Standard Webhooks makes it."""
        sent_at = datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)
        return Webhook(secret).sign(self.headers["webhook-id"], sent_at, self.body)


class Clock:
    """A clock that begins at the present time, as events have that, and follows the event loop."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC) - self._elapsed()
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return self._start + self.ahead + self._elapsed()

    def _elapsed(self) -> timedelta:
        return timedelta(seconds=asyncio.get_running_loop().time())


class Notified:
    """A service that notifies ``https://ops.test/hook`` of its executions, and what came there."""

    def __init__(self, service: Service, network: FakeNetwork) -> None:
        self.service, self.network = service, network

    @property
    def received(self) -> list[Received]:
        return [_read(raw) for raw in self.network.requests if raw]

    async def run(self, graph: dict[str, Any], *targets: str, **more: Any) -> str:
        """Run a graph, as a flow of its own that notifies these URLs; return the execution."""
        flow = await self.service.flows.create(f"F {new_id()}", graph=graph)
        for url in targets:
            await self.service.notifications.create_target(flow.plan_id, url, ["hosted"])
        record = await self.service.executions.execute(FlowRef(flow.plan_id, flow.revision), **more)
        await self.service.executions.wait(record.execution_id)
        return record.execution_id

    async def outbox(self) -> Sequence[NotificationRecord]:
        return await self.service.notifications.list(limit=1_000)


@asynccontextmanager
async def notified(
    *answers: Answer,
    store: Any = None,
    table: Mapping[str, Any] | None = None,
    names: Mapping[str, Sequence[Any]] | None = None,
    **parts: Any,
) -> AsyncIterator[Notified]:
    """Open a service; its receiver gives these answers, the last one again and again.

    Args:
        answers: The responses of the receiver.
        store: The store; by default one in memory.
        table: Changes of the operator's table of the target.
        names: The addresses of ``ops.test`` and others.
        parts: Other dependencies of the service.
    """
    network = FakeNetwork(names or {"ops.test": [PUBLIC]}, *(answers or (ACCEPTED,)))
    settings = {"url": "https://ops.test/hook", "secrets": ["main"], **(table or {})}
    own = dependencies(
        store=store or MemoryStore(),
        notifier=network.client(redirects=0),
        notification_tables={"ops": NotificationSettings(**settings)},
        secrets=parts.pop("secrets", SECRETS),
        now=parts.pop("now", Clock()),
        **parts,
    )
    async with Service(own) as service, service.notifications.sender():
        yield Notified(service, network)


def hosted(*hosts: str) -> dict[str, Secret]:
    """Return secrets, of which ``hosted`` is for these hosts."""
    return {**SECRETS, "hosted": Secret("hosted", SecretStr(OTHER_SECRET), hosts)}


def _read(raw: bytes) -> Received:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Received(first.split(" ")[1], headers, body.decode())
