"""Chats over a service in memory, with a model on loopback that a test scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from planwave.bootstrap import open_models, open_providers
from planwave.nodes.agents.tool import Tool
from planwave.nodes.services import NodeServices
from planwave.service.chats.chat_documents import Turn, UserContent
from planwave.service.chats.node_memory import ChatMemory
from planwave.service.dependencies import ServiceDependencies
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.chats import MessageRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.llm.fake_llm_server import FakeLLMServer, ReplyStep, TextReply
from tests.support.nodes.agent_runs import Kit, tool
from tests.support.service.dependencies import dependencies

ENTRY: Final = "entry-1"
OPERATIONS: Final = ("send", "continue", "retry", "edit")
Told = Callable[[dict[str, Any]], Awaitable[object]]


def agent(node_id: str, **data: Any) -> dict[str, Any]:
    """Return the document of an agent."""
    return {"id": node_id, "type": "agent", "name": node_id, "data": data}


def edge(source: str, target: str, handle: str, to: str, channel: str = "flow") -> dict[str, Any]:
    """Return the document of an edge."""
    return {
        "source": source,
        "sourceHandle": handle,
        "target": target,
        "targetHandle": to,
        "data": {"channel": channel},
    }


def chat_flow(
    *agents: dict[str, Any], edges: Iterable[dict[str, Any]] = (), kit_of: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a flow in which the first agent gets the conversation; the kit is linked to some."""
    nodes = [{"id": ENTRY, "type": "chat_start", "data": {}}, *agents]
    links = [edge("kit", each, "tools", "tools", "link") for each in kit_of]
    if kit_of:
        nodes.append({"id": "kit", "type": "kit", "data": {}})
    first = edge(ENTRY, agents[0]["id"], "messages", "messages")
    return {"nodes": nodes, "edges": [first, *edges, *links]}


async def _look_up(order: str) -> str:
    return "it is on its way"


async def _refund(order: str, amount: int) -> str:
    return f"paid {amount}"


_TEXT = {"type": "string"}
TOOLS: Final = (
    tool("look_up", _look_up, fields={"order": _TEXT}),
    tool(
        "refund",
        _refund,
        fields={"order": _TEXT, "amount": {"type": "integer"}},
        effect="once",
        approval="always",
    ),
)


@dataclass
class ChatBench:
    """A service with one chat, and its model.

    Attributes:
        told: The events of the reply that was followed last.
    """

    service: Service
    llm: FakeLLMServer
    store: Any
    chat_id: str = ""
    told: list[dict[str, Any]] = field(default_factory=list)

    async def begin(self, flow: dict[str, Any] | None = None, **config: Any) -> None:
        """Create the chat, with a flow or with a configuration."""
        if flow is None:
            made = await self.service.chats.create(config=config)
        else:
            saved = await self.service.flows.create("talk", graph=flow)
            made = await self.service.chats.create(plan_id=saved.plan_id)
        self.chat_id = made.record.chat_id

    async def say(self, text: str, **more: Any) -> Turn:
        """Send a message."""
        return await self.service.chats.send(self.chat_id, UserContent(text), **more)

    async def turn(self, operation: str, *steps: ReplyStep) -> Turn:
        """Start a reply by an operation; those beside another reply get that reply first."""
        if operation == "send":
            self.llm.add(*steps)
            return await self.say("Hello")
        self.llm.add(TextReply("First."))
        before = await self.say("Hello")
        await self.follow(before.reply)
        self.llm.add(*steps)
        own, reply_id = self.chat_id, before.reply.message_id
        match operation:
            case "continue":
                return await self.service.chats.continue_reply(own, reply_id)
            case "retry":
                return await self.service.chats.retry_reply(own, reply_id)
            case _:
                assert before.user is not None
                edited = UserContent("Hello again")
                return await self.service.chats.edit(own, before.user.message_id, edited)

    async def follow(
        self, reply: MessageRecord, on_event: Told | None = None, *, after: int = 0
    ) -> list[dict[str, Any]]:
        """Follow a reply to its end and give its events; ``on_event`` sees each as it comes."""
        self.told = []
        async with self.service.chats.follow_reply(
            self.chat_id, reply.message_id, after
        ) as subscription:
            while (events := await subscription.next()) is not None:
                for event in events:
                    self.told.append(event)
                    if on_event is not None:
                        await on_event(event)
        return self.told

    async def stored(self, reply: MessageRecord) -> MessageRecord:
        """Give a reply as it is stored, once that is its end."""
        async with asyncio.timeout(10):
            while True:
                found = await self.store.chats.message(reply.message_id)
                assert found is not None
                if found.has_ended:
                    return found
                await asyncio.sleep(0)


