"""A plan that joins everything twice at the end loses the first of the two, and no other plan a step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.planner.graph_builder import ModelDefaults
from planwave.planner.reply_parser import ParseContext, ParseResult, read_reply
from planwave.planner.small_models import read_small_reply
from tests.support.llm.fake_providers import FakeProviders, library_registry
from tests.support.llm.planner_replies import reply_step, step_reply

CONTEXT = ParseContext(library_registry(), FakeProviders(), ModelDefaults("openai", "gpt"))
FACTS = reply_step("facts", description="Name the facts about tides.")
DOUBTS = reply_step("doubts", description="Name the doubts about tides.")
JOIN = reply_step(
    "join", "facts", "doubts", description="Combine facts and doubts about tides into a report."
)
LAST = reply_step(
    "last", "facts", "doubts", "join", description="Write the report about tides with all facts."
)


def step(name: str, *depends_on: str, task: str = "Do it.") -> dict[str, Any]:
    return {"name": name, "depends_on": [*depends_on], "task": task}


def ids(reading: ParseResult) -> list[str]:
    assert reading.graph is not None, reading.diagnostics
    return [node.id for node in reading.graph.nodes]


def read(*steps: Any) -> ParseResult:
    return read_reply(step_reply(*steps), CONTEXT)


def test_the_first_of_two_equal_joins_is_left_out_and_said_so() -> None:
    reading = read(FACTS, DOUBTS, JOIN, LAST)
    assert ids(reading) == ["facts", "doubts", "last"]
    assert reading.graph is not None
    assert [(e.source, e.target) for e in reading.graph.edges] == [
        ("facts", "last"),
        ("doubts", "last"),
    ]
    assert [*reading.fixes] == ["left out step 'join': 'last' joins the same results"]


@pytest.mark.parametrize(
    "steps",
    [
        (FACTS, DOUBTS, {**JOIN, "description": "Weigh facts and doubts about tides."}, LAST),
        (FACTS, DOUBTS, JOIN, {**LAST, "description": "Translate everything.", "name": "German"}),
        (FACTS, DOUBTS, JOIN, {**LAST, "depends_on": ["join"]}),
        (FACTS, DOUBTS, {**JOIN, "depends_on": ["facts"]}, LAST),
        (FACTS, DOUBTS, reply_step("more", "facts"), JOIN, {**LAST, "depends_on": ["facts", "doubts", "join", "more"]}),
        (FACTS, DOUBTS, {**JOIN, "model": "gpt-big"}, LAST),
        (FACTS, DOUBTS, {**JOIN, "data": {"temperature": 0}}, LAST),
        (FACTS, DOUBTS, JOIN, LAST, reply_step("other", "join")),
    ],
    ids=["judges", "other words", "edits", "one source", "open end", "model", "data", "second end"],
)  # fmt: skip
def test_a_step_that_adds_something_stays(steps: Any) -> None:
    assert len(ids(read(*steps))) == len(steps)


def test_the_last_step_of_a_small_model_joins_what_the_step_before_it_joined() -> None:
    reply = {
        "title": "Heat",
        "n1": step("Pumps", task="Describe heat pumps for a house."),
        "n2": step("Gas", task="Describe gas heating for a house."),
        "n3": step("Comparison", "n1", "n2", task="Combine the results on pumps and gas heating."),
        "final": step("Report", "n3", task="Write the complete report on pumps and gas heating."),
    }
    context = CONTEXT._replace(translate=read_small_reply)
    assert ids(read_reply(json.dumps(reply), context)) == ["pumps", "gas", "report"]
