"""Models of request bodies: of plans, flows and executions, and their base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    RootModel,
    SecretStr,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from planwave.api.schemas.examples import EDITED_NOTE, GOAL, GRAPH, PLAN_ID
from planwave.graph import operations as edits
from planwave.graph.editing.forms import MAX_TITLE_CHARS
from planwave.service.flows.flow_service import NAME_CHARS
from planwave.shapes.common import EdgeDocument, GraphDocument, NodeDocument

MAX_NOTE_CHARS: Final = 1_000


class RequestModel(BaseModel):
    """A request: unknown fields and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Documented:
    """Documents an object as a shape without checking it, so that its reader finds every fault at once."""

    def __init__(self, shape: Any) -> None:
        self._shape = shape

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        # The document shows the schema for JSON; bodies are read as Python objects.
        shape = handler.generate_schema(self._shape)
        return core_schema.json_or_python_schema(shape, handler(source))


# -- plans and executions --------------------------------------------------------------------------


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
    """A graph to check; its problems are the response, not an error."""

    graph: dict[str, Any] = Field(description="`{nodes, edges}`.", examples=[GRAPH])


class BudgetModel(RequestModel):
    """Limits of what an execution may use, with everything inside it; null sets no limit."""

    usd: float | None = Field(
        default=None, gt=0, description="US dollars, as far as prices are known."
    )
    tokens: int | None = Field(default=None, ge=1, description="Tokens that models read and write.")
    calls: int | None = Field(default=None, ge=1, description="Calls of models.")
    wall_s: float | None = Field(
        default=None, gt=0, description="Seconds in which it is not paused."
    )


class RunOptionsModel(RequestModel):
    """How to run; limits of the service hold in any case."""

    scheduling: Literal["eager", "waves"] = Field(
        default="eager", description="Start a node the moment it is ready, or wait for its wave."
    )
    on_failure: Literal["continue", "stop"] = Field(
        default="continue",
        description="Finish nodes that do not depend on a failed node, or cancel them.",
    )
    max_parallel: int | None = Field(
        default=None, ge=1, description="Nodes working at the same time."
    )
    run_to: list[str] = Field(
        default=[],
        description="Ids of nodes: only these and their dependencies run.",
        examples=[[]],
    )
    run_from: list[str] = Field(
        default=[],
        description="Ids of nodes: only these, later nodes and the dependencies of both run.",
        examples=[[]],
    )
    budget: BudgetModel | None = Field(
        default=None,
        description="What the execution may use. Once nothing can go on within it, the execution is "
        "paused with a request of the kind `budget`. Amounts that are left out are those of the "
        "service's limits `budget_usd` and `budget_tokens`.",
        examples=[{"usd": 0.5}],
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


_REQUIRE_APPROVAL: Final[Any] = Field(
    False,
    description=(
        "Ask a person before the first node starts: the execution is paused with a request of the "
        "kind `plan-approval`. The operator may require it in any case."
    ),
)
_OPTIONS: Final[Any] = Field(
    default_factory=ExecuteOptionsModel,  # pydantic would copy a default deeply for each request
    json_schema_extra={"default": ExecuteOptionsModel().model_dump(mode="json")},
)


class ExecuteRequest(RequestModel):
    """The plan to execute: a stored plan, a flow, or a graph, which becomes a plan."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"plan_id": PLAN_ID, "start": True},
                {"flow": "Note", "inputs": {"facts": {"output": "Ice floats."}}},
                {"graph": GRAPH},
            ],
            "oneOf": [
                {"required": ["plan_id"]},
                {"required": ["flow"]},
                {"required": ["graph"]},
            ],
        }
    )

    plan_id: str | None = Field(None, description="A stored plan.")
    flow: str | None = Field(None, description="A flow, by its name or its id.", max_length=200)
    revision: int | None = Field(
        None,
        ge=1,
        description="One of its revisions; else the newest of a plan, or the live one of a flow.",
    )
    graph: Annotated[dict[str, Any], _Documented(GraphDocument)] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    inputs: dict[str, Any] | None = _INPUTS
    options: ExecuteOptionsModel = _OPTIONS
    require_approval: bool = _REQUIRE_APPROVAL
    start: bool = Field(
        False, description="Start it at once; else `POST /api/execute/{execution_id}/start` does."
    )

    @model_validator(mode="after")
    def _require_one_source(self) -> ExecuteRequest:
        if [self.plan_id, self.flow, self.graph].count(None) != 2:
            raise PydanticCustomError("either", "give one of plan_id, flow and graph")
        if self.revision is not None and self.graph is not None:
            raise PydanticCustomError(
                "either", "a revision is one of a plan or a flow: give plan_id or flow"
            )
        return self


class RunRequest(_GoalModel):
    """A goal to be planned and run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"prompt": GOAL}]})

    inputs: dict[str, Any] | None = _INPUTS
    options: ExecuteOptionsModel = _OPTIONS
    require_approval: bool = _REQUIRE_APPROVAL


