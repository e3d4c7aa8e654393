"""Estimates of a plan's waves, calls, tokens and cost, made before it runs.

Tokens are a range from terse to talkative answers: four characters are a token, each result is read
once by each step it flows into. Prices come from the providers. A graph inside a node counts
once, though it may run as often as there are items, or not at all; this is unknown before. Of what other
calls may begin with too, the range of the cost reaches from its price as read from the provider's cache
to that as written to it: whether it is there is unknown before as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import InputError
from planwave.graph.model import FLOW, LINK, Graph, Json, Node
from planwave.graph.protocols import NodeTypes, effect_of
from planwave.graph.shape import GraphShape, measure
from planwave.graph.subgraphs import has_subgraphs, subgraphs_of
from planwave.planner.capabilities import calls_model, runs_graphs
from planwave.providers.protocols import Providers, Usage, text_tokens

if TYPE_CHECKING:
    from planwave.shapes.graphs import Effect, ForecastResponse, Span

_PROMPT_OVERHEAD_TOKENS: Final = 50
"""What the prompt of a planned step says besides goal, task and inputs (``agent_prompt.j2``)."""
_SHORT_ANSWER_TOKENS: Final = 20
_LONG_ANSWER_TOKENS: Final = 1_200
"""Tokens of an answer: a sentence, and two pages; the upper end is lowered by ``maxTokens`` and by the
model's profile."""
_TOOLS_HANDLE: Final = "tools"
"""The port by which nodes take tools."""
_VALUE: Final = re.compile(r"\{[{%#]")
"""Where a template has its first value."""
_WRITE_EFFECTS: Final = ("write", "once")
"""Effects that the world can tell."""


class _Range(NamedTuple):
    low: int
    high: int


class _Call(NamedTuple):
    """A step that asks a model, the tokens it reads and tells, and those that the cache may have."""

    model: tuple[str, str]
    input_tokens: _Range
    output_tokens: _Range
    cached_tokens: int


def forecast(
    graph: Graph, catalogue: NodeTypes, providers: Providers, *, goal: str = ""
) -> ForecastResponse:
    """Return the estimated waves, calls, tokens and cost of a checked graph.

    Returns:
        ``{"waves", "nodes", "width", "depth", "critical_path": [id], "calls", "at_least",
        "tokens": {"low", "high"}, "cost_usd": {"low", "high"} | null, "effects": [{"node", "type",
        "effect"}]}``. ``nodes`` counts the nodes of the waves, without linked ones. ``at_least`` is
        true where a node runs graphs, so that it may take more (or less), and where one may call tools:
        it asks its model again after each call, and the calls of other agents are not counted. ``cost_usd`` is null where
        the price of any call is unknown. Effects inside a node are listed with the node.
    """
    form = _measure_graph(graph, catalogue)
    calls = _calls(graph, form, catalogue, _Models(providers), goal)
    return {
        "waves": len(form.waves),
        "nodes": sum(map(len, form.waves)),
        "width": form.width,
        "depth": form.depth,
        "critical_path": list(form.critical_path),
        "calls": len(calls),
        "at_least": any(runs_graphs(catalogue, each) for each in {n.type for n in graph.nodes})
        or _has_tools(graph),
        "tokens": {
            "low": sum(call.input_tokens.low + call.output_tokens.low for call in calls),
            "high": sum(call.input_tokens.high + call.output_tokens.high for call in calls),
        },
        "cost_usd": _cost(calls, providers),
        "effects": _all_effects(graph, catalogue),
    }


def _has_tools(graph: Graph) -> bool:
    return any(edge.channel == LINK and edge.target_handle == _TOOLS_HANDLE for edge in graph.edges)


def _measure_graph(graph: Graph, catalogue: NodeTypes) -> GraphShape:
    facts = {each: catalogue.type_info(each) for each in {node.type for node in graph.nodes}}
    lazy = {each for each, info in facts.items() if info is not None and not info.executes}
    linked = {node.id for node in graph.nodes if node.type in lazy} if lazy else ()
    return measure(graph, linked=linked)


def _calls(
    graph: Graph,
    form: GraphShape,
    catalogue: NodeTypes,
    models: _Models,
    goal: str,
    *,
    is_nested: bool = False,
) -> list[_Call]:
    """Return the steps that call a model, nested steps included, in one pass over the waves."""
    types = {node.type for node in graph.nodes}
    asking = {each for each in types if calls_model(catalogue, each)}
    holding = {each for each in types if has_subgraphs(each, catalogue)}
    if not asking and not holding:
        return []
    sources: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.channel == FLOW:
            sources.setdefault(edge.target, []).append(edge.source)
    results: dict[str, _Range] = {}
    calls: list[_Call] = []
    for name in (name for wave in form.waves for name in wave):
        node = graph.by_id[name]
        read = _sum([results[source] for source in sources.get(name, ()) if source in results])
        node_calls = [
            call
            for inner in (subgraphs_of(node, catalogue) if node.type in holding else ())
            for call in _calls(
                inner, _measure_graph(inner, catalogue), catalogue, models, goal, is_nested=True
            )
        ]
        if node.type in asking:
            own = _PROMPT_OVERHEAD_TOKENS + text_tokens(goal, node.description, *_texts(node.data))
            node_calls.append(
                _Call(
                    models.of(node),
                    _Range(read.low + own, read.high + own),
                    _Range(*_answer_tokens(node, models)),
                    _cached_tokens(node, models, goal, is_nested=is_nested),
                )
            )
        results[name] = _sum([call.output_tokens for call in node_calls]) if node_calls else read
        calls += node_calls
    return calls


