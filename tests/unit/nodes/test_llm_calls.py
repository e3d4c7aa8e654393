"""The check of a prompt's inputs, and the models that are called where a call has failed for good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import NodeError, ProviderError
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import (
    DEFAULT_POLICY,
    LINK,
    DataValue,
    Edge,
    Graph,
    Json,
    Node,
    Policy,
)
from planwave.graph.protocols import NodeEvent
from planwave.nodes.authoring.field_wires import FieldBundle
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.agent import BRIEF_SYSTEM_PROMPT, Agent
from planwave.nodes.library.llm import Llm
from planwave.nodes.registry import Registry
from planwave.providers.errors import provider_error
from planwave.providers.protocols import Delta, ModelProfile, ModelRequest
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders
from tests.support.llm.watched_model import WatchedModel
from tests.support.nodes.node_context import (
    context_for,
    make_inputs,
    result_and_events,
    services_with,
)

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


# -- models called where a call has failed for good

CHAIN = ListedProviders(
    {"openai": ["m"], "own": ["big"], "local": ["tiny"]},
    profiles={"tiny": ModelProfile(small=True, max_output_tokens=220)},
)
FALLBACK = [{"provider": "own"}, {"provider": "local", "model": "tiny"}]
DOWN = ("provider-overloaded", True)


class Calls:
    """The calls of one node whose models stream ``partial`` and fail with the code given for them."""

    def __init__(self, partial: Sequence[str | Delta] = (), **failing: tuple[str, bool]) -> None:
        self._partial, self._failing = partial, failing
        self.services, self.models = services_with(self.reply, CHAIN)
        self.events: list[tuple[str, Json]] = []

    def reply(self, request: ModelRequest) -> Iterator[str | Delta]:
        if request.provider not in self._failing:
            yield f"from {request.model}"
            return
        yield from self._partial
        code, retryable = self._failing[request.provider]
        raise provider_error(
            code, provider=request.provider, model=request.model, retryable=retryable
        )

    async def run(self, kind: Agent | Llm, data: dict[str, Any]) -> DataValue:
        node = Node("a", kind.node_type, "A")
        context = replace(context_for(node, services=self.services), record=self._record)
        execution: Any = kind.execute(
            {"fallback": FALLBACK, "provider": "openai", **data}, make_inputs("hi"), context
        )
        async for item in execution:
            if not isinstance(item, NodeEvent):
                return item.outputs["output"]
            self.events.append((item.event_type, item.data))
        raise AssertionError("no result")

    async def _record(self, kind: str, data: Json) -> None:
        self.events.append((kind, data))

    async def error(self, **data: Any) -> NodeError:
        with pytest.raises(NodeError) as caught:
            await self.run(Agent(), data)
        return caught.value

    @property
    def called(self) -> list[str]:
        return [request.provider for request in self.models.requests]

    def data_of(self, event_type: str) -> list[Any]:
        return [data for kind, data in self.events if kind == event_type]


@pytest.mark.parametrize("kind", [Agent(), Llm()])
async def test_the_next_model_is_called_where_a_call_has_failed_for_good(kind: Agent | Llm) -> None:
    calls = Calls(openai=("provider-auth", False))
    assert await calls.run(kind, {}) == DataValue("text", "from big")
    assert [kind for kind, _ in calls.events] == ["prompt", "log", "prompt", "delta", "usage"]
    assert calls.data_of("log") == [
        {
            "message": "openai (m) failed (provider-auth); own (big) is called next",
            "level": "warning",
        }
    ]
    for kind_of_event in ("prompt", "usage"):
        assert calls.data_of(kind_of_event)[-1]["provider"] == "own"
        assert calls.data_of(kind_of_event)[-1]["model"] == "big"


@pytest.mark.parametrize("kind", [Agent(), Llm()])
async def test_without_a_failure_no_fallback_is_called(kind: Agent | Llm) -> None:
    calls = Calls()
    assert await calls.run(kind, {}) == DataValue("text", "from m")
    assert calls.called == ["openai"]


async def test_models_are_called_in_their_order_as_numbered_calls_of_one_attempt() -> None:
    calls = Calls(openai=DOWN, own=DOWN)
    assert await calls.run(Agent(), {}) == DataValue("text", "from tiny")
    assert calls.called == ["openai", "own", "local"]
    scope, *others = calls.models.scopes
    assert all(other is scope for other in others)


async def test_only_a_failure_before_another_call_is_recorded() -> None:
    asked: list[bool] = []

    class Models(WatchedModel):
        def stream(self, request: ModelRequest, scope: Any = None) -> Any:
            asked.append(scope.record_failures)
            return super().stream(request, scope)

    calls = Calls(openai=DOWN, own=DOWN)
    models = Models(calls.reply)
    calls.services = replace(calls.services, models=models)
    await calls.run(Agent(), {})
    assert asked == [True, True, False]
    asked.clear()
    await calls.run(Agent(), {"provider": "local", "fallback": None})
    assert asked == [False]


@pytest.mark.parametrize("code", ["bad-request", "content-filtered", "refused"])
async def test_no_model_is_called_after_an_error_of_the_request(code: str) -> None:
    calls = Calls(openai=(code, False))
    assert (await calls.error()).code == code
    assert calls.called == ["openai"]


async def test_a_reply_that_is_not_json_calls_no_fallback() -> None:
    calls = Calls()
    with pytest.raises(NodeError) as caught:
        await calls.run(Llm(), {"jsonOutput": True})
    assert (caught.value.code, calls.called) == ("result-not-json", ["openai"])


async def test_the_error_of_the_last_model_names_the_failures_before_it() -> None:
    calls = Calls(openai=DOWN, own=("quota-exhausted", False), local=("empty-reply", False))
    error = await calls.error()
    assert isinstance(error, ProviderError)
    assert (error.code, error.provider, error.model) == ("empty-reply", "local", "tiny")
    assert error.message == (
        "local (tiny) sent an empty reply "
        "(tried before: openai (m): provider-overloaded, own (big): quota-exhausted)"
    )
    assert error.retryable, "the first model may be available again"
    assert isinstance(error.__cause__, ProviderError)


async def test_the_error_of_a_single_model_is_that_of_the_provider() -> None:
    error = await Calls(openai=DOWN).error(fallback=[])
    assert (error.code, error.message) == (DOWN[0], "openai (m) is overloaded")
    assert error.__cause__ is not error


async def test_text_of_the_failed_model_is_discarded_before_the_next_call() -> None:
    calls = Calls([Delta("hm", "reasoning"), "half a "], openai=("stream-truncated", True))
    assert await calls.run(Agent(), {}) == DataValue("text", "from big")
    assert [kind for kind, _ in calls.events] == [
        "prompt", "delta", "delta", "text_discarded", "log", "prompt", "delta", "usage",
    ]  # fmt: skip
    (discarded,), (log,) = calls.data_of("text_discarded"), calls.data_of("log")
    assert discarded == {"message": log["message"]}


async def test_text_that_was_not_streamed_is_not_discarded() -> None:
    calls = Calls(["half a "], openai=("stream-truncated", True))
    assert await calls.run(Llm(), {"stream": False}) == DataValue("text", "from big")
    assert [kind for kind, _ in calls.events] == ["prompt", "log", "prompt", "usage"]


async def test_each_model_gets_the_request_that_fits_it() -> None:
    calls = Calls(openai=DOWN, own=DOWN)
    await calls.run(Agent(), {"userPrompt": "Why?", "temperature": 0.5})
    first, second, third = calls.models.requests
    assert second == replace(first, provider="own", model="big")
    assert third == replace(
        first, provider="local", model="tiny", system=BRIEF_SYSTEM_PROMPT, max_tokens=440
    )


async def test_a_linked_model_brings_its_fallback() -> None:
    bundle = FieldBundle("model", {"provider": "openai", "model": "m", "fallback": FALLBACK[:1]})
    calls = Calls(openai=DOWN)
    context = context_for(
        Node("a", "agent", "A"),
        edges=[make_edge("g", "a", channel=LINK, target_handle="model")],
        links={("a", "model"): [bundle]},
        services=calls.services,
    )
    data = {"provider": "local", "fallback": [{"provider": "local"}]}
    result, _ = await result_and_events(Agent().execute(data, make_inputs("hi"), context))
    assert result.outputs["output"].value == "from big"
    assert calls.called == ["openai", "own"]


async def test_an_unknown_fallback_fails_the_node_before_any_call() -> None:
    calls = Calls()
    error = await calls.error(fallback=[{"model": "none"}])
    assert (error.code, calls.called) == ("unknown-model", [])
