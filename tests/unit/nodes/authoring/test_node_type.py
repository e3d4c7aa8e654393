from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, DataValue, Node, Port
from planwave.graph.protocols import ExecutionResult, FlowContext, NodeEvent, Suspension
from planwave.nodes.authoring.node_type import (
    NodeData,
    NodeType,
    ResumableType,
    pass_through,
    template,
)
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events


class ShoutData(NodeData):
    loud_word: str = template("hey")
    times: int = 1


class Shout(NodeType):
    node_type = "shout"
    Data = ShoutData

    async def run(self, data: ShoutData, inputs: Inputs, context: FlowContext) -> Any:
        return [data.loud_word, data.times, inputs.text()]


class Echo(NodeType):
    """Returns the value that the test passed in."""

    node_type = "echo"

    def __init__(self, value: Any) -> None:
        super().__init__()
        self._value = value

    async def run(self, data: None, inputs: Inputs, context: FlowContext) -> Any:
        return self._value


NODE = Node("n", "shout", "N")


async def _shout(data: dict[str, Any], inputs: Inputs, **options: Any) -> Any:
    result, _ = await result_and_events(Shout().execute(data, inputs, context_for(NODE, **options)))
    return result.outputs["output"].value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("x", DataValue("text", "x")),
        (True, DataValue("boolean", True)),
        (3, DataValue("integer", 3)),
        (1.5, DataValue("number", 1.5)),
        ({"a": [1]}, DataValue("json", {"a": [1]})),
        (None, DataValue("json", None)),
        (DataValue("tools", 1), DataValue("tools", 1)),
    ],
)
async def test_a_plain_result_leaves_through_output_with_its_own_type(
    value: Any, expected: DataValue
) -> None:
    result, _ = await result_and_events(Echo(value).execute({}, Inputs(), context_for(NODE)))
    assert result.outputs == {"output": expected}


async def test_results_and_suspensions_are_returned_unchanged() -> None:
    for value in (ExecutionResult({"yes": DataValue("text", "x")}), Suspension("ask")):
        execution: Any = Echo(value).execute({}, Inputs(), context_for(NODE))
        assert await execution is value


async def test_data_without_wires_are_the_written_values() -> None:
    assert await _shout({"loudWord": "oi", "times": 2}, make_inputs("in")) == ["oi", 2, "in"]


async def test_a_flow_wire_into_a_field_overrides_the_written_value_and_is_no_input() -> None:
    inputs = make_inputs("in", ("loudWord", "wired"))
    assert await _shout({"loudWord": "written"}, inputs) == ["wired", 1, "in"]


@pytest.mark.parametrize("artefact", [7, DataValue("integer", 7)])
async def test_a_link_into_a_field_overrides_the_written_value(artefact: Any) -> None:
    edge = make_edge("src", "n", channel=LINK, target_handle="times")
    links = {("n", "times"): [artefact]}
    assert await _shout({"times": 2}, Inputs(), edges=[edge], links=links) == ["hey", 7, ""]


async def test_a_value_at_a_declared_port_is_an_input_and_not_the_field_of_that_name() -> None:
    class DeclaresPort(Shout):
        inputs = (Port("times"),)

    execution = DeclaresPort().execute({}, make_inputs(("times", 7)), context_for(NODE))
    result, _ = await result_and_events(execution)
    assert result.outputs["output"].value == ["hey", 1, "7"]


async def test_a_template_field_that_resolves_to_an_object_is_converted_to_text() -> None:
    assert await _shout({"loudWord": [1, "é"]}, Inputs()) == ['[1,"é"]', 1, ""]


async def test_only_template_fields_are_converted_to_text() -> None:
    with pytest.raises(NodeError, match=r"data\.times"):
        await _shout({"times": "2"}, Inputs())


class Counting(NodeType):
    """Streams; notes whether it was closed."""

    node_type = "counting"
    closed = False

    async def run(
        self, data: None, inputs: Inputs, context: FlowContext
    ) -> AsyncGenerator[NodeEvent | str]:
        try:
            yield NodeEvent("n", "counting", "delta", "run-1", {"text": "a"})
            yield "done"
            yield "never"
        finally:
            self.closed = True


async def test_a_stream_yields_its_events_and_is_closed_at_its_result() -> None:
    node_type = Counting()
    result, events = await result_and_events(node_type.execute({}, Inputs(), context_for(NODE)))
    assert [event.data for event in events] == [{"text": "a"}]
    assert result.outputs["output"] == DataValue("text", "done")
    assert node_type.closed


class Asking(ResumableType):
    """Asks, and goes on with the answer; streams first if the answer is long."""

    node_type = "asking"
    Data = ShoutData

    async def run(self, data: ShoutData, inputs: Inputs, context: FlowContext) -> Suspension:
        return Suspension({"q": data.loud_word}, data.times)

    def on_answer(
        self, data: ShoutData, inputs: Inputs, context: FlowContext, state: Any, answer: Any
    ) -> Any:
        result = [data.loud_word, data.times, inputs.text(), state, answer]
        return self._stream_answer(result) if len(answer) > 3 else self._return_answer(result)

    async def _return_answer(self, result: Any) -> Any:
        return result

    async def _stream_answer(self, result: Any) -> AsyncGenerator[Any]:
        yield NodeEvent("n", "asking", "delta", "run-1", {"text": "a"})
        yield result


@pytest.mark.parametrize(("answer", "deltas"), [("yes", 0), ("rather", 1)])
async def test_a_resumed_node_gets_wired_and_validated_data_and_may_stream(
    answer: str, deltas: int
) -> None:
    edge = make_edge("src", "n", channel=LINK, target_handle="times")
    context = context_for(NODE, edges=[edge], links={("n", "times"): [7]})
    inputs = make_inputs("in", ("loudWord", "wired"))
    resumed = Asking().resume({"loudWord": "written", "times": 2}, inputs, context, 7, answer)
    result, events = await result_and_events(resumed)
    assert result.outputs["output"].value == ["wired", 7, "in", 7, answer]
    assert [event.event_type for event in events] == ["delta"] * deltas


async def test_data_that_became_invalid_fail_a_resumed_node() -> None:
    resumed = Asking().resume({"times": "x"}, Inputs(), context_for(NODE), None, "yes")
    with pytest.raises(NodeError) as caught:
        await result_and_events(resumed)
    assert caught.value.code == "invalid-data"


@pytest.mark.parametrize(
    ("inputs", "passed"),
    [
        (Inputs(), DataValue("text", "")),
        (make_inputs({"a": 1}), DataValue("any", {"a": 1})),
        (
            make_inputs("x", "y"),
            DataValue("text", "From Source 0 (s0):\nx\n\nFrom Source 1 (s1):\ny"),
        ),
        (make_inputs("x", 2), DataValue("json", ["x", 2])),
    ],
)
def test_input_is_passed_on_unchanged(inputs: Inputs, passed: DataValue) -> None:
    assert pass_through(inputs) == passed
