"""What the processes of tests import, so that the process they are forked from has it already."""

from __future__ import annotations

import gc
from importlib import import_module

for name in (
    "planwave.api.app",
    "planwave.api.server",
    "planwave.bootstrap",
    "planwave.cli.app",
    "planwave.executor.driver.execution",
    "planwave.expressions.renderer",
    "planwave.graph.checking.checker",
    "planwave.main",
    "planwave.nodes.json_schema",
    "planwave.providers.client",
    "planwave.providers.local.models",
    "planwave.service.executions.answers",
    "planwave.storage.documents",
    "planwave.storage.sqlite.store",
    "openai",
    "rich.markdown",
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
