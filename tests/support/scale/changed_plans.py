"""Executions that a model changes after a failure, and a planwave that dies once a change of one is stored."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.sql.appends import AppendOp
from tests.support.llm.fake_llm_server import FakeLLMServer
from tests.support.scale.logging_nodes import RUN_LOG, is_asked_for

DYING_PLANWAVE: Final = """
from tests.support.scale.changed_plans import die_when_asked
die_when_asked()
from planwave.main import main
main()
"""
"""The program of a process that dies between ``plan.revised`` and its starts when a file names it."""
CHANGED: Final[dict[str, Any]] = {
    "nodes": [
        {"id": "first", "type": "logged-step", "data": {"ms": 100}},
        {"id": "beside", "type": "logged-step", "data": {"ms": 1_000}},
        {"id": "old", "type": "logged-failure"},
        {"id": "last", "type": "logged-step", "data": {"ms": 100}},
    ],
    "edges": [
        {"source": source, "target": target, "data": {"channel": "flow"}}
        for source, target in [("first", "old"), ("old", "last")]
    ],
}
"""A step of it fails while another one still runs."""
NODES: Final = ["first", "beside", "new", "last"]
"""Those that have a result, once ``new`` is in the place of ``old``."""
OPTIONS: Final = {"replan": {"on_failure": True, "max": 1}}
_CHANGE: Final = {
    "answer": "Takes another step.",
    "operations": [
        {"op": "remove_node", "id": "old"},
        {"op": "add_node", "node": {"id": "new", "name": "New", "type": "logged-step", "data": {"ms": 300}}},
        {"op": "add_edge", "edge": {"source": "first", "target": "new", "channel": "flow"}},
        {"op": "add_edge", "edge": {"source": "new", "target": "last", "channel": "flow"}},
    ],
}  # fmt: skip
_FAULTY: Final = "Let me think of another step."
_KEY: Final = re.compile(r"([0-9a-f-]+)//(\d+)")


class GatedReplies:
    """A model that writes a faulty reply at once and, asked again, the change, while its gate is open.

    Attributes:
        gate: Open at first.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    async def __call__(self, body: dict[str, Any]) -> str:
        if _FAULTY not in json.dumps(body):
            return _FAULTY
        while not self.gate.is_set():  # noqa: ASYNC110 - another thread opens it
            await asyncio.sleep(0.02)
        return json.dumps(_CHANGE)


def asked_of(llm: FakeLLMServer) -> Counter[tuple[str, int]]:
    """Return how often each call of a model was made, by execution and the number of the call."""
    keys = (_KEY.match(each.headers["idempotency-key"]) for each in llm.requests)
    return Counter((key[1], int(key[2])) for key in keys if key is not None)


def die_file(run_log: Path) -> Path:
    """Return the file that names the process that is to die."""
    return run_log.with_suffix(".die")


def died_file(run_log: Path) -> Path:
    """Return the file with a line for each process that died: an execution whose change it had stored, and its id."""
    return run_log.with_suffix(".died")


def die_when_asked() -> None:
    """Let this process kill itself, when a test asks for it, as soon as a change of a plan is stored."""
    append, commit = PostgresTransactions.append, PostgresTransactions.commit
    run_log = Path(os.environ[RUN_LOG])
    changed: dict[PostgresTransactions, str] = {}

    def noting_append(self: PostgresTransactions, steps: Sequence[AppendOp]) -> None:
        append(self, steps)
        for step in steps:
            if step.batch is not None and '"plan.revised"' in step.batch.text:
                changed[self] = step.execution_id

    def deadly_commit(self: PostgresTransactions) -> None:
        commit(self)
        execution_id = changed.pop(self, None)
        if execution_id is not None and is_asked_for(die_file(run_log)):
            with died_file(run_log).open("a", encoding="utf-8") as file:
                file.write(f"{execution_id} {os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)

    PostgresTransactions.append = noting_append
    PostgresTransactions.commit = deadly_commit
