import pytest

from planwave.cli.inputs import inputs_of
from planwave.errors import GraphInvalid, InputError
from planwave.graph.model import Node
from tests.fakes.planning import library
from tests.fakes.service import graph_of, text_node

ONE = graph_of(Node("begin", "start", "Begin"), text_node("b"), edges=[("begin", "b")])
TWO = graph_of(Node("s1", "start", "S"), Node("s2", "start", "S"))


def test_plain_text_goes_to_the_one_entry_node() -> None:
    assert inputs_of(["a = b"], ONE, library()) == {"begin": {"output": "a = b"}}


def test_a_node_and_a_handle_can_be_named() -> None:
    written = ["b=x=y", "begin:extra=z", "begin=w"]
    assert inputs_of(written, ONE, library()) == {
        "b": {"output": "x=y"},
        "begin": {"extra": "z", "output": "w"},
    }


def test_an_object_gives_any_json() -> None:
    assert inputs_of(['{"begin": {"output": [1]}}'], ONE, library()) == {"begin": {"output": [1]}}


def test_a_flat_object_goes_to_the_one_entry_node() -> None:
    assert inputs_of(['{"output": [1]}'], ONE, library()) == {"begin": {"output": [1]}}


@pytest.mark.parametrize("text", ["x", '{"zz": {"output": 1}}', '{"s1": 5}'])
def test_what_fits_no_node_is_refused_naming_the_nodes(text: str) -> None:
    with pytest.raises(InputError):
        inputs_of([text], TWO, library())


def test_a_broken_object_is_refused() -> None:
    with pytest.raises(GraphInvalid):
        inputs_of(["{"], ONE, library())


def test_no_input_is_no_input() -> None:
    assert inputs_of([], TWO, library()) == {}
