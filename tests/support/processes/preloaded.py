"""What the processes of tests import, so that the process they are forked from has it already."""

from __future__ import annotations

import gc
from importlib import import_module

for name in (
    "anyio._backends._asyncio",
    "genai_prices.data",
    "openai.resources.chat.completions.completions",
    "planwave.api.app",
    "planwave.api.server",
    "planwave.bootstrap",
    "planwave.cli.app",
    "planwave.cli.commands.serve",
    "planwave.executor.driver.execution",
    "planwave.expressions.renderer",
    "planwave.graph.checking.checker",
    "planwave.library",
    "planwave.main",
    "planwave.mcp.connection",
    "planwave.mcp.program",
    "planwave.nodes.json_schema",
    "planwave.providers.client",
    "planwave.providers.local.models",
    "planwave.providers.transport",
    "planwave.service.carriers.temporal",
    "planwave.service.executions.answers",
    "planwave.storage.documents",
    "planwave.storage.postgres.store",
    "planwave.storage.sqlite.store",
    "pydantic_ai.direct",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "rich.markdown",
    "tests.support.recovery.agent_child",
    "tests.support.recovery.crash_child",
    "tests.support.recovery.crash_server",
    "tests.support.server.server_process",
    "typer.rich_utils",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
):
    import_module(name)

gc.collect()
gc.freeze()  # a collection in a child would copy the pages of all these objects
