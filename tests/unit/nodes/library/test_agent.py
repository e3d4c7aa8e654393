from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planwave.errors import NodeError, ProviderError
from planwave.graph.inputs import Inputs, labelled_arrivals
from planwave.graph.model import DataValue, Node
from planwave.graph.protocols import NodeEvent
from planwave.nodes.library.agent import BRIEF_SYSTEM_PROMPT, Agent
from planwave.prompts.counted_replies import NOTES_GRAMMAR
from planwave.prompts.render import agent_prompt, small_agent_prompt
from planwave.providers.protocols import (
    Delta,
    ModelProfile,
    ModelReply,
    ModelRequest,
    PromptMessage,
    Source,
    Usage,
)
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders
from tests.support.llm.watched_model import WatchedModel, in_pieces
from tests.support.nodes.node_context import (
    context_for,
    make_inputs,
    result_and_events,
    services_with,
)

PLAIN = Node("a", "agent", "A")
PLANNED = Node("a", "agent", "A", "Compare the two")


def hello(request: ModelRequest) -> list[str]:
    return ["Hel", "lo"]


async def request_of(
    node: Node, data: dict[str, Any], inputs: Inputs, **options: Any
) -> ModelRequest:
    services, models = services_with(hello, **options)
    await result_and_events(Agent().execute(data, inputs, context_for(node, services=services)))
    return models.requests[0]


async def test_the_reply_is_streamed_and_becomes_the_text_result() -> None:
    usage = Usage(3, 2, 0.5)
    services, _ = services_with(lambda _: in_pieces("Hel", "lo", reasoning="hm", usage=usage))
    context = context_for(PLAIN, services=services)
    result, events = await result_and_events(Agent().execute({}, make_inputs("hi"), context))
    assert result.outputs == {"output": DataValue("text", "Hello")}
    assert [(event.event_type, event.data) for event in events] == [
        ("prompt", {"system": None, "prompt": "hi", "provider": "openai", "model": "m"}),
        ("delta", {"text": "hm", "kind": "reasoning"}),
        ("delta", {"text": "Hel", "kind": "text"}),
        ("delta", {"text": "lo", "kind": "text"}),
        (
            "usage",
            {
                "provider": "openai",
                "model": "m",
                "input_tokens": 3,
                "output_tokens": 2,
                "cost_usd": 0.5,
                "estimated": False,
                "duration_s": pytest.approx(0.0, abs=30.0),
            },
        ),
    ]
    assert {(e.node_id, e.node_type, e.run_id) for e in events} == {("a", "agent", "run-1")}


async def test_a_user_prompt_is_sent_exactly_even_by_a_planned_node() -> None:
    request = await request_of(
        PLANNED, {"userPrompt": " Say {{ hi }}\n"}, make_inputs("in"), goal="G"
    )
    assert request.prompt == " Say {{ hi }}\n"


async def test_the_prompt_of_a_planned_node_has_goal_task_and_inputs() -> None:
    request = await request_of(PLANNED, {}, make_inputs("x", {"k": 1}), goal="The goal")
    inputs = 'From Source 0 (s0):\nx\n\nFrom Source 1 (s1):\n{"k":1}'
    assert request.prompt == agent_prompt("The goal", "Compare the two", inputs)
    assert inputs in request.prompt


async def test_a_single_input_of_a_planned_node_is_labelled_with_its_source() -> None:
    request = await request_of(PLANNED, {}, make_inputs("x"))
    assert "From Source 0 (s0):\nx" in request.prompt


async def test_without_prompt_and_description_the_input_is_the_prompt() -> None:
    assert (await request_of(PLAIN, {}, make_inputs({"k": 1}))).prompt == '{"k":1}'


