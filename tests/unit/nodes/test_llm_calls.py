"""The check of a prompt's inputs: a warning before the run if they would not be sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import DEFAULT_POLICY, LINK, Edge, Graph, Node, Policy
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from tests.support.graph.builders import make_edge

PROMPTS = [("agent", "userPrompt"), ("llm", "prompt")]
SOURCE = Node("s", "text", "S", data={"text": "t"})


def _prompted(
    prompt: str,
    source: Node = SOURCE,
    edges: Sequence[Edge] = (make_edge("s", "a"),),
    policy: Policy = DEFAULT_POLICY,
    data: dict[str, Any] | None = None,
) -> list[list[Diagnostic]]:
    """Check a node of each type that asks a model, with this prompt and these edges."""
    checked: list[list[Diagnostic]] = []
    for node_type, field in PROMPTS:
        node = Node("a", node_type, "A", "", {field: prompt, **(data or {})}, policy)
        checked.append(list(Registry(LIBRARY).check(node, Graph((source, node), tuple(edges)))))
    return checked


@pytest.mark.parametrize(
    "prompt",
    [
        "Sum up the input",
        "{{ goal }} {{ trigger | default('') }}",
        "Sum up {# {{ input }} #}",
        "{% raw %}{{ input }}{% endraw %}",
        "{{ 'input' }} {{ 'PREVIOUS_OUTPUT' ~ '' }}",
    ],
)
def test_inputs_that_never_reach_the_model_are_a_warning(prompt: str) -> None:
    for (_, field), (diagnostic,) in zip(PROMPTS, _prompted(prompt), strict=True):
        assert (diagnostic.code, diagnostic.severity) == ("unused-input", "warning")
        assert diagnostic.pointer == f"/data/{field}"
        assert "'s'" in diagnostic.message
        assert diagnostic.hint == f"add {{{{ input }}}} to data.{field}, or remove the edge"


@pytest.mark.parametrize(
    "prompt",
    [
        "Sum up: {{ input }}",
        "{{input|upper}}",
        "{{ input | default('none') }}",
        "{{ input.items[0].name }}",
        "{{ inputs.input }}",
        "{{ inputs['input'] ~ '' }}",
        "{{ inputs | length }}",
        '{{ nodes["s"].output }}',
        "{{ nodes.s.output }}",
        "{{ nodes[goal] ~ '' }}",
        "{{ PREVIOUS_OUTPUT }}",
        "{{PREVIOUS_OUTPUT}}!",
        "{% if input == 'x' %}yes{% else %}no{% endif %}",
        "{% for i in inputs %}{{ i }}{% endfor %}",
        "{% set x = PREVIOUS_OUTPUT %}{{ x }}",
        "{{ goal ~ (input | upper) }}",
    ],
)
def test_a_prompt_that_reads_its_inputs_is_no_warning(prompt: str) -> None:
    assert _prompted(prompt) == [[], []]


def test_the_warning_names_the_source_nodes() -> None:
    edges = [make_edge("s", "a"), make_edge("s", "a", target_handle="provider")]
    for (diagnostic,) in _prompted("Hi", edges=[*edges, make_edge("s", "a", edge_id="again")]):
        assert diagnostic.message.count("'s'") == 1
    others = [Node(f"s{i}", "text", "S", data={"text": "t"}) for i in range(9)]
    edges = [make_edge(other.id, "a") for other in others]
    node = Node("a", "agent", "A", data={"userPrompt": "Hi"})
    (diagnostic,) = Registry(LIBRARY).check(node, Graph((*others, node), tuple(edges)))
    assert "'s0', 's1', 's2', 's3' and 5 more" in diagnostic.message


CHOICE = Node("s", "if", "S", data={"conditions": [{"operator": "equal", "value": "x"}]})
BEGINNING = Node("s", "start", "S", data={"initialInput": ""})


@pytest.mark.parametrize(
    ("source", "more"),
    [
        (SOURCE, {"edges": ()}),
        (SOURCE, {"edges": [make_edge("s", "a", channel=LINK)]}),
        (SOURCE, {"edges": [make_edge("s", "a", target_handle="model")]}),
        (SOURCE, {"edges": [make_edge("s", "a", source_handle="error")]}),
        (SOURCE, {"policy": Policy(join="any")}),
        (CHOICE, {"edges": [make_edge("s", "a", source_handle="false")]}),
        (CHOICE, {"edges": [make_edge("s", "a", source_handle="condition-0")]}),
        (BEGINNING, {}),
        (BEGINNING._replace(data={}), {}),
        (Node("s", "unheard-of", "S"), {}),
        (Node("other", "text", "O"), {}),
    ],
)
def test_an_edge_that_only_orders_nodes_is_no_warning(source: Node, more: dict[str, Any]) -> None:
    assert _prompted("Say hello", source, **more) == [[], []]


def test_an_entry_node_with_a_value_counts_as_input() -> None:
    full = BEGINNING._replace(data={"initialInput": "Hello"})
    assert [[d.code for d in found] for found in _prompted("Hi", full)] == [["unused-input"]] * 2
    assert _prompted("{{ input }}", full) == [[], []]


def test_a_wired_prompt_is_not_checked() -> None:
    for node_type, field in PROMPTS:
        node = Node("a", node_type, "A", data={field: "Hi"})
        edges = (make_edge("s", "a"), make_edge("s", "a", target_handle=field))
        assert list(Registry(LIBRARY).check(node, Graph((SOURCE, node), edges))) == []


def test_a_description_without_a_prompt_is_no_warning() -> None:
    node = Node("a", "agent", "A", "Sum up")
    graph = Graph((SOURCE, node), (make_edge("s", "a"),))
    assert list(Registry(LIBRARY).check(node, graph)) == []
