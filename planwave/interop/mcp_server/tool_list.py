"""The tools as clients list them: five that are always there, and the published flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

if TYPE_CHECKING:
    from planwave.service.flows.flow_tools import FlowTool

KEY_ARGUMENT: Final = "idempotency_key"
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


def _fixed_tools() -> list[mcp_types.Tool]:
    return [
        mcp_types.Tool(
            name=name,
            description=_DESCRIPTIONS[name],
            input_schema=dict(schema_of(model)),
            annotations=mcp_types.ToolAnnotations(
                read_only_hint=name in _READS,
                destructive_hint=False if name in (*_READS, "plan") else None,
                idempotent_hint=name in _READS,
                open_world_hint=name not in _READS,
            ),
        )
        for name, model in ARGUMENTS.items()
    ]


FIXED_TOOLS: Final = tuple(_fixed_tools())
"""The tools that are always there. Their schemas take a quarter of a second to compute."""


def flow_as_tool(flow: FlowTool) -> mcp_types.Tool:
    """Return a published flow as a tool, with an idempotency key among its arguments."""
    schema = dict(flow.parameters)
    if takes_key(flow):
        key = RunArguments.model_fields[KEY_ARGUMENT].description
        added = {KEY_ARGUMENT: {"type": "string", "minLength": 1, "description": key}}
        schema["properties"] = {**schema["properties"], **added}
    return mcp_types.Tool(
        name=flow.name, title=flow.title, description=flow.description, input_schema=schema
    )


def takes_key(flow: FlowTool) -> bool:
    """Return whether the idempotency key is not one of the flow's own arguments."""
    return KEY_ARGUMENT not in flow.parameters["properties"]
