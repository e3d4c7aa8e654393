"""A plan: a titled graph made for a goal, and how it came to be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from planwave.graph.model import Graph, Json
from planwave.graph.strict import is_plain


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

    def as_json(self, status: str = "draft") -> dict[str, Json]:
        """Give the plan as the API shows it; ``status`` is that of its newest execution."""
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
            **self.graph.to_document(),
            "diagnostics": list(self.diagnostics),
            "fixes": list(self.fixes),
            "attempts": list(self.attempts),
            "forecast": dict(self.forecast),
        }


def canonical_json(value: Json) -> str:
    """Give one text for equal JSON values: sorted keys, no spaces, UTF-8 kept."""
    if is_plain(value):  # then orjson gives the same, fifteen times as fast
        with suppress(orjson.JSONEncodeError):
            return orjson.dumps(value, None, orjson.OPT_SORT_KEYS).decode()
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def content_of(graph: Graph) -> dict[str, Json]:
    """Give a graph's document without ``ui``: all that it does, and nothing of how it is drawn."""
    document = graph.to_document()
    for node in document["nodes"]:
        node.pop("ui", None)
    return document


def graph_hash(graph: Graph) -> str:
    """Give the hash of a graph's content: sha256 over its canonical JSON."""
    document = content_of(graph)
    return hashlib.sha256(canonical_json(document).encode("utf-8")).hexdigest()
