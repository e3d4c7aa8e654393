"""Resolve the futures that callers and nodes wait on."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.errors import PlanwaveError


def resolve_future(future: asyncio.Future[Any], result: Any) -> None:
    """Give a future its result, or its error, unless it has one."""
    if future.done():
        return
    if isinstance(result, PlanwaveError):
        future.set_exception(result)
    else:
        future.set_result(result)
