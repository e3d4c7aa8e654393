"""Goals planned and run from Python, with the real SDK against the fake model server."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import planwave
from planwave import library
from tests.support.llm.fake_llm_server import ErrorReply, fake_llm_in_thread, schema_of
from tests.support.llm.planner_replies import DIAMOND_REPLY
from tests.support.service.spans import KeptSpans

GOAL = "Compare two ways"


def reply_to(body: dict[str, Any]) -> str:
    """Return a plan of four steps, or the text of a step."""
    return "Done." if schema_of(body) is None else DIAMOND_REPLY


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with fake_llm_in_thread(reply_to=reply_to) as llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        yield


@pytest.mark.usefixtures("provider")
def test_a_goal_is_planned_and_the_plan_is_run() -> None:
    plan = planwave.plan_sync(GOAL)
    assert (plan.user_prompt, len(plan.graph.nodes)) == (GOAL, 4)
    result = planwave.run_sync(plan)
    assert (result.status, result.text, result.usage.calls) == ("completed", "Done.", 4)


@pytest.mark.usefixtures("provider")
def test_a_goal_is_planned_and_run_in_one_call(tmp_path: Path) -> None:
    result = planwave.run_goal_sync(GOAL, store=tmp_path / "runs")
    assert (result.status, result.document["user_prompt"]) == ("completed", GOAL)
    assert planwave.open(tmp_path / "runs", result.execution_id).wait().text == "Done."


@pytest.mark.usefixtures("provider")
def test_a_planned_goal_waits_for_approval_before_its_first_step(tmp_path: Path) -> None:
    paused = planwave.run_goal_sync(GOAL, store=tmp_path / "runs", require_approval=True)
    assert (paused.status, paused.outputs) == ("paused", {})
    opened = planwave.open(tmp_path / "runs", paused.execution_id)
    done = opened.answer(paused.requests[0].request_id, {"decision": "approve"}).wait()
    assert (done.status, done.text) == ("completed", "Done.")


@pytest.mark.usefixtures("provider")
def test_a_run_has_the_budget_of_its_options_and_goes_on_when_it_is_raised() -> None:
    plan = planwave.plan_sync(GOAL)
    paused = planwave.run_sync(plan, options=planwave.RunOptions(budget={"calls": 3}))
    (request,) = paused.requests
    assert (paused.status, request.request["used"]) == ("paused", {"calls": 3})
    with pytest.raises(
        planwave.InputError, match="3 calls already used; the new limit has to be higher"
    ):
        paused.run.answer(request.request_id, {"decision": "raise", "value": {"calls": 3}})
    raised = paused.run.answer(request.request_id, {"decision": "raise", "value": {"calls": 4}})
    result = raised.wait()
    assert (result.status, result.usage.calls, result.document["budget"]["limits"]) == (
        "completed", 4, {"calls": 4},
    )  # fmt: skip


@pytest.mark.usefixtures("provider")
async def test_a_goal_is_planned_with_its_progress_in_an_event_loop() -> None:
    kinds: list[str] = []
    plan = await planwave.plan(GOAL, on_progress=lambda event: kinds.append(event.kind))
    assert (len(plan.graph.nodes), kinds.count("node")) == (4, 4)
    assert (await planwave.run_goal(GOAL)).text == "Done."


async def test_the_blocking_functions_name_their_twins_in_an_event_loop() -> None:
    with pytest.raises(RuntimeError, match=r"await planwave\.plan\("):
        planwave.plan_sync(GOAL)
    with pytest.raises(RuntimeError, match=r"await planwave\.run_goal\("):
        planwave.run_goal_sync(GOAL)


def test_a_goal_or_an_id_that_is_not_text_is_refused(tmp_path: Path) -> None:
    number: Any = 5
    with pytest.raises(TypeError, match="a goal is text, not 5"):
        planwave.plan_sync(number)
    with pytest.raises(TypeError, match="the id of an execution is text, not 5"):
        planwave.open(tmp_path, number)


def test_arguments_of_another_type_are_refused_before_a_goal_is_planned() -> None:
    number: Any = 5
    with pytest.raises(TypeError, match="a provider is text, not 5"):
        planwave.plan_sync(GOAL, provider=number)
    with pytest.raises(TypeError, match="a model is text, not 5"):
        planwave.plan_sync(GOAL, model=number)
    with pytest.raises(TypeError, match="on_progress is a function that takes an event, not 5"):
        planwave.plan_sync(GOAL, on_progress=number)


def test_a_store_that_cannot_be_used_is_refused_before_a_goal_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_llm_in_thread(reply_to=reply_to) as llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        (tmp_path / "file").write_text("")
        with pytest.raises(planwave.errors.StoreError, match="is not a directory"):
            planwave.run_goal_sync(GOAL, store=tmp_path / "file")
        assert llm.requests == []


async def test_an_error_of_a_provider_shows_no_frames_of_its_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with fake_llm_in_thread(reply_to=lambda _: ErrorReply(401, "invalid_api_key")) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        for call in (planwave.plan(GOAL), asyncio.to_thread(planwave.plan_sync, GOAL)):
            with pytest.raises(planwave.errors.ProviderError) as caught:
                await call
            shown = "".join(traceback.format_exception(caught.value))
            assert "pydantic_ai" not in shown
            assert "hint: check the API key" in shown


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> KeptSpans:
    """The spans of a program with a provider of its own; as before for the next test."""
    monkeypatch.setattr(library, "_program", type(library._program)())
    return KeptSpans()


@pytest.mark.usefixtures("provider")
def test_runs_and_plans_of_an_instrumented_program_have_spans(spans: KeptSpans) -> None:
    planwave.instrument(spans.provider)
    with spans.provider.get_tracer("shop").start_as_current_span("order"):
        plan = planwave.plan_sync(GOAL)
        result = planwave.run_sync(plan)
    assert result.status == "completed"
    operations = [
        " / ".join(name.split(" ")[0] for name in path.split(" / ")) for path, *_ in spans.tree()
    ]
    assert sorted(operations) == [
        "order",
        "order / invoke_workflow",
        *["order / invoke_workflow / invoke_agent"] * 4,
        *["order / invoke_workflow / invoke_agent / chat"] * 4,
        "order / plan",
        "order / plan / chat",
    ]
    assert not [span.name for span in spans.ended if "Done." in span.to_json()]


@pytest.mark.usefixtures("provider")
def test_spans_of_a_program_hold_what_was_said_where_it_wants_that(spans: KeptSpans) -> None:
    planwave.instrument(spans.provider, content=True)
    graph = planwave.GraphBuilder()
    graph.node("llm", id="ask", prompt="Which colour?")
    planwave.run_sync(graph)
    (call,) = [span for span in spans.ended if span.name.startswith("chat ")]
    attributes = call.attributes or {}
    assert "Which colour?" in str(attributes["gen_ai.input.messages"])
    assert "Done." in str(attributes["gen_ai.output.messages"])


def test_run_that_is_continued_ends_its_spans_each_time(spans: KeptSpans, tmp_path: Path) -> None:
    planwave.instrument(spans.provider)
    graph = planwave.GraphBuilder()
    graph.node("approval", id="ask", prompt="Send it?")
    paused = planwave.run_sync(graph, store=tmp_path)
    assert [span.name for span in spans.ended] == ["node ask", "invoke_workflow"]
    paused.run.answer(paused.requests[0].request_id, decision="approve").wait()
    statuses = [
        (span.attributes or {}).get("planwave.execution.status")
        for span in spans.named("invoke_workflow")
    ]
    assert statuses == ["paused", "completed"]


def test_instrument_refuses_what_it_cannot_use() -> None:
    with pytest.raises(TypeError, match="content is True or False"):
        planwave.instrument(content="yes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="did you mean 'content'"):
        planwave.instrument(contents=True)  # pyright: ignore[reportCallIssue]
