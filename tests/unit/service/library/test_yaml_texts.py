"""A graph in YAML is a graph for programs, too; other text with colons is none."""

from __future__ import annotations

import pytest

import planwave
from planwave.errors import InputError

YAML = "# one step\nnodes:\n- {id: a, type: text, data: {text: hello}}\nedges: []\n"


@pytest.mark.parametrize("text", [YAML, YAML.encode(), f"$schema: https://a.test/s\n{YAML}"])
def test_yaml_text_is_built_and_run(text: str | bytes) -> None:
    assert planwave.run_sync(text).text == "hello"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("plan: a trip with many nodes: three", "run_goal_sync"),
        ("graph.yaml", "pass the text of the file"),
        ("graph.yml", "pass the text of the file"),
        ("", "run_goal_sync"),
    ],
)
def test_a_goal_and_the_name_of_a_file_are_no_graph(text: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        planwave.build(text)
    assert caught.value.code == "not-a-graph"
    assert caught.value.hint is not None
    assert hint in caught.value.hint
