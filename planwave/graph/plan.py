"""A plan: a titled graph made for a goal, and how it came to be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from planwave.graph.model import Graph, Json
from planwave.jsonio import MAX_JSON_DEPTH, is_plain

_LEVELS_ABOVE_PARTS: Final = 2
"""Levels that a document has above the fields of a node, and a list of them has not."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A goal's graph with everything a person needs before saying "run".

    Attributes:
        plan_id: UUIDv7 text.
        user_prompt: The goal in the user's words; "" for a plan made by hand without one.
        title: A short name.
        graph: The checked graph.
        hash: :func:`graph_hash` of the graph; executions are bound to it.
        revision: 1 for a new plan.
        provider, model: Who wrote it; None for a plan made by hand.
        diagnostics: Findings that do not stop it (JSON form).
        fixes: What planwave changed in the model's reply, one sentence each.
        attempts: ``{"reply", "finish_reason", "diagnostics", "usage"}`` a model call, in order.
        forecast: ``{"waves", "critical_path", "calls", "tokens", "cost_usd", "effects", …}``.
        created_at: UTC, ISO 8601.
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
    diagnostics: Sequence[dict[str, Any]] = ()
    fixes: Sequence[str] = ()
    attempts: Sequence[dict[str, Any]] = ()
    forecast: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def as_json(
        self, status: str = "draft", *, graph: Mapping[str, Json] | None = None
    ) -> dict[str, Json]:
        """Give the plan as the API shows it.

        Args:
            status: That of its newest execution.
            graph: Its graph's document, where the one given may be shared; else it is the caller's.
        """
        return {
            "plan_id": self.plan_id,
            "user_prompt": self.user_prompt,
            "title": self.title,
            "status": status,
            "revision": self.revision,
            "hash": self.hash,
            "created_at": self.created_at,
            "provider": self.provider,
            "model": self.model,
            **(self.graph.to_document() if graph is None else graph),
            "diagnostics": list(self.diagnostics),
            "fixes": list(self.fixes),
            "attempts": list(self.attempts),
            "forecast": dict(self.forecast),
        }


def canonical_json(value: Json) -> str:
    """Give one text for equal JSON values: sorted keys, no spaces, UTF-8 kept."""
    return _canonical(value, plain=is_plain(value))


def graph_content(graph: Graph) -> dict[str, Json]:
    """Give a graph's document without ``ui``: all that it does, and nothing of how it is drawn.

    It shares what it holds with :attr:`Graph.document`, so that is not to be changed.
    """
    nodes: list[dict[str, Json]] = graph.document["nodes"]
    return {
        "nodes": [_without_ui(node) if "ui" in node else node for node in nodes],
        "edges": graph.document["edges"],
    }


def graph_hash(graph: Graph) -> str:
    """Give the hash of a graph's content: sha256 over its canonical JSON."""
    text = _canonical(graph_content(graph), plain=is_plain_document(graph))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def is_plain_document(graph: Graph) -> bool:
    """Say whether a graph's document is plain JSON, see ``is_plain``; looked up once."""
    found: bool | None = graph.derived.get(is_plain_document)
    if found is None:
        parts = _arbitrary_values(graph.document)
        found = graph.derived[is_plain_document] = is_plain(
            parts, MAX_JSON_DEPTH - _LEVELS_ABOVE_PARTS
        )
    return found


def _canonical(value: Json, *, plain: bool) -> str:
    if plain:  # then orjson gives the same, fifteen times as fast
        with suppress(orjson.JSONEncodeError):
            return orjson.dumps(value, None, orjson.OPT_SORT_KEYS).decode()
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def _without_ui(node: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in node.items() if name != "ui"}


def _arbitrary_values(document: Mapping[str, Json]) -> list[Json]:
    """Give what may hold anything; the rest of a graph is text, which is plain."""
    nodes: list[dict[str, Json]] = document["nodes"]
    marks = [edge["data"] for edge in document["edges"]]
    return [
        *(node["data"] for node in nodes),
        *(node[field] for node in nodes for field in ("policy", "ui") if field in node),
        *(held for held in marks if len(held) != 1 or "channel" not in held),
    ]
