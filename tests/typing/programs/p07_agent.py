"""An agent with a typed result and a function as its tool."""

from __future__ import annotations

from pydantic import BaseModel

import planwave


class Verdict(BaseModel):
    refund: bool
    reason: str


@planwave.tool(effect="read")
def look_up(order: str) -> dict[str, int]:
    """Look an order up."""
    return {"cents": len(order)}


g = planwave.GraphBuilder()
order = g.node("start", id="order")
verdict: planwave.NodeRef[Verdict] = g.agent(
    "Judge: {{ input }}",
    output_type=Verdict,
    tools=[look_up],
    model="openai:gpt-5",
    system_prompt="Be fair.",
    input=order,
)
graph = planwave.build(g).graph
data = graph.by_id[verdict.id].data
assert (data["provider"], data["model"]) == ("openai", "gpt-5")
assert [edge.channel for edge in graph.incoming[verdict.id]] == ["flow", "link"]
