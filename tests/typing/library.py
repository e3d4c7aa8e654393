"""What pyright says of the Python library: types by ``assert_type``, and the errors that it has to find.

``# error: TEXT`` stands where pyright, in its strict mode, has to report an error with this text, and it may report
none elsewhere; ``tools/check_typing.py`` compares. Nothing here is run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any, assert_type

from pydantic import BaseModel

import planwave
import planwave.testing


class Order(BaseModel):
    sku: str
    count: int


class Quote(BaseModel):
    sku: str
    cents: int


@planwave.node("typing-quote")
async def quote(input: Order) -> Quote:
    return Quote(sku=input.sku, cents=100 * input.count)


@planwave.node("typing-total")
def total(input: list[Quote], tax: float = 0.0) -> Decimal:
    return Decimal(sum(each.cents for each in input)) * Decimal(1 + tax)


@planwave.node("typing-stream")
async def stream(input: str) -> AsyncGenerator[str]:
    yield input


@planwave.tool(effect="read")
def look_up(order: str) -> str:
    """Look an order up."""
    return order


class Shout(planwave.NodeType):
    node_type = "typing-shout"

    async def run(self, data: Any, inputs: planwave.Inputs, context: planwave.FlowContext) -> str:
        return inputs.text("input")


def plain(input: str) -> str:
    return input


def refs(g: planwave.GraphBuilder) -> None:
    start = g.node("start")
    assert_type(start, planwave.NodeRef[Any])
    assert_type(g.node(quote, input=start), planwave.NodeRef[Quote])
    assert_type(g.node(total, input=start), planwave.NodeRef[Decimal])
    assert_type(g.node(stream, input=start), planwave.NodeRef[Any])
    assert_type(g.node(Shout), planwave.NodeRef[Any])
    assert_type(g.map(quote, start), planwave.NodeRef[list[Quote]])
    assert_type(g.map(total, start, on_item_error="skip"), planwave.NodeRef[list[Decimal]])
    assert_type(g.map(quote, start, on_item_error="null"), planwave.NodeRef[list[Quote | None]])
    assert_type(g.map(stream, start), planwave.NodeRef[list[Any]])
    assert_type(g.map(g, start), planwave.NodeRef[list[Any]])
    assert_type(g.agent("Why?"), planwave.NodeRef[str])
    assert_type(g.agent("Why?", output_type=Quote, tools=[look_up]), planwave.NodeRef[Quote])
    g.node(plain)  # error: "node_type" is not present
    g.map(quote, start, on_item_error="ignore")  # error: "Literal['ignore']" is not assignable to
    g.edge(start, start["input"], channel="tools")  # error: "Literal['tools']" is not assignable to
    g.edge(start, "end")  # error: "Literal['end']" is not assignable to "Endpoint"
    str(start >> start)  # error: Operator ">>" not supported


def results(g: planwave.GraphBuilder) -> None:
    quotes, kind = g.map(quote, g.node("start")), g.switch(g.node("start"), cases=["a"])
    result = planwave.run_sync(g, "x", store="runs", images=["u"], check=False)
    assert_type(result[g.node(quote)], Quote)
    assert_type(result[quotes], list[Quote])
    assert_type(result["quote"], Any)
    assert_type(result[kind["a"]], Any)
    assert_type(result.interrupted, bool)
    str(result[quotes].cents)  # error: Cannot access attribute "cents"
    str(result[3])  # error: "Literal[3]" is not assignable to "Endpoint"


def arguments(g: planwave.GraphBuilder) -> None:
    planwave.run_sync(g, stor="x")  # error: No parameter named "stor"
    planwave.run_sync(g, check="x")  # error: "Literal['x']" is not assignable to "bool"
    planwave.run(g, images="u", goal=1)  # error: "Literal[1]" is not assignable to "str"
    planwave.build(g, message="x")  # error: No parameter named "message"
    planwave.run_sync(3)  # error: "Literal[3]" is not assignable to
    planwave.plan_sync("x", modell="y")  # error: No parameter named "modell"
    planwave.run_goal_sync("x", inputs={})  # error: No parameter named "inputs"
    planwave.Executor().execute(g, "x", goals="y")  # error: No parameter named "goals"
    planwave.executions("runs", status="dead")  # error: "Literal['dead']" is not assignable to
    planwave.plan_async("x")  # error: "plan_async" is not a known attribute
    str(planwave.StoreError)  # error: "StoreError" is not a known attribute


def answers(run: planwave.Run) -> None:
    run.answer("r", {"any": "json"})
    run.answer("r", decision="send", note="x", value=3, form={"a": 1})
    run.answer("r")  # error: No overloads for "answer"
    run.answer("r", decison="send")  # error: No overloads for "answer"
    run.answer("r", 3, note="x")  # error: No overloads for "answer"


async def events(g: planwave.GraphBuilder) -> None:
    async for event in planwave.run(g):
        if event.type == "node.waiting":
            assert_type(event.data["request_id"], str)
            str(event.data["requst"])  # error: "requst" is not a defined key
    assert_type(await planwave.plan("x"), planwave.Plan)
    assert_type(await planwave.run_goal("x"), planwave.RunResult)
    assert_type(planwave.plan_sync("x", model="openai:gpt-5"), planwave.Plan)


def fake_models_and_replaced_steps(g: planwave.GraphBuilder, ref: planwave.NodeRef[Quote]) -> None:
    model = planwave.testing.FakeModel("ok")
    result = planwave.testing.run_sync(g, "x", model=model, replace={"price": 3.5}, store="runs")
    assert_type(result, planwave.RunResult)
    assert_type(result[ref], Quote)
    assert_type(planwave.testing.run(g, model={"*": model}), planwave.Run)
    assert_type(model.requests[0].tool_names, tuple[str, ...])
    with planwave.testing.use_model(model) as used:
        assert_type(used, planwave.testing.FakeModel)
    planwave.testing.run_sync(g, model="ok")  # error: reportArgumentType
    planwave.testing.run_sync(g, stor="runs")  # error: No parameter named "stor"
    planwave.testing.run_sync(g, replace=[3.5])  # error: reportArgumentType
