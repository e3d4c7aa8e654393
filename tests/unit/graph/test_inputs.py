"""Values as text, and what a node sees of its inputs."""

from __future__ import annotations

import pytest

from planwave.expressions.json_text import to_text
from planwave.graph.inputs import Inputs, arrivals_text
from planwave.graph.model import Arrival, DataValue
from planwave.graph.result import result_text


def arrival(source: str, value: object, target: str = "input") -> Arrival:
    return Arrival(f"e-{source}", source, source.upper(), "output", target, DataValue("any", value))


@pytest.mark.parametrize(
    ("value", "text"),
    [("as is", "as is"), (None, ""), (1.5, "1.5"), (True, "true"), ({"a": ["ü"]}, '{"a":["ü"]}')],
)
def test_a_value_as_text_is_itself_or_compact_json(value: object, text: str) -> None:
    assert to_text(value) == text


def test_a_result_as_text_is_its_output_or_its_first_port() -> None:
    assert result_text({"x": DataValue("text", "1"), "output": DataValue("text", "2")}) == "2"
    assert result_text({"x": DataValue("number", 1), "y": DataValue("text", "2")}) == "1"
    assert result_text({}) == ""


def test_one_arrival_is_its_text_and_several_are_labelled_with_their_sources() -> None:
    assert arrivals_text((arrival("a", "x"),)) == "x"
    both = (arrival("a", "x"), arrival("b", [1]))
    assert arrivals_text(both) == "From A (a):\nx\n\nFrom B (b):\n[1]"


def test_inputs_are_a_mapping_by_handle_in_edge_order() -> None:
    inputs = Inputs((arrival("a", 1, "q"), arrival("b", 2, "p"), arrival("c", 3, "q")))
    assert list(inputs) == ["q", "p"]
    assert len(inputs) == 2
    assert inputs["p"] == DataValue("any", 2)
    assert inputs["q"] == DataValue("list", [1, 3])
    assert inputs.all("q") == [DataValue("any", 1), DataValue("any", 3)]
    assert inputs.one("q") == DataValue("any", 1)
    assert inputs.one("z") is None
    assert inputs.text("p") == "2"
    assert inputs.text("z") == ""
    assert inputs.text().startswith("From A (a):\n1")
    with pytest.raises(KeyError):
        inputs["z"]


def test_no_inputs_are_an_empty_mapping() -> None:
    assert dict(Inputs()) == {}
    assert Inputs().text() == ""
