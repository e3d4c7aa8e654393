"""What a person begins with: which shapes are taken, and what each handle carries."""

from __future__ import annotations

import json
from typing import Any

import pytest

import planwave
from planwave.errors import InputError, NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import Node
from planwave.ids import UUID_PATTERN
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.user_input import UserInput
from planwave.nodes.registry import Registry
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import context_for, result_and_events

NODE = Node("ask", "user_input", "Ask")
FILE = {"name": "a.txt", "url": "https://files.example/a.txt", "mime": "text/plain"}
CAT = "https://pictures.example/cat.png"
REGISTRY = Registry(LIBRARY)


def without_ids(values: dict[str, Any]) -> dict[str, Any]:
    """Take out the ids, which the values have on their handles and in ``output``."""
    whole = values["output"]
    for name in ("chatId", "threadId"):
        assert UUID_PATTERN.fullmatch(whole.pop(name))
        values.pop(name)
    return values


async def outputs_of(chat_id: str | None = None, **data: Any) -> dict[str, Any]:
    context = context_for(NODE)
    context.chat_id = chat_id
    result, _ = await result_and_events(UserInput().execute(data, Inputs(), context))
    return {handle: value.value for handle, value in result.outputs.items()}


def adapted(**values: Any) -> dict[str, Any]:
    values = dict(UserInput().adapt_inputs(values))
    assert (
        UserInput().adapt_inputs(json.loads(json.dumps(values))) == values
    )  # a fork passes adapted inputs again
    return values


def rejection_of(**values: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        UserInput().adapt_inputs(values)
    return caught.value


# -- without inputs


async def test_without_inputs_the_node_gives_its_data() -> None:
    whole = {"message": "hi", "files": [FILE], "images": [CAT], "extras": {"tone": "warm"}}
    assert without_ids(await outputs_of(**whole)) == {"output": whole, **whole}


async def test_without_inputs_and_data_the_message_is_empty() -> None:
    whole = {"message": "", "files": [], "images": [], "extras": {}}
    assert without_ids(await outputs_of()) == {"output": whole, **whole}


async def test_chat_and_thread_are_those_that_are_set() -> None:
    assert (await outputs_of(chatId="c", threadId="t"))["threadId"] == "t"
    assert (await outputs_of("of the run"))["chatId"] == "of the run"
    assert (await outputs_of("of the run", chatId="c"))["chatId"] == "c"
    assert (await outputs_of("of the run"))["threadId"] not in ("of the run", "")
    assert (await outputs_of(threadId="t"))["chatId"] not in ("t", "")


async def test_invalid_data_fail_the_node() -> None:
    with pytest.raises(NodeError) as caught:
        await outputs_of(files=[{"name": "a.txt"}])
    assert caught.value.code == "invalid-data"


# -- given by an execution


def test_omitted_parts_are_empty() -> None:
    whole = {"message": "hi", "files": [], "images": [], "extras": {}}
    assert without_ids(adapted(message="hi")) == {"output": whole, **whole}


@pytest.mark.parametrize(
    ("output", "message"), [("hi", "hi"), (5, "5"), ([1, None], "[1,null]"), ("", "")]
)
def test_a_value_on_output_is_the_message(output: Any, message: str) -> None:
    values = adapted(output=output)
    assert values["message"] == message
    assert values["output"]["message"] == message


def test_an_object_on_output_sets_all_parts_and_other_handles_may_add_to_it() -> None:
    values = adapted(output={"message": "hi", "chatId": "c"}, extras={"tone": "warm"})
    assert (values["message"], values["chatId"], values["extras"]) == ("hi", "c", {"tone": "warm"})
    assert adapted(output="hi", images=[CAT])["images"] == [CAT]


def test_output_and_parts_are_copies() -> None:
    values = adapted(extras={"list": [1]})
    values["extras"]["list"].append(2)
    assert values["output"]["extras"] == {"list": [1]}


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
def test_invalid_inputs_are_rejected_with_a_hint(values: dict[str, Any], words: str) -> None:
    error = rejection_of(**values)
    assert words in error.message
    assert error.hint


def test_all_errors_of_the_inputs_are_reported_together() -> None:
    message = rejection_of(message=5, extras=[], files={}).message
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
async def test_every_handle_carries_the_inputs_of_the_execution(inputs: dict[str, Any]) -> None:
    graph = graph_of("message", "files", "images", "output")
    result = await planwave.run(graph, registry=REGISTRY, inputs=inputs)
    assert result.status == "completed"
    got = {name: result.outputs[f"got_{name}"]["output"].value for name in ("message", "images")}
    assert got == {"message": "hi", "images": [CAT]}
    assert result.outputs["got_files"]["output"].value == []
    assert result.outputs["got_output"]["output"].value["message"] == "hi"


async def test_a_run_without_inputs_uses_the_data() -> None:
    result = await planwave.run(graph_of("message"), registry=REGISTRY)
    assert result.text == "from the data"


async def test_a_run_with_invalid_inputs_is_rejected_before_it_starts() -> None:
    built = planwave.build(graph_of("message"), registry=REGISTRY)
    with pytest.raises(InputError) as caught:
        await planwave.run(built, inputs={"ask": {"files": ["a.txt"]}})
    assert caught.value.code == "invalid-inputs"
    assert caught.value.message.startswith("inputs['ask']: files.0")
