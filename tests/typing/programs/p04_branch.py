"""A branch is named by its case."""

from __future__ import annotations

import planwave


@planwave.node
def label(input: str) -> str:
    """Say what a message is."""
    return "refund" if "money" in input else "other"


@planwave.node
def pay_back(input: str) -> str:
    """Pay back."""
    return f"paid: {input}"


@planwave.node
def reply(input: str) -> str:
    """Reply."""
    return f"thanks: {input}"


g = planwave.GraphBuilder()
kind = g.switch(g.node(label, input=g.node("start")), cases=["refund", "other"])
g.node(pay_back, input=kind["refund"])
g.node(reply, input=kind["other"])
assert planwave.run_sync(g, "my money, please").output == "paid: refund"
assert planwave.run_sync(g, "hello").output == "thanks: other"
