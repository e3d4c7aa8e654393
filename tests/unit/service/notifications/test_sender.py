"""Notifications on a clock that a test owns: signed, sent again, and given up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import httpcore2

from planwave.errors import StoreError
from planwave.executor.options import RunOptions
from planwave.service.flows.flow_queries import FlowRef
from planwave.service.service import Service
from planwave.setting_tables import NotificationSettings
from planwave.settings import Limits
from planwave.storage.notifications import DEAD, DELIVERED, PENDING, NotificationRecord
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.held_nodes import FailingNode
from tests.support.outbound.fake_network import PUBLIC, redirect, response
from tests.support.service.dependencies import LastingStore, dependencies
from tests.support.service.notified import ACCEPTED, FAILING, Clock, hosted, notified
from tests.support.service.written_changes import GRAPH as CHANGED
from tests.support.service.written_changes import (
    LEAK,
    LEAKS,
    REPLACES,
    REPLAN,
    changes,
    planner_of,
)
from tests.support.triggers.hook_sender import OTHER_SECRET, SECRET, text
from tests.support.virtual_loop import virtual_time

GRAPH = {"nodes": [text("a", "done")], "edges": []}
BROKEN = {"nodes": [{"id": "a", "type": "broken"}], "edges": []}
APPROVAL = {
    "nodes": [{"id": "ask", "type": "approval", "data": {"prompt": "Ship it?"}}],
    "edges": [],
}
HOUR_S = 3_600.0


@virtual_time
async def test_end_of_an_execution_is_sent_signed() -> None:
    async with notified() as on:
        own_id = await on.run(GRAPH)
        await asyncio.sleep(1)
        (received,) = on.received
        (record,) = await on.outbox()
        assert received.path == "/hook"
        assert received.headers["webhook-id"] == record.notification_id
        assert received.headers["content-type"] == "application/json"
        assert received.headers["webhook-signature"] == received.signature_of(SECRET)
        message = received.message
        assert (message["type"], message["timestamp"]) == (
            "execution.completed", record.created_at,
        )  # fmt: skip
        data = message["data"]
        assert (data["execution_id"], data["status"]) == (own_id, "completed")
        assert (data["outputs"], data["outputs_left_out"]) == ({"a": "done"}, False)
        assert (record.status, record.attempts, record.error) == (DELIVERED, 1, "")


@virtual_time
async def test_every_secret_of_a_target_signs() -> None:
    async with notified(table={"secrets": ["main", "missing", "next"]}) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (received,) = on.received
        signs = [received.signature_of(secret) for secret in (SECRET, OTHER_SECRET)]
        assert received.headers["webhook-signature"] == " ".join(signs)


@virtual_time
async def test_message_is_sent_again_under_its_id_until_it_is_accepted() -> None:
    async with notified(FAILING, FAILING, ACCEPTED) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (record,) = await on.outbox()
        assert (record.status, record.attempts) == (PENDING, 1)
        assert record.error == "it answered 503 Service Unavailable"
        await asyncio.sleep(120)
        assert len({(x.headers["webhook-id"], x.body) for x in on.received}) == 1
        assert len({x.headers["webhook-timestamp"] for x in on.received}) == 3
        (record,) = await on.outbox()
        assert (record.status, record.attempts, record.error) == (DELIVERED, 3, "")


@virtual_time
async def test_message_that_nobody_accepts_is_dead_after_a_day_and_can_be_sent_again() -> None:
    async with notified(FAILING) as on:
        await on.run(GRAPH)
        await asyncio.sleep(23 * HOUR_S)
        assert [x.status for x in await on.outbox()] == [PENDING]
        await asyncio.sleep(2 * HOUR_S)
        (dead,) = await on.service.notifications.list(status=DEAD)
        sent = len(on.received)
        assert 9 <= sent == dead.attempts
        await asyncio.sleep(10 * HOUR_S)  # until then an attempt followed after five at most
        assert len(on.received) == sent
        on.network._answers[:] = [ACCEPTED]
        await on.service.notifications.resend(dead.notification_id)
        await asyncio.sleep(1)
        assert [x.status for x in await on.outbox()] == [DELIVERED]
        assert on.received[-1].headers["webhook-id"] == dead.notification_id
        assert on.received[-1].body == on.received[0].body


@virtual_time
async def test_receiver_that_wants_to_wait_is_left_alone() -> None:
    busy = response(b"", status="429 Too Many Requests", retry_after="1000")
    async with notified(busy, ACCEPTED) as on:
        await on.run(GRAPH)
        await asyncio.sleep(999)
        assert len(on.received) == 1
        await asyncio.sleep(2)
        assert len(on.received) == 2


@virtual_time
async def test_receiver_that_is_gone_gets_nothing_more() -> None:
    async with notified(response(b"", status="410 Gone")) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (record,) = await on.outbox()
        assert (record.status, record.attempts, record.error) == (DEAD, 1, "it answered 410 Gone")


@virtual_time
async def test_private_addresses_and_redirects_are_refused() -> None:
    async with notified(names={"ops.test": ["10.0.0.1"]}) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (record,) = await on.outbox()
        assert (record.status, on.received) == (DEAD, [])
        assert "10.0.0.1" in record.error
    elsewhere = redirect("https://other.test/", "307 Temporary Redirect")
    async with notified(elsewhere, names={"ops.test": [PUBLIC], "other.test": [PUBLIC]}) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (record,) = await on.outbox()
        assert (record.status, on.network.resolved) == (PENDING, ["ops.test"])


@virtual_time
async def test_host_that_is_not_found_is_tried_again() -> None:
    async with notified(names={"elsewhere.test": [PUBLIC]}) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (record,) = await on.outbox()
        assert (record.status, record.attempts) == (PENDING, 1)
        assert "ops.test" in record.error


@virtual_time
async def test_failure_tells_the_error_and_no_results() -> None:
    async with notified(types=[FailingNode()]) as on:
        await on.run(BROKEN)
        await asyncio.sleep(1)
        data = on.received[0].message["data"]
        assert on.received[0].message["type"] == "execution.failed"
        assert data["error"]["node"] == "a"
        assert "outputs" not in data


@virtual_time
async def test_waiting_for_a_person_is_told_if_asked_for() -> None:
    async with notified(table={"events": ["waiting"]}) as on:
        await on.run(APPROVAL)
        await asyncio.sleep(1)
        (received,), (record,) = on.received, await on.outbox()
        assert received.message["type"] == "execution.waiting"
        assert received.message["data"]["request"] == {
            "request_id": f"r{record.seq}",
            "node": "ask",
            "kind": "approval",
            "text": "Ship it?",
        }
    async with notified() as on:
        await on.run(APPROVAL)
        await asyncio.sleep(1)
        assert on.received == []


@virtual_time
async def test_a_request_about_a_change_is_told_with_its_hash_and_what_it_would_reach() -> None:
    planner = planner_of(WatchedModel([changes(*REPLACES, LEAK)]))
    async with notified(table={"events": ["waiting"]}, planner=planner) as on:
        await on.run(CHANGED, options=RunOptions(replan=REPLAN))
        await asyncio.sleep(1)
        (received,) = on.received
        asked = received.message["data"]["request"]
        assert (asked["node"], asked["kind"]) == (None, "plan-change")
        (open_request,) = await on.service.executions.requests(
            received.message["data"]["execution_id"]
        )
        assert asked["hash"] == open_request.request["hash"]
        assert asked["additions"] == [{"kind": "host", "name": "elsewhere.example", "node": "leak"}]
        assert "host elsewhere.example" in asked["text"]
        assert LEAKS not in received.body  # nor anything else that steps gave


@virtual_time
async def test_large_results_are_left_out() -> None:
    async with notified(limits=Limits(notification_bytes=5)) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        data = on.received[0].message["data"]
        assert (data["outputs"], data["outputs_left_out"]) == (None, True)


@virtual_time
async def test_target_that_times_out_keeps_nothing_from_another_one() -> None:
    def hang() -> Iterator[bytes]:
        raise httpcore2.ReadTimeout
        yield b""

    async with notified(
        hang,
        ACCEPTED,
        names={"ops.test": [PUBLIC], "other.test": [PUBLIC]},
        secrets=hosted("other.test"),
    ) as on:
        await on.run(GRAPH, "https://other.test/")
        await asyncio.sleep(1)
        assert sorted(x.status for x in await on.outbox()) == [DELIVERED, PENDING]


@virtual_time
async def test_secret_without_a_value_is_a_reason_to_try_again() -> None:
    async with notified(secrets={}) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (record,) = await on.outbox()
        assert (record.status, record.attempts, on.received) == (PENDING, 1, [])
        assert record.error.startswith("none of its secrets has a value")


@virtual_time
async def test_message_is_the_same_after_its_execution_was_deleted() -> None:
    async with notified(FAILING, ACCEPTED) as on:
        own_id = await on.run(GRAPH)
        await asyncio.sleep(1)
        await on.service.maintenance.delete_execution(own_id)
        await asyncio.sleep(60)
        assert len(on.received) == 2
        assert len({x.body for x in on.received}) == 1


@virtual_time
async def test_message_whose_execution_was_deleted_before_it_was_made_is_dead() -> None:
    store = LastingStore()
    table = NotificationSettings(url="https://ops.test/", secrets=["main"])
    async with Service(dependencies(store=store, notification_tables={"ops": table})) as service:
        flow = await service.flows.create("F", graph=GRAPH)
        record = await service.executions.execute(FlowRef(flow.plan_id, flow.revision))
        await service.executions.wait(record.execution_id)
        await service.maintenance.delete_execution(record.execution_id)
    async with notified(store=store) as on:
        await asyncio.sleep(1)
        (dead,) = await on.outbox()
        assert (dead.status, on.received) == (DEAD, [])
        assert dead.error == "its execution was deleted before it was sent"


@virtual_time
async def test_what_is_due_is_sent_after_a_restart_and_once_only() -> None:
    store, clock = LastingStore(), Clock()
    async with notified(FAILING, store=store, now=clock) as on:
        await on.run(GRAPH)
        await asyncio.sleep(1)
        (first,) = on.received
    clock.ahead = timedelta(hours=2)
    async with notified(store=store, now=clock) as on:
        await asyncio.sleep(1)
        (second,) = on.received
        assert second.headers["webhook-id"] == first.headers["webhook-id"]
    async with notified(store=store, now=clock) as on:
        await asyncio.sleep(HOUR_S)
        assert on.received == []


@virtual_time
async def test_message_is_not_sent_again_while_the_store_cannot_write() -> None:
    async with notified() as on:
        notifications = on.service._store.notifications  # pyright: ignore[reportPrivateUsage]
        update, failures = notifications.update, 3

        async def refuse(record: NotificationRecord) -> None:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise StoreError("the disk is full")
            await update(record)

        notifications.update = refuse  # pyright: ignore
        await on.run(GRAPH)
        await asyncio.sleep(60)
        assert len(on.received) == 1
        assert [x.status for x in await on.outbox()] == [DELIVERED]


@virtual_time
async def test_jump_of_the_clock_is_noticed_within_half_a_minute() -> None:
    clock = Clock()
    async with notified(FAILING, now=clock) as on:
        await on.run(GRAPH)
        await asyncio.sleep(100)
        before = len(on.received)
        clock.ahead = timedelta(hours=1)
        await asyncio.sleep(31)
        assert len(on.received) == before + 1
