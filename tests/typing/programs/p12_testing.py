"""A test of a graph: a fake model, a replaced step, and no real call."""

from __future__ import annotations

from pydantic import BaseModel

import planwave
from planwave.testing import (
    FakeModel,
    ModelRequest,
    ToolCall,
    forbid_model_calls,
    run_sync,
    tool_call,
)

forbid_model_calls()


class Verdict(BaseModel):
    refund: bool
    reason: str


@planwave.node
async def price(input: str) -> float:
    """Ask the shop for a price."""
    raise ConnectionError("the shop does not answer")


@planwave.tool(effect="read")
def look_up(order: str) -> dict[str, int]:
    """Look an order up."""
    return {"cents": len(order)}


g = planwave.GraphBuilder()
cents = g.node(price, input=g.node("start"))
verdict = g.agent(
    "Judge: {{ input }}",
    output_type=Verdict,
    tools=[look_up],
    model="openai:gpt-5",
    input=cents,
)


def reply(request: ModelRequest) -> str | ToolCall:
    """Look the order up, then judge."""
    if request.messages:
        return '{"refund": true, "reason": "x"}'
    return tool_call("look_up", order="1")


model = FakeModel(reply)
result = run_sync(g, "a hat", model=model, replace={"price": 3.5})
assert result[verdict].refund
assert result[cents] == 3.5
assert len(model.requests) == 2
assert model.requests[0].prompt == "Judge: 3.5"
assert model.requests[1].tool_results[0].text == '{"cents":1}'
