"""The flows under ``examples/flows`` do what their README says, run as people run them."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks, commands
from tests.support.cli.in_process_command import invoke
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    ReplyStep,
    TextReply,
    ToolCallReply,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
    tool_results_of,
    tools_of,
)
from tests.support.llm.planner_replies import reply_node
from tests.support.paths import ROOT

FLOWS = ROOT / "examples" / "flows"
NAMES = sorted(file.stem for file in FLOWS.glob("*.json"))


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin in a directory with a ticket system, whose tickets are in ``tickets.json``."""
    isolated_directory(tmp_path, monkeypatch)
    server = {
        "command": sys.executable,
        "args": [str(ROOT / "examples" / "mcp" / "ticket_server.py")],
        "read_tools": ["search_tickets"],
        "env": {"TICKETS_FILE": str(tmp_path / "tickets.json")},
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in server.items() if name != "env"]
    lines.append(f"env = {{TICKETS_FILE = {json.dumps(server['env']['TICKETS_FILE'])}}}")
    (tmp_path / "planwave.toml").write_text("[mcp.tickets]\n" + "\n".join(lines), "utf-8")
    monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")


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
    assert len(NAMES) == 8


@pytest.mark.slow
def test_readme_commands_run(
    providers: Providers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(body: dict[str, Any]) -> str | ReplyStep:
        requested = prompt_of(body)
        if "create_ticket" in tools_of(body):
            return _opens_ticket(body)
        if "delegate_Market" in tools_of(body):
            return _delegates(body)
        if "list the findings" in requested:
            return json.dumps(CITED)
        if schema_of(body) is not None:
            return json.dumps({"nodes": [reply_node("a")], "edges": [], "title": "T"})
        if "Answer with one word" in requested:
            return "Complaint." if "broken" in requested else "Question."
        return "Fine."

    providers.answer = answer
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    page = (FLOWS / "README.md").read_text("utf-8")
    shown = [command for block in blocks(page) for command in commands(block["text"])]
    assert len(shown) == 13
    for command in shown:
        words = shlex.split(command.line, comments=True)
        done = invoke(*words[1:])
        assert (words[0], done.exit_code) == ("planwave", 0), done.output


# -- agents with tools

CITED = {"answer": "They do.", "findings": [{"claim": "It works.", "url": "https://a.test/heat"}]}
TICKET = {"title": "Kettle leaks", "text": "It leaks since yesterday."}


def _opens_ticket(body: dict[str, Any]) -> str | ReplyStep:
    results = tool_results_of(body)
    if not results:
        return ToolCallReply([("search_tickets", {"text": "kettle"})])
    if len(results) == 1:
        return ToolCallReply([("create_ticket", TICKET)])
    return "I have opened ticket 1 for you."


def _delegates(body: dict[str, Any]) -> str | ReplyStep:
    if tool_results_of(body):
        return "Go: three reasons."
    tasks = ("delegate_Market", "Who buys?"), ("delegate_Operations", "What does it take?")
    return ToolCallReply([(name, {"task": task}) for name, task in tasks])


def test_research_cites_what_it_found(providers: Providers) -> None:
    def answer(body: dict[str, Any]) -> str | ReplyStep:
        if "list the findings" in prompt_of(body):
            return json.dumps(CITED)
        return TextReply("It works.", sources=[("https://a.test/heat", "Heat")])

    providers.answer = answer
    document = executed("cited_research", "--input", "Do they?")
    (report,) = (node for node in document["nodes"] if node["id"] == "report")
    assert json.loads(document["node_results"]["report"]) == CITED
    assert "https://a.test/heat" in providers.prompts()[-1]
    assert report["status"] == "completed"


@pytest.mark.slow
def test_ticket_is_opened_once_a_person_approves(providers: Providers, tmp_path: Path) -> None:
    providers.answer = _opens_ticket
    waiting = executed("support_tickets", "--input", "My kettle leaks.")
    (request,) = waiting["requests"]
    assert request["request"]["value"] == TICKET
    tickets = tmp_path / "tickets.json"
    assert TICKET["text"] not in tickets.read_text("utf-8")
    changed = json.dumps({**TICKET, "title": "Leaking kettle"})
    done = invoke("answer", "last", "--decision", "approve", "--value", changed)
    assert done.exit_code == 0, done.output
    assert "I have opened ticket 1 for you." in done.stdout
    assert tickets.read_text("utf-8").count("Leaking kettle") == 1


def test_lead_asks_both_specialists(providers: Providers) -> None:
    def answer(body: dict[str, Any]) -> str | ReplyStep:
        if tools_of(body):
            return _delegates(body)
        return "Many people." if "Who buys?" in prompt_of(body) else "Two mechanics."

    providers.answer = answer
    document = executed("lead_and_specialists", "--input", "Repaired toasters")
    assert document["node_results"]["lead"] == "Go: three reasons."
    results = tool_results_of(providers.llm.requests[-1].body)
    assert list(results.values()) == ["Many people.", "Two mechanics."]


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
