"""A list input takes one list, ``Collected`` several edges."""

from __future__ import annotations

from decimal import Decimal

from pydantic import BaseModel

import planwave


class Quote(BaseModel):
    sku: str
    cents: int


@planwave.node
def total(input: list[Quote], tax: float = 0.0) -> Decimal:
    """Add up quotes."""
    return sum((Decimal(each.cents) for each in input), Decimal()) * (1 + Decimal(str(tax)))


@planwave.node
def compare(left: Quote, others: planwave.Collected[Quote]) -> list[str]:
    """Name the quotes that are cheaper."""
    return [each.sku for each in others if each.cents < left.cents]


g = planwave.GraphBuilder()
a, b, c = (g.node("json", id=sku, value={"sku": sku, "cents": n}) for n, sku in enumerate("abc"))
both = g.node("json", id="both", value=[{"sku": "d", "cents": 3}, {"sku": "e", "cents": 4}])
sums = g.node(total, input=both, tax=0.5)
cheaper = g.node(compare, left=c, others=[a, b])
result = planwave.run_sync(g)
assert result[sums] == Decimal("10.5")
assert result[cheaper] == ["a", "b"]