@asynccontextmanager
async def chat_parts(
    *, tools: Sequence[Tool] = TOOLS, store: Any = None
) -> AsyncGenerator[tuple[ServiceDependencies, FakeLLMServer]]:
    """Give the parts of a service whose model is on loopback, and that model."""
    store = store or MemoryStore()
    async with FakeLLMServer() as llm:
        settings = Settings(openai_api_key="sk-test", openai_base_url=llm.openai_url)
        providers, _ = open_providers(settings)
        models = open_models(settings, providers, store)

        def services(goal: str) -> NodeServices:
            return NodeServices(
                models,
                providers,
                goal,
                limits=settings.limits,
                recorder=store,
                memory=ChatMemory(store),
            )

        yield (
            dependencies(
                types=[Kit(tools)], store=store, node_services=services, close=models.close
            ),
            llm,
        )


@asynccontextmanager
async def chat_bench(
    flow: dict[str, Any] | None = None, *, store: Any = None, **config: Any
) -> AsyncGenerator[ChatBench]:
    """Open a service with a chat: of a flow, or of a configuration."""
    async with chat_parts(store=store) as (parts, llm), Service(parts) as service:
        bench = ChatBench(service, llm, parts.store)
        await bench.begin(flow, **config)
        yield bench


def applied(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the texts that a client has which cuts and appends, by block: what it must show."""
    texts: dict[str, str] = {}
    for event in events:
        if event["event"] == "SeedBlocks":
            texts = dict(_texts_in(event["blocks"]))
        elif event["event"] in ("RunContent", "ReasoningStep"):
            piece = event.get("content", event.get("reasoningContent"))
            before = texts.get(event["blockId"], "")
            assert event["offset"] <= len(before), "a gap"
            texts[event["blockId"]] = before[: event["offset"]] + piece
    return [{"id": block_id, "text": text} for block_id, text in texts.items()]


def texts_of(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the texts of blocks, those of member runs among them."""
    return [{"id": block_id, "text": text} for block_id, text in _texts_in(blocks)]


def _texts_in(blocks: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for block in blocks:
        if block["type"] in ("text", "reasoning"):
            found.append((block["id"], block["text"]))
        found += _texts_in(block.get("blocks", ()))
    return found


def story(events: Iterable[dict[str, Any]]) -> list[str]:
    """Give events as lines; see ``golden_chats``."""
    lines: list[str] = []
    joined: dict[str, tuple[int, int]] = {}
    members: dict[str, str] = {}
    for event in events:
        if event["event"] == "MemberRunStarted":
            members[event["memberRunId"]] = event["memberName"]
        if event["event"] in ("RunContent", "ReasoningStep"):
            block = event["blockId"]
            piece = event.get("content", event.get("reasoningContent"))
            if block in joined:
                line, said = joined[block]
                kept = len(lines[line]) - (said - event["offset"])
                lines[line] = lines[line][:kept] + piece
                joined[block] = line, event["offset"] + len(piece)
                continue
            joined[block] = len(lines), len(piece)
        lines.append(_line(event, members))
    return lines


def _line(event: dict[str, Any], members: dict[str, str]) -> str:
    name, node = event["event"], (event.get("nodeId") or "").partition("[")[0]
    if (run := event.get("memberRunId")) and not name.startswith("Member"):
        node = f"{members[run]} > {event['nodeId'].rpartition('/')[2]}"
    said = f": {_SAID[name](event)}" if name in _SAID else ""
    return " ".join(filter(None, [name, node])) + said


_SAID = {
    "RunContent": lambda event: event["content"],
    "ReasoningStep": lambda event: event["reasoningContent"],
    "ToolCallStarted": lambda event: f"{event['tool']['toolName']} {event['tool']['toolArgs']}",
    "ToolCallCompleted": lambda event: f"{event['tool']['toolName']} = {_result_of(event)}",
    "ToolCallFailed": lambda event: f"{event['tool']['toolName']} ! {event['error']['code']}",
    "ApprovalRequired": lambda event: f"{event['tool']['toolName']} {_arguments_of(event)}",
    "ApprovalResolved": lambda event: event["state"],
    "MemberRunStarted": lambda event: f"{event['memberName']}, {event['task']}",
    "MemberRunCompleted": lambda event: event["content"],
    "FlowNodeError": lambda event: event["error"]["code"],
    "RunError": lambda event: event["error"]["code"],
}
"""What each event says."""


def _result_of(event: dict[str, Any]) -> str:
    """Give the result of a call, without the note that its arguments were changed."""
    return event["tool"]["toolResult"].rpartition("\n")[2]


def _arguments_of(event: dict[str, Any]) -> Any:
    return event["tool"]["tools"][0]["toolArgs"]
