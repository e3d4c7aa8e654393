"""Limits of chats."""

from __future__ import annotations

from planwave.principals import OPERATOR, Principal, acting_as
from planwave.service.chats.chat_documents import UserContent
from planwave.service.service import Service
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
    limited_client,
    refusal_in_response,
)
from tests.support.chat.chats import chat_flow
from tests.support.service.dependencies import dependencies


@case("chats", 2)
async def _(limits: Limits, amount: int) -> Refusal | None:
    async with limited_client(limits) as client:
        for _ in range(amount):
            made = await client.post("/api/chats", json={})
        return refusal_in_response(made)


@case("token_chats", 2)
async def _(limits: Limits, amount: int) -> Refusal | None:
    """A token opens so many chats; the operator has more, and another token one."""
    async with Service(dependencies(limits=limits)) as service:
        for by, count in ((OPERATOR, amount + 1), (Principal("token", "another"), 1)):
            with acting_as(by):
                for _ in range(count):
                    await service.chats.create()
        with acting_as(Principal("token", "one")):
            for _ in range(amount):
                await service.chats.create()
    return None


@case("chat_messages", 4, at=4, past=6)
async def _(limits: Limits, amount: int) -> Refusal | None:
    """Each turn has two messages."""
    said = {"id": "agent-1", "type": "text", "data": {"text": "x"}}
    graph = chat_flow(said)
    graph["edges"][0] |= {"sourceHandle": "message", "targetHandle": "input"}
    async with Service(dependencies(limits=limits)) as service:
        flow = await service.flows.create("F", graph=graph)
        chat_id = (await service.chats.create(plan_id=flow.plan_id)).record.chat_id
        for _ in range(amount // 2):
            turn = await service.chats.send(chat_id, UserContent("Hello"))
            async with service.chats.follow_reply(chat_id, turn.reply.message_id) as reply:
                while await reply.next() is not None:
                    pass
    return None
