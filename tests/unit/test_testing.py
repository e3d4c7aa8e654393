"""Tests of graphs with fake models and replaced steps, for every node type and every place of a step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from pydantic import BaseModel

import planwave
from planwave import testing
from planwave.bootstrap import open_service
from planwave.errors import ProviderError
from planwave.graph.model import DataValue
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.providers.protocols import ModelRequest
from planwave.providers.substitutes import process_calls
from planwave.settings import Settings
from planwave.testing import FakeModel, run, run_sync, tool_call, use_model
from tests.support.llm.planner_replies import planner_reply, reply_edge, reply_node

REGISTRY = Registry(LIBRARY)
ASKING = [name for name in REGISTRY.names() if REGISTRY.spec(name).calls_model]


@planwave.tool(effect="read", registry=REGISTRY)
def look_up_order(number: str) -> str:
    """Return the state of an order; the examples of tools name it."""
    return f"The order {number} is on its way."


@planwave.tool(effect="write", registry=REGISTRY)
def cancel_order(number: str) -> str:
    """Cancel an order."""
    return f"The order {number} is cancelled."


class Verdict(BaseModel):
    refund: bool
    reason: str


@planwave.tool
def look_up(order: str) -> str:
    """Look up an order."""
    return f"order {order}: 3 EUR"


@planwave.node("testing_must_not_run")
def must_not_run(input: str) -> str:
    """Fail wherever it runs."""
    raise AssertionError(f"it ran with {input!r}")


@planwave.node("testing_price")
def price(input: str, tax: float = 0.1) -> float:
    """Ask a shop for a price."""
    raise AssertionError("a test asked the shop")


@pytest.fixture
def graph() -> planwave.GraphBuilder:
    g = planwave.GraphBuilder()
    priced = g.node(price, id="price", input=g.node("start", id="start"))
    g.agent(
        "Judge: {{ input }}",
        id="judge",
        output_type=Verdict,
        tools=[look_up],
        input=priced,
        model="openai:gpt-5.6-luna",
    )
    return g


def asks(**fields: Any) -> planwave.GraphBuilder:
    """Return a graph of one llm step."""
    g = planwave.GraphBuilder()
    g.node("llm", id="ask", **{"prompt": "Say hello.", **fields})
    return g


def a_step(g: planwave.GraphBuilder, id: str, **more: Any) -> planwave.NodeRef[str]:
    """Add a step that fails if it runs."""
    return g.node(must_not_run, id=id, input=g.node("text", text="x"), **more)


# -- models ----------------------------------------------------------------------------------------


def test_a_model_calls_tools_and_gives_typed_output_while_a_step_is_replaced(
    graph: planwave.GraphBuilder,
) -> None:
    def reply(request: ModelRequest) -> Verdict | planwave.testing.ToolCall:
        return (
            Verdict(refund=True, reason="x")
            if request.messages
            else tool_call("look_up", order="1")
        )

    model = FakeModel(reply)
    result = run_sync(graph, "a hat", model=model, replace={"price": 3.5})
    assert result["judge"] == {"refund": True, "reason": "x"}
    first, second = model.requests
    assert (first.provider, first.model) == ("openai", "gpt-5.6-luna")
    assert (first.prompt, first.tool_names) == ("Judge: 3.5", ("look_up",))
    assert first.schema is not None
    assert set(first.schema["properties"]) == {"refund", "reason"}
    assert [(each.tool_name, each.text) for each in second.tool_results] == [
        ("look_up", "order 1: 3 EUR")
    ]
    assert result.usage.calls == 2
    assert result.usage.cost_usd is not None
    assert result.usage.cost_usd > 0, "the price of the model that the step names"


PLAN = planner_reply(reply_node("a"), reply_node("b"), edges=[reply_edge("a", "b")])


def reply_of_any(request: ModelRequest) -> str:
    """Return a plan where one is asked for, or JSON that is also a text."""
    return PLAN if request.schema is not None else '{"name": "Ada"}'


@pytest.mark.parametrize("node_type", ASKING)
def test_each_type_that_calls_a_model_runs_with_a_fake_model_alone(node_type: str) -> None:
    model = FakeModel(reply_of_any)
    result = run_sync(REGISTRY.spec(node_type).example, model=model, registry=REGISTRY)
    assert result.status == "completed"
    assert model.requests
    assert result.usage.calls == len(model.requests)


def test_conversations_and_agents_of_agents_are_asked_too() -> None:
    model = FakeModel("Berries.")
    result = run_sync(REGISTRY.spec("chat").example, model=model)
    (request,) = model.requests
    assert (result.text, request.system, len(request.messages)) == (
        "Berries.", "You know all about birds.", 3,
    )  # fmt: skip
    g = planwave.GraphBuilder()
    helper = g.agent("", id="helper", name="helper")
    lead = g.agent("Ask your helper.", id="lead")
    g.edge(helper["tools-out"], lead["tools"], channel="link")
    delegating = FakeModel([tool_call("delegate_helper", task="count"), "three", "done: three"])
    assert run_sync(g, model=delegating)["lead"] == "done: three"
    assert delegating.requests[1].prompt == "count"
    replaced = FakeModel([tool_call("delegate_helper", task="count"), "done"])
    counted = Mock(return_value="four")
    assert run_sync(g, model=replaced, replace={"helper": counted})["lead"] == "done"
    assert counted.call_args.kwargs["input"] == "count"
    assert [each.text for each in replaced.requests[1].tool_results] == ["four"]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("hello", "hello"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        (Verdict(refund=False, reason="ü"), '{"refund":false,"reason":"ü"}'),
        (3.5, "3.5"),
        (lambda request: f"{request.prompt}!", "Say hello.!"),
        (lambda _: ["a", 1], '["a", 1]'),
        (lambda _: iter(["a ", "b"]), "a b"),
        (["one"], "one"),
    ],
)
def test_a_reply_is_text_json_or_a_function(reply: Any, text: str) -> None:
    assert run_sync(asks(), model=FakeModel(reply))["ask"] == text


async def test_a_function_may_be_async_and_a_generator_streams_piece_by_piece() -> None:
    async def wait(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        return request.prompt.upper()

    async def pieces(_: ModelRequest) -> AsyncIterator[str]:
        yield "one, "
        yield "two"

    assert (await run(asks(), model=FakeModel(wait)))["ask"] == "SAY HELLO."
    for reply, expected in (
        (pieces, ["one, ", "two"]),
        ("a  longer\nreply", ["a  ", "longer\n", "reply"]),
    ):
        events = [event async for event in run(asks(), model=FakeModel(reply))]
        streamed = [event.data["text"] for event in events if event.type == "node.delta"]
        assert "".join(streamed) == "".join(expected)
        items = [item async for item in FakeModel(reply).stream(ModelRequest("p", "m", "x"))]
        assert [item.text for item in items[:-1]] == expected


def test_a_turn_has_text_and_several_calls_with_ids_of_their_own(
    graph: planwave.GraphBuilder,
) -> None:
    turn = ["Let me see.", tool_call("look_up", order="1"), tool_call("look_up", order="2")]
    model = FakeModel([turn, Verdict(refund=True, reason="both")])
    assert run_sync(graph, "x", model=model, replace={"price": 1.0})["judge"]["refund"] is True
    (said,) = [each for each in model.requests[1].messages if each.role == "assistant"]
    assert said.text == "Let me see."
    assert [call.id for call in said.tool_calls] == ["call-1-1", "call-1-2"]
    assert [each.text for each in model.requests[1].tool_results] == [
        "order 1: 3 EUR", "order 2: 3 EUR",
    ]  # fmt: skip


def test_a_list_that_is_used_up_says_which_request_asked_what() -> None:
    with pytest.raises(planwave.ExecutionFailed) as caught:
        run_sync(asks(), model=FakeModel([]))
    (failure,) = caught.value.result.failures
    assert failure.code == "no-reply-left"
    assert (
        "has no reply left of 0, and request 1, to fake:fake, asks: 'Say hello.'" in failure.message
    )


def test_an_exception_fails_the_call_once_and_a_retry_of_the_step_asks_again() -> None:
    refused = ProviderError("busy", provider="openai", code="rate-limited", retryable=True)
    model = FakeModel([refused, "ok"])
    policy = {"retry": {"attempts": 2, "backoffS": 0}}
    assert run_sync(asks(policy=policy), model=model)["ask"] == "ok"
    assert len(model.requests) == 2
    g = planwave.GraphBuilder()
    each = g.map("llm", [*range(8)], on_item_error="null", prompt="{{ item }}")
    result = run_sync(g, model=FakeModel(refused))
    assert result[each] == [None] * 8, "no circuit opens: that would wait for the provider"
    with pytest.raises(planwave.ExecutionFailed) as caught:
        run_sync(asks(), model=FakeModel(RuntimeError("broken")))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_reply_that_is_none_and_a_tool_that_is_not_offered_are_errors(
    graph: planwave.GraphBuilder,
) -> None:
    with pytest.raises(planwave.ExecutionFailed, match=r"replies None: return a text, tool_call"):
        run_sync(asks(), model=FakeModel(lambda _: None))
    with pytest.raises(planwave.ExecutionFailed, match="did you mean 'look_up'"):
        run_sync(graph, "x", model=FakeModel(tool_call("lookup")), replace={"price": 1.0})


def test_models_by_name_reply_each_to_its_own_calls() -> None:
    g = planwave.GraphBuilder()
    g.node("llm", id="a", prompt="x", model="openai:gpt-5.6-luna")
    g.node("llm", id="b", prompt="x", model="nobody:knows")
    models = {"openai:gpt-5.6-luna": FakeModel("one"), "*": FakeModel("two")}
    result = run_sync(g, model=models)
    assert (result["a"], result["b"]) == ("one", "two")
    with pytest.raises(planwave.ExecutionFailed, match="a test called the model nobody:knows"):
        run_sync(g, model={"openai:gpt-5.6-luna": FakeModel("one")})
    for wrong in ("ok", {"*": "ok"}):
        with pytest.raises(TypeError, match="model must be a FakeModel"):
            run_sync(g, model=wrong)  # pyright: ignore[reportArgumentType]


def test_without_a_model_no_call_is_made_and_the_budget_holds() -> None:
    with pytest.raises(planwave.ExecutionFailed, match="a test called the model") as caught:
        run_sync(asks(model="openai:gpt-5.6-luna"))
    assert caught.value.result.failures[0].code == "model-call-forbidden"
    assert "model=FakeModel(…)" in str(caught.value.result.failures[0].hint)
    g = planwave.GraphBuilder()
    g.node("llm", prompt="{{ input }}", input=g.node("llm", prompt="x"))
    paused = run_sync(g, model=FakeModel("y"), options=planwave.RunOptions(budget={"calls": 1}))
    assert (paused.status, paused.usage.calls) == ("paused", 1)


def test_an_answered_run_and_a_fork_keep_model_and_replacements(tmp_path: Path) -> None:
    g = planwave.GraphBuilder()
    asked = g.node("approval", id="ask", prompt="Go on?", input=a_step(g, "first"))
    g.node("llm", id="after", prompt="{{ input }}", input=asked["approve"])
    model = FakeModel(["one", "two"])
    paused = run_sync(g, model=model, replace={"first": "text"}, store=tmp_path / "runs")
    (request,) = paused.requests
    done = paused.run.answer(request.request_id, {"decision": "approve"}).wait()
    assert done["after"] == "one"
    assert done.run.fork(rerun=["after"]).wait()["after"] == "two"


def test_a_model_beside_services_is_refused() -> None:
    with pytest.raises(TypeError, match=r"leave out model=, or services="):
        run_sync(asks(), model=FakeModel(""), services=object())
    with pytest.raises(TypeError, match=r"planwave\.testing\.run_sync has no argument 'modle'"):
        run_sync(asks(), modle=FakeModel(""))  # pyright: ignore[reportCallIssue]


def test_planning_uses_the_model_of_the_block() -> None:
    with use_model(FakeModel(reply_of_any)) as model:
        assert len(planwave.plan_sync("Compare two ways").graph.nodes) == 2
        result = planwave.run_goal_sync("Compare two ways")
    assert (result.status, result.usage.calls, len(model.requests)) == ("completed", 2, 4)
    assert process_calls.substitute is None


async def test_a_service_in_the_same_process_is_replied_to(tmp_path: Path) -> None:
    with use_model(FakeModel(reply_of_any)) as model:
        async with open_service(Settings(storage_dir=tmp_path / "storage")) as service:
            plan = await service.plans.create("Compare two ways")
    assert (len(plan.graph.nodes), len(model.requests)) == (2, 1)


# -- replaced steps --------------------------------------------------------------------------------


def in_a_map(g: planwave.GraphBuilder) -> str:
    g.map(must_not_run, ["a", "b"], id="m")
    return "m/testing_must_not_run"


def in_a_loop(g: planwave.GraphBuilder) -> str:
    body = planwave.GraphBuilder()
    body.node(must_not_run, id="deep", input=body.node("start"))
    g.map(body, ["a", "b"], id="m")
    return "m/deep"


def in_a_while(g: planwave.GraphBuilder) -> str:
    body = planwave.GraphBuilder()
    body.node(must_not_run, id="deep", input=body.node("start"))
    g.node("while", id="w", condition="{{ index < 2 }}", body=body, input=g.node("text", text="x"))
    return "w/deep"


def in_a_nested_graph(g: planwave.GraphBuilder) -> str:
    inner = planwave.GraphBuilder()
    inner.node(must_not_run, id="deep", input=inner.node("start"))
    g.node("inner", id="i", graph=inner, input=g.node("text", text="x"))
    return "i/deep"


def in_graphs_inside_each_other(g: planwave.GraphBuilder) -> str:
    inner = planwave.GraphBuilder()
    inner.map(must_not_run, inner.node("start"), id="m")
    g.map(inner, [["a"], ["b"]], id="outer")
    return "outer/m/testing_must_not_run"


def in_a_branch(g: planwave.GraphBuilder) -> str:
    kind = g.switch(g.node("text", text="yes"), cases=["yes", "no"])
    g.node(must_not_run, id="deep", input=kind["yes"])
    return "deep"


PLACES = (
    in_a_map, in_a_loop, in_a_while, in_a_nested_graph, in_graphs_inside_each_other, in_a_branch,
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_replaced_step_does_not_run_wherever_it_is(place: Any) -> None:
    g = planwave.GraphBuilder()
    path = place(g)
    instead = Mock(return_value="instead")
    assert run_sync(g, replace={path: instead}).status == "completed"
    assert run_sync(g, replace={path: "instead"}).status == "completed"
    assert 1 <= instead.call_count <= 3
    with pytest.raises(planwave.ExecutionFailed, match="it ran with"):
        run_sync(g)


def test_every_type_that_has_graphs_in_its_data_is_among_the_places() -> None:
    containers = {n for n in REGISTRY.names() if REGISTRY.spec(n).type_info.graph_fields}
    assert containers == {"loop", "while", "inner"}


def test_one_item_of_a_loop_is_replaced_by_its_key() -> None:
    g = planwave.GraphBuilder()
    path = in_a_loop(g)
    result = run_sync(g, replace={"m[1]/deep": "second", path: lambda input: f"any {input}"})
    assert result["m"] == ["any a", "second"]


LINKED = [name for name in REGISTRY.names() if not REGISTRY.spec(name).type_info.executes]


STAND_INS = [name for name in REGISTRY.names() if REGISTRY.spec(name).type_info.stands_in]
"""No graph with one runs, also where a test would replace the step."""


@pytest.mark.parametrize(
    "node_type", [n for n in REGISTRY.names() if n not in {*LINKED, *STAND_INS}]
)
def test_a_step_of_each_type_is_replaced(node_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the step nor what it would ask outside is called."""
    example = REGISTRY.spec(node_type).example
    (node, *_) = [each for each in example["nodes"] if each["type"] == node_type]
    taken = [each for each in example["edges"] if each["source"] == node["id"]]
    handle = taken[0].get("sourceHandle", "output") if taken else "output"
    if handle == "output" and not taken:
        names = [
            port.name
            for port in REGISTRY.spec(node_type).type_info.outputs
            if port.channel == "flow"
        ]
        handle = "output" if "output" in names or not names else names[0]
    implementation = REGISTRY.implementation(node_type)
    for method in ("execute", "result_depends_on"):
        if hasattr(implementation, method):
            monkeypatch.setattr(implementation, method, Mock(side_effect=AssertionError("it ran")))
    given = planwave.ExecutionResult({handle: DataValue("text", "instead")})
    instead = AsyncMock(return_value=given)
    replaced = {node["id"]: instead}
    result = run_sync(
        example, model=FakeModel("x"), replace=replaced, registry=REGISTRY, check=False
    )
    assert instead.await_count == 1
    assert result.outputs[node["id"]][handle].value == "instead"


