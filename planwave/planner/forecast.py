"""What a plan will take, estimated before anything is run or paid.

Tokens are a range from terse to talkative answers: four characters are a token, each result is read
once by each step it flows into. Prices come from the provider catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from planwave.errors import InputError
from planwave.graph.capabilities import Catalogue
from planwave.graph.model import FLOW, Graph, Json, Node
from planwave.graph.shape import shape
from planwave.planner.offers import calls_model
from planwave.providers.api import Providers, Usage, text_tokens

_FRAME_TOKENS: Final = 80
"""What the prompt of a planned step says besides goal, task and inputs."""
_TERSE: Final = 60
_TALKATIVE: Final = 1_200
"""Tokens of an answer; the upper end is lowered by ``maxTokens`` and by the model's profile."""


class _Range(NamedTuple):
    low: int
    high: int

    def plus(self, other: _Range) -> _Range:
        return _Range(self.low + other.low, self.high + other.high)


def forecast(
    graph: Graph, catalogue: Catalogue, providers: Providers, *, goal: str = ""
) -> dict[str, Json]:
    """Give what a checked graph will take.

    Returns:
        ``{"waves", "nodes", "width", "depth", "critical_path": [id], "calls", "tokens": {"low",
        "high"}, "cost_usd": {"low", "high"} | null, "effects": [{"node", "type", "effect"}]}``.
        ``cost_usd`` is null where the price of any call is unknown.
    """
    form = shape(graph, linked=_only_linked(graph.nodes, catalogue))
    nodes = {node.id: node for node in graph.nodes}
    order = [nodes[name] for wave in form.waves for name in wave]
    calls = [node for node in order if calls_model(catalogue, node.type)]
    used = _tokens(graph, order, catalogue, providers, goal)
    return {
        "waves": len(form.waves),
        "nodes": len(graph.nodes),
        "width": form.width,
        "depth": form.depth,
        "critical_path": list(form.critical_path),
        "calls": len(calls),
        "tokens": {
            "low": sum(read.low + told.low for read, told in used.values()),
            "high": sum(read.high + told.high for read, told in used.values()),
        },
        "cost_usd": _cost(calls, used, providers),
        "effects": _effects(graph.nodes, catalogue),
    }


def _only_linked(nodes: Iterable[Node], catalogue: Catalogue) -> set[str]:
    facts = {node.id: catalogue.facts(node.type) for node in nodes}
    return {name for name, found in facts.items() if found is not None and not found.executes}


def _tokens(
    graph: Graph,
    order: Iterable[Node],
    catalogue: Catalogue,
    providers: Providers,
    goal: str,
) -> dict[str, tuple[_Range, _Range]]:
    """Give tokens read and told by each step that asks a model, in one pass over the waves."""
    sources: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.channel == FLOW:
            sources.setdefault(edge.target, []).append(edge.source)
    results: dict[str, _Range] = {}
    used: dict[str, tuple[_Range, _Range]] = {}
    for node in order:
        arrived = _Range(0, 0)
        for source in sources.get(node.id, ()):
            arrived = arrived.plus(results.get(source, _Range(0, 0)))
        if not calls_model(catalogue, node.type):
            results[node.id] = arrived
            continue
        own = _FRAME_TOKENS + text_tokens(goal, node.description, *_texts(node.data))
        told = _Range(*_answer(node, providers))
        used[node.id] = (arrived.plus(_Range(own, own)), told)
        results[node.id] = told
    return used


def _answer(node: Node, providers: Providers) -> tuple[int, int]:
    asked = node.data.get("maxTokens")
    cap = (
        asked
        if isinstance(asked, int)
        else providers.profile(*_who(node, providers)).max_output_tokens
    )
    high = _TALKATIVE if cap is None else min(cap, _TALKATIVE)
    return min(_TERSE, high), high


def _who(node: Node, providers: Providers) -> tuple[str, str]:
    """Give the provider and model a node will ask, the default ones where it names none."""
    named = [node.data.get(field) for field in ("provider", "model")]
    provider, model = (value if isinstance(value, str) else None for value in named)
    try:
        return providers.resolve(provider, model)
    except InputError:
        return provider or "", model or ""


def _texts(data: Mapping[str, Json]) -> Iterable[str]:
    return (value for value in data.values() if isinstance(value, str))


def _cost(
    calls: Iterable[Node],
    used: Mapping[str, tuple[_Range, _Range]],
    providers: Providers,
) -> dict[str, Json] | None:
    low = high = 0.0
    for node in calls:
        read, told = used[node.id]
        who = _who(node, providers)
        least = providers.price(*who, Usage(read.low, told.low))
        most = providers.price(*who, Usage(read.high, told.high))
        if least is None or most is None:
            return None
        low, high = low + least, high + most
    return {"low": round(low, 6), "high": round(high, 6)}


def _effects(nodes: Iterable[Node], catalogue: Catalogue) -> list[dict[str, Json]]:
    """Give every step that writes to the world; reading and computing are not side effects."""
    found: list[dict[str, Json]] = []
    for node in nodes:
        facts = catalogue.facts(node.type)
        effect = node.policy.effect or (facts.effect if facts else "none")
        if effect in ("write", "once"):
            found.append({"node": node.id, "type": node.type, "effect": effect})
    return found
