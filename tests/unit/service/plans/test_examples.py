"""Earlier plans as examples for the planner: which ones are shown, to whom, and what of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.graph.operations import UpdateNode
from planwave.planner.planner import Planner
from planwave.principals import LIBRARY, LOCAL, OPERATOR, Principal, acting_as
from planwave.providers.protocols import ModelRequest
from planwave.service.plans.examples import MAX_EXAMPLES, word_overlap
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import reply_step, small_model_reply, step_reply
from tests.support.llm.watched_model import WatchedModel
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import dependencies

HEAT = "Compare heat pumps and gas heating for an old house"
NEAR = "Compare pellet heating and heat pumps for a large house"
WATER = step_reply(
    reply_step("facts", type="text", data={"text": "Water boils."}),
    reply_step("note", "facts", type="text", name="A  short\nnote", data={"text": "{{ input }}"}),
    title="Heat",
)
BODY = {"steps": [reply_step("one", type="text", data={"text": "Reads no item."})]}
UNUSED = step_reply(reply_step("each", type="loop", data={"items": ["x"], "body": BODY}))
TOKEN = Principal("token", "t1", "crm")
TRIGGER = Principal("trigger", "w1", "schedule", by=OPERATOR)
CHAT = Principal("chat", "c1", by=OPERATOR)
SESSION = Principal("session", "s1")


class History:
    """A service with a model that writes one plan after the other."""

    def __init__(self, service: Service, models: WatchedModel) -> None:
        self.service = service
        self.models = models

    async def plan(self, goal: str, by: Principal = LOCAL, **more: Any) -> Any:
        with acting_as(by):
            return await self.service.plans.create(goal, **more)

    async def ran(self, goal: str, by: Principal = LOCAL, **more: Any) -> Any:
        plan = await self.plan(goal, by, **more)
        with acting_as(by):
            record = await self.service.executions.execute(plan.plan_id)
        await self.service.executions.wait(record.execution_id)
        return plan

    @property
    def last_request(self) -> ModelRequest:
        return self.models.requests[-1]


@asynccontextmanager
async def history(*replies: str, **more: Any) -> AsyncGenerator[History]:
    providers = FakeProviders()
    models = WatchedModel([*replies] or (lambda _: WATER))
    planner = Planner(models, providers, library_registry(providers), Limits())
    service = Service(dependencies(planner=planner, **more))
    async with service:
        yield History(service, models)


async def shown(past: History, by: Principal = LOCAL, **more: Any) -> Sequence[str]:
    plan = await past.plan(NEAR, by, **more)
    return [each["plan_id"] for each in plan.examples]


async def test_a_plan_that_a_person_ran_to_its_end_is_shown_with_goal_and_step_names() -> None:
    async with history() as past:
        first = await past.ran(HEAT)
        plan = await past.plan(NEAR)
        assert plan.examples == [{"plan_id": first.plan_id, "title": "Heat"}]
        prompt = past.last_request.prompt
        assert f"- Goal: {HEAT}\n  Steps: Facts; A short note\n" in prompt
        assert "Water boils" not in prompt
        assert prompt.endswith(f"Write the plan for this goal:\n\n{NEAR}")
        again = await past.plan("Write a poem about spring")
        assert again.examples == []
        assert (
            past.last_request.prompt == "Write the plan for this goal:\n\nWrite a poem about spring"
        )


@pytest.mark.parametrize("by", [TOKEN, TRIGGER, CHAT, LIBRARY], ids=lambda each: each.kind)
async def test_what_no_person_started_is_no_example_and_they_are_shown_none(by: Principal) -> None:
    async with history() as past:
        await past.ran(HEAT, by)
        assert await shown(past) == []
        first = await past.ran(HEAT)
        assert await shown(past, by) == []
        assert await shown(past, SESSION) == [first.plan_id]


async def test_an_unfinished_or_failed_run_is_no_example() -> None:
    failing = step_reply(
        reply_step("a", type="text", data={"text": "{{ 1 / 0 }}"}),
        reply_step("b", "a", type="text", data={"text": "{{ input }}"}),
    )
    async with history(WATER, failing, WATER) as past:
        await past.plan(HEAT)
        await past.ran(HEAT)
        assert await shown(past) == []


async def test_a_plan_with_open_findings_or_of_another_provider_is_no_example() -> None:
    async with history(UNUSED, WATER, WATER, WATER) as past:
        warned = await past.ran(HEAT)
        assert [each["severity"] for each in warned.diagnostics] == ["warning"]
        await past.ran(HEAT, provider="own")
        assert await shown(past) == []
        assert len(await shown(past, provider="own")) == 1


async def test_a_plan_that_was_changed_after_its_run_is_no_example() -> None:
    async with history() as past:
        plan = await past.ran(HEAT)
        renamed = {"name": "Other"}
        await past.service.plans.edit(plan.plan_id, [UpdateNode("facts", renamed)], expected=None)
        assert await shown(past) == []


async def test_at_most_two_are_shown_the_nearest_first_and_each_once() -> None:
    async with history() as past:
        far = await past.ran("Compare heat pumps and gas heating and other things for schools")
        near = await past.ran("Compare pellet heating and heat pumps for a small house")
        await past.ran(HEAT)
        found = await shown(past)
        assert len(found) == MAX_EXAMPLES
        assert found[0] == near.plan_id
        assert far.plan_id not in found


async def test_small_models_and_operators_who_want_none_are_shown_none() -> None:
    async with history(WATER, small_model_reply()) as past:
        await past.ran(HEAT)
        plan = await past.plan(NEAR, provider="tiny")
        assert plan.examples == []
        assert HEAT not in past.last_request.prompt
    async with history(examples_from_history=False) as past:
        await past.ran(HEAT)
        assert await shown(past) == []


async def test_the_plan_names_them_over_http_and_its_document_can_be_checked() -> None:
    providers = FakeProviders()
    models = WatchedModel(lambda _: WATER)
    planner = Planner(models, providers, library_registry(providers), Limits())
    async with in_process_client(dependencies(planner=planner)) as calls:
        first = await calls.post_json("/api/plan", {"prompt": HEAT}, 201)
        assert "examples" not in first
        run = await calls.service.executions.execute(first["plan_id"])
        await calls.service.executions.wait(run.execution_id)
        plan = await calls.post_json("/api/plan", {"prompt": NEAR}, 201)
        named = [{"plan_id": first["plan_id"], "title": "Heat"}]
        assert plan["examples"] == named
        path = f"/api/plans/{plan['plan_id']}"
        assert (await calls.get_json(path))["examples"] == named
        checked = await calls.post_json("/api/check", {"graph": plan}, 200)
        assert [each["code"] for each in checked["diagnostics"]] == []


def test_overlap_counts_shared_long_words() -> None:
    assert word_overlap(HEAT, HEAT) == pytest.approx(1)
    assert word_overlap(HEAT, "Write a poem about an old house") == 0
    assert word_overlap("", "") == 0
    assert 0.4 < word_overlap(HEAT, NEAR) < 1