def test_what_is_linked_to_a_replaced_step_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    example = REGISTRY.spec("mcp_server").example
    (agent,) = [each["id"] for each in example["nodes"] if each["type"] == "agent"]
    started = Mock(side_effect=AssertionError("the server was started"))
    monkeypatch.setattr(REGISTRY.implementation("mcp_server"), "materialize", started)
    assert run_sync(example, replace={agent: "done"}, registry=REGISTRY)[agent] == "done"
    with pytest.raises(planwave.ExecutionFailed, match="the server was started"):
        run_sync(example, model=FakeModel("x"), registry=REGISTRY)


@pytest.mark.parametrize("node_type", LINKED)
def test_what_only_other_nodes_use_is_no_step(node_type: str) -> None:
    example = REGISTRY.spec(node_type).example
    (node, *_) = [each for each in example["nodes"] if each["type"] == node_type]
    with pytest.raises(planwave.InputError, match="does not run by itself"):
        run_sync(example, replace={node["id"]: "x"}, registry=REGISTRY)


def test_an_unknown_path_is_an_error_before_anything_runs(graph: planwave.GraphBuilder) -> None:
    with pytest.raises(planwave.InputError, match="did you mean 'price'") as caught:
        run(graph, "x", replace={"prize": 1})
    assert caught.value.code == "unknown-node"
    with pytest.raises(planwave.InputError, match="the steps are start, price, judge"):
        run(graph, "x", replace={"price/deep/deeper": 1})


