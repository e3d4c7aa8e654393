"""What a graph may do or reach outside of itself, and which safeguards it has no longer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.errors import InputError
from planwave.expressions import NODES
from planwave.expressions.renaming import may_name_any_node
from planwave.graph.model import FLOW, LINK, Edge, Graph, Json, Node
from planwave.graph.protocols import NodeTypes
from planwave.graph.subgraphs import all_nodes, effects_of, nodes_with_effects, subgraphs_of
from planwave.planner.capabilities import SERVER_TYPE, calls_model
from planwave.providers.protocols import Providers

if TYPE_CHECKING:
    from planwave.shapes.plans import AdditionDocument

_HOST: Final = re.compile(r"\b(?:https?|wss?)://([^\s/?#\"'\\]+)", re.IGNORECASE)
_FIXED_HOST: Final = re.compile(
    r"\s*(?:https?|wss?)://[^\s/?#\"'\\{]+(?:[/?#]|\s*$)", re.IGNORECASE
)
_RUN: Final = re.compile(r"[\w.-]+")
"""What the id of a node is part of, in a text."""
_ADDRESS: Final = re.compile(r"(?:url|uri|endpoint)$", re.IGNORECASE)
"""The fields that hold an address."""
_NAMED: Final = {"tool": ("tool", "name"), SERVER_TYPE: ("server", "server")}
"""By type of node: what a field of its data names."""
_MODEL_HANDLES: Final = ("provider", "model")
"""The fields that name a model, and the ports by which it comes from another node."""
_LOUD: Final = frozenset({"write", "once"})
_ADDRESSED: Final = "addressed host"
"""The kind, within this module, of a host in a field that holds an address."""
_ASKS: Final = "approval"
"""The type whose nodes ask a person; the way on depends on the answer."""


_NOTHING: Final = Graph((), ())
_Resolve = Callable[[str | None, str | None], tuple[str, str]]


class Access(NamedTuple):
    """One thing outside of a graph, and the node of the graph that reaches it.

    ``kind`` is ``effect`` (of each step; its name is the effect and the type: ``write http_tool``), ``tool``, ``server``,
    ``host``, ``provider``, ``model`` or ``flow``; ``link``: a tool that changes something is given to another node;
    ``safeguard``: what fell away (its name says it). ``node`` is the node of the graph itself around it.
    """

    kind: str
    name: str
    node: str


def new_access(
    before: Graph, after: Graph, catalogue: NodeTypes, providers: Providers | None = None
) -> list[Access]:
    """Return what a graph reaches that another one does not, and the safeguards that it lost.

    Steps with effects are compared one by one: what one more of a kind does, or a changed one, nobody has seen. All else
    is named once.

    Args:
        before: That other one.
        after: The graph.
        catalogue: The node types.
        providers: Say which provider and model are the defaults, of steps that name none; None where that is unknown.
    """
    resolve = cache(partial(_resolved, providers))
    known = {each[:2] for each in _access_of(before, catalogue, resolve)}
    new: dict[tuple[str, str], Access] = {}
    for each in _access_of(after, catalogue, resolve):
        if each[:2] not in known:
            named = each._replace(kind="host") if each.kind == _ADDRESSED else each
            new.setdefault(named[:2], named)
    for each in _lost(before, after, catalogue):
        new.setdefault(each[:2], each)
    found = [*_new_acts(before, after, catalogue), *new.values()]
    return found + [e for e in _new_sources(before, after, catalogue) if e[:2] not in new]


def additions_of(
    before: Graph, after: Graph, catalogue: NodeTypes, providers: Providers | None = None
) -> list[AdditionDocument]:
    """Return what ``new_access`` does, as documents have it."""
    found = new_access(before, after, catalogue, providers)
    return [cast("AdditionDocument", each._asdict()) for each in found]


def _access_of(graph: Graph, catalogue: NodeTypes, resolve: _Resolve) -> Iterator[Access]:
    for top in graph.nodes:
        stack: list[tuple[Node, Graph]] = [(top, graph)]
        while stack:
            node, around = stack.pop()
            for kind, name in _of_node(node, around, catalogue, resolve):
                yield Access(kind, name, top.id)
            stack += [(e, inner) for inner in subgraphs_of(node, catalogue) for e in inner.nodes]


def _of_node(
    node: Node, graph: Graph, catalogue: NodeTypes, resolve: _Resolve
) -> Iterator[tuple[str, str]]:
    if node.type in _NAMED:
        kind, field = _NAMED[node.type]
        yield kind, _text(node.data.get(field))
    if calls_model(catalogue, node.type):
        yield from _models_of(node, graph, resolve)
    if "flow" in node.data:
        yield "flow", _text(node.data["flow"])
    yield from _fixed_hosts(node)
    for name in _unfixed_hosts(node, graph):
        yield "host", name


def _models_of(node: Node, graph: Graph, resolve: _Resolve) -> Iterator[tuple[str, str]]:
    """Yield the providers and models of a node, and those that it calls in their place."""
    edges = [
        each for each in graph.incoming.get(node.id, ()) if each.target_handle in _MODEL_HANDLES
    ]
    for name in _computed_models(node, graph):
        yield "model", name
    fallback: Json = node.data.get("fallback")
    others = cast("list[Json]", fallback) if isinstance(fallback, list) else []
    choices = [cast("Mapping[str, Json]", each) for each in others if isinstance(each, dict)]
    for data in (node.data, *choices):
        provider, model = (_named(data.get(name)) for name in _MODEL_HANDLES)
        if edges and not (provider or model):
            continue  # what leads there says it
        provider, model = resolve(provider, model)
        yield "provider", provider
        yield "model", f"{provider}/{model}"


def _computed_models(node: Node, graph: Graph) -> Iterator[str]:
    """Yield where the names of a node's provider and model come from."""
    for edge in graph.incoming.get(node.id, ()):
        if edge.target_handle in _MODEL_HANDLES and edge.channel == FLOW:
            yield f"computed: {edge.source_handle} of {edge.source}"


