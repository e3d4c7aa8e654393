"""Clients of one process while another drives: chats, webhooks and models, with real processes and real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from planwave.ids import new_id
from tests.support.browser.scripted_model import Gate, ScriptedModel
from tests.support.chat.chats import agent, chat_flow
from tests.support.llm.fake_llm_server import TextReply, fake_llm_in_thread
from tests.support.scale.installation import Installation
from tests.support.scale.role_process import RoleProcess, processes
from tests.support.storage.postgres_server import PostgresServer
from tests.support.triggers.hook_sender import hook_flow

pytestmark = [pytest.mark.scale, pytest.mark.timeout(400)]

TEXT = "All rivers run at last to the sea."
MODEL = {"provider": "openai", "model": "gpt-4o-mini"}
CANCELS = {"config": {**MODEL, "on_disconnect": "cancel"}}
ENDS_S = 30.0


class Fleet(NamedTuple):
    """Two processes that serve, and a worker.

    Attributes:
        model: What the model says.
        provider: The settings of the model.
    """

    installation: Installation
    one: RoleProcess
    other: RoleProcess
    model: ScriptedModel
    provider: dict[str, str]

    def serve(self) -> RoleProcess:
        """Start another process that serves."""
        return self.installation.start("serve", env=self.provider)

    def holds(self, prompt: str) -> Gate:
        """Let the model stop in the middle of its reply to a prompt; return what lets it go on."""
        gate = Gate()
        replies = {prompt: TextReply(TEXT, chunks=6, gates={3: gate})}
        self.model.replies = {**self.model.replies, **replies}
        return gate


@pytest.fixture(scope="module")
def fleet(
    postgres: PostgresServer, temporal_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    model = ScriptedModel()
    with (
        postgres.new_database() as url,
        processes(tmp_path_factory.mktemp("replicas")) as group,
        fake_llm_in_thread(reply_to=model.reply_to) as llm,
    ):
        made = Installation(group, url, temporal_address, f"test-{new_id()}")
        provider = {
            "OPENAI_API_KEY": "sk-test",
            "OPENAI_BASE_URL": llm.openai_url,
            "PLANWAVE_UNSIGNED_WEBHOOKS": "true",
            "PLANWAVE_LIMIT_WEBHOOK_WAIT_S": "4",
        }
        roles = [made.start(role, env=provider) for role in ("serve", "serve", "worker")]
        yield Fleet(made, roles[0], roles[1], model, provider)
        for reply in model.replies.values():
            assert isinstance(reply, TextReply)
            for gate in reply.gates.values():
                gate.set()
        made.close()


@asynccontextmanager
async def client_of(process: RoleProcess) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(base_url=process.url, timeout=60) as client:
        yield client


async def post(process: RoleProcess, path: str, body: Any) -> Any:
    async with client_of(process) as client:
        answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


async def get(process: RoleProcess, path: str) -> Any:
    async with client_of(process) as client:
        answer = await client.get(path)
    assert answer.is_success, answer.text
    return answer.json()


class Stream:
    """A client that reads a stream until it leaves, or until the end."""

    def __init__(self, process: RoleProcess, path: str, body: Any = None) -> None:
        self.lines: list[str] = []
        self.execution_id = ""
        self._task = asyncio.get_running_loop().create_task(self._read(process, path, body))

    async def _read(self, process: RoleProcess, path: str, body: Any) -> None:
        method = "GET" if body is None else "POST"
        async with client_of(process) as client, client.stream(method, path, json=body) as answer:
            assert answer.is_success, await answer.aread()
            self.execution_id = answer.headers.get("x-planwave-execution-id", "")
            async for line in answer.aiter_lines():
                self.lines.append(line)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [
            json.loads(each.removeprefix("data: "))
            for each in self.lines
            if each.startswith("data: {")
        ]

    async def until(self, words: str) -> None:
        async with asyncio.timeout(ENDS_S):
            while words not in self.text:
                assert not self._task.done(), f"{words!r} is not in {self.text}"
                await asyncio.sleep(0.02)

    async def leave(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def ended(self) -> None:
        async with asyncio.timeout(ENDS_S):
            await self._task


async def until(holds: Callable[[], Awaitable[bool]], within_s: float = ENDS_S) -> None:
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.1)


class Reply(NamedTuple):
    """A reply in a chat of its own."""

    path: str
    execution_id: str

    async def status(self, process: RoleProcess) -> str:
        return (await get(process, self.path))["status"]

    async def becomes(self, process: RoleProcess, status: str, within_s: float = ENDS_S) -> None:
        async def has_status() -> bool:
            return await self.status(process) == status

        await until(has_status, within_s)

    def stream(self, process: RoleProcess) -> Stream:
        return Stream(process, f"{self.path}/events")


async def ask(process: RoleProcess, prompt: str, chat: dict[str, Any] = CANCELS) -> Reply:
    made = await post(process, "/api/chats", chat)
    path = f"/api/chats/{made['chat_id']}/messages"
    reply = (await post(process, path, {"message": prompt}))["message"]
    return Reply(f"{path}/{reply['message_id']}", reply["execution_id"])


async def test_a_reply_is_cancelled_once_the_clients_of_all_processes_have_left(
    fleet: Fleet,
) -> None:
    fleet.holds("Who is last?")
    reply = await ask(fleet.one, "Who is last?")
    streams = [reply.stream(each) for each in (fleet.one, fleet.other)]
    for each in streams:
        await each.until("RunContent")
    await streams[0].leave()
    await asyncio.sleep(2)
    assert await reply.status(fleet.one) == "executing", "a client of the other process follows it"
    await streams[1].leave()
    for each in (fleet.one, fleet.other):
        await reply.becomes(each, "cancelled", 10)
    execution = await get(fleet.other, f"/api/executions/{reply.execution_id}")
    assert execution["status"] == "cancelled"


async def test_a_client_of_another_process_alone_cancels_a_reply_and_one_that_reads_to_the_end_does_not(
    fleet: Fleet,
) -> None:
    gate = fleet.holds("Read to the end")
    fleet.holds("Leave in the middle")
    whole, left = (
        await ask(fleet.one, "Read to the end"),
        await ask(fleet.one, "Leave in the middle"),
    )
    reader, leaver = whole.stream(fleet.other), left.stream(fleet.other)
    await reader.until("RunContent")
    await leaver.until("RunContent")
    await leaver.leave()
    gate.set()
    await reader.ended()
    assert reader.events[-1]["event"] == "RunCompleted"
    await left.becomes(fleet.one, "cancelled", 10)
    await whole.becomes(fleet.one, "completed", 10)


async def test_what_only_clients_of_a_killed_process_followed_is_cancelled(fleet: Fleet) -> None:
    flow = chat_flow(agent("a", **MODEL, systemPrompt="{{ input }}"))
    flow["nodes"][0]["data"] = {"onDisconnect": "cancel"}
    saved = await post(fleet.one, "/api/flows", {"name": "rivers", "graph": flow})
    async with client_of(fleet.one) as client:
        path = f"/api/flows/{saved['plan_id']}/publication"
        assert (await client.put(path, json={"model": True})).is_success
    for prompt in ("Of nobody", "Of another", "Of a program"):
        fleet.holds(prompt)
    killed = fleet.serve()
    lost, kept = await ask(killed, "Of nobody"), await ask(killed, "Of another")
    streams = [lost.stream(killed), kept.stream(killed), kept.stream(fleet.other)]
    asked = {
        "model": "rivers",
        "stream": True,
        "messages": [{"role": "user", "content": "Of a program"}],
    }
    program = Stream(killed, "/v1/chat/completions", asked)
    for each in streams:
        await each.until("RunContent")
    await program.until("All")
    killed.kill()
    await lost.becomes(fleet.one, "cancelled", 25)

    async def is_cancelled() -> bool:
        execution = await get(fleet.one, f"/api/executions/{program.execution_id}")
        return execution["status"] == "cancelled"

    await until(is_cancelled, 25)
    assert await kept.status(fleet.one) == "executing"
    await streams[2].leave()
    await kept.becomes(fleet.one, "cancelled", 10)
    for each in (*streams, program):
        await each.leave()


async def test_a_reply_goes_on_where_the_process_of_its_client_is_told_to_end(
    fleet: Fleet,
) -> None:
    gate = fleet.holds("Of a restart")
    leaving = fleet.serve()
    reply = await ask(leaving, "Of a restart")
    stream = reply.stream(leaving)
    await stream.until("RunContent")
    await asyncio.to_thread(leaving.terminate)
    await stream.ended()
    await asyncio.sleep(8)
    assert await reply.status(fleet.one) == "executing"
    gate.set()
    await reply.becomes(fleet.one, "completed")


async def test_a_message_is_followed_at_another_process_from_its_first_word_to_its_stored_end(
    fleet: Fleet,
) -> None:
    gate = fleet.holds("Tell it twice")
    reply = await ask(fleet.one, "Tell it twice", {"config": MODEL})
    streams = [reply.stream(each) for each in (fleet.one, fleet.other)]
    for each in streams:
        await each.until("RunContent")
    gate.set()
    for each in streams:
        await each.ended()
        pieces = [event for event in each.events if event["event"] == "RunContent"]
        text: dict[int, str] = {}
        for piece in pieces:
            text[piece["offset"]] = piece["content"]
        assert "".join(text[offset] for offset in sorted(text)) == TEXT
        assert len(pieces) > 1, "it comes in pieces"
        assert each.events[-1]["event"] == "RunCompleted"
    stored = [await get(each, reply.path) for each in (fleet.one, fleet.other)]
    assert stored[0] == stored[1]
    assert stored[0]["blocks"][-1]["text"] == TEXT


async def test_of_two_messages_to_one_chat_at_once_one_follows_the_other_or_is_refused(
    fleet: Fleet,
) -> None:
    for _ in range(5):
        chat = await post(fleet.one, "/api/chats", {"config": MODEL})
        path = f"/api/chats/{chat['chat_id']}"
        async with client_of(fleet.one) as one, client_of(fleet.other) as other:
            async with asyncio.TaskGroup() as tasks:
                sent = [
                    tasks.create_task(each.post(f"{path}/messages", json={"message": "Hello"}))
                    for each in (one, other)
                ]
            answers = [each.result() for each in sent]
        refused = [each.json()["code"] for each in answers if not each.is_success]
        assert refused in ([], ["message-running"])

        async def is_done(path: str = path) -> bool:
            return (await get(fleet.other, path))["status"] == "completed"

        await until(is_done)
        messages = (await get(fleet.other, path))["messages"]
        assert [each["role"] for each in messages] == ["user", "assistant"] * (2 - len(refused))
        parents = [None, *(each["message_id"] for each in messages[:-1])]
        assert [each["parent_id"] for each in messages] == parents, (
            "no branch that nobody asked for"
        )
        assert {each["status"] for each in messages if each["role"] == "assistant"} == {"completed"}


# -- webhooks --------------------------------------------------------------------------------------


async def hook_of(fleet: Fleet, *nodes: dict[str, Any], **data: Any) -> str:
    """Listen for a webhook; return its path."""
    graph = hook_flow(*nodes, auth="none", secrets=[], **data)
    flow = await post(fleet.other, "/api/flows", {"name": new_id(), "graph": graph})
    made = await post(fleet.other, "/api/triggers", {"plan_id": flow["plan_id"]})
    return f"/hooks/{made['trigger_id']}"


def step(ms: int) -> dict[str, Any]:
    return {"id": "step", "type": "logged-step", "data": {"ms": ms}}


async def test_a_request_gets_the_reply_of_a_flow_that_another_process_drives(
    fleet: Fleet,
) -> None:
    reply = {
        "id": "reply",
        "type": "webhook_reply",
        "data": {"status": 418, "headers": {"x-kind": "tea"}},
    }
    hook = await hook_of(fleet, step(300), reply, step(1_000) | {"id": "after"})
    async with client_of(fleet.one) as client:
        answer = await client.post(hook, json={"a": 1})
    assert (answer.status_code, answer.headers["x-kind"], answer.text) == (418, "tea", "step")


async def test_a_request_waits_for_the_result_of_what_another_process_drives(
    fleet: Fleet,
) -> None:
    hook = await hook_of(fleet, step(300))
    async with client_of(fleet.one) as client:
        answer = await client.post(f"{hook}?wait=4", json=1)
        assert (answer.status_code, answer.json()["status"]) == (200, "completed")
        assert answer.json()["outputs"] == {"step": "step"}
        slow = await hook_of(fleet, step(3_000))
        late = await client.post(f"{slow}?wait=1", json=1)
        assert (late.status_code, list(late.json())) == (202, ["execution_id"])


async def test_what_a_worker_does_for_a_sender_that_leaves_is_cancelled(fleet: Fleet) -> None:
    hook = await hook_of(fleet, step(20_000), onDisconnect="cancel")
    sender = Stream(fleet.one, f"{hook}?wait=4", 1)

    async def deliveries() -> list[Any]:
        return (await get(fleet.other, f"/api/triggers/{hook.rpartition('/')[2]}"))["deliveries"]

    async def is_running() -> bool:
        found = await deliveries()
        return bool(found and fleet.installation.runs([found[0]["execution_id"]]))

    await until(is_running, 4)
    await sender.leave()
    own = (await deliveries())[0]["execution_id"]

    async def is_cancelled() -> bool:
        return (await get(fleet.other, f"/api/executions/{own}"))["status"] == "cancelled"

    await until(is_cancelled, 10)


async def test_a_model_is_streamed_while_a_worker_drives(fleet: Fleet) -> None:
    saved = await post(
        fleet.one, "/api/flows", {"name": "sea", "graph": chat_flow(agent("a", **MODEL))}
    )
    async with client_of(fleet.other) as client:
        path = f"/api/flows/{saved['plan_id']}/publication"
        assert (await client.put(path, json={"model": True})).is_success
    gate = fleet.holds("Of the sea")
    asked = {
        "model": "sea",
        "stream": True,
        "messages": [{"role": "user", "content": "Of the sea"}],
    }
    stream = Stream(fleet.one, "/v1/chat/completions", asked)
    await stream.until("All")
    gate.set()
    await stream.ended()
    deltas = [each["choices"][0]["delta"] for each in stream.events if each["choices"]]
    assert "".join(each.get("content") or "" for each in deltas) == TEXT
    assert sum(bool(each.get("content")) for each in deltas) > 1
    assert stream.lines[-2] == "data: [DONE]"


async def test_a_change_of_a_plan_is_shown_as_it_is_written_while_a_worker_drives(
    fleet: Fleet,
) -> None:
    new = {"id": "new", "name": "New", "type": "text", "data": {"text": "Another way."}}
    operations = [
        {"op": "add_node", "node": new},
        {"op": "remove_node", "id": "old"},
        {"op": "add_edge", "edge": {"source": "new", "target": "last"}},
    ]
    written = json.dumps({"answer": "Goes another way.", "operations": operations})
    gate = Gate()
    held = TextReply(written, chunks=8, gates={8: gate})
    fleet.model.replies = {**fleet.model.replies, "There is a plan already.": held}
    graph = {
        "nodes": [
            {"id": "old", "type": "text", "data": {"text": "{{ 1 / 0 }}"}},
            {"id": "last", "type": "text", "data": {"text": "{{ input }} At last."}},
        ],
        "edges": [{"source": "old", "target": "last", "data": {"channel": "flow"}}],
    }
    body = {"graph": graph, "start": True, "options": {"replan": {"on_failure": True}}}
    own = (await post(fleet.one, "/api/execute", body))["execution_id"]
    first = Stream(fleet.one, f"/api/executions/{own}/events")
    await first.until('\\"new\\"')
    late = Stream(fleet.other, f"/api/executions/{own}/events")
    await late.until('\\"new\\"')
    gate.set()
    for each in (first, late):
        await each.ended()
        types = [event["type"] for event in each.events]
        assert (
            types.index("plan.requested") < types.index("node.delta") < types.index("plan.revised")
        )
        assert types[-1] == "execution.completed"
