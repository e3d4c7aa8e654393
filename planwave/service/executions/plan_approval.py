"""The approval of a plan, and of a change of it: whether an execution needs one, and its request.

An approval holds for one hash, that of the graph that runs. A retry or fork of an approved execution
needs no other one as long as its graph has that hash. An execution that is started as a flow, in a revision
that the operator approved, needs none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from planwave.events.request_text import APPROVE, EDIT, PLAN_APPROVAL, PLAN_CHANGE
from planwave.events.types import ApprovalDocument
from planwave.graph.editing.difference import graph_difference
from planwave.graph.plan import graph_hash, title_of_text

if TYPE_CHECKING:
    from planwave.events import ExecutionState
    from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
    from planwave.graph.model import Graph, Json
    from planwave.shapes.graphs import ForecastResponse
    from planwave.shapes.plans import AdditionDocument

REJECT: Final = "reject"
SAFEGUARD: Final = "safeguard"
"""The kind of what a plan loses, among what it reaches and did not before."""
_OF_REQUEST: Final = frozenset({"requested_by", "writer"})
"""What a request of a change says of itself alone; who asked for it is ``revised_by`` here."""
_NAMES_SHOWN: Final = 12
_NAME_CHARS: Final = 120


def approval_of_fork(
    parent: ExecutionState, plan_hash: str, *, required: bool
) -> ApprovalDocument | None:
    """Return what a fork stores about its approval; None if it needs none.

    Args:
        parent: The execution that it forks.
        plan_hash: Of the graph that the fork runs.
        required: Every execution here needs an approval.
    """
    before = parent.approval
    if before is None:
        return {"plan_hash": plan_hash} if required else None
    if before["plan_hash"] == plan_hash and parent.is_approved:
        approved_in = before.get("approved_in") or parent.execution_id
        return {"plan_hash": plan_hash, "approved_in": approved_in}
    return {"plan_hash": plan_hash}


def hash_to_approve(
    approval: Mapping[str, Json] | None, graph: Graph, *, required: bool = False
) -> str | None:
    """Return the hash that a person approves before the first node starts; None if nobody is asked.

    Args:
        approval: What the execution stores about its approval.
        graph: The graph that it runs.
        required: Every execution here needs an approval, also one that was created before.
    """
    if approval is None:
        return graph_hash(graph) if required else None
    is_approved = "approved_in" in approval or "approved_revision" in approval
    return None if is_approved else cast("str", approval["plan_hash"])


def change_request(
    asked: PlanRequestedData,
    data: PlanRevisedData,
    graphs: tuple[Graph, Graph],
    additions: Sequence[AdditionDocument],
    forecast: ForecastResponse | None,
) -> dict[str, Json]:
    """Return the request for approval of a change of the graph that is run: all that it does and reaches.

    Args:
        asked: What asked for the change.
        data: The change, which is made as it stands here: nothing is written again.
        graphs: The graph that is run, and the one that it becomes.
        additions: What it reaches that the graph that is run does not, and what it loses that guards that.
        forecast: What the nodes will take that have not begun; None where that is unknown.
    """
    before, after = (each.to_document() for each in graphs)
    return cast(
        "dict[str, Json]",
        {
            **{name: each for name, each in asked.items() if name not in _OF_REQUEST},
            "kind": PLAN_CHANGE,
            "prompt": " ".join(["Change the plan of this run?", *_told(data, additions)]),
            "actions": [APPROVE, REJECT],
            "answer": data.get("note", ""),
            "base": data["base"],
            "hash": data["hash"],
            "graph_change": data["graph_change"],
            "difference": {"title": None, **graph_difference(before, after)},
            "additions": [*additions],
            "forecast": forecast,
            **({"revised_by": data["revised_by"]} if "revised_by" in data else {}),
        },
    )


def _told(data: PlanRevisedData, additions: Sequence[AdditionDocument]) -> Iterator[str]:
    """Yield the sentences of a request for approval of a change: what it changes, reaches and loses.

    A model wrote the names, and may have read texts of strangers: each is on one line, and none is long.
    """
    change = data["graph_change"]
    parts = {
        "New or changed": [each["id"] for each in change["nodes"]],
        "Dropped": change["dropped_nodes"],
        "It would do or reach what the plan does not": [
            f"{each['kind']} {each['name']}" for each in additions if each["kind"] != SAFEGUARD
        ],
        "It would lose what guards the plan": [
            each["name"] for each in additions if each["kind"] == SAFEGUARD
        ],
    }
    for words, names in parts.items():
        shown = [title_of_text(each, _NAME_CHARS) for each in names[:_NAMES_SHOWN]]
        more = [f"and {len(names) - _NAMES_SHOWN} more"] if len(names) > _NAMES_SHOWN else []
        if shown:
            yield f"{words}: {', '.join(shown + more)}."


def approval_request(
    plan_hash: str,
    *,
    title: str,
    goal: str,
    plan_id: str | None = None,
    forecast: Mapping[str, Json] | None = None,
    is_editable: bool = True,
) -> dict[str, Json]:
    """Return the request for approval: the plan, its forecast and the possible decisions.

    Args:
        plan_hash: Of the graph that is to run.
        title: The title of the plan.
        goal: The goal in the user's words.
        plan_id: The id of the plan, where it is stored.
        forecast: What running it will take; None where that is unknown.
        is_editable: Whether the person may answer with a changed plan.
    """
    return {
        "kind": PLAN_APPROVAL,
        "prompt": f"Run the plan {title!r}?" if title else "Run this plan?",
        "actions": [APPROVE, REJECT, EDIT] if is_editable else [APPROVE, REJECT],
        "plan_hash": plan_hash,
        "plan_id": plan_id,
        "title": title,
        "goal": goal,
        "forecast": None if forecast is None else dict(forecast),
    }