async def test_data_become_the_request() -> None:
    data = {
        "systemPrompt": "Be kind",
        "userPrompt": "Hi",
        "provider": "openai",
        "model": "n",
        "temperature": 1,
        "reasoningEffort": "low",
        "maxTokens": 9,
    }
    assert await request_of(PLAIN, data, Inputs()) == ModelRequest(
        "openai", "n", "Hi", "Be kind", temperature=1.0, max_tokens=9, reasoning_effort="low"
    )


SMALL = ListedProviders(
    {"local": ["tiny"]}, profiles={"tiny": ModelProfile(small=True, max_output_tokens=220)}
)


async def test_a_small_model_gets_a_brief_system_prompt_unless_one_is_set() -> None:
    request = await request_of(PLAIN, {"userPrompt": "Hi"}, Inputs(), providers=SMALL)
    assert (request.system, request.prompt) == (BRIEF_SYSTEM_PROMPT, "Hi")
    own = {"systemPrompt": "Long please", "maxTokens": 500}
    request = await request_of(PLANNED, own, Inputs(), providers=SMALL)
    assert (request.system, request.max_tokens) == ("Long please", 500)


async def test_a_planned_step_on_a_small_model_gets_the_prompt_for_small_models() -> None:
    services, models = services_with(hello, providers=SMALL, goal="Choose a shed")
    inputs = make_inputs("oak lasts")
    await result_and_events(Agent().execute({}, inputs, context_for(PLANNED, services=services)))
    request = models.requests[0]
    assert (request.system, request.prompt) == small_agent_prompt(
        "Choose a shed", "Compare the two", labelled_arrivals(inputs.arrivals), is_last=True
    )


async def test_on_a_small_model_the_last_step_gets_twice_the_tokens() -> None:
    services, models = services_with(hello, providers=SMALL)
    for edges in [(make_edge("a", "z"),), ()]:
        context = context_for(PLAIN, edges=edges, services=services)
        await result_and_events(Agent().execute({"userPrompt": "Hi"}, Inputs(), context))
    assert [request.max_tokens for request in models.requests] == [220, 440]


@pytest.mark.parametrize(
    ("goal", "data", "next_node", "grammars", "held"),
    [
        ("Give me two sheds", {}, False, True, "count"),
        ("Give me a shed", {}, False, True, None),
        ("Give me two sheds", {"userPrompt": "Hi"}, False, True, None),
        ("Give me two sheds", {"outputSchema": {"type": "object"}}, False, True, None),
        ("Give me two sheds", {}, True, True, "notes"),
        ("Give me two sheds", {}, False, False, None),
        ("Give me two sheds", {}, True, False, None),
    ],
)
async def test_a_planned_step_is_held_to_the_number_that_the_goal_asks_for_or_to_the_size_of_notes(
    goal: str, data: dict[str, Any], next_node: bool, grammars: bool, held: str | None
) -> None:
    profile = ModelProfile(small=True, grammars=grammars)
    providers = ListedProviders({"local": ["tiny"]}, profiles={"tiny": profile})
    services, models = services_with(
        lambda _: [ModelReply("{}", "local", "tiny", "stop")], providers=providers, goal=goal
    )
    edges = (make_edge("a", "z"),) if next_node else ()
    context = context_for(PLANNED, edges=edges, services=services)
    await result_and_events(Agent().execute(data, Inputs(), context))
    given = models.requests[0].grammar
    assert (given and ("notes" if given == NOTES_GRAMMAR else "count")) == held


@pytest.mark.parametrize("searches", [True, False])
async def test_the_provider_searches_the_web_only_where_the_agent_says_so(searches: bool) -> None:
    page = Source("https://tides.test/", "Tides")
    reply = ModelReply("High.", "openai", "m", "stop", sources=(page, page))
    services, models = services_with(lambda _: [reply])
    context = context_for(PLAIN, services=services)
    data = {"userPrompt": "How high?", "tools": {"web_search": searches}}
    result, _ = await result_and_events(Agent().execute(data, Inputs(), context))
    assert [request.web_search for request in models.requests] == [searches]
    shown = [{"url": "https://tides.test/", "title": "Tides"}]
    sources = {name: value.value for name, value in result.outputs.items() if name == "sources"}
    assert sources == ({"sources": shown} if searches else {})


