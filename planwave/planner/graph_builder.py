"""A model's plan as a graph document: defaults filled in, nothing else changed unsaid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from planwave.errors import InputError
from planwave.expressions import escape_templates
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, LINK, Json
from planwave.graph.ports import connection
from planwave.graph.protocols import NodeTypeInfo, NodeTypes
from planwave.graph.reading.unreadable import ALREADY_REPORTED
from planwave.graph.suggestions import MAX_SUGGESTIONS, closest_match
from planwave.planner.capabilities import DEFAULT_TYPE, calls_model
from planwave.planner.reply_schema import ReplyEdge, ReplyNode, ReplyPlan, ReplySource, parse_reply
from planwave.providers.protocols import Providers

_MODEL_FIELDS: Final = ("provider", "model")
_DOCUMENT_NAMES: Final = {
    "channel": "data",
    "source_handle": "sourceHandle",
    "target_handle": "targetHandle",
}
"""Where a graph document has what a reply has under another name."""


class ModelDefaults(NamedTuple):
    """The provider and model of nodes that name none."""

    provider: str
    model: str


class Draft(NamedTuple):
    """A document to be read and checked, and what making it brought to light.

    ``nodes`` counts those in graphs inside nodes too. ``pointers`` are places of the document that the
    reply has elsewhere, with those of the reply.
    """

    document: dict[str, Json]
    fixes: Sequence[str]
    diagnostics: Sequence[Diagnostic]
    nodes: int
    pointers: Mapping[str, str] = MappingProxyType({})

    def reply_pointer(self, pointer: str) -> str:
        """Return the place in the reply of what the document has at a pointer."""
        at, rest = pointer, ""
        while at:
            if (written := self.pointers.get(at)) is not None:
                return f"{written}{rest}" if at.endswith("/nodes") else written
            at, _, part = at.rpartition("/")
            rest = f"/{part}{rest}"
        return pointer


def build_graph(
    plan: ReplyPlan,
    catalogue: NodeTypes,
    providers: Providers,
    defaults: ModelDefaults,
    node_types: Sequence[str] | None = None,
    present: Mapping[str, str] = MappingProxyType({}),
) -> Draft:
    """Return the graph document of a plan, with ``ALREADY_REPORTED`` where an error was reported.

    Args:
        plan: A reply, or what could be read of one.
        catalogue: Says which types ask a model and where they resolve templates.
        providers: Fills in the model of a node that names only its provider.
        defaults: Provider and model of nodes left open.
        node_types: The only types it may use, the first for nodes that name none; None for all.
        present: The types, by id, of nodes that there are already and the plan may depend on.
    """
    drafter = _DraftBuilder(catalogue, providers, defaults, node_types, plan.list_name)
    nodes = [drafter.node(node, f"/nodes/{i}") for i, node in enumerate(plan.nodes)]
    edges = [drafter.edge(edge, i) for i, edge in enumerate(plan.edges)]
    types = {**present, **{node["id"]: node["type"] for node in nodes}}
    for place, target, source in _written_sources(plan):
        drafter.pointers[f"/edges/{len(edges)}"] = place
        edges.append(_edge_of(source, target, types, catalogue))
    document: dict[str, Json] = {"nodes": nodes, "edges": edges}
    for (name, number), refused in plan.unread.entries.items():
        marked = {_DOCUMENT_NAMES.get(field, field): ALREADY_REPORTED for field in refused}
        document[name][number] = (
            {**document[name][number], **marked} if marked else ALREADY_REPORTED
        )
    document.update(dict.fromkeys(plan.unread.lists, ALREADY_REPORTED))
    count = len(plan.nodes) + drafter.nodes_inside
    return Draft(document, drafter.fixes, drafter.diagnostics, count, drafter.pointers)


def _written_sources(plan: ReplyPlan) -> Iterator[tuple[str, str, ReplySource]]:
    """Yield what each step depends on, once: the place in the reply, the id of the step, and the source.

    A step that ``from`` names is not read a second time because ``depends_on`` names it too.
    """
    for number, node in enumerate(plan.nodes):
        place, named = f"/{plan.list_name}/{number}", node.sources or ()
        seen: set[tuple[str | None, ...]] = set()
        by_handle = {source.step for source in named}
        written = [(f"{place}/from/{at}", source) for at, source in enumerate(named)]
        written += [
            (f"{place}/depends_on/{at}", ReplySource(step=step))
            for at, step in enumerate(node.depends_on or ())
            if step not in by_handle
        ]
        for at, source in written:
            key = source.step, source.handle, source.input
            if key not in seen:
                seen.add(key)
                yield at, node.id, source


def _edge_of(
    source: ReplySource, target: str, types: Mapping[str, str], catalogue: NodeTypes
) -> dict[str, Json]:
    """Return the edge by which a step reads a source; the handles that are left open are the fitting ones."""
    out = catalogue.type_info(types.get(source.step, ""))
    into = catalogue.type_info(types.get(target, ""))
    entered = source.input or _fitting_input(out, source.handle, into)
    left, channel = connection(out, source.handle, into, entered)
    document: dict[str, Any] = {"source": source.step, "target": target}
    if left != DEFAULT_SOURCE_HANDLE:
        document["sourceHandle"] = left
    if entered != DEFAULT_TARGET_HANDLE:
        document["targetHandle"] = entered
    return {**document, "data": {"channel": channel}}


def _fitting_input(out: NodeTypeInfo | None, handle: str | None, into: NodeTypeInfo | None) -> str:
    """Return the input that a source goes to which nothing is said of: a socket of its type for a link."""
    if out is None or into is None:
        return DEFAULT_TARGET_HANDLE
    links = {
        port.type
        for port in out.outputs
        if port.channel == LINK and port.name == (handle or (port.name if not out.executes else ""))
    }
    fitting = (port.name for port in into.inputs if port.channel == LINK and port.type in links)
    return next(fitting, DEFAULT_TARGET_HANDLE)


class _DraftBuilder:
    def __init__(
        self,
        catalogue: NodeTypes,
        providers: Providers,
        defaults: ModelDefaults,
        node_types: Sequence[str] | None,
        list_name: str,
    ) -> None:
        self.pointers: dict[str, str] = {}
        if list_name != "nodes":
            self.pointers["/nodes"] = f"/{list_name}"
        self.catalogue = catalogue
        self.providers = providers
        self.defaults = defaults
        self.node_types = node_types
        self.nodes_inside = 0
        self._suggestions_left = MAX_SUGGESTIONS
        self.fixes: list[str] = []
        self.diagnostics: list[Diagnostic] = []

    def node(self, node: ReplyNode, pointer: str) -> dict[str, Json]:
        default = self.node_types[0] if self.node_types else DEFAULT_TYPE
        node_type = default if node.type is None else node.type
        self._check_type(node, node_type, pointer)
        data = self._literal_data(node, node_type)
        document: dict[str, Json] = {"id": node.id, "type": node_type, "data": data}
        for field in self._choose_model(node, node_type, data, pointer):
            data.pop(field, None)
            document[field] = ALREADY_REPORTED
        if not self._build_subgraphs(node, node_type, data, pointer):
            document["data"] = ALREADY_REPORTED
        document["name"] = node.name or node.id
        document["description"] = escape_templates(node.description or "")
        if document["description"] != (node.description or ""):
            self.fixes.append(f"braces in the task of node {node.id!r} are taken literally")
        facts = self.catalogue.type_info(node_type)
        policy = node.policy if facts is None or node.policy is not None else facts.policy
        if policy or node.policy is not None:
            document["policy"] = policy
        if node.ui is not None:
            document["ui"] = node.ui
        return document

    def _check_type(self, node: ReplyNode, node_type: str, pointer: str) -> None:
        exists = self.catalogue.type_info(node_type) is not None
        if self.node_types is None or node_type in self.node_types or not exists:
            return  # what there is not is found by the checker
        message = f"node {node.id!r} has the type {node_type!r}, which this plan may not use"
        hint = f"it may use {', '.join(self.node_types)}"
        self.diagnostics.append(
            Diagnostic("type-not-allowed", "error", message, f"{pointer}/type", node.id, hint=hint)
        )

    def _build_subgraphs(
        self, node: ReplyNode, node_type: str, data: dict[str, Json], pointer: str
    ) -> bool:
        """Draft the graphs in a node as the plan itself is; say whether all could be read."""
        facts = self.catalogue.type_info(node_type)
        fields = () if facts is None else facts.graph_fields
        errors: list[Diagnostic] = []
        for field in fields:
            if not isinstance(data.get(field), dict):
                continue  # the checker says what is wrong with it
            inside, findings = parse_reply(data[field])
            if inside is not None and not findings:
                draft = build_graph(
                    inside, self.catalogue, self.providers, self.defaults, self.node_types
                )
                data[field] = draft.document
                self.fixes += [f"in data.{field} of node {node.id!r}: {fix}" for fix in draft.fixes]
                self.nodes_inside += draft.nodes
                self._add_pointers(f"{pointer}/data/{field}", draft.pointers)
                findings = draft.diagnostics
            errors += [
                replace(
                    each,
                    message=f"node {node.id!r}, data.{field}: {each.message}",
                    pointer=f"{pointer}/data/{field}{each.pointer}",
                    node=node.id,
                )
                for each in findings
            ]
        self.diagnostics += errors
        return not errors

    def _add_pointers(self, inside: str, pointers: Mapping[str, str]) -> None:
        number = inside.removeprefix("/nodes")
        written = f"{self.pointers.get('/nodes', '/nodes')}{number}"
        self.pointers |= {f"{inside}{at}": f"{written}{place}" for at, place in pointers.items()}

    def _without_unknown(self, node: ReplyNode, facts: NodeTypeInfo) -> dict[str, Json]:
        """Return the data without what the type does not know; a misspelt field stays, as an error."""
        data = dict(node.data or {})
        for name in [name for name in data if name not in facts.data_fields]:
            self._suggestions_left -= 1
            if self._suggestions_left < 0 or closest_match(name, facts.data_fields) is None:
                del data[name]
                self.fixes.append(
                    f"dropped data.{name} of node {node.id!r}: "
                    f"type {facts.node_type!r} has no such field"
                )
        return data

    def _literal_data(self, node: ReplyNode, node_type: str) -> dict[str, Json]:
        """Keep the planner's text literal where no plan has templates, or the type would resolve every field."""
        facts = self.catalogue.type_info(node_type)
        data = dict(node.data or {}) if facts is None else self._without_unknown(node, facts)
        if facts is None:
            return data
        literal = {
            key: escape_templates(value)
            if facts.template_fields is None or facts.data_fields.get(key) in facts.plan_literals
            else value
            for key, value in data.items()
        }
        if literal != data:
            self.fixes.append(f"text with braces in node {node.id!r} is taken literally")
        return literal

    def _choose_model(
        self, node: ReplyNode, node_type: str, data: dict[str, Json], pointer: str
    ) -> Sequence[str]:
        """Put the node's provider and model into its data, and the defaults where it names none.

        Returns:
            Fields whose value has a finding already.
        """
        facts = self.catalogue.type_info(node_type)
        if facts is not None and not calls_model(self.catalogue, node_type):
            if node.provider or node.model:
                self.fixes.append(
                    f"dropped provider and model of node {node.id!r}: "
                    f"type {node_type!r} asks no model"
                )
            return ()
        refused: list[str] = []
        for field, value in zip(_MODEL_FIELDS, (node.provider, node.model), strict=True):
            if value and data.get(field) not in (None, value):
                message = f"node {node.id!r} names two values for {field!r}"
                self.diagnostics.append(
                    Diagnostic(
                        "conflicting-field", "error", message, f"{pointer}/data/{field}", node.id
                    )
                )
                refused.append(field)
            elif value:
                data[field] = value
        if facts is None or refused:
            return refused
        try:
            data.update(self._default_model(data.get("provider"), data.get("model")))
        except InputError as error:
            self.diagnostics.append(
                Diagnostic(
                    error.code,
                    "error",
                    f"node {node.id!r}: {error.message}",
                    f"{pointer}/data/model",
                    node.id,
                    hint=error.hint,
                )
            )
            return _MODEL_FIELDS
        return ()

    def _default_model(self, provider: Json, model: Json) -> dict[str, Json]:
        if not provider and not model:
            return {"provider": self.defaults.provider, "model": self.defaults.model}
        if not provider:
            return {"provider": self._provider_of(model)}
        if model or not isinstance(provider, str):
            return {}
        if provider == self.defaults.provider:
            return {"model": self.defaults.model}
        try:
            return {"model": self.providers.resolve(provider, None)[1]}
        except InputError:
            return {}  # the checker says what is wrong with this provider, and what there is

    def _provider_of(self, model: Json) -> str:
        """Return the provider that offers a model.

        The default one where it lists the model, or serves any and no other lists it.

        Raises:
            InputError: That provider is not there.
        """
        if not isinstance(model, str):
            return self.defaults.provider  # the checker says what is wrong with the model
        infos = self.providers.list()
        homes = {info.name for info in infos if info.available and model in info.models}
        serves_any = {i.name for i in infos if i.kind == "openai-compatible" and i.open_models}
        if self.defaults.provider in (homes or serves_any):
            return self.defaults.provider
        return self.providers.resolve(None, model)[0]

    def edge(self, edge: ReplyEdge, index: int) -> dict[str, Json]:
        pointer = f"/edges/{index}"
        data: dict[str, Json] = dict(edge.data or {})
        channel = self._merge_spellings(edge, pointer, "channel", edge.channel, data.get("channel"))
        if channel is not None:
            data["channel"] = channel
        source = self._merge_spellings(
            edge, pointer, "sourceHandle", edge.source_handle, edge.wire_source_handle
        )
        target = self._merge_spellings(
            edge, pointer, "targetHandle", edge.target_handle, edge.wire_target_handle
        )
        document: dict[str, Json] = {
            "id": edge.id,
            "source": edge.source,
            "sourceHandle": source,
            "target": edge.target,
            "targetHandle": target,
            "type": edge.type,
            "data": ALREADY_REPORTED if channel is ALREADY_REPORTED else data,
        }
        return {field: value for field, value in document.items() if value is not None}

    def _merge_spellings(
        self, edge: ReplyEdge, pointer: str, field: str, first: Json, second: Json
    ) -> Json | None:
        """Return the value of a field that has two spellings; report two different values."""
        if first is not None and second is not None and first != second:
            message = f"edge {edge.source!r} -> {edge.target!r} names two values for {field!r}"
            self.diagnostics.append(
                Diagnostic("conflicting-field", "error", message, f"{pointer}/{field}")
            )
            return ALREADY_REPORTED
        return second if first is None else first