def test_a_step_is_replaced_by_the_node_of_its_builder() -> None:
    g = planwave.GraphBuilder()
    start = g.node("start")
    text = g.node("text", text="not this", input=start)
    assert run_sync(g, "x", replace={text: "this"})[text] == "this"
    with pytest.raises(TypeError, match="the path as text, not 3"):
        run_sync(g, "x", replace={3: "this"})  # type: ignore[dict-item]


def test_a_function_gets_what_the_node_function_gets(graph: planwave.GraphBuilder) -> None:
    counted = Mock(return_value=2.0)
    verdict = {"refund": False, "reason": ""}
    run_sync(graph, "a hat", replace={"price": counted, "judge": verdict})
    counted.assert_called_once_with(input="a hat", tax=0.1)
    asked = Mock(return_value=verdict)
    run_sync(graph, "a hat", replace={"price": lambda input: len(input) / 2, "judge": asked})
    given = asked.call_args.kwargs
    assert (given["input"], given["data"]["userPrompt"]) == (2.5, "Judge: 2.5")
    assert given["context"].path == "judge"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("price", "cheap"),
        ("price", {"cents": 3}),
        ("judge", {"refund": True}),
        ("judge", "yes"),
        ("judge", 3),
    ],
)
def test_a_value_of_another_type_is_an_invalid_result(
    graph: planwave.GraphBuilder, path: str, value: Any
) -> None:
    right = {"price": 1.0, "judge": Verdict(refund=True, reason="")}
    assert run_sync(graph, "x", replace=right)["judge"] == {"refund": True, "reason": ""}
    for given in (value, lambda: value):
        with pytest.raises(planwave.ExecutionFailed) as caught:
            run_sync(graph, "x", replace={**right, path: given})
        assert caught.value.result.failures[0].code == "invalid-result"
        assert caught.value.result.failures[0].path == path


