"""An own typed node: pydantic in, pydantic out."""

from __future__ import annotations

from pydantic import BaseModel

import planwave


class Order(BaseModel):
    sku: str
    count: int


class Quote(BaseModel):
    sku: str
    cents: int


@planwave.node
async def quote(input: Order) -> Quote:
    """Price an order."""
    return Quote(sku=input.sku, cents=100 * input.count)


g = planwave.GraphBuilder()
priced = g.node(quote, input=g.node("start"))
result = planwave.run_sync(g, {"sku": "a", "count": 2})
assert result[priced] == Quote(sku="a", cents=200)
assert result["quote"] == {"sku": "a", "cents": 200}
