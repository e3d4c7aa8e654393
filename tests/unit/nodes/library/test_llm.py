from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import ResultNotJson
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.nodes.library.agent import BRIEF_SYSTEM_PROMPT, Agent
from planwave.nodes.library.llm import JSON_ONLY, Llm
from planwave.providers.protocols import ModelProfile, ModelReply
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.nested_graphs import (
    graph_document,
    node_document,
    run_to_end,
)
from tests.support.nodes.node_context import (
    context_for,
    make_inputs,
    result_and_events,
    services_with,
)

NODE = Node("a", "llm", "A", "A description, which llm never sends")


async def run(text: str, data: dict[str, Any], inputs: Inputs = Inputs(), **options: Any) -> Any:  # noqa: B008
    services, models = services_with(lambda _: [text], **options)
    result, events = await result_and_events(
        Llm().execute(data, inputs, context_for(NODE, services=services))
    )
    return result.outputs["output"], events, models.requests[0]


async def test_the_prompt_is_sent_unchanged_and_the_reply_is_text() -> None:
    data = {"prompt": " p ", "system": "S", "temperature": 0.5, "maxTokens": 7, "model": "n"}
    value, events, request = await run("4", data)
    assert value == DataValue("text", "4")
    assert (request.prompt, request.system, request.model) == (" p ", "S", "n")
    assert (request.temperature, request.max_tokens) == (0.5, 7)
    assert [event.event_type for event in events] == ["prompt", "delta", "usage"]


@pytest.mark.parametrize("data", [{}, {"prompt": None}, {"prompt": ""}, {"prompt": " \n"}])
async def test_without_a_prompt_the_input_is_the_prompt(data: dict[str, Any]) -> None:
    _, _, request = await run("x", data, make_inputs("ask this"))
    assert request.prompt == "ask this"


async def test_without_stream_no_deltas_are_emitted() -> None:
    _, events, _ = await run("x", {"prompt": "p", "stream": False})
    assert [event.event_type for event in events] == ["prompt", "usage"]


@pytest.mark.parametrize("text", ['{"a": [1]}', '```json\n{"a": [1]}\n```', '```\n{"a":[1]}```\n'])
@pytest.mark.parametrize("name", ["jsonOutput", "json_mode"])
async def test_json_output_gives_the_parsed_value(name: str, text: str) -> None:
    value, _, request = await run(text, {"prompt": "p", "system": "S", name: True})
    assert value == DataValue("json", {"a": [1]})
    assert request.system == f"S\n\n{JSON_ONLY}"


@pytest.mark.parametrize("text", ["Sure: {}", "", "[NaN]", '{"a":1,"a":2}', "[" * 100_000])
async def test_a_reply_that_is_not_strict_json_fails_the_node(text: str) -> None:
    with pytest.raises(ResultNotJson, match="the model's reply is not JSON") as caught:
        await run(text, {"prompt": "p", "jsonOutput": True})
    assert caught.value.code == "result-not-json"
    assert caught.value.retryable


async def test_truncated_json_fails_the_node_with_a_hint() -> None:
    reply = ModelReply('{"a": ', "openai", "m", "length")
    services, _ = services_with(lambda _: [reply])
    execution = Llm().execute(
        {"prompt": "p", "jsonOutput": True}, Inputs(), context_for(NODE, services=services)
    )
    with pytest.raises(ResultNotJson, match="it was cut off") as caught:
        await result_and_events(execution)
    assert caught.value.hint == "raise maxTokens"
    assert not caught.value.retryable


async def test_a_small_model_gets_a_brief_system_prompt_except_for_json() -> None:
    small = ListedProviders(
        {"local": ["t"]}, profiles={"t": ModelProfile(small=True, max_output_tokens=220)}
    )
    _, _, request = await run("x", {"prompt": "p"}, providers=small)
    assert (request.system, request.max_tokens) == (BRIEF_SYSTEM_PROMPT, 220)
    _, _, request = await run("1", {"prompt": "p", "jsonOutput": True}, providers=small)
    assert request.system == JSON_ONLY


@pytest.mark.parametrize(
    ("kind", "prompt", "system"),
    [("llm", "prompt", "system"), ("agent", "userPrompt", "systemPrompt")],
)
async def test_templates_in_the_system_prompt_are_resolved_and_a_wire_into_it_is_not(
    kind: str, prompt: str, system: str
) -> None:
    who = node_document("who", "json", value={"name": "Ada"})
    data = {prompt: "Hi", system: "You help {{ input.name }}, {{ nodes.who.output.name | upper }}."}
    services, models = services_with(lambda _: ["Hello."])
    graph = graph_document(who, node_document("ask", kind, **data), edges=[("who", "ask")])
    assert (await run_to_end(graph, services=services)).error is None
    text = node_document("text", "text", text='You are {{ "{{ input }}" }}.')
    wire = ("text", "ask", "output", system)
    data = {prompt: "Hi", system: "Before."}
    graph = graph_document(text, node_document("ask", kind, **data), edges=[wire])
    assert (await run_to_end(graph, services=services)).error is None
    systems = [each.system for each in models.requests]
    assert systems == ["You help Ada, ADA.", "You are {{ input }}."]


async def test_the_system_prompt_as_resolved_is_part_of_what_the_result_depends_on() -> None:
    services, _ = services_with(lambda _: ["x"])
    for kind, field, prompt in ((Llm, "system", "prompt"), (Agent, "systemPrompt", "userPrompt")):
        context = context_for(NODE, services=services)
        facts = [
            await kind().result_depends_on({prompt: "p", field: system}, Inputs(), context)
            for system in ("A", "A", "B")
        ]
        assert facts[0] == facts[1] != facts[2]
