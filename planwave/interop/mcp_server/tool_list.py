"""The five tools that are always there, as clients list them."""

from __future__ import annotations

from typing import Final

import mcp_types
from pydantic import BaseModel

from planwave.interop.mcp_server.arguments import (
    AnswerArguments,
    PlanArguments,
    ResultArguments,
    RunArguments,
    StatusArguments,
    schema_of,
)

ARGUMENTS: Final[dict[str, type[BaseModel]]] = {
    "plan": PlanArguments,
    "run": RunArguments,
    "status": StatusArguments,
    "result": ResultArguments,
    "answer": AnswerArguments,
}
INSTRUCTIONS: Final = (
    "planwave turns a goal into a graph of steps, runs it and keeps every result. `run` starts a "
    "goal, a plan or a flow and waits; a long one goes on, and `result` waits further. Where a "
    "person has to decide, the status is paused: ask your user, then call `answer`. The other "
    "tools are flows that someone has published here."
)
_DESCRIPTIONS: Final = {
    "plan": "Plan a goal: return a graph of steps with a forecast, and run nothing.",
    "run": "Run a goal, a stored plan or a stored flow, and return its result. Returns status "
    "`paused` with requests where a person has to decide, and `executing` after wait_s seconds.",
    "status": "Return how far an execution is, and its open requests.",
    "result": "Return the results of an execution, so far or after waiting for its end.",
    "answer": "Answer a request of a paused execution for its user, and wait for the rest.",
}
_READS: Final = frozenset({"status", "result"})


def fixed_tools() -> list[mcp_types.Tool]:
    """Return the tools that are always there."""
    return [
        mcp_types.Tool(
            name=name,
            description=_DESCRIPTIONS[name],
            input_schema=schema_of(model),
            annotations=mcp_types.ToolAnnotations(
                read_only_hint=name in _READS,
                destructive_hint=False if name in (*_READS, "plan") else None,
                idempotent_hint=name in _READS,
                open_world_hint=name not in _READS,
            ),
        )
        for name, model in ARGUMENTS.items()
    ]
