"""A process that ends between any two steps of an agent's calls: nothing acts twice that must not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.graph.agent_documents import EFFECTS, agent_document, call, delegation
from tests.support.recovery.agent_child import EDITED
from tests.support.recovery.agent_history import AgentHistory, Question, agent_history
from tests.support.recovery.crash_points import KILLED
from tests.support.storage.either_database import Place

pytestmark = pytest.mark.slow

ITEM = "i1"
KIND_OF_RECORD = {"http": "http", "mcp": "mcp"}
DECISIONS = ("run_again", "give_result", "fail")


class Step(NamedTuple):
    """A moment between two steps of a call.

    Attributes:
        point: Where the process ends; ``{kind}`` is the kind of the record of the tool's call.
        has_begun: Whether it is stored that the call was about to act, where it must not act twice.
        has_acted: Whether the tool has acted.
        is_recorded: Whether its result is recorded.
        lost_reply: The number of the model call, of those without an agent in between, whose reply
            is lost.
    """

    point: str
    has_begun: bool = False
    has_acted: bool = False
    is_recorded: bool = False
    lost_reply: int | None = None


STEPS = {
    "model asked": Step("before:record:1:model", lost_reply=0),
    "reply recorded": Step("after:record:1:model"),
    "start emitted": Step("before:append:1:tool_call_start"),
    "start recorded": Step("after:append:1:tool_call_start", has_begun=True),
    "begun": Step("after:record:1:begun", has_begun=True),
    "acted": Step("before:record:1:{kind}", has_begun=True, has_acted=True),
    "result recorded": Step(
        "after:record:1:{kind}", has_begun=True, has_acted=True, is_recorded=True
    ),
    "model told": Step("before:record:2:model", True, True, True, lost_reply=2),
    "last reply recorded": Step("after:record:2:model", True, True, True),
}  # fmt: skip
TOOLS = ("look", "save", "send", "http_look", "http_save", "mcp_look", "mcp_save", "mcp_send")
QUICK = {
    ("send", "acted"), ("http_save", "acted"), ("mcp_save", "acted"), ("save", "sub-agent acted"),
    ("mail", "answer stored"),
}  # fmt: skip


def steps_of(tool: str) -> Iterator[tuple[str, Step]]:
    """Yield the steps that a tool has: the start of what only reads need not be stored."""
    effect = EFFECTS[tool]
    for name, step in STEPS.items():
        if name == "begun" and effect != "once":
            continue
        if name.startswith("start") and effect == "read":
            continue
        if name == "start emitted":  # where it must not act twice, that it begins is stored by then
            step = step._replace(has_begun=effect == "once")
        yield name, step._replace(point=step.point.format(kind=kind_of(tool)))


def kind_of(tool: str) -> str:
    return KIND_OF_RECORD.get(tool.partition("_")[0], "tool")


def case(tool: str, name: str, *values: Any) -> Any:
    marks = [] if (tool, name) in QUICK else [pytest.mark.slow]
    return pytest.param(tool, *values, marks=marks, id=f"{tool}-{name}")


@pytest.fixture
def lives(place: Place) -> Iterator[AgentHistory]:
    with agent_history(place) as lives:
        yield lives


def lives_twice(lives: AgentHistory, graph: Any, point: str, **answers: str) -> None:
    """Live one life up to a point, and another one to the end."""
    assert lives.run(graphs=[graph], point=point, answers=answers).exit_code == KILLED
    assert lives.run(ends=True, answers=answers).exit_code == 0
    lives.check()


def asked_about(lives: AgentHistory, kind: str) -> list[Question]:
    return [each for each in lives.questions().get(ITEM, ()) if each.kind == kind]


def requests_by_ordinal(lives: AgentHistory, path: str = "n0") -> Counter[int]:
    """Count how often the model was asked, by the number of the call."""
    keys = [key.split("/", 1)[1].rpartition("/") for key in lives.paid_keys]
    return Counter(int(ordinal) for asker, _, ordinal in keys if asker == path)


def check_acts(lives: AgentHistory, tool: str, step: Step, decision: str) -> None:
    """Hold how often a tool acted, and what was asked, to what its effect allows."""
    is_asked = EFFECTS[tool] == "once" and step.has_begun and not step.is_recorded
    assert len(asked_about(lives, "interrupted")) == is_asked
    acts_again = decision == "run_again" if is_asked else not step.is_recorded
    assert len(lives.acts) == step.has_acted + acts_again
    ((record, _),) = lives.stored().values()
    assert record.status == ("failed" if is_asked and decision == "fail" else "completed")


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("tool", "step"), [case(tool, name, step) for tool in TOOLS for name, step in steps_of(tool)]
)
def test_call_is_repeated_only_as_its_effect_allows(
    tool: str, step: Step, lives: AgentHistory
) -> None:
    decision = DECISIONS[hash_of(tool, step) % 3]
    graph = agent_document([[call(tool, ITEM)]], service=lives.service)
    lives_twice(lives, graph, step.point, interrupted=decision)
    check_acts(lives, tool, step, decision)
    requests = requests_by_ordinal(lives)
    assert requests[0] == 1 + (step.lost_reply == 0)
    assert requests[2] in (0, 1 + (step.lost_reply == 2))
    if kind_of(tool) == "mcp":
        started = lives.mcp_marks.pids
        assert len(started) == len({*started}) > 1, "who takes over starts the server anew"
        asyncio.run(lives.mcp_marks.all_gone())


def hash_of(*parts: object) -> int:
    return sum(repr(parts).encode())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("tool", ["send", "mcp_send"])
def test_person_decides_about_what_may_have_acted(
    tool: str, decision: str, lives: AgentHistory
) -> None:
    step = dict(steps_of(tool))["acted"]
    graph = agent_document([[call(tool, ITEM)]], service=lives.service)
    lives_twice(lives, graph, step.point, interrupted=decision)
    check_acts(lives, tool, step, decision)


# -- agents that other agents call

INNER = {
    "task given": Step("after:record:1:model"),
    "run stored": Step("after:append:1:run_graph"),
    "sub-agent's model asked": Step("before:record:2:model", lost_reply=0),
    "sub-agent's reply recorded": Step("after:record:2:model"),
    "begun": Step("after:record:1:begun", has_begun=True),
    "sub-agent acted": Step("before:record:1:tool", True, True),
    "result recorded": Step("after:record:1:tool", True, True, True),
    "sub-agent's model told": Step("before:record:3:model", True, True, True, lost_reply=2),
    "sub-agent's last reply recorded": Step("after:record:3:model", True, True, True),
    "sub-agent's end not stored": Step("before:append:2:node.completed", True, True, True),
    "sub-agent's end stored": Step("after:append:2:node.completed", True, True, True),
    "sub-agent's result not recorded": Step("before:record:1:agent", True, True, True),
    "sub-agent's result recorded": Step("after:record:1:agent", True, True, True),
    "model told": Step("before:record:4:model", True, True, True),
    "last reply recorded": Step("after:record:4:model", True, True, True),
}  # fmt: skip


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("tool", "step"),
    [
        case(tool, name, step)
        for tool in ("look", "save", "send")
        for name, step in INNER.items()
        if name != "begun" or EFFECTS[tool] == "once"
    ],
)
def test_sub_agent_goes_on_where_it_was_cut_off(tool: str, step: Step, lives: AgentHistory) -> None:
    decision = DECISIONS[hash_of(tool, step) % 2]
    script = [[delegation("d1", [call(tool, ITEM)])]]
    graph = agent_document(script, service=lives.service)
    lives_twice(lives, graph, step.point, interrupted=decision)
    check_acts(lives, tool, step, decision)
    ((_, events),) = lives.stored().values()
    (path,) = {e.path for e in events if e.path and e.path.endswith("/helper")}
    inside = requests_by_ordinal(lives, path)
    assert inside == {0: 1 + (step.lost_reply == 0), 2: 1 + (step.lost_reply == 2)}
    outside = requests_by_ordinal(lives)
    assert outside == {0: 1, 2: 2 if step.point == "before:record:4:model" else 1}


# -- approvals

APPROVED = {
    "question not stored": Step("before:append:1:node.waiting"),
    "question stored": Step("after:append:1:node.waiting"),
    "answer not stored": Step("before:append:1:node.answered"),
    "answer stored": Step("after:append:1:node.answered"),
    "begun": Step("after:record:1:begun", has_begun=True),
    "start recorded": Step("after:append:1:tool_call_start", has_begun=True),
    "acted": Step("before:record:1:tool", True, True),
    "result recorded": Step("after:record:1:tool", True, True, True),
    "model told": Step("before:record:2:model", True, True, True),
}  # fmt: skip
ANSWERED_BEFORE = {"answer stored", "begun", "start recorded", "acted", "result recorded"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("tool", "name"),
    [
        case(tool, name, name)
        for tool in ("order", "mail")
        for name in APPROVED
        if name != "begun" or EFFECTS[tool] == "once"
    ],
)
def test_approval_is_answered_once_and_its_arguments_are_used(
    tool: str, name: str, lives: AgentHistory
) -> None:
    step = APPROVED[name]
    graph = agent_document([[call(tool, ITEM)]], service=lives.service)
    life = lives.run(graphs=[graph], point=step.point, answers={"approval": "edit"})
    assert life.exit_code == KILLED
    # Another answer would reject it: a stored one is final.
    is_final = name in ANSWERED_BEFORE or step.is_recorded
    answers = {"approval": "reject" if is_final else "edit", "interrupted": "run_again"}
    assert lives.run(ends=True, answers=answers).exit_code == 0
    lives.check()
    check_acts(lives, tool, step, "run_again")
    assert {act.text for act in lives.acts} == {EDITED}
    (question,) = asked_about(lives, "approval")
    assert question.answer is not None
    assert question.answer["value"] == {"item": ITEM, "text": EDITED}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("when", ["before", "after"])
def test_rejected_call_is_never_made(when: str, lives: AgentHistory) -> None:
    graph = agent_document([[call("mail", ITEM)]], service=lives.service)
    lives_twice(lives, graph, f"{when}:append:1:node.answered", approval="reject")
    assert lives.acts == []
    ((record, _),) = lives.stored().values()
    assert record.status == "completed"


# -- calls of one reply at the same time

PARALLEL = [call("look", "i1"), call("save", "i2"), call("send", "i3"), call("mail", "i4")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["record", "append"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_whichever_write_is_the_last_nothing_acts_twice_that_must_not(
    when: str, what: str, lives: AgentHistory
) -> None:
    for number in range(1, 100):
        calls = [{**each, "item": f"{each['item']}-{number}"} for each in PARALLEL]
        script = [calls, [delegation(f"d-{number}", [call("send", f"i5-{number}")])]]
        graph = agent_document(script, service=lives.service)
        life = lives.run(graphs=[graph], point=f"{when}:{what}:{number}", seed=number)
        assert lives.run(ends=True, seed=number).exit_code == 0
        if life.exit_code == 0:
            break
    lives.check()
    assert number > 8
