"""Shapes of plans, of their revisions, and of flows, which are plans with a name."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from planwave.principals import PrincipalDocument
from planwave.shapes.common import Author, GraphDocument, JsonSchema, PlanStatus, Publication
from planwave.shapes.graphs import DiagnosticResponse
from planwave.shapes.imports import ImportRecord


class PlanOrigin(TypedDict):
    """A revision of another plan."""

    plan_id: str
    revision: int


class PlanQuestion(TypedDict):
    """What a goal left open, and the answer under which its plan is written."""

    question: str
    answer: str
    assumed: bool
    """Whether the model assumed the answer; otherwise a person gave it."""
    options: list[str]
    """Answers to choose from, as the model named them; any other may be given too."""


class ShownPlan(TypedDict):
    """An earlier plan whose goal and step names the model was shown; it may be deleted since."""

    plan_id: str
    title: str


class PlanDocument(GraphDocument):
    """A plan in its newest revision, but for its inputs."""

    plan_id: str
    user_prompt: str
    title: str
    status: PlanStatus
    """That of its newest execution; `draft` without one."""
    revision: int
    hash: str
    """Of the graph; executions are bound to it."""
    created_at: str
    name: str | None
    """The name, for which it is a flow; null for a plan without one."""
    description: str
    """The purpose of a flow."""
    published: list[Publication]
    """What a flow is published as; see `PUT /api/flows/{plan_id}/publication`."""
    live_revision: int | None
    """The revision that callers of a flow start: the newest one without errors and, where the operator requires
    it, with an approval; null without one."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""
    origin: NotRequired[PlanOrigin]
    """The flow that it was copied from; left out for all others."""
    imported_from: NotRequired[ImportRecord]
    """The file that its first revision was imported from, or the last one since; left out for all others. A plan
    that is saved as a flow may say it too; one of another form is ignored."""
    proposal: NotRequired[ProposalDocument]
    """A change that a model wrote and that nobody has taken yet; left out without one."""
    examples: NotRequired[list[ShownPlan]]
    """The earlier plans of the same person that the model was shown; left out without one."""
    provider: str | None
    """The provider of the model that wrote it; null for a plan that no model wrote."""
    model: str | None
    diagnostics: list[DiagnosticResponse]
    fixes: list[str]
    """Corrections of the model's reply."""
    questions: list[PlanQuestion]
    """What the goal left open, at most three; plan again with `answers` to change an answer."""
    attempts: list[dict[str, Any]]
    """`{reply, finish_reason, diagnostics, usage}` of each model call that wrote it; `GET /api/spend` counts them as planning."""
    forecast: dict[str, Any]
    """As of the revision, in the form of `GET …/forecast`; empty for a draft with errors."""


class PlanResponse(PlanDocument):
    """A plan in its newest revision: a titled graph made for a goal."""

    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""


class PlanSummary(TypedDict):
    """A plan, with a name or without, as lists show it: in its newest revision."""

    plan_id: str
    user_prompt: str
    title: str
    name: str | None
    """The name, for which it is a flow; null for a plan without one."""
    description: str
    """The purpose of a flow."""
    published: list[Publication]
    """What a flow is published as."""
    status: PlanStatus
    """That of its newest execution; `draft` without one."""
    revision: int
    live_revision: int | None
    """The revision that callers of a flow start; a lower number than `revision`, or null, under a draft."""
    hash: str
    created_at: str
    updated_at: str
    """When the revision was made, UTC."""
    updated_by: PrincipalDocument | None
    """Who made the revision; null where it is not known."""
    provider: str | None
    model: str | None
    node_count: int
    error_count: int
    """With any error it is a draft, which cannot be executed."""


