"""A graph with a fan-out: the message is an argument of the run."""

from __future__ import annotations

from decimal import Decimal
from tempfile import TemporaryDirectory

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


@planwave.node
def total(input: list[Quote], tax: float = 0.0) -> Decimal:
    """Add up quotes."""
    return sum((Decimal(each.cents) for each in input), Decimal()) * (1 + Decimal(str(tax)))


g = planwave.GraphBuilder()
orders = g.node("start", id="orders")
quotes = g.map(quote, orders, parallel=3)
sums = g.node(total, input=quotes, tax=0.2)
with TemporaryDirectory() as store:
    result = planwave.run_sync(g, [{"sku": "a", "count": 1}], store=store)
    assert result[sums] + 1 == Decimal(121)
    assert result[quotes][0].cents == 100
    assert result["orders"] == [{"sku": "a", "count": 1}]
    assert planwave.open(store, "last").result()[sums] == Decimal(120)
