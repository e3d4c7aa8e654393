"""How a message enters a flow: by the node that takes it, and with what that can take."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import InputError
from planwave.service.flows.chat_entries import ChatTurn, chat_entry, chat_inputs

HISTORY = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
TOOLS: dict[str, Any] = {"tools": [{"name": "t"}]}
IMAGE = "https://example.com/a.png"


def graph(*types: str, wired: bool = False, **data: Any) -> dict[str, Any]:
    """Return a graph of nodes of these types, named by their place, and an agent."""
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "type": each} for i, each in enumerate(types)]
    agent = {"id": "agent", "type": "agent", "data": data}
    edge = {"source": "n0", "target": "agent", "targetHandle": "caller"}
    return {"nodes": [*nodes, agent], "edges": [edge] if wired else []}


@pytest.mark.parametrize(
    ("types", "chosen"),
    [
        (["start"], "n0"),
        (["start", "user_input"], "n1"),
        (["start", "user_input", "chat_start"], "n2"),
        (["webhook", "start"], "n1"),
        (["start", "start", "user_input"], "n2"),
    ],
)
def test_the_most_able_entry_node_is_chosen(types: list[str], chosen: str) -> None:
    assert chat_entry(graph(*types), "f").node_id == chosen


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([], "has no node that takes a message"),
        (["webhook"], "has no node that takes a message"),
        (["start", "start"], "has several nodes that take a message: 'n0', 'n1'"),
    ],
)
def test_flow_that_takes_no_message_is_no_model(types: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        chat_entry(graph(*types), "f")
    assert refused.value.code == "not-a-model"


def test_chat_start_takes_message_images_history_and_options() -> None:
    turn = ChatTurn("Which?", [IMAGE], HISTORY, TOOLS)
    assert chat_inputs(graph("chat_start", wired=True), "f", turn) == {
        "n0": {"message": "Which?", "images": [IMAGE], "history": HISTORY, "variables": TOOLS}
    }


def test_user_input_has_history_and_options_among_its_extras() -> None:
    turn = ChatTurn("Which?", [], HISTORY, TOOLS)
    inputs = chat_inputs(graph("user_input", caller={"tools": []}), "f", turn)
    assert inputs == {
        "n0": {"message": "Which?", "images": [], "extras": {"messages": HISTORY, **TOOLS}}
    }


def test_start_takes_the_last_text_only() -> None:
    assert chat_inputs(graph("start"), "f", ChatTurn("x", (), HISTORY)) == {"n0": {"output": "x"}}
    wishes = ChatTurn("x", (), (), {"temperature": 1})
    assert chat_inputs(graph("start"), "f", wishes) == {"n0": {"output": "x"}}


@pytest.mark.parametrize(
    ("given", "turn"),
    [
        (graph("start"), ChatTurn("x", [IMAGE])),
        (graph("start"), ChatTurn("", (), HISTORY)),
        (graph("start", wired=True), ChatTurn("x", (), (), TOOLS)),
        (graph("user_input"), ChatTurn("x", (), (), {"outputSchema": {}})),
    ],
)
def test_what_the_flow_cannot_take_is_refused(given: Any, turn: ChatTurn) -> None:
    with pytest.raises(InputError) as refused:
        chat_inputs(given, "f", turn)
    assert refused.value.code == "unsupported-by-flow"
    assert refused.value.hint
