"""Base models of requests and responses, status values, and graph documents."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from planwave.principals import PrincipalKind

NodeStatus = Literal[
    "pending", "running", "retrying", "waiting", "completed", "failed",
    "skipped", "blocked", "cancelled", "linked", "not_reached",
]  # fmt: skip
ExecutionStatus = Literal["starting", "executing", "paused", "completed", "failed", "cancelled"]
PlanStatus = Literal["draft", "executing", "completed", "failed"]


class RequestModel(BaseModel):
    """A request: unknown fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ResponseModel(BaseModel):
    """A response, which is written as it is stored: the model documents it, and tests validate it."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class PrincipalResponse(ResponseModel):
    """Who did something."""

    kind: PrincipalKind
    """`operator`: with the service's token; `session`: a browser that logged in with it; `token`: an
    access token; `trigger`; `chat`; `local`: the command line, or anybody where the service has no
    token; `library`: a Python program."""
    id: str | None = None
    """Of the session, token, trigger or chat; left out where there is none."""
    name: str | None = None
    """The name of a token, the kind of a trigger."""
    by: PrincipalResponse | None = None
    """Who set up the trigger or the chat."""


# -- graphs ---------------------------------------------------------------------------------------


class NodeDocument(ResponseModel):
    """One step."""

    id: str = Field(pattern="^[A-Za-z0-9_.-]{1,64}$")
    type: str
    """A node type; `GET /api/node-types` lists them."""
    name: str | None = None
    description: str | None = None
    data: dict[str, Any] | None = None
    """The fields of the node type; see its schema."""
    policy: dict[str, Any] | None = None
    """`{join, retry: {attempts, backoffS, on, notOn}, timeoutS, onError, default, effect}`, all optional."""
    ui: dict[str, Any] | None = None
    """Kept for editors, never read."""


class EdgeDocument(ResponseModel):
    """One wire."""

    id: str | None = None
    source: str
    sourceHandle: str | None = None
    target: str
    targetHandle: str | None = None
    type: str | None = None
    data: dict[str, Any]
    """`{"channel": "flow" | "link"}`, and other fields of an editor."""


class GraphDocument(ResponseModel):
    """Nodes and edges, as they are stored and drawn."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
