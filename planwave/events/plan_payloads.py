"""Payloads of the events with which the graph of an execution changes while it runs or waits.

A change carries what is new, changed and dropped, not the whole graph: whoever reads the events applies it
to the graph of ``execution.created``; see ``planwave.graph.editing.revision``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NotRequired, cast

from typing_extensions import TypedDict

from planwave.errors import ErrorDocument
from planwave.principals import PrincipalDocument
from planwave.shapes.common import ChangeCause, ChangeWriterDocument, GraphChangeDocument

REPLAN: Final = "replan"
"""The type of the event with which a node asks for a change of the graph: ``{"request"}``, in words."""
WRITTEN: Final = "plan"
"""The ``kind`` of a ``node.delta`` without a path: lines of JSON, each ``{"kind", …}``, a part of the change as a
model writes it; see ``planner.progress.PlanProgress``."""
MAX_REQUEST_CHARS: Final = 4_000
"""The longest words with which a node asks for a change."""


class PlanRevisedData(TypedDict):
    """A change of the graph: ``change`` counts them from 1, ``base`` and ``hash`` are of the graphs before and after it.

    ``by`` says what asked for it, and ``revised_by`` which person did, or approved it.
    ``floor`` is the lowest wave of nodes that have not begun; ``waves``, ``linked`` and ``not_reached`` as in
    ``execution.started``.
    """

    change: int
    base: str
    hash: str
    graph_change: GraphChangeDocument
    floor: int
    waves: NotRequired[int]
    linked: NotRequired[list[str]]
    not_reached: NotRequired[list[str]]
    note: NotRequired[str]
    by: NotRequired[ChangeCause]
    revised_by: NotRequired[PrincipalDocument]


class PlanRequestedData(TypedDict):
    """A change of its own graph that an execution waits for: nothing starts until it is made or refused.

    ``change`` is the number that it will have. ``by`` says what asked for it: the failure of the node at ``path``,
    that node itself, or a person; the last two with a ``request`` in words. ``writer`` is there where a person has a
    model write it, who without a ``request`` wants the steps replaced that failed; it is not where the person wrote it.
    """

    change: int
    by: ChangeCause
    request: NotRequired[str]
    path: NotRequired[str]
    requested_by: NotRequired[PrincipalDocument]
    writer: NotRequired[ChangeWriterDocument]


def is_for_model(asked: PlanRequestedData) -> bool:
    """Return whether a model writes the change that is asked for; else a person has written it."""
    return asked["by"] != "person" or "writer" in asked


class PlanRefusedData(TypedDict):
    """Why a change that was requested is not made; the execution goes on, or ends, as it would have without it.

    ``diagnostics`` are those of the graph that it would have made.
    """

    change: int
    error: ErrorDocument
    diagnostics: NotRequired[list[dict[str, Any]]]


_REVISION_FIELDS: Final = ("change", "base", "hash", "graph_change")


def revision_of(request: Mapping[str, Any]) -> PlanRevisedData:
    """Return what the event of a change says that a request is about; the driver adds the waves."""
    fields = {name: request[name] for name in _REVISION_FIELDS}
    fields |= {name: request[name] for name in ("by", "revised_by") if name in request}
    return cast("PlanRevisedData", {**fields, "note": request["answer"], "floor": 1})


_REQUESTED_BY: Final = {
    "failure": "is being written as {path} failed",
    "node": "is being written as {path} asks for it",
    "person": "is proposed by a person",
}
_IN_WORDS: Final = "is being written as a person asks for it"


def request_of_change_text(data: Mapping[str, Any] | PlanRequestedData) -> str:
    """Return what is said of a change of a graph that was requested: that it is written, or proposed, and why."""
    why = _IN_WORDS if "writer" in data else _REQUESTED_BY[data["by"]].format(path=data.get("path"))
    request = data.get("request")
    return f"{why}: {request}" if request else why


def names_of(graph: Mapping[str, Any]) -> dict[str, str]:
    """Return the names of the nodes of a graph, or of a change, by id; an id where there is none."""
    return {node["id"]: node.get("name") or node["id"] for node in graph["nodes"]}


def change_text(data: Mapping[str, Any] | PlanRevisedData) -> str:
    """Return what a change of a graph was, for people: its steps by id, and why it was made."""
    change = data["graph_change"]
    words = {
        "new or changed": [each["id"] for each in change["nodes"]],
        "dropped": change["dropped_nodes"],
    }
    told = [f"{word} {', '.join(ids)}" for word, ids in words.items() if ids]
    note = data.get("note")
    return f"{'; '.join(told) or 'other edges'}{f' - {note}' if note else ''}"
