"""Decisions of Covalt's clients: what approves, for which calls, and what happens without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.errors import InputError, NotFound
from planwave.interop.covalt import decisions
from planwave.interop.covalt.decisions import ToolDecision, apply_decision, await_decision
from tests.support.chat.chats import ChatBench, agent, chat_bench, chat_flow
from tests.support.llm.fake_llm_server import TextReply, ToolCallReply, tool_results_of

FLOW = chat_flow(agent("a", provider="openai", model="gpt-5-mini"), kit_of=["a"])
TWO = ToolCallReply(
    [("refund", {"order": "A-1", "amount": 5}), ("refund", {"order": "B-2", "amount": 7})]
)


@asynccontextmanager
async def two_calls_wait() -> AsyncGenerator[tuple[ChatBench, str, list[str]]]:
    """Give a chat in which two calls wait, its execution, and the ids of the calls."""
    async with chat_bench(FLOW) as bench:
        bench.llm.add(TWO, TextReply("Done."))
        turn = await bench.say("Refund both")
        run_id = turn.reply.execution_id or ""
        assert (await bench.service.wait(run_id)).status == "paused"
        requests = await bench.service.requests(run_id)
        yield bench, run_id, [each.request["tool"]["call_id"] for each in requests]


async def results(bench: ChatBench, run_id: str) -> list[str]:
    """Give what the model is told of its calls, in order, when the execution has ended."""
    assert (await bench.service.wait(run_id)).status == "completed"
    return list(tool_results_of(bench.llm.requests[-1].body).values())


@pytest.mark.parametrize("option", ["approve", "Approve once", "yes", "no idea", "allow_always"])
async def test_everything_but_a_refusal_approves_all_calls(option: str) -> None:
    assert ToolDecision("r", selected_option=option).approves


@pytest.mark.parametrize(
    "fields",
    [
        *({"selected_option": option} for option in ("deny", "denied", "reject", "Rejected", "")),
        *({"selected_option": option} for option in ("cancel", "cancelled", " cancel ", None)),
        {"selected_option": "approve", "cancelled": True},
        {},
    ],
)
async def test_refusals(fields: dict[str, Any]) -> None:
    assert not ToolDecision.from_json({"run_id": "r", **fields}).approves


async def test_one_decision_is_for_all_calls_and_changes_the_arguments_of_one() -> None:
    async with two_calls_wait() as (bench, run_id, calls):
        given = {"run_id": run_id, "tool_call_id": calls[1], "selected_option": "go"}
        changed = {**given, "edited_args": {"order": "B-2", "amount": 1}}
        assert await apply_decision(bench.service, ToolDecision.from_json(changed)) == 2
        told = await results(bench, run_id)
        assert ["paid 5" in told[0], "paid 1" in told[1]] == [True, True]


async def test_one_refusal_is_for_all_calls() -> None:
    async with two_calls_wait() as (bench, run_id, calls):
        refusal = ToolDecision(run_id, calls[0], "deny")
        assert await apply_decision(bench.service, refusal) == 2
        told = await results(bench, run_id)
        assert len(told) == 2
        assert not any("paid" in each for each in told)


async def test_changed_arguments_that_do_not_fit_decide_nothing() -> None:
    async with two_calls_wait() as (bench, run_id, calls):
        wrong = ToolDecision(run_id, calls[1], "approve", {"order": "B-2", "amount": "all"})
        with pytest.raises(InputError):
            await apply_decision(bench.service, wrong)
        with pytest.raises(NotFound, match="no call 'other' waits"):
            await apply_decision(bench.service, ToolDecision(run_id, "other", "approve", {}))
        assert len(await bench.service.requests(run_id)) == 2


async def test_calls_are_refused_when_nobody_decides_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert decisions.TIMEOUT_S == 300
    monkeypatch.setattr(decisions, "TIMEOUT_S", 0)
    never: asyncio.Future[ToolDecision] = asyncio.get_running_loop().create_future()
    async with two_calls_wait() as (bench, run_id, _):
        assert await await_decision(bench.service, run_id, never) == 2
        told = await results(bench, run_id)
        assert all("nobody answered in time" in each for each in told)
        with pytest.raises(NotFound, match="no call of a tool waits"):
            await apply_decision(bench.service, ToolDecision(run_id, selected_option="yes"))


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "run_id"),
        ({"run_id": "r", "selected_option": 1}, "selected_option"),
        ({"run_id": "r", "edited_args": []}, "edited_args"),
        ({"run_id": "r", "cancelled": "yes"}, "cancelled"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InputError, match=f"no valid {wrong}$") as refused:
        ToolDecision.from_json(fields)
    assert refused.value.hint
