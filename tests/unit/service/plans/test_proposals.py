"""A plan that is changed in words: proposed, shown, taken or not; what it costs, and what leads nowhere."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from planwave.planner.planner import Planner
from planwave.settings import Limits
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import planner_reply
from tests.support.llm.watched_model import WatchedModel
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

FACTS = {"id": "facts", "name": "Facts", "type": "text", "data": {"text": "Water boils."}}
PLANNED = planner_reply(FACTS, title="Water")
WORDS = {"request": "name the costs, too"}


def changes(*operations: Any, answer: str = "Adds the costs.") -> str:
    return json.dumps({"answer": answer, "operations": list(operations)})


COSTS = changes(
    {"op": "add_node", "node": {"id": "costs", "name": "Costs", "type": "text", "data": {"text": "Costs"}}},
    {"op": "add_edge", "edge": {"source": "facts", "target": "costs", "channel": "flow"}},
)  # fmt: skip
TITLE = changes({"op": "set_title", "title": "Other"}, answer="Another title.")


@asynccontextmanager
async def planned(*replies: str) -> AsyncGenerator[tuple[InProcessClient, str, dict[str, Any]]]:
    """A service whose model gives these replies after that of a plan; the path of the plan, and the plan."""
    providers = FakeProviders()
    models = WatchedModel([PLANNED, *replies])
    planner = Planner(models, providers, library_registry(providers), Limits())
    async with in_process_client(dependencies(planner=planner)) as calls:
        plan = await calls.post_json("/api/plan", {"prompt": "Say what water does"}, 201)
        yield calls, f"/api/plans/{plan['plan_id']}", plan


async def test_a_proposal_changes_nothing_until_it_is_taken_by_its_hash() -> None:
    async with planned(COSTS) as (calls, path, plan):
        proposed = await calls.post_json(f"{path}/refine", WORDS, 200)
        proposal = proposed["proposal"]
        assert (proposed["hash"], proposed["revision"]) == (plan["hash"], 1)
        assert (proposal["answer"], proposal["base"]) == ("Adds the costs.", plan["hash"])
        assert [each["change"] for each in proposal["difference"]["nodes"]] == ["added"]
        assert (await calls.get_json(path))["proposal"]["hash"] == proposal["hash"]
        accept = {"accept": proposal["hash"], "author": "person"}
        missing = await calls.expect_problem("POST", f"{path}/refine", 428, accept)
        assert missing["code"] == "precondition-required"
        stale = await calls.post(f"{path}/refine", json=accept, headers={"If-Match": '"other"'})
        assert (stale.status_code, stale.json()["code"]) == (412, "plan-changed")
        match = {"If-Match": f'"{plan["hash"]}"'}
        wrong = await calls.post(f"{path}/refine", json={"accept": "x"}, headers=match)
        assert (wrong.status_code, wrong.json()["code"]) == (409, "no-proposal")
        taken = (await calls.post(f"{path}/refine", json=accept, headers=match)).json()
        assert (taken["hash"], taken["revision"]) == (proposal["hash"], 2)
        assert "proposal" not in taken
        assert [node["id"] for node in taken["nodes"]] == ["facts", "costs"]
        newest = (await calls.get_json(f"{path}/revisions"))["revisions"][0]
        assert (newest["author"], newest["note"]) == ("person", "in words: name the costs, too")
        match = {"If-Match": f'"{taken["hash"]}"'}
        again = await calls.post(f"{path}/refine", json=accept, headers=match)
        assert again.json()["code"] == "no-proposal"


async def test_callers_of_a_flow_start_what_they_did_until_its_proposal_is_taken() -> None:
    async with planned(COSTS) as (calls, path, plan):
        named = {"name": "Water", "plan_id": plan["plan_id"]}
        assert (await calls.post_json("/api/flows", named, 201))["live_revision"] == 1

        async def called() -> tuple[int, list[str]]:
            started = await calls.post_json("/api/execute", {"flow": "Water"}, 201)
            document = await calls.get_json(f"/api/executions/{started['execution_id']}/document")
            return started["revision"], [node["id"] for node in document["graph"]["nodes"]]

        proposal = (await calls.post_json(f"{path}/refine", WORDS, 200))["proposal"]
        assert await called() == (1, ["facts"])
        assert (await calls.get_json(f"/api/flows/{plan['plan_id']}"))["live_revision"] == 1
        match = {"If-Match": f'"{plan["hash"]}"'}
        taken = await calls.post(f"{path}/refine", json={"accept": proposal["hash"]}, headers=match)
        assert taken.status_code == 200, taken.text
        assert await called() == (2, ["facts", "costs"])


async def test_a_change_of_the_plan_takes_the_proposal_away_and_a_move_does_not() -> None:
    async with planned(COSTS) as (calls, path, plan):
        await calls.post_json(f"{path}/refine", WORDS, 200)
        moved = {"op": "update_node", "id": "facts", "set": {"ui": {"x": 5}}}
        text = {"op": "update_node", "id": "facts", "set": {"data": {"text": "Ice floats."}}}
        match = {"If-Match": f'"{plan["hash"]}"'}
        for operation, stays in ((moved, True), (text, False)):
            answer = await calls.request(
                "PATCH", path, json={"operations": [operation]}, headers=match
            )
            assert ("proposal" in answer.json()) is stays, answer.text


async def test_a_dry_run_stores_nothing_and_every_call_is_spent() -> None:
    async with planned(COSTS, changes(answer="There is no coffee.")) as (calls, path, _):
        shown = await calls.post_json(f"{path}/refine", {**WORDS, "dry_run": True}, 200)
        assert shown["proposal"]["operations"]
        assert "proposal" not in await calls.get_json(path)
        before = (await calls.get_json("/api/spend"))["total"]["calls"]
        refused = await calls.expect_problem("POST", f"{path}/refine", 422, {"request": "coffee!"})
        assert refused["code"] == "nothing-changed"
        assert "There is no coffee." in refused["detail"]
        assert (await calls.get_json("/api/spend"))["total"]["calls"] == before + 1 == 3


async def test_what_cannot_be_repaired_is_refused_with_every_finding_and_was_paid() -> None:
    cycle = changes(
        {"op": "add_edge", "edge": {"source": "facts", "target": "facts", "channel": "flow"}}
    )
    async with planned(cycle, cycle, cycle) as (calls, path, _):
        refused = await calls.expect_problem("POST", f"{path}/refine", 422, WORDS)
        assert refused["code"] == "plan-invalid"
        assert (await calls.get_json("/api/spend"))["total"]["calls"] == 4
        assert "proposal" not in await calls.get_json(path)
        both = await calls.expect_problem("POST", f"{path}/refine", 422, {**WORDS, "accept": "x"})
        assert "give request or accept" in json.dumps(both)


async def test_what_tells_a_model_is_refused_where_a_proposal_is_taken() -> None:
    async with planned(COSTS) as (calls, path, plan):
        proposal = (await calls.post_json(f"{path}/refine", WORDS, 200))["proposal"]
        match = {"If-Match": f'"{plan["hash"]}"'}
        for more in ({"dry_run": True}, {"provider": "local"}, {"model": "small"}):
            body = {"accept": proposal["hash"], **more}
            refused = await calls.post(f"{path}/refine", json=body, headers=match)
            assert refused.status_code == 422, refused.text
            assert "not with accept" in refused.text
        assert (await calls.get_json(path))["revision"] == 1


async def test_a_title_or_goal_of_a_person_takes_the_proposal_away() -> None:
    title, goal = {"op": "set_title", "title": "Mine"}, {"op": "set_goal", "goal": "My goal"}
    async with planned(TITLE, COSTS) as (calls, path, plan):
        match = {"If-Match": f'"{plan["hash"]}"'}
        for operation in (title, goal):
            proposed = await calls.post_json(f"{path}/refine", WORDS, 200)
            body = {"operations": [operation]}
            edited = (await calls.request("PATCH", path, json=body, headers=match)).json()
            assert "proposal" not in edited, operation
            accept = {"accept": proposed["proposal"]["hash"]}
            late = await calls.post(f"{path}/refine", json=accept, headers=match)
            assert (late.status_code, late.json()["code"]) == (409, "no-proposal")
        now = await calls.get_json(path)
        assert (now["title"], now["user_prompt"], now["revision"]) == ("Mine", "My goal", 1)


async def test_a_proposed_title_is_taken_once() -> None:
    async with planned(TITLE) as (calls, path, plan):
        proposal = (await calls.post_json(f"{path}/refine", WORDS, 200))["proposal"]
        match = {"If-Match": f'"{plan["hash"]}"'}
        accept = {"accept": proposal["hash"]}
        taken = (await calls.post(f"{path}/refine", json=accept, headers=match)).json()
        assert (taken["title"], taken["revision"], "proposal" in taken) == ("Other", 1, False)
        again = await calls.post(f"{path}/refine", json=accept, headers=match)
        assert again.json()["code"] == "no-proposal"


async def test_words_that_are_no_request_are_called_the_request() -> None:
    async with planned() as (calls, path, _):
        most = Limits().goal_chars
        for words, code, status in (
            ("  ", "empty-goal", 422),
            ("x" * (most + 1), "limit-exceeded", 413),
        ):
            refused = await calls.expect_problem(
                "POST", f"{path}/refine", status, {"request": words}
            )
            assert refused["code"] == code
            assert "the request" in refused["detail"]
            assert "the goal" not in refused["detail"]