async def test_a_node_without_a_model_uses_the_defaults_of_the_run() -> None:
    table = ListedProviders({"openai": ["m"], "anthropic": ["c", "d"]})
    defaults = {"providers": table, "default_provider": "anthropic", "default_model": "d"}
    for data, chosen in [
        ({}, ("anthropic", "d")),
        ({"model": "c"}, ("anthropic", "c")),
        ({"provider": "anthropic"}, ("anthropic", "d")),
        ({"provider": "openai"}, ("openai", "m")),
    ]:
        request = await request_of(PLAIN, {"userPrompt": "x", **data}, Inputs(), **defaults)
        assert (request.provider, request.model) == chosen


@pytest.mark.parametrize(("answers", "first"), [(0, 0), (2, 2_000)])
async def test_the_scope_of_a_call_has_attempt_and_answer_count(answers: int, first: int) -> None:
    services, models = services_with(hello)
    context = replace(context_for(PLAIN, services=services), answers=answers)
    await result_and_events(Agent().execute({}, make_inputs("x"), context))
    scope = models.scopes[0]
    assert scope is not None
    assert (scope.execution_id, scope.path, scope.attempt) == ("run-1", "a", 1)
    assert scope.next_ordinal() == first


async def test_a_truncated_reply_gives_its_text_and_a_warning() -> None:
    reply = ModelReply("Half a sent", "openai", "m", "length", Usage(1, 4), recorded=True)
    services, _ = services_with(lambda _: [reply])
    context = context_for(PLAIN, services=services)
    result, events = await result_and_events(Agent().execute({}, make_inputs("x"), context))
    assert result.outputs["output"].value == "Half a sent"
    assert events[-1].event_type == "log"
    assert events[-1].data == {
        "message": "the reply was cut at 4 tokens; raise maxTokens",
        "level": "warning",
        "kind": "reply_cut",
    }
    assert events[-2].data["recorded"] is True


CONTINUING = ListedProviders(
    {"local": ["tiny"]},
    profiles={"tiny": ModelProfile(small=True, max_output_tokens=20, continues=True)},
)


def replies(*given: tuple[str, str] | ProviderError) -> Any:
    """Return a function that replies with the next ``(text, finish_reason)``, or raises the error."""
    left = list(given)

    def reply(request: ModelRequest) -> list[Delta | ModelReply]:
        following = left.pop(0)
        if isinstance(following, ProviderError):
            raise following
        text, reason = following
        return [Delta(text), ModelReply(text, "local", "tiny", reason, Usage(3, 4))]

    return reply


async def run_continuing(
    reply: Any, data: dict[str, Any], providers: ListedProviders = CONTINUING
) -> tuple[str, list[NodeEvent], WatchedModel]:
    services, models = services_with(reply, providers=providers)
    context = context_for(PLAIN, edges=(make_edge("a", "z"),), services=services)
    result, events = await result_and_events(Agent().execute(data, make_inputs("x"), context))
    return result.outputs["output"].value, events, models


def texts(events: list[NodeEvent], event_type: str) -> list[Any]:
    key = {"delta": "text", "log": "message", "usage": "output_tokens", "prompt": "prompt"}
    return [event.data[key[event_type]] for event in events if event.event_type == event_type]


async def test_a_cut_reply_is_continued_once_in_the_same_stream() -> None:
    text, events, models = await run_continuing(replies(("Oak la", "length"), ("sts.", "stop")), {})
    assert text == "Oak lasts."
    assert [event.event_type for event in events] == ["prompt", "delta", "usage", "delta", "usage"]
    assert texts(events, "delta") == ["Oak la", "sts."]
    first, second = models.requests
    assert second == replace(
        first,
        prompt="",
        messages=(PromptMessage("user", "x"), PromptMessage("assistant", "Oak la")),
        max_tokens=10,
    )
    assert models.scopes[0] is models.scopes[1], "the calls of an attempt are numbered"


