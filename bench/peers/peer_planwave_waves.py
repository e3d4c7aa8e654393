"""planwave with a barrier between waves."""

from __future__ import annotations

import peer_planwave
from peer_planwave import build, version  # noqa: F401 - part of a peer's interface

import planwave

NAME = "planwave_waves"
MODE = "waves"
SKIP = {cell: "scheduling makes no difference here" for cell in ("w4", "w5", "w6")}
OPTIONS = planwave.RunOptions(scheduling="waves")


async def run(graph):
    await peer_planwave.consume(graph, options=OPTIONS)