class PlansResponse(TypedDict):
    """One page of plans, newest first."""

    plans: list[PlanSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class ApprovalResponse(TypedDict):
    """The approval of a revision, for all callers of a flow."""

    at: str
    by: PrincipalDocument | None


class RevisionSummary(TypedDict):
    """A revision as lists show it."""

    plan_id: str
    revision: int
    """1 for the plan as it was made."""
    hash: str
    """Of the graph."""
    title: str
    author: Author
    note: str
    created_at: str
    created_by: PrincipalDocument | None
    """Who made it; null where an older planwave did."""
    node_count: int
    error_count: int
    """With any error it is a draft, which cannot be executed."""
    approval: ApprovalResponse | None
    """That of its hash; null where nobody approved it."""


class RevisionsResponse(TypedDict):
    """One page of revisions, newest first."""

    plan_id: str
    revisions: list[RevisionSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class RevisionResponse(RevisionSummary, GraphDocument):
    """One revision of a plan."""

    diagnostics: list[DiagnosticResponse]


class FieldDifference(TypedDict):
    """One field that differs; a value that is missing on a side is left out."""

    pointer: Annotated[str, JsonSchema(examples=["/data/text"])]
    """JSON pointer into the node or the edge."""
    before: NotRequired[Any]
    after: NotRequired[Any]


class ElementDifference(TypedDict):
    """One node or edge that differs; an edge between other nodes was removed, and another one added."""

    id: str | None
    change: Literal["added", "removed", "changed"]
    before: NotRequired[dict[str, Any]]
    """Of a removed one: all of it."""
    after: NotRequired[dict[str, Any]]
    """Of an added one, and of a changed edge: all of it."""
    fields: NotRequired[list[FieldDifference]]
    """Of a changed one."""


class GraphDifference(TypedDict):
    """The differences between two graphs, without `ui`."""

    nodes: list[ElementDifference]
    edges: list[ElementDifference]
    reordered: list[Literal["nodes", "edges"]]
    """Which lists have common members in another order."""


class AdditionDocument(TypedDict):
    """Something outside of a plan that it would reach and does not yet, or a safeguard that it would lose."""

    kind: Literal[
        "effect", "tool", "server", "host", "provider", "model", "flow", "link", "safeguard"
    ]
    name: str
    """Of an effect: the effect and the type, such as `write http_tool`; of a safeguard, what falls away."""
    node: str
    """The id of the step that reaches it, or that had the safeguard."""


class ProposedDifference(GraphDifference):
    """What a proposal changes."""

    title: list[str] | None
    """The title before and after; null if it stays."""


class ProposalDocument(TypedDict):
    """A change of a plan that a model wrote and that nobody has taken yet."""

    request: str
    """What was asked for."""
    answer: str
    """The sentence of the model on what it changes."""
    base: str
    """The hash of the plan that it changes."""
    hash: str
    """The hash of the plan that it makes: `accept` it by this one."""
    title: str
    operations: list[dict[str, Any]]
    """The changes, as `PATCH /api/plans/{plan_id}` takes them."""
    difference: ProposedDifference
    additions: list[AdditionDocument]
    """All that the plan would reach outside of itself and does not yet."""
    diagnostics: list[DiagnosticResponse]
    """Warnings of the changed plan."""
    provider: str
    model: str
    attempts: list[dict[str, Any]]
    """`{reply, finish_reason, diagnostics, usage}` of each call; `GET /api/spend` counts them as planning."""
    created_at: str
    created_by: PrincipalDocument


class ReplanResponse(ProposalDocument):
    """A change of the graph of an execution that a model wrote, and that nobody has taken yet."""

    execution_id: str
    graph: GraphDocument
    """The changed graph: `POST /api/executions/{execution_id}/revise` lets the execution go on with it, and of one that
    has ended, `POST /api/executions/{execution_id}/fork` makes a new one."""


class RevisionDiffResponse(GraphDifference):
    """The differences between two revisions of a plan, without `ui`."""

    plan_id: str
    a: int
    b: int
    hash: list[str]
    """Of A and of B."""
    title: list[str] | None
    """Of A and of B; null where they are the same."""


class _FlowFields(TypedDict):
    plan_id: str
    """The id of the plan that the flow is: see `GET /api/plans/{plan_id}` for its newest revision."""
    name: str
    """Unique without regard to case."""
    title: str
    description: str
    """Its purpose; its executions have it as their goal."""
    revision: int
    """The revision that is shown: the one that callers start unless another one was asked for."""
    live_revision: int | None
    """The revision that callers start; null while none is approved."""
    draft: RevisionSummary | None
    """The newest revision, where callers do not start it: it has errors, or is not approved. Always null for an
    access token."""
    created_at: str
    updated_at: str
    """When the revision was made, UTC."""
    published: list[Publication]
    """What the flow is published as; see `PUT /api/flows/{plan_id}/publication`."""


class FlowSummary(_FlowFields):
    """A flow as lists show it."""

    updated_by: PrincipalDocument | None
    """Who made the revision; null where it is not known."""
    node_count: int


class FlowsResponse(TypedDict):
    """One page of flows, newest first."""

    flows: list[FlowSummary]
    next_cursor: str | None
    """For the next page; null on the last one."""


class FlowResponse(_FlowFields):
    """A flow: a plan that has a name, in the revision that callers start."""

    hash: str
    """Of the graph: the `ETag`, which `If-Match` compares with the newest revision."""
    inputs: dict[str, Any] | None
    """The JSON Schema of its inputs, as its entry nodes declare them; null for a graph that cannot be read."""
    graph: GraphDocument


class FlowEditResponse(FlowResponse):
    """A flow after a change by operations."""

    diagnostics: list[DiagnosticResponse]
    """Warnings about its graph, and about names that the operations could not follow."""


class PublishedHook(TypedDict):
    """A webhook of a flow."""

    trigger_id: str
    path: str
    """Where it receives requests."""
    enabled: bool


class PublicationResponse(TypedDict):
    """What a flow is published as."""

    plan_id: str
    name: str
    model: bool
    tool: bool
    hooks: list[PublishedHook]
    """The triggers of its `webhook` nodes; those that are not enabled start nothing."""


class InputSetResponse(TypedDict):
    """Inputs of a flow that are saved under a name."""

    name: str
    inputs: dict[str, Any]
    """As `POST /api/execute` takes them."""
    created_at: str
    updated_at: str
    """When the inputs or the name were changed last."""
    created_by: PrincipalDocument | None
    """Who saved them last."""
    issues: list[DiagnosticResponse]
    """What does not fit the live revision of the flow any more; pointers such as `/inputs/city`."""


class InputSetsResponse(TypedDict):
    """The saved inputs of a flow, by name."""

    input_sets: list[InputSetResponse]