# -- changes of plans ------------------------------------------------------------------------------


class AuthoredRequest(RequestModel):
    """Who makes a change, and why."""

    author: Literal["person", "api"] = Field(
        "api", description="Who makes the change: a person, or a program."
    )
    note: str = Field(
        "", max_length=MAX_NOTE_CHARS, description="Why; it is stored with the revision."
    )


class AddNodeOperation(RequestModel):
    """Adds a node at the end."""

    op: Literal["add_node"]
    node: Annotated[dict[str, Any], _Documented(NodeDocument)]


class UpdateNodeOperation(RequestModel):
    """Changes fields of a node, but not its id."""

    op: Literal["update_node"]
    id: str
    set: dict[str, Any] = Field(
        description="A merge patch (RFC 7396) for the node: null removes a field."
    )


class RemoveNodeOperation(RequestModel):
    """Removes a node and its edges."""

    op: Literal["remove_node"]
    id: str


class AddEdgeOperation(RequestModel):
    """Adds an edge at the end; without an id it gets one."""

    op: Literal["add_edge"]
    edge: Annotated[dict[str, Any], _Documented(EdgeDocument)]


class RemoveEdgeOperation(RequestModel):
    """Removes an edge."""

    op: Literal["remove_edge"]
    id: str


class RenameOperation(RequestModel):
    """Changes the id of a node, in its edges and in expressions too."""

    op: Literal["rename"]
    id: str
    to: str


class SetTitleOperation(RequestModel):
    """Changes the title of the plan, or the name of the flow."""

    op: Literal["set_title"]
    title: str = Field(description=f"One line of at most {MAX_TITLE_CHARS} characters.")


class ReplaceGraphOperation(RequestModel):
    """Replaces the graph; a node without `ui` keeps that of the node of its id."""

    op: Literal["replace_graph"]
    graph: Annotated[dict[str, Any], _Documented(GraphDocument)]


OperationModel = Annotated[
    AddNodeOperation
    | UpdateNodeOperation
    | RemoveNodeOperation
    | AddEdgeOperation
    | RemoveEdgeOperation
    | RenameOperation
    | SetTitleOperation
    | ReplaceGraphOperation,
    Field(discriminator="op"),
]
_CLASSES: Final[Mapping[str, type[edits.Operation]]] = {
    kind.op: kind
    for kind in (
        edits.AddNode,
        edits.UpdateNode,
        edits.RemoveNode,
        edits.AddEdge,
        edits.RemoveEdge,
        edits.Rename,
        edits.SetTitle,
        edits.ReplaceGraph,
    )
}


def to_operation(model: OperationModel) -> edits.Operation:
    """Return an operation as the service takes it."""
    fields = {name: getattr(model, name) for name in type(model).model_fields if name != "op"}
    return _CLASSES[model.op](**fields)


class PlanEditRequest(AuthoredRequest):
    """Changes to a plan or a flow, applied all or none."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"operations": [EDITED_NOTE], "author": "person", "note": "shorter"},
                {"operations": [{"op": "replace_graph", "graph": GRAPH}]},
            ]
        }
    )

    operations: list[OperationModel] = Field(
        min_length=1, description="Applied in order; see the limit `plan_operations`."
    )

    def to_operations(self) -> Sequence[edits.Operation]:
        """Return the operations as the service takes them."""
        return [to_operation(each) for each in self.operations]


class RestoreRequest(AuthoredRequest):
    """The author of a restored revision; without a body, a program."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"author": "person"}]})


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
        None,
        description="What it is for, which callers read; by default the title of a plan made for a goal.",
    )
    graph: Annotated[dict[str, Any], _Documented(GraphDocument)] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    plan_id: str | None = Field(
        None, description="A stored plan, which gets the name; one that has a name is copied."
    )

    @model_validator(mode="after")
    def _require_one_source(self) -> FlowCreateRequest:
        if (self.plan_id is None) == (self.graph is None):
            raise PydanticCustomError("either", "give either graph or plan_id")
        return self


