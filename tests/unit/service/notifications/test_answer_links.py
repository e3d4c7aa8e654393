"""Notifications of requests carry a link that answers, where people reach the service; nothing keeps its key."""

from __future__ import annotations

import asyncio
import tarfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from planwave.principals import Principal
from planwave.service.links import digest_of
from planwave.settings import Limits
from planwave.storage.backup import back_up
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.polling import until
from tests.support.service.notified import ACCEPTED, FAILING, Clock, notified
from tests.support.triggers.hook_sender import SECRET, text
from tests.support.virtual_loop import virtual_time

PUBLIC = "https://planwave.example.com"
WAITING = {"events": ["waiting"]}


def approval(**data: Any) -> dict[str, Any]:
    node = {"id": "ask", "type": "approval", "data": {"prompt": "Ship it?", **data}}
    return {"nodes": [node], "edges": []}


@virtual_time
async def test_a_waiting_notification_has_a_link_that_answers_its_request() -> None:
    async with notified(table=WAITING, public_url=PUBLIC) as on:
        own_id = await on.run(approval())
        await asyncio.sleep(1)
        (received,), (record,) = on.received, await on.outbox()
        assert received.headers["webhook-signature"] == received.signature_of(SECRET)
        request = received.message["data"]["request"]
        base, _, key = request["answer_url"].rpartition("/")
        assert (base, len(key)) == (f"{PUBLIC}/links", 22)
        assert key not in (record.body or "")
        links = on.service.links
        link = await links.find(key)
        assert (link.kind, link.execution_id, link.request_id) == (
            "request", own_id, request["request_id"],
        )  # fmt: skip
        assert (link.target, link.created_by, link.digest) == ("ops", None, digest_of(key))
        asked = datetime.fromisoformat(record.created_at)
        assert datetime.fromisoformat(link.expires_at) - asked == timedelta(hours=24)
        assert request["answer_url_expires_at"] == link.expires_at
        await links.answer(link, request["request_id"], {"decision": "approve"})
        await on.service.executions.wait(own_id)
        answered = await on.service.executions.answered_requests.page(None, 5)
        given = answered.answers[0].as_json()["answered"]
        assert given["answered_by"] == Principal("link", link.link_id, "ops").as_json()


@virtual_time
async def test_every_attempt_sends_the_same_link_which_no_attempt_revives() -> None:
    store = MemoryStore()
    async with notified(
        FAILING, FAILING, ACCEPTED, table=WAITING, public_url=PUBLIC, store=store
    ) as on:
        await on.run(approval())
        await asyncio.sleep(1)
        request = on.received[0].message["data"]["request"]
        link = await on.service.links.find(request["answer_url"].rpartition("/")[2])
        await on.service.links.revoke(link.link_id)
        await asyncio.sleep(300)
        assert [each.message["data"]["request"] for each in on.received] == [request] * 3
        assert (await store.links.by_digest(link.digest)) is not None
        assert await on.service.links.page() == []


async def test_a_notification_that_waits_in_a_restored_backup_makes_its_link_anew(
    tmp_path: Path,
) -> None:
    """The message and its link are the same as before; the restored request is open, and takes the answer."""
    kept, packed = tmp_path / "kept", tmp_path / "b.tar"
    more: dict[str, Any] = {"table": WAITING, "public_url": PUBLIC}
    async with notified(FAILING, store=SqliteStore.open(kept), **more) as on:
        own_id = await on.run(approval())
        await until(lambda: on.received)
        await asyncio.to_thread(back_up, kept, packed)
        first = on.received[0].message["data"]["request"]
    restored = tmp_path / "restored"
    with tarfile.open(packed) as tar:
        tar.extractall(restored, filter="data")
    later = Clock()
    later.ahead = timedelta(hours=1)
    async with notified(store=SqliteStore.open(restored), now=later, **more) as on:
        await until(lambda: on.received)
        assert [each.message["data"]["request"] for each in on.received] == [first]
        link = await on.service.links.find(first["answer_url"].rpartition("/")[2])
        await on.service.links.answer(link, first["request_id"], {"decision": "approve"})
        await on.service.executions.wait(own_id)


@virtual_time
async def test_a_link_never_outlives_the_time_of_its_request() -> None:
    limits = Limits(answer_link_hours=2)
    async with notified(FAILING, ACCEPTED, table=WAITING, public_url=PUBLIC, limits=limits) as on:
        await on.run(approval(timeoutS=3, timeoutAction="reject"))
        await asyncio.sleep(1)
        first = on.received[0].message["data"]["request"]
        expires = datetime.fromisoformat(first["answer_url_expires_at"])
        (record,) = await on.outbox()
        assert expires - datetime.fromisoformat(record.created_at) == timedelta(seconds=3)
        await asyncio.sleep(60)
        assert "answer_url" not in on.received[1].message["data"]["request"]


@virtual_time
async def test_nothing_else_has_a_link_and_nothing_is_written() -> None:
    everything = {"events": ["completed", "waiting"]}
    async with notified(table=everything) as on:
        await on.run(approval())
        await asyncio.sleep(1)
        assert set(on.received[0].message["data"]["request"]) == {
            "request_id",
            "node",
            "kind",
            "text",
        }
        assert await on.service.links.page() == []
    async with notified(table=everything, public_url=PUBLIC) as on:
        await on.run({"nodes": [text("a", "done")], "edges": []})
        await asyncio.sleep(1)
        assert "answer_url" not in on.received[0].body
        assert await on.service.links.page() == []
