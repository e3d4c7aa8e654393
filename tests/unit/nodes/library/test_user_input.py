"""What a person begins with: which shapes are taken, and what each handle carries."""

from __future__ import annotations

import json
from typing import Any

import pytest

import planwave
from planwave.cli.inputs import read_inputs, resolve_inputs
from planwave.errors import InputError, NodeError
from planwave.executor.inputs import validate_inputs
from planwave.executor.program import Program
from planwave.graph.inputs import Inputs
from planwave.graph.model import Graph, Node
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.user_input import UserInput
from planwave.nodes.registry import Registry
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import context_for, result_and_events

NODE = Node("ask", "user_input", "Ask")
FILE = {"name": "a.txt", "url": "https://files.example/a.txt", "mime": "text/plain"}
CAT = "https://pictures.example/cat.png"
REGISTRY = Registry(LIBRARY)


async def given(chat_id: str | None = None, **data: Any) -> dict[str, Any]:
    context = context_for(NODE)
    context.chat_id = chat_id
    result, _ = await result_and_events(UserInput().execute(data, Inputs(), context))
    return {handle: value.value for handle, value in result.outputs.items()}


def entered(**values: Any) -> dict[str, Any]:
    made = dict(UserInput().adapt_inputs(values))
    assert (
        UserInput().adapt_inputs(json.loads(json.dumps(made))) == made
    )  # as a fork gives it again
    return made


def refused(**values: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        UserInput().adapt_inputs(values)
    return caught.value


# -- without inputs


async def test_without_inputs_it_gives_what_stands_in_its_data() -> None:
    whole = {"message": "hi", "files": [FILE], "images": [CAT], "extras": {"tone": "warm"}}
    assert await given(**whole) == {"output": whole, **whole}


async def test_nothing_at_all_is_an_empty_message() -> None:
    whole = {"message": "", "files": [], "images": [], "extras": {}}
    assert await given() == {"output": whole, **whole}


async def test_chat_and_thread_are_handles_only_where_they_are_known() -> None:
    assert (await given(chatId="c", threadId="t"))["threadId"] == "t"
    assert (await given("of the run"))["chatId"] == "of the run"
    assert (await given("of the run", chatId="c"))["chatId"] == "c"
    assert not {"chatId", "threadId"} & (await given()).keys()


async def test_data_of_another_shape_fail_the_node() -> None:
    with pytest.raises(NodeError) as caught:
        await given(files=[{"name": "a.txt"}])
    assert caught.value.code == "invalid-data"


# -- given by an execution


def test_what_is_left_out_is_empty() -> None:
    whole = {"message": "hi", "files": [], "images": [], "extras": {}}
    assert entered(message="hi") == {"output": whole, **whole}


@pytest.mark.parametrize(
    ("output", "message"), [("hi", "hi"), (5, "5"), ([1, None], "[1,null]"), ("", "")]
)
def test_a_value_on_output_is_the_message(output: Any, message: str) -> None:
    made = entered(output=output)
    assert made["message"] == message
    assert made["output"]["message"] == message


def test_an_object_on_output_is_all_of_it_and_others_may_add_to_it() -> None:
    made = entered(output={"message": "hi", "chatId": "c"}, extras={"tone": "warm"})
    assert (made["message"], made["chatId"], made["extras"]) == ("hi", "c", {"tone": "warm"})
    assert entered(output="hi", images=[CAT])["images"] == [CAT]


def test_an_object_and_its_parts_share_nothing() -> None:
    made = entered(extras={"list": [1]})
    made["extras"]["list"].append(2)
    assert made["output"]["extras"] == {"list": [1]}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"message": 5}, "message has to be text, not a number"),
        ({"files": [{"name": "a", "mime": "text/plain"}]}, "files.0"),
        ({"images": ["file:///etc/passwd"]}, "images.0"),
        ({"extras": ["x"]}, "extras"),
        ({"chatId": ""}, "chatId"),
        ({"output": {"massage": "hi"}}, "massage is not known here"),
        ({"output": "hi", "message": "ho"}, "'message' is given twice"),
        ({"output": {"extras": {}}, "extras": {"a": 1}}, "'extras' is given twice"),
    ],
)
def test_another_shape_is_refused_with_a_way_out(values: dict[str, Any], words: str) -> None:
    error = refused(**values)
    assert words in error.message
    assert error.hint


def test_every_fault_is_told_at_once() -> None:
    message = refused(message=5, extras=[], files={}).message
    assert all(f"{name} has to be " in message for name in ("message", "extras", "files"))


# -- in a run


def graph_of(*handles: str) -> dict[str, Any]:
    """Return a graph with one end for each of these handles."""
    return graph_document(
        node_document("ask", "user_input", message="from the data"),
        *(node_document(f"got_{handle}", "end") for handle in handles),
        edges=[("ask", f"got_{handle}", handle) for handle in handles],
    )


@pytest.mark.parametrize(
    "inputs",
    [
        {"ask": {"message": "hi", "images": [CAT]}},
        {"message": "hi", "images": [CAT]},
        {"ask": {"output": "hi", "images": [CAT]}},
    ],
)
async def test_every_handle_carries_what_the_execution_was_given(inputs: dict[str, Any]) -> None:
    graph = graph_of("message", "files", "images", "output")
    result = await planwave.run(planwave.build(graph, registry=REGISTRY), inputs=inputs)
    assert result.status == "completed"
    got = {name: result.outputs[f"got_{name}"]["output"].value for name in ("message", "images")}
    assert got == {"message": "hi", "images": [CAT]}
    assert result.outputs["got_files"]["output"].value == []
    assert result.outputs["got_output"]["output"].value["message"] == "hi"


async def test_a_run_without_inputs_begins_with_the_data() -> None:
    result = await planwave.run(planwave.build(graph_of("message"), registry=REGISTRY))
    assert result.text == "from the data"


async def test_a_run_is_refused_before_anything_of_it_when_its_input_is_no_user_input() -> None:
    built = planwave.build(graph_of("message"), registry=REGISTRY)
    with pytest.raises(InputError) as caught:
        await planwave.run(built, inputs={"ask": {"files": ["a.txt"]}})
    assert caught.value.code == "invalid-inputs"
    assert caught.value.message.startswith("inputs['ask']: files.0")


def test_pieces_from_a_command_line_come_together_before_they_are_read() -> None:
    graph = Graph((NODE,), ())
    written = read_inputs(["hi", '{"extras": {"tone": "warm"}}', "ask:chatId=c"])
    made = resolve_inputs(written, graph, REGISTRY)
    assert made == {"ask": {"output": "hi", "extras": {"tone": "warm"}, "chatId": "c"}}
    settled = validate_inputs(Program(graph, REGISTRY), made)["ask"]
    assert settled["output"] == {
        "message": "hi",
        "files": [],
        "images": [],
        "extras": {"tone": "warm"},
        "chatId": "c",
    }
