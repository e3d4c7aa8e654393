from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from planwave.api.streaming import sse
from planwave.api.streaming.sse import PlanStream
from planwave.errors import PlanInvalid, ProviderError, UnknownProvider
from planwave.graph.plan import Plan
from planwave.planner.progress import PlanProgress
from planwave.service.plans.documents import plan_json, record_of
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import FixedPlanner, dependencies

PLAN = make_plan(make_graph(text_node("a")))
Tell = Callable[[Any], None]


def events(body: str) -> list[tuple[str, Any]]:
    """Read a stream: event names with their data; pings are left out."""
    frames = [frame.split("\n") for frame in body.split("\n\n") if frame and frame[0] != ":"]
    return [
        (first.removeprefix("event: "), json.loads(second.removeprefix("data: ")))
        for first, second in frames
    ]


def delta(text: str, reasoning: bool = False) -> PlanProgress:
    return PlanProgress("delta", {"text": text, "reasoning": reasoning})


class Client:
    """Reads an answer; ``leave`` hangs up."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.heard = asyncio.Event()
        self.leave = asyncio.Event()
        self.is_draining = False

    async def receive(self) -> Any:
        await self.leave.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        self.heard.set()

    @property
    def body(self) -> str:
        return b"".join(m.get("body", b"") for m in self.sent).decode()

    async def read(self, create: Callable[[Tell], Any]) -> list[tuple[str, Any]]:
        async def created(on_progress: Tell) -> dict[str, Any]:
            return plan_json(record_of(await create(on_progress)), "draft")

        answer = PlanStream(created, lambda: self.is_draining)
        await answer({"type": "http"}, self.receive, self.send)
        return events(self.body)


async def test_progress_events_come_before_the_plan() -> None:
    tells = [
        PlanProgress("title", {"title": "A title"}),
        PlanProgress("node", {"id": "a", "name": "A"}),
        PlanProgress("edge", {"source": "a", "target": "b", "channel": "flow"}),
        PlanProgress("repair", {"attempt": 2, "diagnostics": []}),
        PlanProgress("fix", {"fix": "closed a bracket"}),
    ]
    async with in_process_client(dependencies(planner=FixedPlanner(PLAN, tells))) as calls:
        answer = await calls.post("/api/plan?stream=1", json={"prompt": "do it"})
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        *received, (last, plan) = events(answer.text)
        assert received == [(each.kind, each.data) for each in tells]
        assert last == "plan"
        assert plan == await calls.get_json(f"/api/plans/{plan['plan_id']}")


@pytest.mark.parametrize("stream", ["0", "false"])
async def test_stream_can_be_disabled(stream: str) -> None:
    async with in_process_client(dependencies(planner=FixedPlanner(PLAN))) as calls:
        answer = await calls.post(f"/api/plan?stream={stream}", json={"prompt": "do it"})
        assert (answer.status_code, answer.headers["content-type"]) == (201, "application/json")


async def test_adjacent_deltas_are_joined_and_reasoning_is_separate() -> None:
    async def create(tell: Tell) -> Plan:
        for piece in (delta("hm", True), delta(", "), delta('{"a"'), delta(": 1}")):
            tell(piece)
        return PLAN

    received = await Client().read(create)
    assert received[:2] == [
        ("delta", {"text": "hm", "reasoning": True}),
        ("delta", {"text": ', {"a": 1}', "reasoning": False}),
    ]


async def test_error_before_first_event_has_its_own_status() -> None:
    class Refuses:
        async def create_plan(self, *_: Any, **__: Any) -> Any:
            raise UnknownProvider("no such provider")

    async with in_process_client(dependencies(planner=Refuses())) as calls:
        problem = await calls.expect_problem("POST", "/api/plan?stream=1", 422, {"prompt": "x"})
        assert problem["code"] == "unknown-provider"


async def test_error_after_first_event_ends_stream_with_problem() -> None:
    async def create(tell: Tell) -> Plan:
        tell(delta("{"))
        raise PlanInvalid([], [{"reply": "{"}])

    (_, (last, problem)) = await Client().read(create)
    assert (last, problem["status"], problem["code"]) == ("problem", 422, "plan-invalid")
    assert problem["attempts"] == [{"reply": "{"}]


async def test_failed_stream_can_be_repeated_with_its_key() -> None:
    class FailsOnce:
        tries = 0

        async def create_plan(self, *_: Any, on_progress: Tell, **__: Any) -> Plan:
            self.tries += 1
            on_progress(delta("{"))
            if self.tries == 1:
                raise PlanInvalid([], [])
            return PLAN

    planner = FailsOnce()
    async with in_process_client(dependencies(planner=planner)) as calls:

        async def last() -> tuple[str, Any]:
            headers = {"Idempotency-Key": "k1"}
            path = "/api/plan?stream=1"
            answer = await calls.post(path, json={"prompt": "do it"}, headers=headers)
            return events(answer.text)[-1]

        assert (await last())[0] == "problem"
        created = await last()
        assert created[0] == "plan"
        assert await last() == created
        assert planner.tries == 2


async def test_internal_error_ends_stream_without_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def create(tell: Tell) -> Plan:
        tell(delta("{"))
        raise ZeroDivisionError("secret")

    (_, (last, problem)) = await Client().read(create)
    assert (last, problem["status"], problem["code"]) == ("problem", 500, "internal-error")
    assert "secret" not in json.dumps(problem)
    assert "secret" in caplog.text


async def test_internal_error_before_first_event_is_raised() -> None:
    async def create(_: Tell) -> Plan:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await Client().read(create)


async def test_disconnect_cancels_planning() -> None:
    client, stopped = Client(), asyncio.Event()

    async def create(tell: Tell) -> Plan:
        tell(delta("{"))
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return PLAN

    async def leave() -> None:
        await client.heard.wait()
        client.leave.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(leave())
        with pytest.raises(ClientDisconnect):
            await client.read(create)
    assert stopped.is_set()


async def test_silent_planning_sends_pings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("FIRST_EVENT_TIMEOUT_S", "DRAIN_POLL_S", "PING_INTERVAL_S"):
        monkeypatch.setattr(sse, name, 0.001)
    client, go_on = Client(), asyncio.Event()

    async def create(_: Tell) -> Plan:
        await go_on.wait()
        raise ProviderError("gone", provider="p")

    async def wait_for_a_ping() -> None:
        while ": ping\n\n" not in client.body:
            client.heard.clear()
            await client.heard.wait()
        go_on.set()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(wait_for_a_ping())
        received = await client.read(create)
    assert [name for name, _ in received] == ["problem"]
    assert client.sent[0]["status"] == 200


async def test_draining_service_ends_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "DRAIN_POLL_S", 0.001)
    client = Client()

    async def create(tell: Tell) -> Plan:
        tell(delta("{"))
        await asyncio.Event().wait()
        return PLAN

    async def go_down() -> None:
        await client.heard.wait()
        client.is_draining = True

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(go_down())
        (_, (last, problem)) = await client.read(create)
    assert (last, problem["code"]) == ("server_draining", "server-draining")
