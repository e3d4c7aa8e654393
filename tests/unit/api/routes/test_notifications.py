"""Notifications over HTTP: targets, what was sent, and what nobody accepted."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.setting_tables import NotificationSettings
from planwave.settings import Limits
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, response
from tests.support.server.in_process_client import InProcessClient
from tests.support.service.notified import ACCEPTED, hosted
from tests.support.triggers.hook_sender import hook_service, text

GRAPH = {"nodes": [text("a", "done")], "edges": []}
UNKNOWN = "019a0000-0000-7000-8000-00000000000f"
GONE = response(b"", status="410 Gone")


async def saved(calls: InProcessClient) -> str:
    return (await calls.post_json("/api/flows", {"name": "Flow", "graph": GRAPH}, 201))["plan_id"]


def target(plan_id: str, **changes: Any) -> dict[str, Any]:
    return {
        "plan_id": plan_id, "url": "https://a.test/hook", "secrets": ["hosted"], **changes,
    }  # fmt: skip


def service(*answers: bytes, **more: Any) -> Any:
    network = FakeNetwork({"a.test": [PUBLIC]}, *(answers or (ACCEPTED,)))
    table = NotificationSettings(url="https://a.test/ops", secrets=["main"], events=["waiting"])
    return hook_service(
        notifier=network.client(redirects=0),
        secrets=hosted("a.test"),
        notification_tables={"ops": table},
        **more,
    )


async def settled(calls: InProcessClient, status: str) -> list[dict[str, Any]]:
    """Wait for notifications of a status, and return them."""
    async with asyncio.timeout(60):
        while not (  # noqa: ASYNC110 - requests in this process let no other task run
            found := (await calls.get_json("/api/notifications", status=status))["notifications"]
        ):
            await asyncio.sleep(0)
    return found


async def test_targets_are_created_listed_and_deleted() -> None:
    async with service() as calls:
        plan_id = await saved(calls)
        made = await calls.post_json(
            "/api/notification-targets", target(plan_id, events=["failed", "failed"]), 201
        )
        assert (made["flow"], made["events"], made["problem"]) == ("Flow", ["failed"], None)
        listed = await calls.get_json("/api/notification-targets")
        operator, own = listed["targets"]
        assert own == made
        assert (operator["target_id"], operator["plan_id"], operator["created_at"]) == (
            "ops", None, None,
        )  # fmt: skip
        path = f"/api/notification-targets/{made['target_id']}"
        assert (await calls.delete(path)).status_code == 204
        await calls.expect_problem("DELETE", path, 404)
        problem = await calls.expect_problem("DELETE", "/api/notification-targets/ops", 422)
        assert "[notifications.ops]" in problem["hint"]


async def test_targets_that_cannot_be_used_are_refused_with_the_reason() -> None:
    async with service(limits=Limits(notification_targets=0)) as calls:
        plan_id = await saved(calls)
        for changes, code, words in (
            ({"url": "ftp://a.test/"}, "invalid-target", "only http:// and https://"),
            ({"url": "https://u:p@a.test/"}, "invalid-target", "credentials"),
            ({"url": "https://b.test/"}, "invalid-target", "hosts of [secrets.hosted]"),
            ({"secrets": ["main"]}, "invalid-target", "hosts of [secrets.main]"),
            ({"secrets": ["nobody"]}, "invalid-target", "[secrets.nobody]"),
            ({"secrets": []}, "invalid-body", "/secrets"),
            ({"events": ["ended"]}, "invalid-body", "/events/0"),
            ({}, "limit-exceeded", "notification_targets"),
        ):
            answer = await calls.post("/api/notification-targets", json=target(plan_id, **changes))
            assert answer.json()["code"] == code, answer.text
            assert words in answer.text, answer.text
        await calls.expect_problem("POST", "/api/notification-targets", 404, target(UNKNOWN))


async def test_message_that_nobody_accepted_is_listed_and_sent_again() -> None:
    async with service(GONE, ACCEPTED) as calls:
        plan_id = await saved(calls)
        await calls.post_json("/api/notification-targets", target(plan_id), 201)
        await calls.post_json("/api/execute", {"flow": plan_id, "start": True}, 202)
        (dead,) = await settled(calls, "dead")
        page = await calls.get_json("/api/notifications", status="dead")
        assert page == {"notifications": [dead], "next_cursor": None}
        assert (dead["event"], dead["attempts"], dead["error"], dead["next_at"]) == (
            "completed", 1, "it answered 410 Gone", None,
        )  # fmt: skip
        path = f"/api/notifications/{dead['notification_id']}"
        assert await calls.get_json(path) == dead
        again = await calls.post_json(f"{path}/resend", {}, 202)
        assert again["notification_id"] == dead["notification_id"]
        (delivered,) = await settled(calls, "delivered")
        assert delivered["notification_id"] == dead["notification_id"]
        assert (await calls.get_json("/api/notifications", status="dead"))["notifications"] == []
        await calls.expect_problem("POST", f"/api/notifications/{UNKNOWN}/resend", 404)
        await calls.expect_problem("GET", f"/api/notifications/{UNKNOWN}", 404)
        await calls.expect_problem("GET", "/api/notifications", 422, status="lost")


async def test_repeated_request_creates_one_target() -> None:
    async with service() as calls:
        body = target(await saved(calls))
        headers = {"Idempotency-Key": "k"}
        first, again = [
            await calls.post("/api/notification-targets", json=body, headers=headers)
            for _ in range(2)
        ]
        assert first.json() == again.json()
        listed = await calls.get_json("/api/notification-targets")
        assert len(listed["targets"]) == 2
