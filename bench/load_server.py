"""A planwave server for load: ``nap`` nodes that sleep, ``teller`` and ``logger`` nodes that say
things; no limits.

::

    python bench/load_server.py DIRECTORY       # prints its address, ends with SIGTERM
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from planwave.api.app import create_app
from planwave.api.server import serve
from planwave.bootstrap import open_service
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, NodeEvent
from planwave.settings import Limits, Settings

LIMITS = {
    "concurrent_executions": 1_000,
    "requests_per_s": 100_000,
    "requests_burst": 1_000_000,
    "executions_per_minute": 1_000_000,
    "socket_connections": 10_000,
    "events": 500_000,
    "nodes": 1_000,
    "edges": 5_000,
}


class Nap:
    """Sleeps ``data["s"]`` seconds."""

    node_type = "nap"

    async def execute(self, data, inputs, context):
        await asyncio.sleep(data["s"])
        return ExecutionResult({"output": DataValue("integer", 1)})


class Teller:
    """Streams ``data["tokens"]`` tokens, ``data["s"]`` seconds apart."""

    node_type = "teller"

    async def execute(self, data, inputs, context):
        for n in range(data["tokens"]):
            await asyncio.sleep(data["s"])
            said = {"text": f"token{n} "}
            yield NodeEvent(context.node_id, "teller", "delta", context.run_id, said)
        yield ExecutionResult({"output": DataValue("text", "told")})


class Logger:
    """Logs ``data["lines"]`` lines, ten every millisecond."""

    node_type = "logger"

    async def execute(self, data, inputs, context):
        for n in range(data["lines"]):
            if n % 10 == 0:
                await asyncio.sleep(0.001)
            said = {"message": f"line {n} " + "x" * 100}
            yield NodeEvent(context.node_id, "logger", "log", context.run_id, said)
        yield ExecutionResult({"output": DataValue("text", "logged")})


def with_load_types(settings):
    service = open_service(settings)
    service.catalogue.register(Nap())
    service.catalogue.register(Teller())
    service.catalogue.register(Logger())
    return service


def main():
    settings = Settings(storage_dir=Path(sys.argv[1]), port=0, limits=Limits(**LIMITS))
    asyncio.run(
        serve(settings, create_app(settings, with_load_types), lambda url: print(url, flush=True))
    )


if __name__ == "__main__":
    main()
