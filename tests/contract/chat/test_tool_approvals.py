"""Approvals of calls of tools: one answer for each call, also for a client that decides once about all.

A client of Covalt's chat protocol sends ``respond_to_tool_decision``: whatever is no refusal approves, one
decision is for all calls that wait, and changed arguments are for one of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.errors import Conflict, InputError
from tests.support.chat.chats import ChatBench, agent, chat_bench, chat_flow
from tests.support.llm.fake_llm_server import TextReply, ToolCallReply, tool_results_of

FLOW = chat_flow(agent("a", provider="openai", model="gpt-5-mini"), kit_of=["a"])
TWO = ToolCallReply(
    [("refund", {"order": "A-1", "amount": 5}), ("refund", {"order": "B-2", "amount": 7})]
)
REFUSALS = {"", "deny", "denied", "reject", "rejected", "cancel", "cancelled", "timeout"}


@asynccontextmanager
async def two_calls_wait() -> AsyncGenerator[tuple[ChatBench, str, list[str]]]:
    """Give a chat in which two calls wait, its execution, and the ids of the calls."""
    async with chat_bench(FLOW) as bench:
        bench.llm.add(TWO, TextReply("Done."))
        turn = await bench.say("Refund both")
        run_id = turn.reply.execution_id or ""
        assert (await bench.service.executions.wait(run_id)).status == "paused"
        requests = await bench.service.executions.requests(run_id)
        yield bench, run_id, [each.request["tool"]["call_id"] for each in requests]


async def decide(bench: ChatBench, run_id: str, decision: dict[str, Any]) -> int:
    """Answer all calls that wait as one decision says; return how many there were."""
    option, edited = decision["selected_option"], decision.get("edited_args")
    approves = option.strip().lower() not in REFUSALS
    waiting = sorted(
        await bench.service.executions.requests(run_id),
        # The changed arguments come first: where they are refused, nothing has been decided.
        key=lambda each: each.request["tool"]["call_id"] != decision.get("tool_call_id"),
    )
    for each in waiting:
        answer: dict[str, Any] = {"decision": "approve" if approves else "reject", "note": option}
        is_edited = each.request["tool"]["call_id"] == decision.get("tool_call_id")
        if approves and edited is not None and is_edited:
            answer["value"] = edited
        await bench.service.executions.answer(run_id, each.request_id, answer)
    return len(waiting)


async def results(bench: ChatBench, run_id: str) -> list[str]:
    """Return what the model is told of its calls, in order, when the execution has ended."""
    assert (await bench.service.executions.wait(run_id)).status == "completed"
    return list(tool_results_of(bench.llm.requests[-1].body).values())


async def test_one_decision_is_for_all_calls_and_changes_the_arguments_of_one() -> None:
    async with two_calls_wait() as (bench, run_id, calls):
        changed = {"order": "B-2", "amount": 1}
        decision = {"tool_call_id": calls[1], "selected_option": "go", "edited_args": changed}
        assert await decide(bench, run_id, decision) == 2
        told = await results(bench, run_id)
        assert ["paid 5" in told[0], "paid 1" in told[1]] == [True, True]


@pytest.mark.parametrize("option", ["deny", "Rejected", " cancel ", "timeout", ""])
async def test_one_refusal_is_for_all_calls_and_the_model_reads_why(option: str) -> None:
    async with two_calls_wait() as (bench, run_id, _):
        assert await decide(bench, run_id, {"selected_option": option}) == 2
        told = await results(bench, run_id)
        assert len(told) == 2
        assert not any("paid" in each for each in told)
        assert all(option in each for each in told)


async def test_changed_arguments_that_do_not_fit_decide_nothing() -> None:
    async with two_calls_wait() as (bench, run_id, calls):
        wrong = {"order": "B-2", "amount": "all"}
        decision = {"tool_call_id": calls[1], "selected_option": "go", "edited_args": wrong}
        with pytest.raises(InputError):
            await decide(bench, run_id, decision)
        assert len(await bench.service.executions.requests(run_id)) == 2


async def test_a_call_is_decided_once() -> None:
    async with two_calls_wait() as (bench, run_id, _):
        first, _ = await bench.service.executions.requests(run_id)
        await bench.service.executions.answer(run_id, first.request_id, {"decision": "reject"})
        with pytest.raises(Conflict):
            await bench.service.executions.answer(run_id, first.request_id, {"decision": "approve"})
