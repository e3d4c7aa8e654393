"""Tools of a shop, which the service of the browser tests offers to agents."""

from __future__ import annotations

from typing import Literal

import planwave

ORDERS = {"A-17": "sent nine days ago", "A-18": "packed today"}


@planwave.tool(effect="read")
async def look_up_order(number: str) -> str:
    """Return the state of an order.

    Args:
        number: Its number, such as A-17.
    """
    if number not in ORDERS:
        raise planwave.errors.ToolError(f"there is no order {number}")
    return ORDERS[number]


@planwave.tool(effect="once", approval="always")
async def send_mail(
    to: str, subject: str, copies: int = 1, tone: Literal["plain", "warm"] = "plain"
) -> dict[str, str]:
    """Send a mail to a customer.

    Args:
        to: The address.
        subject: What it is about.
        copies: How many are sent.
        tone: How it is worded.
    """
    return {"sent": f"{copies} {tone} mail to {to}: {subject}"}