def _named(value: Json) -> str | None:
    return None if value in (None, "") else _text(value)


def _resolved(
    providers: Providers | None, provider: str | None, model: str | None
) -> tuple[str, str]:
    """Return the provider and the model that a step calls; what is unknown here stays as it is named."""
    with suppress(InputError):
        if providers is not None:
            return providers.resolve(provider, model)
    return provider or "default", model or "default"


def _texts_of(node: Node) -> Iterator[tuple[str, str]]:
    """Yield all texts in the data of a node, each with its field."""
    for field, value in node.data.items():
        stack: list[Json] = [value]
        while stack:
            each = stack.pop()
            if isinstance(each, str):
                yield field, each
            elif isinstance(each, list):
                stack += cast("list[Json]", each)
            elif isinstance(each, dict):
                stack += cast("dict[str, Json]", each).values()


def _fixed_hosts(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the hosts in the texts of a node; those in its addresses in two ways.

    So a host that was only mentioned before, such as in the text of a step, is new where a node asks it.
    """
    for field, text in _texts_of(node):
        for host in _HOST.findall(text):
            if "{" not in host:
                name = host.rpartition("@")[2].lower()
                yield "host", name
                if _ADDRESS.search(field):
                    yield _ADDRESSED, name


def _unfixed_hosts(node: Node, graph: Graph) -> Iterator[str]:
    """Yield the addresses of a node whose host does not stand in them: the whole text, or where it comes from."""
    for field, text in _texts_of(node):
        is_open = any("{" in host for host in _HOST.findall(text))
        if is_open or (text and _ADDRESS.search(field) and not _FIXED_HOST.match(text)):
            yield f"computed: {text}" if "{" in text else text
    for edge in graph.incoming.get(node.id, ()):
        if _ADDRESS.search(edge.target_handle):
            yield f"computed: {edge.source_handle} of {edge.source}"


def _text(value: Json) -> str:
    if isinstance(value, dict):
        fields = cast("dict[str, Json]", value)
        value = fields.get("name") or fields.get("id") or json.dumps(fields, sort_keys=True)
    return value if isinstance(value, str) else json.dumps(value)


# -- steps that change something outside -----------------------------------------------------------


def _new_acts(before: Graph, after: Graph, catalogue: NodeTypes) -> Iterator[Access]:
    """Yield the effects of each step that is new or not as it was, and those that a step had not before.

    A step of another id is a new one, also with the content of one that is gone: that may have acted already.
    """
    acts_before = _acts_of(before, catalogue)
    for node_id, acts in _acts_of(after, catalogue).items():
        old = before.by_id.get(node_id)
        is_same = old is not None and _content(old) == _content(after.by_id[node_id])
        known = acts_before[node_id] if is_same else {}
        for name, is_own in acts.items():
            # A tool that a step is newly given is told as a link.
            if name not in known and (is_own or (old is not None and not is_same)):
                yield Access("effect", name, node_id)


def _acts_of(graph: Graph, catalogue: NodeTypes) -> dict[str, dict[str, bool]]:
    """Return by node its effects and those of the tools that it is given, at any depth: whether it has them itself."""
    own = {
        top.id: [
            f"{effect} {each.type}"
            for each, effect in nodes_with_effects(top, graph, catalogue)
            if effect in _LOUD
        ]
        for top in graph.nodes
    }
    acts: dict[str, dict[str, bool]] = {}
    for node_id, names in own.items():
        given = dict.fromkeys((n for each in _given_to(graph, node_id) for n in own[each]), False)
        acts[node_id] = {**given, **dict.fromkeys(names, True)}
    return acts


def _given_to(graph: Graph, node_id: str) -> set[str]:
    """Return the nodes that are linked to a node, also by way of others."""
    given, stack = set[str](), [node_id]
    while stack:
        for edge in graph.incoming.get(stack.pop(), ()):
            if edge.channel == LINK and edge.source not in given and edge.source in graph.by_id:
                given.add(edge.source)
                stack.append(edge.source)
    return given


# -- where computed addresses and models come from --------------------------------------------------


def _new_sources(before: Graph, after: Graph, catalogue: NodeTypes) -> Iterator[Access]:
    """Yield the nodes that were changed, or newly lead there, and may give a computed address its host, or a model."""
    present = _present_ids(before, after)
    was = {now: before.by_id[then] for then, now in present.items()}
    same = {now for now, then in was.items() if _content(then) == _content(after.by_id[now])}
    ends = {
        (present.get(e.source), e.source_handle, present.get(e.target), e.target_handle)
        for e in before.edges
    }
    named: dict[str, Collection[str]] | None = None
    for node in after.nodes:
        own = dict.fromkeys(_computed(node, after, catalogue))
        nested = [
            each
            for graph in subgraphs_of(node, catalogue)
            for _, inner in all_nodes(graph, catalogue)
            for each in _computed(inner, graph, catalogue)
        ]
        if not own and not nested:
            continue
        named = _named_nodes(after) if named is None else named
        sources, leads = _sources(node, after, ends, named)
        if (
            not nested
            and node.id in was
            and own == dict.fromkeys(_computed(was[node.id], before, catalogue))
        ):
            sources.discard(node.id)  # what it asks for may be new, but not whom
        for each in after.nodes:
            if each.id in leads or (each.id in sources and each.id not in same):
                for kind, name in {**own, **dict.fromkeys(nested)}:
                    yield Access(kind, name, each.id)


def _computed(node: Node, graph: Graph, catalogue: NodeTypes) -> Iterator[tuple[str, str]]:
    """Yield what a node asks that stands only in values: the kind, and the words for it."""
    for name in _unfixed_hosts(node, graph):
        yield "host", name
    if calls_model(catalogue, node.type):
        for name in _computed_models(node, graph):
            yield "model", name


def _sources(
    node: Node,
    graph: Graph,
    present_ends: Collection[tuple[str | None, ...]],
    named: Mapping[str, Collection[str]],
) -> tuple[set[str], set[str]]:
    """Return a node with all nodes whose values may reach it, and those of them that a new edge joins."""
    seen, leads, stack = set[str](), set[str](), [node.id]
    while stack:
        node_id = stack.pop()
        if node_id in seen or node_id not in graph.by_id:
            continue
        seen.add(node_id)
        for edge in graph.incoming.get(node_id, ()):
            stack.append(edge.source)
            if (edge.source, edge.source_handle, node_id, edge.target_handle) not in present_ends:
                leads.add(edge.source)
        stack += named[node_id]
    return seen, leads


def _named_nodes(graph: Graph) -> dict[str, Collection[str]]:
    """Return by node which nodes its templates may name; more than they do where their words say so."""
    most_parts = max((each.count(".") + 1 for each in graph.by_id), default=1)
    named: dict[str, Collection[str]] = {}
    for node in graph.nodes:
        text = " ".join([node.description, *(text for _, text in _texts_of(node))])
        if NODES not in text:
            named[node.id] = ()
        elif may_name_any_node(text):
            named[node.id] = graph.by_id.keys()
        else:
            named[node.id] = graph.by_id.keys() & set(_words(text, most_parts))
    return named


def _words(text: str, most_parts: int) -> Iterator[str]:
    """Yield what may be the id of a node in a text: words, and words joined by dots."""
    for run in _RUN.findall(text):
        parts = run.split(".")
        for start, size in product(range(len(parts)), range(1, most_parts + 1)):
            yield ".".join(parts[start : start + size])


# -- safeguards -------------------------------------------------------------------------------------


def _lost(before: Graph, after: Graph, catalogue: NodeTypes, top: str = "") -> Iterator[Access]:
    """Yield the safeguards that fell away and the tools that are given to others, at any depth."""
    present = _present_ids(before, after)
    for node in before.nodes:
        if node.id not in present:
            for what in _safeguards_of(node, catalogue):
                yield Access("safeguard", what, top or node.id)
            continue
        now = after.by_id[present[node.id]]
        inside = subgraphs_of(node, catalogue), subgraphs_of(now, catalogue)
        for number, inner in enumerate(inside[0]):
            other = inside[1][number] if number < len(inside[1]) else _NOTHING
            yield from _lost(inner, other, catalogue, top or now.id)
    loud = _loud_nodes(after, catalogue)
    for asks, handle in _questions(before):
        reached, unasked = _reached(before, asks, handle)
        still, now_unasked = _reached(after, present.get(asks, ""), handle)
        for node_id in (each.id for each in before.nodes if each.id in reached):
            now_id = present.get(node_id, "")
            is_unasked = now_id not in still or (node_id not in unasked and now_id in now_unasked)
            if now_id in loud and is_unasked:
                name = f"{handle!r} of {asks!r} before {now_id!r}"
                yield Access("safeguard", name, top or now_id)
    linked = {
        (present.get(e.source), present.get(e.target)) for e in before.edges if e.channel == LINK
    }
    for edge in after.edges:
        if (
            edge.channel == LINK
            and edge.source in loud
            and (edge.source, edge.target) not in linked
        ):
            yield Access("link", f"{edge.source} to {edge.target}", top or edge.target)


def _present_ids(before: Graph, after: Graph) -> dict[str, str]:
    """Return the ids that nodes have now; one that is new and the same but for its id was renamed."""
    present = {each: each for each in before.by_id if each in after.by_id}
    new = {_content(each): each.id for each in after.nodes if each.id not in before.by_id}
    for node in before.nodes:
        if node.id not in present and (now := new.pop(_content(node), None)) is not None:
            present[node.id] = now
    return present


def _content(node: Node) -> str:
    return json.dumps(
        [node.type, node.description, dict(node.data), dict(node.policy_document or {})]
    )


def _safeguards_of(node: Node, catalogue: NodeTypes) -> Iterator[str]:
    """Yield what guards a run by a node, and by the nodes inside it."""
    for path, each in all_nodes(Graph((node,), ()), catalogue):
        facts = catalogue.type_info(each.type)
        if each.type == _ASKS:
            yield f"the approval {path!r}"
        for name in each.data:
            if facts and name in facts.policy_fields and name not in facts.plan_fields:
                yield f"{name} of {path!r}"
        if each.policy_document and each.policy_document != (facts and facts.policy):
            yield f"the policy of {path!r}"


def _questions(graph: Graph) -> list[tuple[str, str]]:
    """Return each output of the nodes that ask a person."""
    asks = {each.id for each in graph.nodes if each.type == _ASKS}
    ways = [(e.source, e.source_handle) for e in graph.edges if e.source in asks]
    return list(dict.fromkeys(ways))


def _loud_nodes(graph: Graph, catalogue: NodeTypes) -> set[str]:
    """Return the nodes that change something outside, themselves or by what is linked to them."""
    loud = {
        each.id for each in graph.nodes if not _LOUD.isdisjoint(effects_of(each, graph, catalogue))
    }
    return loud | {
        each.target for each in graph.edges if each.channel == LINK and each.source in loud
    }


def _reached(graph: Graph, asks: str, handle: str) -> tuple[set[str], set[str]]:
    """Return the nodes after one output of a node, and those that may run without it."""
    way = [each for each in graph.outgoing.get(asks, ()) if each.source_handle == handle]
    fed = {each.target for each in graph.edges if each.channel == FLOW}
    starts = [each.id for each in graph.nodes if each.id not in fed]
    return _after(graph, [each.target for each in way], ()), _after(graph, starts, way)


def _after(graph: Graph, starts: Sequence[str], without: Sequence[Edge]) -> set[str]:
    seen, stack = set[str](), [*starts]
    while stack:
        if (node_id := stack.pop()) not in seen:
            seen.add(node_id)
            stack += [
                each.target
                for each in graph.outgoing.get(node_id, ())
                if each.channel == FLOW and each not in without
            ]
    return seen
