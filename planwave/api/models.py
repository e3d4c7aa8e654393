"""The JSON of requests, which is held to these models, and the words that answers share with it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from planwave.api.examples import FLOW_ID, GOAL, GRAPH, PLAN_ID
from planwave.service.flows import NAME_CHARS

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
    """An answer: documents what is written as it is stored; tests hold it to this."""

    model_config = ConfigDict(use_attribute_docstrings=True)


# -- graphs ---------------------------------------------------------------------------------------


class NodeDocument(ResponseModel):
    """One step."""

    id: str = Field(pattern="^[A-Za-z0-9_.-]{1,64}$")
    type: str
    """A node type; `GET /api/node-types` lists them."""
    name: str | None = None
    description: str | None = None
    data: dict[str, Any] | None = None
    """What the type asks for; see its schema."""
    policy: dict[str, Any] | None = None
    """`{join, retry: {attempts, backoffS}, timeoutS, onError, default, effect}`, all optional."""
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
    """`{"channel": "flow" | "link"}`, and whatever an editor keeps here."""


class GraphDocument(ResponseModel):
    """Nodes and edges, as they are stored and drawn."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]


class _GraphSchema:
    """Documents an object as a graph; the graph reader checks it, and finds every fault at once."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return handler(GraphDocument.__pydantic_core_schema__)


# -- requests -------------------------------------------------------------------------------------


class _GoalModel(RequestModel):
    prompt: str = Field(description="The goal, in your words.", examples=[GOAL])
    provider: str | None = Field(
        None, description="Who plans, and runs the steps the plan leaves open; else the default."
    )
    model: str | None = Field(None, description="A model of that provider.")


class PlanRequest(_GoalModel):
    """A goal to be planned."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"prompt": GOAL}]})


class CheckRequest(RequestModel):
    """A graph to be checked; whatever is wrong with it is the answer, not an error."""

    graph: dict[str, Any] = Field(description="`{nodes, edges}`.", examples=[GRAPH])


class RunOptionsModel(RequestModel):
    """How to run; limits of the service hold in any case."""

    scheduling: Literal["eager", "waves"] = Field(
        default="eager", description="Start a node the moment it is ready, or wait for its wave."
    )
    on_failure: Literal["continue", "stop"] = Field(
        default="continue",
        description="Finish what does not depend on a failed node, or cancel it.",
    )
    max_parallel: int | None = Field(
        default=None, ge=1, description="Nodes working at the same time."
    )
    run_to: list[str] = Field(
        default=[], description="Ids of nodes: only these and what they need run.", examples=[[]]
    )
    run_from: list[str] = Field(
        default=[],
        description="Ids of nodes: only these and what follows them run, with what that needs.",
        examples=[[]],
    )


class ExecuteOptionsModel(RunOptionsModel):
    """How to run; limits of the service hold in any case."""

    policies: dict[str, dict[str, Any]] | None = Field(
        default=None,
        description=(
            "Node policies of this execution by node id, over those of the plan, field by field; "
            "null takes a field back to its default."
        ),
        examples=[{"note": {"timeoutS": 30, "retry": {"attempts": 2}}}],
    )


_INPUTS: Final[Any] = Field(
    None,
    description=(
        "`{node_id: {handle: value}}`: nodes settled with these values instead of being run; "
        "`{handle: value}` where there is one entry node."
    ),
    examples=[{"facts": {"output": "Ice floats."}}],
)


_OPTIONS: Final[Any] = Field(
    default_factory=ExecuteOptionsModel,  # pydantic would copy a default deeply for each request
    json_schema_extra={"default": ExecuteOptionsModel().model_dump(mode="json")},
)


class ExecuteRequest(RequestModel):
    """What to execute: a stored plan, a flow, or a graph, which becomes a plan."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"plan_id": PLAN_ID, "start": True},
                {"flow_id": FLOW_ID, "inputs": {"facts": {"output": "Ice floats."}}},
                {"graph": GRAPH},
            ],
            "oneOf": [
                {"required": ["plan_id"]},
                {"required": ["flow_id"]},
                {"required": ["graph"]},
            ],
            "dependentRequired": {"version": ["flow_id"]},
        }
    )

    plan_id: str | None = Field(None, description="A stored plan.")
    flow_id: str | None = Field(None, description="A flow.")
    version: str | None = Field(None, description="One of its versions; else the present one.")
    graph: Annotated[dict[str, Any], _GraphSchema] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    inputs: dict[str, Any] | None = _INPUTS
    options: ExecuteOptionsModel = _OPTIONS
    start: bool = Field(
        False, description="Start it at once; else `POST /api/execute/{execution_id}/start` does."
    )

    @model_validator(mode="after")
    def _require_one_source(self) -> ExecuteRequest:
        if [self.plan_id, self.flow_id, self.graph].count(None) != 2:
            raise PydanticCustomError("either", "give one of plan_id, flow_id and graph")
        if self.version is not None and self.flow_id is None:
            raise PydanticCustomError("either", "a version is one of a flow: give its flow_id")
        return self


class RunRequest(_GoalModel):
    """A goal to be planned and run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"prompt": GOAL}]})

    inputs: dict[str, Any] | None = _INPUTS
    options: ExecuteOptionsModel = _OPTIONS


# -- flows ----------------------------------------------------------------------------------------

_GRAPH_OR_PLAN: Final[dict[str, Any]] = {
    "oneOf": [{"required": ["graph"]}, {"required": ["plan_id"]}]
}


class FlowCreateRequest(RequestModel):
    """A graph, or a stored plan, to be saved under a name."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Note", "graph": GRAPH}, {"name": "Note", "plan_id": PLAN_ID}],
            **_GRAPH_OR_PLAN,
        }
    )

    name: str = Field(
        description="What it is called; one line.", min_length=1, max_length=NAME_CHARS
    )
    description: str | None = Field(
        None, description="What it is for, by default the goal of its plan; see `goal_chars`."
    )
    graph: Annotated[dict[str, Any], _GraphSchema] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    plan_id: str | None = Field(None, description="A stored plan that has its graph.")

    @model_validator(mode="after")
    def _require_one_source(self) -> FlowCreateRequest:
        if (self.plan_id is None) == (self.graph is None):
            raise PydanticCustomError("either", "give either graph or plan_id")
        return self


class FlowUpdateRequest(RequestModel):
    """What is to be another than before."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"graph": GRAPH}, {"name": "Notes"}],
            "minProperties": 1,
            "not": {"required": ["graph", "plan_id"]},
        }
    )

    name: str | None = Field(
        None, description="What it is called; one line.", min_length=1, max_length=NAME_CHARS
    )
    description: str | None = Field(None, description="What it is for; see `goal_chars`.")
    graph: Annotated[dict[str, Any], _GraphSchema] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    plan_id: str | None = Field(None, description="A stored plan that has its graph.")

    @model_validator(mode="after")
    def _require_change(self) -> FlowUpdateRequest:
        if self.plan_id is not None and self.graph is not None:
            raise PydanticCustomError("either", "give either graph or plan_id")
        if [self.name, self.description, self.graph, self.plan_id].count(None) == 4:
            raise PydanticCustomError("nothing", "give name, description, graph or plan_id")
        return self
