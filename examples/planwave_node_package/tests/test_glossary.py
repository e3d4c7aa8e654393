"""The types of this package at work, in graphs as users write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from planwave_glossary import TYPES, Lexicon

import planwave
from planwave.nodes.library import LIBRARY

FLOW = json.loads((Path(__file__).parents[1] / "flow.json").read_text("utf-8"))
LINES = "- wave: nodes at the same depth of the graph\n- node: one step of it\n"
LINES += "- plan: a graph made for a goal\n"


@pytest.fixture
def registry() -> planwave.Registry:
    """The library and this package; installed, its types are known everywhere by themselves."""
    return planwave.Registry([*LIBRARY, *TYPES])


async def events_of(registry: planwave.Registry, answer: Any) -> list[planwave.Event]:
    """Run the flow and answer what it asks."""
    run = planwave.run(FLOW, registry=registry)
    seen: list[planwave.Event] = []
    async for event in run:
        seen.append(event)
        if event.type == "node.waiting":
            run.answer(event.data["request_id"], answer)
    return seen


def output(events: list[planwave.Event], node_id: str) -> Any:
    (done,) = [e for e in events if e.type == "node.completed" and e.path == node_id]
    return {handle: value["value"] for handle, value in done.data["outputs"].items()}


async def test_a_signed_text_is_published_with_the_name(registry: planwave.Registry) -> None:
    events = await events_of(registry, {"decision": "sign", "form": {"name": "Ada"}})
    assert output(events, "explain") == {"output": LINES}
    assert output(events, "published") == {"output": f"{LINES}\nSigned: Ada"}
    assert events[-1].type == "execution.completed"


async def test_a_refused_text_is_dropped(registry: planwave.Registry) -> None:
    events = await events_of(registry, {"decision": "refuse"})
    assert output(events, "dropped") == {"output": "Nothing was published."}


async def test_a_signature_needs_a_name(registry: planwave.Registry) -> None:
    events = await events_of(registry, {"decision": "sign"})
    (failed,) = [event.data["error"] for event in events if event.type == "node.failed"]
    assert failed["code"] == "no-name"


async def test_every_line_is_streamed_and_the_progress_told(registry: planwave.Registry) -> None:
    events = await events_of(registry, {"decision": "refuse"})
    streamed = [event.data["text"] for event in events if event.type == "node.delta"]
    assert "".join(streamed) == LINES
    told = [event.data["data"] for event in events if event.type == "node.event"]
    assert told == [{"done": done, "of": 3} for done in (1, 2, 3)]


async def test_a_text_without_a_glossary_is_refused_before_it_runs(
    registry: planwave.Registry,
) -> None:
    g = planwave.GraphBuilder(registry)
    g.node("explain-terms", id="explain", input=g.node("start"))
    with pytest.raises(planwave.GraphInvalid, match="'explain' needs a value at its input 'glo"):
        planwave.build(g)


def test_terms_are_found_once_in_the_order_they_come_up_whatever_their_case() -> None:
    lexicon = Lexicon({"Wave": "w", "plan": "p", "goal": "g"})
    assert lexicon.found_in("Plan a WAVE, then plan on.") == [("plan", "p"), ("Wave", "w")]
