"""Messages to the caller during a run."""

from __future__ import annotations

from typing import Any

import pytest

import planwave
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.send_message import SendMessage
from planwave.nodes.registry import Registry
from planwave.nodes.spec import spec_of
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("tell", "send_message", "Tell")


async def sent(data: dict[str, Any], inputs: Inputs) -> tuple[Any, DataValue]:
    """Return the data of the message, and the output."""
    result, events = await result_and_events(SendMessage().execute(data, inputs, context_for(NODE)))
    (event,) = [each for each in events if each.event_type == "message"]
    assert event.node_id == "tell"
    assert result.outputs.keys() == {"output"}
    return event.data, result.outputs["output"]


async def test_the_input_is_sent_and_passed_on() -> None:
    data, output = await sent({}, make_inputs({"a": 1}))
    assert data == {"text": '{"a":1}', "extras": None}
    assert output == DataValue("any", {"a": 1})


@pytest.mark.parametrize("extras", [{"step": [1, None]}, "half", 0.5, None])
async def test_a_written_message_is_sent_with_its_extras(extras: Any) -> None:
    data, output = await sent({"message": "Half way.", "extras": extras}, make_inputs("x"))
    assert data == {"text": "Half way.", "extras": extras}
    assert output == DataValue("any", "x")


async def test_an_empty_message_is_sent() -> None:
    data, _ = await sent({"message": "", "extras": {"step": 1}}, make_inputs("x"))
    assert data == {"text": "", "extras": {"step": 1}}


async def test_wired_text_and_extras_are_not_passed_on() -> None:
    data, output = await sent({}, make_inputs("x", ("message", "Hi"), ("extras", {"k": 1})))
    assert (data, output.value) == ({"text": "Hi", "extras": {"k": 1}}, "x")


async def test_the_message_is_stored_with_the_completion_of_its_node() -> None:
    built = planwave.build(dict(spec_of(SendMessage()).example), registry=Registry(LIBRARY))
    result = await planwave.run(built)
    assert (result.status, result.text) == ("completed", "Dear all")
    events = [event async for event in planwave.run(built)]
    (message,) = [e for e in events if e.data.get("event_type") == "message"]
    assert message.data["data"] == {"text": "The draft: Dear all", "extras": {"step": 1}}
    (completed,) = [e for e in events if (e.type, e.path) == ("node.completed", "tell")]
    assert message.seq < completed.seq
    assert message.at == completed.at