def _sum(ranges: Sequence[_Range]) -> _Range:
    if len(ranges) == 1:
        return ranges[0]
    return _Range(sum(each.low for each in ranges), sum(each.high for each in ranges))


def _cached_tokens(node: Node, models: _Models, goal: str, *, is_nested: bool) -> int:
    """Return the tokens that calls of a step begin with; 0 where the provider does not keep so few.

    That is the system prompt, and for a step inside of another what precedes the first value in its prompt.
    """
    system, prompt = (node.data.get(name) for name in ("systemPrompt", "userPrompt"))
    texts = [system] if isinstance(system, str) else []
    if is_nested:
        texts += [prompt] if isinstance(prompt, str) else [goal, node.description]
    tokens = text_tokens(*(_VALUE.split(text, 1)[0] for text in texts))
    least = models.cached_tokens(node)
    return 0 if least is None or tokens < least else tokens


def _answer_tokens(node: Node, models: _Models) -> tuple[int, int]:
    limit = node.data.get("maxTokens")
    cap = limit if isinstance(limit, int) else models.max_output_tokens(node)
    high = _LONG_ANSWER_TOKENS if cap is None else min(cap, _LONG_ANSWER_TOKENS)
    return min(_SHORT_ANSWER_TOKENS, high), high


class _Models:
    """The models of the nodes, each looked up once: whether a provider is available takes long."""

    def __init__(self, providers: Providers) -> None:
        self._resolve = cache(partial(_resolve, providers))
        self._profile = cache(providers.profile)

    def of(self, node: Node) -> tuple[str, str]:
        """Return the provider and model that a node calls; the defaults if the node names none."""
        named = [node.data.get(field) for field in ("provider", "model")]
        return self._resolve(*(value if isinstance(value, str) else None for value in named))

    def cached_tokens(self, node: Node) -> int | None:
        """Return the least tokens that the provider keeps in a cache, None if it keeps none."""
        return self._profile(*self.of(node)).cached_tokens

    def max_output_tokens(self, node: Node) -> int | None:
        """Return the longest answer of the model that a node calls, None if it is unknown."""
        return self._profile(*self.of(node)).max_output_tokens


def _resolve(providers: Providers, provider: str | None, model: str | None) -> tuple[str, str]:
    try:
        return providers.resolve(provider, model)
    except InputError:
        return provider or "", model or ""


def _texts(data: Mapping[str, Json]) -> Iterable[str]:
    return (value for value in data.values() if isinstance(value, str))


def _cost(calls: Iterable[_Call], providers: Providers) -> Span | None:
    low = high = 0.0
    for who, read, written, cached in calls:
        least = providers.price(*who, Usage(read.low, written.low, cache_read_tokens=cached))
        most = providers.price(*who, Usage(read.high, written.high, cache_write_tokens=cached))
        if least is None or most is None:
            return None
        low, high = low + least, high + most
    return {"low": round(low, 6), "high": round(high, 6)}


def _all_effects(graph: Graph, catalogue: NodeTypes) -> list[Effect]:
    """Return the side effects of a graph, node by node; most node types have none."""
    harmless = {
        each
        for each in {node.type for node in graph.nodes}
        if (facts := catalogue.type_info(each)) is None
        or (facts.effect not in _WRITE_EFFECTS and not facts.graph_fields)
    }
    return [
        effect
        for node in graph.nodes
        if node.type not in harmless or node.policy.effect is not None
        for effect in _effects(node, graph, node, catalogue)
    ]


def _effects(node: Node, graph: Graph, holder: Node, catalogue: NodeTypes) -> list[Json]:
    """Return the side effects of a step; reading and computing are not side effects."""
    facts = catalogue.type_info(node.type)
    effect = effect_of(node, facts, graph) if facts else node.policy.effect
    effects: list[Json] = []
    if effect in _WRITE_EFFECTS:
        effects.append({"node": holder.id, "type": node.type, "effect": effect})
    for inner in subgraphs_of(node, catalogue):
        for each in inner.nodes:
            effects += _effects(each, inner, holder, catalogue)
    return effects
