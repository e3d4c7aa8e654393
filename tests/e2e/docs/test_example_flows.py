"""The flows under ``examples/flows`` do what their README says, run as people run them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    ReplyStep,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)
from tests.support.paths import ROOT

FLOWS = ROOT / "examples" / "flows"
NAMES = sorted(file.stem for file in FLOWS.glob("*.json"))


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


class Providers:
    """Both vendors on one scripted server; what they answer is set by the test."""

    def __init__(self) -> None:
        self.answer: Callable[[dict[str, Any]], str | ReplyStep] = lambda _: "fine"
        self.llm: FakeLLMServer

    def prompts(self) -> list[str]:
        """What was asked, in the order of arrival."""
        return [prompt_of(request.body) for request in self.llm.requests]


@pytest.fixture
def providers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Providers]:
    both = Providers()
    with fake_llm_in_thread(reply_to=lambda body: both.answer(body)) as both.llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", both.llm.openai_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", both.llm.anthropic_url)
        yield both


def executed(name: str, *args: str, code: int = 0) -> dict[str, Any]:
    """Run a flow; give its document."""
    done = invoke("exec", str(FLOWS / f"{name}.json"), *args, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def statuses(document: dict[str, Any]) -> dict[str, str]:
    return {node["id"]: node["status"] for node in document["nodes"]}


@pytest.mark.parametrize("name", NAMES)
def test_flow_is_valid_and_in_the_readme(name: str, providers: Providers) -> None:
    done = invoke("check", str(FLOWS / f"{name}.json"), "--json")
    found = json.loads(done.stdout)
    assert (found["ok"], found["diagnostics"]) == (True, [])
    received = (FLOWS / "README.md").read_text("utf-8")
    assert f"planwave exec examples/flows/{name}.json" in received


def test_readme_names_existing_flows() -> None:
    received = (FLOWS / "README.md").read_text("utf-8")
    assert set(re.findall(r"examples/flows/(\w+)\.json", received)) == set(NAMES)
    assert len(NAMES) == 5


# -- research with review


def _researches(verdict: str) -> Callable[[dict[str, Any]], str]:
    def answer(body: dict[str, Any]) -> str:
        requested = prompt_of(body)
        if "Rewrite the draft" in requested:
            return "A better answer."
        return verdict if "APPROVED" in requested else "A first answer."

    return answer


def test_research_is_revised_after_review(providers: Providers) -> None:
    providers.answer = _researches("The second bulge is missing.")
    done = invoke("exec", str(FLOWS / "research_with_review.json"), "--input", "Why tides?")
    assert done.exit_code == 0, done.output
    assert "A better answer." in done.stdout
    assert "A first answer." not in done.stdout
    drafted, reviewed, revised = providers.prompts()
    assert "Why tides?" in drafted
    assert "Question:\nWhy tides?\n\nDraft:\nA first answer." in reviewed
    assert "Review:\nThe second bulge is missing." in revised


def test_approved_research_is_kept(providers: Providers) -> None:
    providers.answer = _researches("Approved.")
    document = executed("research_with_review")
    assert document["node_results"]["answer"] == "A first answer."
    assert statuses(document)["revise"] == "skipped"
    assert len(providers.llm.requests) == 2


# -- triage with approval


def _sorts_as(kind: str) -> Callable[[dict[str, Any]], str]:
    return lambda body: kind if "one word" in prompt_of(body) else f"Dear customer ({kind})"


def test_refund_waits_for_approval(providers: Providers) -> None:
    providers.answer = _sorts_as("Refund.")
    waiting = executed("triage_with_approval", "--input", "It broke.")
    (request,) = waiting["requests"]
    assert waiting["status"] == "paused"
    assert request["request"]["value"] == "Dear customer (Refund.)"
    assert "> It broke." in request["request"]["prompt"]
    done = invoke("answer", "last", "--decision", "send", "--value", '"Dear Ada"')
    assert done.exit_code == 0, done.output
    assert "Dear Ada" in done.stdout
    assert invoke("show", "last", "--node", "reply").stdout == "Dear Ada\n"


def test_rejected_reply_is_escalated(providers: Providers) -> None:
    providers.answer = _sorts_as("complaint")
    assert executed("triage_with_approval", "--input", "It broke.")["status"] == "paused"
    done = invoke("answer", "last", "--decision", "escalate")
    assert done.exit_code == 0, done.output
    assert "Nothing was sent. A person has to answer:" in done.stdout
    assert "It broke." in done.stdout


def test_question_is_answered_without_approval(providers: Providers) -> None:
    providers.answer = _sorts_as("question")
    document = executed("triage_with_approval", "--input", "When do you open?")
    assert document["status"] == "completed"
    assert document["node_results"]["reply"] == "Dear customer (question)"
    assert statuses(document)["check"] == "skipped"


def test_flow_is_saved_and_run_by_name(providers: Providers) -> None:
    providers.answer = _sorts_as("question")
    saved = invoke("flow", "save", "triage", str(FLOWS / "triage_with_approval.json"))
    assert saved.exit_code == 0, saved.output
    done = invoke("flow", "run", "triage", "--input", "When do you open?")
    assert done.exit_code == 0, done.output
    assert "Dear customer (question)" in done.stdout


# -- map and reduce


def _reads(body: dict[str, Any]) -> str | ReplyStep:
    requested = prompt_of(body)
    if "Write a short report" in requested:
        return "REPORT\n" + requested.rpartition("\n\n")[2]
    review = requested.rpartition("\n")[2]
    return ErrorReply(400, "invalid_request_error") if review == "unreadable" else f"read: {review}"


def test_reviews_are_read_and_summed_up(providers: Providers) -> None:
    providers.answer = _reads
    given = json.dumps({"reviews": {"output": ["good", "bad", "so-so", "great"]}})
    document = executed("map_reduce", "--input", given)
    lines = ["- read: good", "- read: bad", "- read: so-so", "- read: great"]
    assert document["node_results"]["report"].split("\n") == ["REPORT", *lines]
    assert len(providers.llm.requests) == 5


def test_unreadable_review_is_left_out(providers: Providers) -> None:
    providers.answer = _reads
    given = json.dumps({"reviews": {"output": ["good", "unreadable", "great"]}})
    document = executed("map_reduce", "--input", given)
    assert document["status"] == "completed"
    assert document["node_results"]["report"] == "REPORT\n- read: good\n- read: great"


# -- a plan within a plan

PLAN = {
    "title": "A workshop",
    "nodes": [
        {"id": "place", "name": "Place", "description": "Find a place."},
        {"id": "people", "name": "People", "description": "Invite people."},
        {"id": "day", "name": "Day", "description": "Write the plan of the day."},
    ],
    "edges": [
        {"source": "place", "target": "day", "channel": "flow"},
        {"source": "people", "target": "day", "channel": "flow"},
    ],
}


def test_nested_plan_is_made_run_and_checked(providers: Providers) -> None:
    def answer(body: dict[str, Any]) -> str:
        requested = prompt_of(body)
        if schema_of(body) is not None:
            return json.dumps(PLAN)
        replies = {
            "Make this goal clear": "A workshop for 20, one day.",
            "Find a place.": "The old barn.",
            "Invite people.": "Twenty came.",
            "Write the plan of the day.": "Barn at nine, compost at ten.",
            "Compare the result": "All there.",
        }
        return next(reply for received, reply in replies.items() if received in requested)

    providers.answer = answer
    document = executed("plan_within_a_plan", "--input", "A workshop")
    assert document["node_results"]["done"] == (
        "Barn at nine, compost at ten.\n\n## Check\n\nAll there."
    )
    day = next(
        requested for requested in providers.prompts() if "Write the plan of the day." in requested
    )
    assert "The old barn." in day
    assert "Twenty came." in day
    planned = next(b for b in providers.llm.requests if schema_of(b.body) is not None)
    assert "A workshop for 20, one day." in prompt_of(planned.body)


# -- retry with fallback


def test_first_choice_is_used_when_it_works(providers: Providers) -> None:
    providers.answer = lambda _: "Jeudi, 15 heures."
    document = executed("retry_with_fallback")
    assert document["node_results"]["translation"] == "Jeudi, 15 heures."
    assert statuses(document)["second"] == "skipped"


def test_first_choice_is_tried_twice(providers: Providers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANWAVE_LIMIT_CALL_ATTEMPTS", "1")
    flow = json.loads((FLOWS / "retry_with_fallback.json").read_text("utf-8"))
    (first,) = (node for node in flow["nodes"] if node["id"] == "first")
    assert first["policy"]["retry"] == {"attempts": 2, "backoffS": 2}
    first["policy"]["retry"]["backoffS"] = 0
    Path("at_once.json").write_text(json.dumps(flow), "utf-8")
    providers.answer = lambda body: "Jeudi." if "claude" in body["model"] else ErrorReply(503)
    assert invoke("exec", "at_once.json").exit_code == 0
    requested = [request.body["model"] for request in providers.llm.requests]
    assert requested == ["gpt-5.6-luna", "gpt-5.6-luna", "claude-haiku-5-5"]


def test_second_choice_is_used_when_the_first_fails(providers: Providers) -> None:
    def answer(body: dict[str, Any]) -> str | ReplyStep:
        if body["model"].startswith("claude"):
            return "Jeudi."
        return ErrorReply(400, "invalid_request_error", "no such model here")

    providers.answer = answer
    document = executed("retry_with_fallback")
    assert document["status"] == "completed"
    assert document["handled_failures"] == ["first"]
    translation = document["node_results"]["translation"]
    assert translation.startswith("Jeudi.\n\n(The first choice failed: ")
    assert "no such model here" in translation
