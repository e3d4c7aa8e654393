"""Estimates of a plan's waves, calls, tokens and cost, made before it runs.

Tokens are a range from terse answers to the longest ones that a budget reserves: four characters are a token,
each result is read once by each step it flows into. The upper end has all that the first calls reserve (prompt,
tools, the longest reply), so a budget of that size does not stop them; what a node computes, or a server says of
its tools, is unknown before. Prices come from the providers. A graph inside a node counts
once, though it may run as often as there are items, or not at all; this is unknown before. The range of the cost
reaches from what other calls may begin with too as read from the provider's cache to the whole prompt as written to
it: whether it is there is unknown before as well.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import InputError
from planwave.expressions.json_text import to_text
from planwave.graph.model import FLOW, LINK, Graph, Json, Node
from planwave.graph.plan import canonical_json
from planwave.graph.protocols import NodeTypes, effect_of
from planwave.graph.shape import GraphShape, measure
from planwave.graph.subgraphs import has_subgraphs, subgraphs_of
from planwave.planner.capabilities import (
    PlanRules,
    calls_model,
    knows_tools,
    plannable_types,
    provider_cards,
    runs_graphs,
    tool_cards,
    tool_texts,
    type_cards,
)
from planwave.prompts.render import planner_prompt
from planwave.providers.protocols import (
    EMBEDDED,
    Providers,
    Usage,
    fallback_reason,
    highest_price,
    reserved_reply,
    text_tokens,
)

if TYPE_CHECKING:
    from planwave.shapes.graphs import Effect, ForecastModel, ForecastResponse, Span

_PROMPT_OVERHEAD_TOKENS: Final = 50
"""What the prompt of a planned step says besides goal, task and inputs (``agent_prompt.j2``)."""
_SHORT_ANSWER_TOKENS: Final = 20
"""Tokens of a terse answer: a sentence."""
_STEP_OVERHEAD_TOKENS: Final = 250
"""The most that it says besides them (``agent_small.j2`` with its system prompt)."""
_LABEL_TOKENS: Final = 3
"""What a result is introduced with, besides the name and the id of its node."""
_LAST_STEP_FACTOR: Final = 2
"""An embedded model may write so many times its usual tokens in a last step."""
_PROVIDER_HANDLE: Final = "provider"
_MODEL_HANDLE: Final = "model"
"""The port by which nodes take a linked model."""
_CONVERSATION_FIELD: Final = "messages"
_TOOLS_HANDLE: Final = "tools"
"""The port by which nodes take tools."""
_EXPRESSION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_VALUE: Final = re.compile(r"\{[{%#]")
"""Where a template has its first value."""
_WRITE_EFFECTS: Final = ("write", "once")
"""Effects that the world can tell."""


class _Range(NamedTuple):
    low: int
    high: int


class _Call(NamedTuple):
    """A step that asks a model, the tokens it reads and tells, and those that the cache may have.

    ``is_default`` where the step names no model itself.
    """

    model: tuple[str, str]
    is_default: bool
    input_tokens: _Range
    output_tokens: _Range
    cached_tokens: int


def forecast(
    graph: Graph,
    catalogue: NodeTypes,
    providers: Providers,
    *,
    goal: str = "",
    inputs: Mapping[str, Mapping[str, Json]] | None = None,
    begun: Collection[str] = (),
) -> ForecastResponse:
    """Return the estimated waves, calls, tokens and cost of a checked graph.

    Args:
        graph: The graph.
        catalogue: The node types.
        providers: The providers, with their prices.
        goal: What the plan is for.
        inputs: ``{node_id: {handle: value}}``: nodes that are not executed but have these values.
        begun: The nodes of a run that is under way that have begun: only what the others take is estimated.

    Returns:
        ``{"waves", "nodes", "width", "depth", "critical_path": [id], "calls", "at_least",
        "tokens": {"low", "high"}, "cost_usd": {"low", "high"} | null, "effects": [{"node", "type",
        "effect"}], "models"?: [{"provider", "model", "calls", "reason"?}], "uncounted_tools"?: [id]}``. ``nodes`` counts the nodes of the waves, without linked ones. ``at_least`` is
        true where a node runs graphs, so that it may take more (or less), and where one may call tools:
        it asks its model again after each call, and the calls of other agents are not counted. ``cost_usd`` is null where
        the price of any call is unknown. ``uncounted_tools`` are the nodes of MCP servers, whose tools only a
        run knows: models read more than ``tokens`` says. Effects inside a node are listed with the node.
    """
    estimator = _Estimator(catalogue, providers, goal)
    rest = _rest_of(graph, begun, catalogue) if begun else graph
    form = _measure_graph(rest, catalogue)
    whole = _measure_graph(graph, catalogue) if begun else form
    calls = estimator.calls(graph, whole, values=inputs or {}, begun=begun)
    found: ForecastResponse = {
        "waves": len(form.waves),
        "nodes": sum(map(len, form.waves)),
        "width": form.width,
        "depth": form.depth,
        "critical_path": list(form.critical_path),
        "calls": len(calls),
        "at_least": _may_call_more(rest, catalogue),
        "tokens": _tokens(calls),
        "cost_usd": _cost(calls, providers),
        "effects": _all_effects(rest, catalogue),
    }
    if models := _models(calls, providers):
        found["models"] = models
    if estimator.uncounted_tools:
        found["uncounted_tools"] = list(estimator.uncounted_tools)
    return found


def _rest_of(graph: Graph, begun: Collection[str], catalogue: NodeTypes) -> Graph:
    """Return a graph without nodes that have begun, and without what is linked to these alone."""
    gone = frozenset(begun)
    edges = [each for each in graph.edges if gone.isdisjoint((each.source, each.target))]
    links, still = (
        {each.source for each in some if each.channel == LINK} for some in (graph.edges, edges)
    )
    idle = {each for each in links - still if not _executes(graph.by_id[each].type, catalogue)}
    nodes = [each for each in graph.nodes if each.id not in gone | idle]
    return Graph(tuple(nodes), tuple(edges))


def _executes(node_type: str, catalogue: NodeTypes) -> bool:
    facts = catalogue.type_info(node_type)
    return facts is None or facts.executes


def _may_call_more(graph: Graph, catalogue: NodeTypes) -> bool:
    if any(runs_graphs(catalogue, each) for each in {node.type for node in graph.nodes}):
        return True
    return any(edge.channel == LINK and edge.target_handle == _TOOLS_HANDLE for edge in graph.edges)


def require_default_model(graph: Graph, catalogue: NodeTypes, providers: Providers) -> None:
    """Check that there is a model for the steps that name none, before anything of the graph runs.

    Raises:
        UnavailableProvider: There is none.
    """
    if any(_needs_default(node, graph, catalogue) for node in graph.nodes):
        providers.resolve(None, None)
    for node in graph.nodes:
        for inner in subgraphs_of(node, catalogue):
            require_default_model(inner, catalogue, providers)


def called_providers(graph: Graph, catalogue: NodeTypes, providers: Providers) -> set[str]:
    """Return the providers that the steps of a graph call, and those of the graphs in it, as far as one can see."""
    resolve = cache(partial(_resolve, providers))
    found, graphs = set[str](), [graph]
    while graphs:
        inner = graphs.pop()
        for node in inner.nodes:
            if calls_model(catalogue, node.type):
                found.add(resolve(*_named_model(_with_linked_model(node, inner)))[0])
            elif provider := _named_model(node.data)[0]:
                found.add(provider)  # of a model that others are linked to
            graphs += subgraphs_of(node, catalogue)
    return found


def _needs_default(node: Node, graph: Graph, catalogue: NodeTypes) -> bool:
    if not calls_model(catalogue, node.type) or node.data.get("provider") or node.data.get("model"):
        return False
    edges = graph.incoming.get(node.id, ())
    return all(edge.target_handle not in (_PROVIDER_HANDLE, _MODEL_HANDLE) for edge in edges)


def _measure_graph(graph: Graph, catalogue: NodeTypes) -> GraphShape:
    types = {node.type for node in graph.nodes}
    lazy = {each for each in types if not _executes(each, catalogue)}
    linked = {node.id for node in graph.nodes if node.type in lazy} if lazy else ()
    return measure(graph, linked=linked)


def _sum(ranges: Sequence[_Range]) -> _Range:
    if len(ranges) == 1:
        return ranges[0]
    return _Range(sum(each.low for each in ranges), sum(each.high for each in ranges))


class _Estimator:
    """Estimates the calls of a graph and of the graphs inside its nodes.

    The models of the nodes are looked up once: whether a provider is available takes long.

    Attributes:
        uncounted_tools: The nodes that give tools of which nothing is known before a run.
    """

    def __init__(self, catalogue: NodeTypes, providers: Providers, goal: str) -> None:
        self._catalogue, self._providers, self._goal = catalogue, providers, goal
        self.uncounted_tools: dict[str, None] = {}
        self._resolve = cache(partial(_resolve, providers))
        self._profile = cache(providers.profile)

    def calls(
        self,
        graph: Graph,
        form: GraphShape,
        *,
        values: Mapping[str, Mapping[str, Json]] = MappingProxyType({}),
        around: _Range | None = None,
        begun: Collection[str] = (),
    ) -> list[_Call]:
        """Return the steps that call a model, nested steps included, in one pass over the waves.

        Args:
            graph: The graph.
            form: Its waves.
            values: The values of nodes that are not executed.
            around: What the node reads that runs the graph; None for the graph of the execution.
            begun: The nodes whose calls are left out.
        """
        types = {node.type for node in graph.nodes}
        asking = {each for each in types if calls_model(self._catalogue, each)}
        holding = {each for each in types if has_subgraphs(each, self._catalogue)}
        if not asking and not holding:
            return []
        results: dict[str, _Range] = {}
        calls: list[_Call] = []
        for node in (graph.by_id[name] for wave in form.waves for name in wave):
            if node.id in values:
                tokens = text_tokens(*map(to_text, values[node.id].values()))
                results[node.id] = _Range(tokens, tokens)
                continue
            edges = graph.incoming.get(node.id, ())
            sources = [edge.source for edge in edges if edge.channel == FLOW]
            read = _sum([results[source] for source in sources if source in results])
            node_calls: list[_Call] = []
            passed_on = _Range(read.low, read.high + self._own_value(node))
            for inner in subgraphs_of(node, self._catalogue) if node.type in holding else ():
                form_inside = _measure_graph(inner, self._catalogue)
                node_calls += self.calls(inner, form_inside, around=passed_on)
            if node.type in asking:
                node_calls.append(self._call(node, graph, read, around))
            told = [call.output_tokens for call in node_calls]
            results[node.id] = _sum(told) if told else passed_on
            if node.id not in begun:
                calls += node_calls
        return calls

    def _own_value(self, node: Node) -> int:
        """Return the tokens of the data of a node, which it may pass on, without the graphs in them."""
        info = self._catalogue.type_info(node.type)
        graphs = () if info is None else info.graph_fields
        data = {name: value for name, value in node.data.items() if name not in graphs}
        return text_tokens(canonical_json(data))

    def _call(self, node: Node, graph: Graph, read: _Range, around: _Range | None) -> _Call:
        settings = _with_linked_model(node, graph)
        who = self._resolve(*_named_model(settings))
        own = _PROMPT_OVERHEAD_TOKENS + text_tokens(
            self._goal, node.description, *_texts(node.data)
        )
        values = read.high + (0 if around is None else around.high)
        highest = values * _most_repeats(node) + own + self._further_tokens(node, graph, who)
        return _Call(
            who,
            not (settings.get("provider") or settings.get("model")),
            _Range(read.low + own, highest),
            _Range(*self._answer_tokens(node.type, settings, who)),
            self._cached_tokens(node, who, is_nested=around is not None),
        )

    def _further_tokens(self, node: Node, graph: Graph, who: tuple[str, str]) -> int:
        """Return the most tokens of a prompt besides the texts of its node and what it reads."""
        incoming = graph.incoming.get(node.id, ())
        turns = node.data.get(_CONVERSATION_FIELD)
        tokens = text_tokens(canonical_json(turns)) if turns else 0
        if node.description and not node.data.get("userPrompt"):
            tokens += _STEP_OVERHEAD_TOKENS + text_tokens(self._goal)
        sources = [graph.by_id[edge.source] for edge in incoming if edge.channel == FLOW]
        tokens += sum(_LABEL_TOKENS + text_tokens(each.id, each.name) for each in sources)
        for edge in incoming:
            if edge.channel == LINK and edge.target_handle == _TOOLS_HANDLE:
                source = graph.by_id[edge.source]
                tokens += text_tokens(*tool_texts(self._catalogue, source))
                if not knows_tools(self._catalogue, source.type):
                    self.uncounted_tools[source.id] = None
        if runs_graphs(self._catalogue, node.type):
            tokens += self._planning_tokens(*who)
        return tokens

    def _planning_tokens(self, provider: str, model: str) -> int:
        """Return the tokens of what a model is told that writes a plan, besides the goal."""
        rules = PlanRules(web_search=True)
        try:
            types = plannable_types(self._catalogue, rules)
        except InputError:  # there is no type that a plan may use
            return 0
        texts = planner_prompt(
            "",
            type_cards(self._catalogue, types, rules),
            provider_cards(self._providers),
            provider=provider,
            model=model,
            tools=tool_cards(self._catalogue, rules),
        )
        return text_tokens(*texts)

    def _answer_tokens(
        self, node_type: str, settings: Mapping[str, Json], who: tuple[str, str]
    ) -> tuple[int, int]:
        most = settings.get("maxTokens")
        if not isinstance(most, int):
            most = self._profile(*who).max_output_tokens
            if most is not None:
                most *= _LAST_STEP_FACTOR
            if runs_graphs(self._catalogue, node_type):  # plans are longer
                most = None
        high = reserved_reply(most)
        return min(_SHORT_ANSWER_TOKENS, high), high

    def _cached_tokens(self, node: Node, who: tuple[str, str], *, is_nested: bool) -> int:
        """Return the tokens that calls of a step begin with; 0 where the provider does not keep so few.

        That is the system prompt, and for a step inside of another what precedes the first value in its prompt.
        """
        system, prompt = (node.data.get(name) for name in ("systemPrompt", "userPrompt"))
        texts = [system] if isinstance(system, str) else []
        if is_nested:
            texts += [prompt] if isinstance(prompt, str) else [self._goal, node.description]
        tokens = text_tokens(*(_VALUE.split(text, 1)[0] for text in texts))
        least = self._profile(*who).cached_tokens
        return 0 if least is None or tokens < least else tokens


def _with_linked_model(node: Node, graph: Graph) -> Mapping[str, Json]:
    """Return the data of a node, with those of the model that is linked to it."""
    for edge in graph.incoming.get(node.id, ()):
        if edge.channel == LINK and edge.target_handle == _MODEL_HANDLE:
            linked = graph.by_id[edge.source].data
            return {**node.data, **{k: v for k, v in linked.items() if v is not None}}
    return node.data


def _named_model(settings: Mapping[str, Json]) -> tuple[str | None, str | None]:
    """Return the provider and the model that the data of a node name."""
    provider, model = settings.get("provider"), settings.get("model")
    return (
        provider if isinstance(provider, str) else None,
        model if isinstance(model, str) else None,
    )


def _most_repeats(node: Node) -> int:
    """Return how often the texts of a node say the same value, at least 1."""
    values = Counter(match for text in _texts(node.data) for match in _EXPRESSION.findall(text))
    return max(values.values(), default=1)


def _resolve(providers: Providers, provider: str | None, model: str | None) -> tuple[str, str]:
    try:
        return providers.resolve(provider, model)
    except InputError:
        return provider or "", model or ""


def _texts(data: Mapping[str, Json]) -> Iterable[str]:
    return (value for value in data.values() if isinstance(value, str))


def _models(calls: Sequence[_Call], providers: Providers) -> list[ForecastModel]:
    """Return the models of calls, that of most calls first, with why the embedded one is among them."""
    models: list[ForecastModel] = []
    known = [call for call in calls if call.model[0]]  # others cannot be called here
    for (provider, model), count in Counter(call.model for call in known).most_common():
        named: ForecastModel = {"provider": provider, "model": model, "calls": count}
        is_default = any(c.is_default for c in calls if c.model == (provider, model))
        if provider == EMBEDDED and is_default and (reason := fallback_reason(providers)):
            named["reason"] = reason
        models.append(named)
    return models


def _tokens(calls: Iterable[_Call]) -> Span:
    low, high = _sum([each for call in calls for each in (call.input_tokens, call.output_tokens)])
    return {"low": low, "high": high}


def _cost(calls: Iterable[_Call], providers: Providers) -> Span | None:
    low = high = 0.0
    for who, _, read, written, cached in calls:
        least = providers.price(*who, Usage(read.low, written.low, cache_read_tokens=cached))
        most = highest_price(providers, *who, Usage(read.high, written.high))
        if least is None or most is None:
            return None
        low, high = low + least, high + most
    return {"low": round(low, 6), "high": math.ceil(high * 1e6) / 1e6}


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
