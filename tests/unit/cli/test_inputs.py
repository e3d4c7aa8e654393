from typing import Any

import pytest

from planwave.cli.inputs import resolve_inputs, merge_inputs, read_inputs
from planwave.errors import GraphInvalid, InputError
from planwave.graph.model import Graph, Node
from tests.fakes.planning import library_registry
from tests.fakes.service import make_graph, text_node

ONE = make_graph(Node("begin", "start", "Begin"), text_node("b"), edges=[("begin", "b")])
TWO = make_graph(Node("s1", "start", "S"), Node("s2", "start", "S"))


def given(*written: str, graph: Graph = ONE) -> dict[str, Any]:
    return resolve_inputs(read_inputs(written), graph, library_registry())


def test_plain_text_goes_to_the_one_entry_node() -> None:
    assert given("a = b") == {"begin": {"output": "a = b"}}


def test_a_node_and_a_handle_can_be_named() -> None:
    written = ["b=x=y", "begin:output=z"]
    assert given(*written) == {"b": {"output": "x=y"}, "begin": {"output": "z"}}
    assert given(*written, "begin=w")["begin"] == {"output": "w"}


def test_an_object_gives_any_json() -> None:
    assert given('{"begin": {"output": [1]}}') == {"begin": {"output": [1]}}


def test_a_flat_object_goes_to_the_one_entry_node() -> None:
    assert given('{"output": [1]}') == {"begin": {"output": [1]}}


@pytest.mark.parametrize("text", ["x", '{"zz": {"output": 1}}', '{"s1": 5}', "s1:zz=x"])
def test_what_fits_no_node_is_refused_naming_the_nodes(text: str) -> None:
    with pytest.raises(InputError):
        given(text, graph=TWO)


def test_a_broken_object_is_refused_as_input_not_as_a_plan_and_before_there_is_one() -> None:
    with pytest.raises(InputError, match=r"--input '\{x': not JSON") as caught:
        read_inputs(["fine", "{x"])
    assert not isinstance(caught.value, GraphInvalid)
    assert "NODE=TEXT" in str(caught.value.hint)


def test_no_input_is_no_input() -> None:
    assert given(graph=TWO) == {}


@pytest.mark.parametrize(
    "written",
    [
        ["a = b"],
        ["b=x=y", "begin:output=z"],
        ["begin=first", "begin=second", "b=other"],
        ['{"begin": {"output": [1]}}', "b=x"],
        ['{"output": 1}'],
        ['{"b": {"output": 1}}', '{"b": {"output": 2}, "begin": {"output": null}}'],
    ],
)
def test_a_service_is_given_what_would_be_given_here(written: list[str]) -> None:
    assert merge_inputs(read_inputs(written), ONE, {"start"}) == given(*written)


def test_what_only_a_service_can_judge_is_left_to_it() -> None:
    odd = ['{"zz": {"output": 1}}', '{"s1": 3}', '{"s1": {"output": 2}}']
    sent = merge_inputs(read_inputs(odd), TWO, {"start"})
    assert sent == {"zz": {"output": 1}, "s1": {"output": 2}}
    with pytest.raises(InputError, match="2 entry nodes"):
        merge_inputs(["hello"], TWO, {"start"})