async def test_a_continuation_that_is_cut_too_is_not_continued() -> None:
    cut = replies(("Oak la", "length"), ("sts for", "length"))
    text, events, models = await run_continuing(cut, {})
    assert text == "Oak lasts for"
    assert texts(events, "log") == ["the reply was cut at 8 tokens; raise maxTokens"]
    assert len(models.requests) == 2


async def test_a_conversation_is_continued_after_its_last_question() -> None:
    data = {"messages": [{"role": "user", "content": "Which wood?"}], "userPrompt": "And why?"}
    _, _, models = await run_continuing(replies(("Oak la", "length"), ("sts.", "stop")), data)
    assert [(turn.role, turn.text) for turn in models.requests[1].messages] == [
        ("user", "Which wood?"),
        ("user", "And why?"),
        ("assistant", "Oak la"),
    ]


async def test_a_continuation_that_fails_leaves_the_cut_reply() -> None:
    failing = replies(("Oak la", "length"), ProviderError("down", provider="local"))
    text, events, _ = await run_continuing(failing, {})
    assert text == "Oak la"
    assert texts(events, "log") == ["the reply was cut at 4 tokens; raise maxTokens"]


@pytest.mark.parametrize(
    ("data", "providers"),
    [({"maxTokens": 9}, CONTINUING), ({}, SMALL)],
    ids=["limit-of-the-user", "model-that-cannot-continue"],
)
async def test_a_cut_reply_is_not_continued(
    data: dict[str, Any], providers: ListedProviders
) -> None:
    text, events, models = await run_continuing(replies(("Oak la", "length")), data, providers)
    assert text == "Oak la"
    assert texts(events, "log") == ["the reply was cut at 4 tokens; raise maxTokens"]
    assert len(models.requests) == 1


async def failure(execution: Any) -> NodeError:
    with pytest.raises(NodeError) as caught:
        await result_and_events(execution)
    return caught.value


async def test_a_failed_call_fails_the_node_with_the_providers_error() -> None:
    def down(request: ModelRequest) -> Any:
        yield "par"
        raise ProviderError("down", provider="openai", retryable=True)

    services, _ = services_with(down)
    error = await failure(
        Agent().execute({}, make_inputs("x"), context_for(PLAIN, services=services))
    )
    assert (error.code, error.retryable) == ("provider-error", True)


@pytest.mark.parametrize(
    ("data", "code"),
    [({"provider": "gpt9000"}, "unknown-provider"), ({"model": "zzz"}, "unknown-model")],
)
async def test_an_unknown_provider_or_model_fails_before_any_call(
    data: dict[str, Any], code: str
) -> None:
    services, models = services_with(hello)
    context = context_for(PLAIN, services=services)
    error = await failure(Agent().execute(data, make_inputs("x"), context))
    assert error.code == code
    assert error.hint
    assert models.requests == []


async def test_an_empty_prompt_is_not_sent() -> None:
    services, models = services_with(hello)
    error = await failure(Agent().execute({}, Inputs(), context_for(PLAIN, services=services)))
    assert error.code == "empty-prompt"
    assert models.requests == []


async def test_a_run_without_models_fails_the_node() -> None:
    error = await failure(Agent().execute({}, make_inputs("x"), context_for(PLAIN)))
    assert error.code == "no-models"


async def test_closing_the_stream_early_closes_the_call() -> None:
    closed: list[bool] = []

    def long(request: ModelRequest) -> Any:
        try:
            yield "a"
            yield "b"
        finally:
            closed.append(True)

    services, _ = services_with(long)
    execution: Any = Agent().execute({}, make_inputs("x"), context_for(PLAIN, services=services))
    assert (await anext(execution)).event_type == "prompt"
    assert (await anext(execution)).event_type == "delta"
    await execution.aclose()
    assert closed == [True]