def test_the_text_of_an_agent_and_the_outputs_of_a_switch_are_checked() -> None:
    g = planwave.GraphBuilder()
    kind = g.switch(g.agent("Which?", id="which"), cases=["a", "b"], id="kind")
    taken = g.node("text", id="taken", text="b taken", input=kind["b"])
    with pytest.raises(planwave.ExecutionFailed, match="declared as text"):
        run_sync(g, replace={"which": 3})
    with pytest.raises(planwave.ExecutionFailed, match="several outputs"):
        run_sync(g, replace={"which": "a", "kind": "b"})
    chosen = planwave.ExecutionResult({"case-1": DataValue("text", "b")})
    assert run_sync(g, replace={"which": "a", "kind": chosen})[taken] == "b taken"


def test_a_step_that_streams_is_replaced_by_its_whole_result() -> None:
    @planwave.node("testing_streams")
    async def streams(input: str) -> AsyncIterator[str]:
        raise AssertionError(input)
        yield ""

    g = planwave.GraphBuilder()
    g.node(streams, id="it", input=g.node("text", text="x"))
    assert run_sync(g, replace={"it": "all of it"})["it"] == "all of it"


def test_the_result_of_a_loop_is_a_list_also_where_it_is_replaced() -> None:
    g = planwave.GraphBuilder()
    in_a_map(g)
    assert run_sync(g, replace={"m": ["a"]})["m"] == ["a"]
    with pytest.raises(planwave.ExecutionFailed) as caught:
        run_sync(g, replace={"m": {"a": 1}})
    assert caught.value.result.failures[0].code == "invalid-result"


def test_a_function_may_be_async_raise_and_be_tried_again() -> None:
    g = planwave.GraphBuilder()
    policy = {"retry": {"attempts": 3, "backoffS": 0}}
    a_step(g, "it", policy=policy)
    tried = AsyncMock(side_effect=[ConnectionError("down"), ConnectionError("down"), "up"])
    assert run_sync(g, replace={"it": tried})["it"] == "up"
    with pytest.raises(planwave.ExecutionFailed) as caught:
        run_sync(g, replace={"it": Mock(side_effect=LookupError("gone"))})
    assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.parametrize("given", [lambda other: other, len, lambda x, /: x])
def test_a_function_with_other_parameters_says_which_there_are(given: Any) -> None:
    g = planwave.GraphBuilder()
    a_step(g, "it")
    with pytest.raises(planwave.ExecutionFailed, match="does not get by name; it gets input"):
        run_sync(g, replace={"it": given})


def test_the_names_are_those_that_are_documented() -> None:
    assert sorted(testing.__all__) == testing.__all__
    assert all(hasattr(testing, name) for name in testing.__all__)