class FlowUpdateRequest(AuthoredRequest):
    """Changes to a flow."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"graph": GRAPH}, {"name": "Notes"}],
            "minProperties": 1,
            "not": {"required": ["graph", "from_plan_id"]},
        }
    )

    name: str | None = Field(
        None, description="What it is called; one line.", min_length=1, max_length=NAME_CHARS
    )
    description: str | None = Field(None, description="What it is for; see `goal_chars`.")
    graph: Annotated[dict[str, Any], _Documented(GraphDocument)] | None = Field(
        None, description="A graph, or a plan as `POST /api/plan` gave it."
    )
    from_plan_id: str | None = Field(None, description="A stored plan whose graph it gets.")

    @model_validator(mode="after")
    def _require_change(self) -> FlowUpdateRequest:
        if self.from_plan_id is not None and self.graph is not None:
            raise PydanticCustomError("either", "give either graph or from_plan_id")
        if [self.name, self.description, self.graph, self.from_plan_id].count(None) == 4:
            raise PydanticCustomError("nothing", "give name, description, graph or from_plan_id")
        return self


class PublicationRequest(RequestModel):
    """What a flow is to be published as; what is omitted stays as it is."""

    model: bool | None = Field(
        default=None, description="As a model of `/v1/models`.", examples=[True]
    )
    tool: bool | None = Field(
        default=None, description="As a tool of the MCP server.", examples=[False]
    )
    hook: bool | None = Field(
        default=None,
        description="At the address of its `webhook` node: true creates or enables its trigger, "
        "false disables it.",
        examples=[True],
    )


# -- control of executions -------------------------------------------------------------------------

_LONGEST_CAUSE = 1_000


class CancelRequest(RequestModel):
    """The node to cancel, and the cause; without a body, the whole execution."""

    cause: str = Field(
        "cancelled by request",
        min_length=1,
        max_length=_LONGEST_CAUSE,
        description="Why; it is kept with the execution.",
        examples=["no longer needed"],
    )
    node: str | None = Field(
        None,
        description="The path of one node: only it is stopped, and nodes that depend on it are blocked.",
    )


class AnswerDecision(RequestModel):
    """An answer to a request that names its `actions`."""

    decision: str = Field(
        description="One of the request's `actions`; of an `approval`, the handle that is followed."
    )
    note: str = Field("", description="Kept with the answer.")
    value: Any = Field(
        None,
        description="What goes on instead of the request's `value`, where that is `editable`; of "
        "`interrupted`, what the node would have given (`give_result`); of `plan-approval`, the "
        "changed graph or `{plan_hash}` of a new revision (`edit`); of `budget`, the new limits (`raise`).",
    )
    form: Any = Field(None, description="What was filled in; it fits the request's `form`.")


class _AnswerSchema:
    """The schema of an answer: a decision, or any JSON that the node accepts."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        decision = handler(AnswerDecision.__pydantic_core_schema__)
        free = {"description": "Any JSON, where the request names no `actions`."}
        return {"anyOf": [decision, free]}


class AnswerRequest(RootModel[Annotated[Any, _AnswerSchema]]):
    """The answer to a request."""

    model_config = {
        "json_schema_extra": {
            "examples": [
                {"decision": "approve"},
                {"decision": "approve", "note": "shorter", "value": "Ice floats."},
            ]
        }
    }


_START: Final[Any] = Field(
    True, description="Queue it; else `POST /api/execute/{execution_id}/start` does."
)


class RetryRequest(RequestModel):
    """Without a body, it is started at once."""

    start: bool = _START


class ForkExecutionRequest(RequestModel):
    """Changes to the execution; without a body there are none."""

    rerun: list[str] = Field(
        default=[], description="Ids of nodes that run again in any case.", examples=[["note"]]
    )
    changes: dict[str, dict[str, Any]] | None = Field(
        None,
        description=(
            "By node id, `{description?, data?}`: the node's new task, and a merge patch (RFC "
            "7396) for its data; or `{outputs: {handle: value}}`: its outputs, without running it."
        ),
        examples=[{"note": {"data": {"text": "A note: {{ input }}"}}}],
    )
    options: RunOptionsModel | None = Field(
        None, description="How to run, all of it; null: as the execution before it ran."
    )
    start: bool = _START


class SessionRequest(BaseModel):
    """The token that opens a session."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"token": "the service's token"}]}
    )

    token: SecretStr = Field(description="What the service was started with.")
