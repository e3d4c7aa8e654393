"""A plan: a titled graph for a goal, and how it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from planwave.graph.model import FLOW, Graph, Json
from planwave.jsonio import MAX_JSON_DEPTH, is_plain

if TYPE_CHECKING:
    from planwave.shapes.graphs import DiagnosticResponse
    from planwave.shapes.plans import PlanQuestion

_MAX_NAME_CHARS: Final = 60
_LEVELS_ABOVE_PARTS: Final = 2
"""Levels of nesting above the fields of a node in a document."""


def title_of_steps(graph: Graph) -> str:
    """Return a title for a graph that has none: the names of its first and its last step."""
    edges = [edge for edge in graph.edges if edge.channel == FLOW]
    sources, targets = {edge.source for edge in edges}, {edge.target for edge in edges}
    joined = sources | targets
    steps = [node for node in graph.nodes if node.id in joined] or graph.nodes
    firsts = [node for node in steps if node.id not in targets]
    lasts = [node for node in steps if node.id not in sources]
    ends = dict.fromkeys(node.name for node in (*firsts[:1], *lasts[-1:]))
    return " to ".join(name[:_MAX_NAME_CHARS] for name in ends)


def title_of_text(text: str, most: int) -> str:
    """Return the beginning of a text as a title: one line of whole words, at most so many characters."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    kept = line[: most - 1]
    whole, space, _ = line[:most].rpartition(" ")
    # A word that takes most of the line, or a language without spaces, is cut.
    if space and len(whole) >= most // 2:
        kept = whole
    return kept.rstrip(" ,;:-") + "…"


@dataclass(frozen=True, slots=True)
class Plan:
    """A goal's graph with everything a person needs to decide whether to run it.

    Attributes:
        plan_id: UUIDv7 text.
        user_prompt: The goal in the user's words; "" for a plan made by hand without one.
        title: A short name.
        graph: The checked graph.
        hash: ``graph_hash`` of the graph; executions are bound to it.
        revision: 1 for a new plan; 0 where the graph is that of no revision.
        provider, model: The model that wrote it; None for a plan made by hand.
        diagnostics: Findings that do not prevent it from running (JSON form).
        fixes: The changes planwave made in the model's reply, one sentence each.
        questions: What the goal left open, ``{"question", "answer", "assumed", "options"}`` each.
        attempts: ``{"reply", "finish_reason", "diagnostics", "usage"}`` for each model call.
        forecast: ``{"waves", "critical_path", "calls", "tokens", "cost_usd", "effects", …}``.
        created_at: UTC, ISO 8601.
        examples: ``{"plan_id", "title"}`` of each earlier plan that the model was shown.
    """

    plan_id: str
    user_prompt: str
    title: str
    graph: Graph
    hash: str
    created_at: str
    revision: int = 1
    provider: str | None = None
    model: str | None = None
    diagnostics: Sequence[DiagnosticResponse] = ()
    fixes: Sequence[str] = ()
    questions: Sequence[PlanQuestion] = ()
    attempts: Sequence[dict[str, Any]] = ()
    forecast: Mapping[str, Json] = field(default_factory=dict[str, Json])
    examples: Sequence[Mapping[str, Json]] = ()

    @property
    def author(self) -> Literal["model"] | None:
        """Who wrote it: a model, also where people changed it since; None for a graph of a person."""
        return None if self.provider is None else "model"

    def as_json(
        self, status: str = "draft", *, graph: Mapping[str, Json] | None = None
    ) -> dict[str, Json]:
        """Return the plan as the API shows it before it has a name.

        Args:
            status: The status of its newest execution.
            graph: The graph's document, if it may be shared; None makes a copy.
        """
        return {
            "plan_id": self.plan_id,
            "user_prompt": self.user_prompt,
            "title": self.title,
            "status": status,
            "revision": self.revision,
            "hash": self.hash,
            "created_at": self.created_at,
            "name": None,
            "description": "",
            "published": [],
            "live_revision": self.revision,
            "provider": self.provider,
            "model": self.model,
            **(self.graph.to_document() if graph is None else graph),
            "diagnostics": list(self.diagnostics),
            "fixes": list(self.fixes),
            "questions": list(self.questions),
            "attempts": list(self.attempts),
            "forecast": dict(self.forecast),
            **({"examples": [dict(each) for each in self.examples]} if self.examples else {}),
        }


def canonical_json(value: Json) -> str:
    """Return the same text for equal JSON values: sorted keys, no spaces, UTF-8 unescaped."""
    return _canonical(value, plain=is_plain(value))


def graph_content(graph: Graph) -> dict[str, Json]:
    """Return a graph's document without ``ui``: what decides how it runs.

    The result shares values with [Graph.document][planwave.Graph.document]: do not change it.
    """
    nodes: list[dict[str, Json]] = graph.document["nodes"]
    return {
        "nodes": [without_ui(node) if "ui" in node else node for node in nodes],
        "edges": graph.document["edges"],
    }


def graph_hash(graph: Graph) -> str:
    """Return the hash of a graph's content: sha256 over its canonical JSON."""
    text = _canonical(graph_content(graph), plain=is_plain_document(graph))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def unreadable_hash(document: Mapping[str, Json]) -> str:
    """Return the hash of a graph document that cannot be read; never that of a graph.

    As ``graph_hash`` does, it leaves ``ui`` out.
    """
    content = {
        "nodes": [without_ui(node) for node in document["nodes"]],
        "edges": document["edges"],
    }
    text = f"unreadable {canonical_json(content)}"  # no JSON, so no graph has this text
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def is_plain_document(graph: Graph) -> bool:
    """Return whether a graph's document is plain JSON (see ``is_plain``); the result is cached."""
    is_plain_json: bool | None = graph.derived.get(is_plain_document)
    if is_plain_json is None:
        parts = _arbitrary_values(graph.document)
        is_plain_json = graph.derived[is_plain_document] = is_plain(
            parts, MAX_JSON_DEPTH - _LEVELS_ABOVE_PARTS
        )
    return is_plain_json


def _canonical(value: Json, *, plain: bool) -> str:
    if plain:  # orjson writes the same text, fifteen times as fast
        with suppress(orjson.JSONEncodeError):
            return orjson.dumps(value, None, orjson.OPT_SORT_KEYS).decode()
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def without_ui(node: Mapping[str, Json]) -> dict[str, Json]:
    """Return the document of a node without ``ui``."""
    return {name: value for name, value in node.items() if name != "ui"}


def _arbitrary_values(document: Mapping[str, Json]) -> list[Json]:
    """Return the parts of a graph that may be any JSON; the other parts are text, which is plain."""
    nodes: list[dict[str, Json]] = document["nodes"]
    edge_data = [edge["data"] for edge in document["edges"]]
    return [
        *(node["data"] for node in nodes),
        *(node[field] for node in nodes for field in ("policy", "ui") if field in node),
        *(data for data in edge_data if len(data) != 1 or "channel" not in data),
    ]
