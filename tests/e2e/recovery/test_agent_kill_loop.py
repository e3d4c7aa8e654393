"""``kill -9`` at random moments while agents call tools, delegate and wait for people; nothing acts twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.graph.agent_documents import EFFECTS
from tests.support.recovery.agent_child import EDITED, GIVEN
from tests.support.recovery.agent_history import AgentHistory, agent_history
from tests.support.storage.either_database import Place

KINDS = {
    "execution.completed", "execution.failed", "execution.cancelled", "execution.paused",
    "node.completed", "node.failed", "node.waiting", "node.answered", "node.parked", "node.unparked",
    "node.retrying",
}  # fmt: skip
DECISIONS = {
    ("approval", "approve"), ("approval", "reject"),
    ("interrupted", "run_again"), ("interrupted", "give_result"), ("interrupted", "fail"),
    ("repetition", "approve"), ("repetition", "reject"),
}  # fmt: skip


EVERYTHING = {
    *KINDS, *DECISIONS, "look", "save", "send", "again", "order", "mail", "http_look", "http_save",
    EDITED, GIVEN,
    "read again", "write again", "once again", "sub-agent again",
    "mcp_look", "mcp_save", "mcp_send", "retry", "rerun", "served fork",
}  # fmt: skip
"""What has to happen, or the loop shows nothing."""


def happened(lives: AgentHistory) -> set[Any]:
    """Give what has happened in all lives: types of events, tools that acted, decisions of people."""
    acts = lives.acts
    events = [event for _, each in lives.stored().values() for event in each]
    answers = [(q.kind, q.answer) for each in lives.questions().values() for q in each if q.answer]
    again = [event for event in events if event.data.get("reentry")]
    return {
        *(event.type for event in events),
        *(act.tool for act in acts),
        *(act.text for act in acts),
        *(f"{EFFECTS[act.tool]} again" for act, times in Counter(acts).items() if times > 1),
        *((kind, answer["decision"]) for kind, answer in answers),
        *(str(answer.get("value")) for _, answer in answers),
        *("sub-agent again" if "[delegate" in event.path else "again" for event in again),
        *(way_of(event.data["parent"]) for event in events if event.data.get("parent")),
    }


def way_of(parent: Mapping[str, Any]) -> str:
    """Return how a fork was made."""
    if parent.get("retry"):
        return "retry"
    return "rerun" if parent.get("rerun") else "served fork"


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_loop_of_kills_repeats_nothing_that_agents_did(place: Place, seed: int) -> None:
    with agent_history(place, seed, cuts=True) as lives:
        lives.live_and_die(100, seed, lambda: EVERYTHING - happened(lives), at_once=4)
        lives.check()
