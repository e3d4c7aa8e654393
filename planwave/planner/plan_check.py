"""What a plan that a model wrote may contain, at every depth: its types, effects, servers, fields and edges.

The planner checks replies by it. The executor asks again where a graph starts inside such a plan that
does not stand in it: a stored flow, a plan made while it runs, or whatever a node type of the operator
runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, cast

from planwave.errors import GraphInvalid, PermanentError
from planwave.expressions import has_template, is_literal
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.json_values import pointer_part
from planwave.graph.model import Edge, Graph, Json, Node
from planwave.graph.protocols import NodeTypeInfo, NodeTypes, WrittenBy, effect_of
from planwave.graph.subgraphs import subgraphs_of
from planwave.planner.capabilities import (
    NO_RULES,
    SERVER_TYPE,
    PlanRules,
    offered_fields,
    plannable_types,
    tool_cards,
)

FIELD_CODE: Final = "field-not-for-plans"
TYPE_CODE: Final = "type-not-allowed"


class PlanCheck(NamedTuple):
    """What a plan is checked against.

    Attributes:
        catalogue: The node types.
        rules: The effects and the fields that it may use.
        types: The node types that it may use; None where they were checked before.
    """

    catalogue: NodeTypes
    rules: PlanRules
    types: Collection[str] | None = None

    def findings(self, graph: Graph) -> list[Diagnostic]:
        """Return an error for all that a graph may not contain; of nested graphs at the node around them."""
        return list(self._of_graph(graph))

    def _of_graph(self, graph: Graph) -> Iterator[Diagnostic]:
        numbers = {id(edge): number for number, edge in enumerate(graph.edges)}
        for number, node in enumerate(graph.nodes):
            facts = self.catalogue.type_info(node.type)
            here = f"/nodes/{number}"
            if facts is None or (facts.run_by_nodes and self.types is not None):
                yield from self._of_other_type(node, facts, here)
                continue
            for message in filter(None, self._of_node(node, facts, graph)):
                yield Diagnostic(TYPE_CODE, "error", message, here, node.id)
            for finding in self._of_data(node, facts):
                yield replace(finding, pointer=here + finding.pointer)
            for edge in graph.incoming.get(node.id, ()):
                if (edge.channel, edge.target_handle) in facts.closed_sockets:
                    yield _closed_socket(edge, node, numbers[id(edge)])
            for inner in subgraphs_of(node, self.catalogue):
                for finding in self._of_graph(inner):
                    message = f"in node {node.id!r}: {finding.message}"
                    yield replace(
                        finding, message=message, pointer=f"{here}/data", node=node.id, edge=None
                    )

    def _of_other_type(
        self, node: Node, facts: NodeTypeInfo | None, here: str
    ) -> Iterator[Diagnostic]:
        """Judge what no reply may hold: a type that a node runs by itself, or one that is not known."""
        if facts is None and self.types is not None:  # else the check says so
            yield Diagnostic(TYPE_CODE, "error", _type_message(node), here, node.id)

    def _of_node(self, node: Node, facts: NodeTypeInfo, graph: Graph) -> Iterator[str | None]:
        if self.types is not None and node.type not in self.types:
            yield _type_message(node)
        yield self._effect_not_allowed(node, facts, graph)
        yield self._server_not_offered(node)

    def _effect_not_allowed(self, node: Node, facts: NodeTypeInfo, graph: Graph) -> str | None:
        """Return why an effect is not allowed; what the node says of itself is not believed."""
        if self.rules.effects is None:
            return None
        plain = node._replace(policy=node.policy._replace(effect=None))
        effect = effect_of(plain, facts, graph)
        if effect in self.rules.effects:
            return None
        reason = f" by its data.{facts.effect_by.field}" if facts.effect_by else ""
        return (
            f"node {node.id!r} has the effect {effect!r}{reason}; this plan "
            f"may have {', '.join(sorted(self.rules.effects))}"
        )

    def _server_not_offered(self, node: Node) -> str | None:
        """Return why a server may not be used: the operator has not described it for plans."""
        if node.type != SERVER_TYPE:
            return None
        cards = tool_cards(self.catalogue)
        offered = [card.name for card in cards if card.node_type == SERVER_TYPE]
        if node.data.get("server") in offered:
            return None
        servers = ", ".join(offered) or "none"
        return f"node {node.id!r} names a server that plans may not use; they may use {servers}"

    def set_by_people(self, node: Node) -> dict[str, Json]:
        """Return what stands in the data of a node that no plan may set, by field or ``field.key``."""
        facts = self.catalogue.type_info(node.type)
        names: Mapping[str, str] = {} if facts is None else facts.data_fields
        offered = {} if facts is None else offered_fields(facts, self.rules)
        found: dict[str, Json] = {}
        for key, value in node.data.items():
            field = names.get(key, key)
            if key not in names or field not in offered:
                found[field] = value
            elif keys := offered[field]:
                found |= {f"{field}.{name}": value[name] for name in _other_keys(value, keys)}
        return found

    def _of_data(self, node: Node, facts: NodeTypeInfo) -> Iterator[Diagnostic]:
        offered = offered_fields(facts, self.rules)
        for key, value in node.data.items():
            field, pointer = facts.data_fields.get(key), f"/data/{pointer_part(key)}"
            if field is None and self.types is None:
                continue  # not known to the type: dropped from a reply, or an error of the check
            if field is None or field not in offered:
                yield _not_offered(node, key, pointer, offered)
            elif keys := offered[field]:
                for name in _other_keys(value, keys):
                    yield _not_offered(
                        node, f"{key}.{name}", pointer, [f"{key}.{each}" for each in keys]
                    )
            elif _is_assembled(field, value, facts):
                message = (
                    f"node {node.id!r}: data.{key} stands in the plan, without templates in it"
                )
                yield Diagnostic(FIELD_CODE, "error", message, pointer, node.id)


def admission(catalogue: NodeTypes, planner: object) -> Callable[[Graph, WrittenBy], None]:
    """Return what decides whether a graph may start inside a plan that a model wrote.

    Args:
        catalogue: The node types.
        planner: The planner, whose rules hold; the rules for all plans without one.
    """

    def admit(graph: Graph, written_by: WrittenBy) -> None:
        if findings := _present_findings(catalogue, planner, graph, written_by.node_types):
            raise PermanentError(
                f"a plan that a model wrote cannot run this graph: {findings[0].message}",
                code=findings[0].code,
                hint="write the graph around it yourself, as a flow, to run it there",
            )

    return admit


def require_for_author(
    catalogue: NodeTypes, planner: object, graph: Graph, first: Graph | None
) -> None:
    """Judge a plan that a model wrote by the rules that there are now; what people changed is theirs.

    Args:
        catalogue: The node types.
        planner: See ``admission``.
        graph: The plan, perhaps changed by people since.
        first: What the model wrote; None where that is ``graph``, or not known.

    Raises:
        GraphInvalid: The model wrote what its plans may no longer contain.
    """
    findings = _present_findings(catalogue, planner, graph, None)
    if first is not None:
        changed = {node.id for node in graph.nodes if not _is_same(node, first.by_id.get(node.id))}
        findings = [each for each in findings if each.node not in changed]
    if findings:
        refused = GraphInvalid(
            findings, f"what plans of models may contain has changed since: {findings[0].message}"
        )
        refused.hint = "plan the goal again, or save the graph as a flow of your own"
        raise refused


def _is_same(node: Node, before: Node | None) -> bool:
    return before is not None and (node.type, node.data) == (before.type, before.data)


def _present_findings(
    catalogue: NodeTypes, planner: object, graph: Graph, node_types: Collection[str] | None
) -> list[Diagnostic]:
    """Return what a graph may not contain by the rules of the planner, if it has its own."""
    rules: PlanRules = getattr(planner, "rules", NO_RULES)
    own = rules.restricted_to(node_types)
    return PlanCheck(catalogue, own, plannable_types(catalogue, own)).findings(graph)


def _type_message(node: Node) -> str:
    return f"node {node.id!r} has the type {node.type!r}, which plans of models may not use"


def _not_offered(node: Node, name: str, pointer: str, offered: Collection[str]) -> Diagnostic:
    message = f"node {node.id!r}: a plan may not set data.{name} of the type {node.type!r}"
    hint = f"it may set {', '.join(offered)}" if offered else "it may set none of its fields"
    return Diagnostic(FIELD_CODE, "error", message, pointer, node.id, hint=hint)


def _other_keys(value: Json, keys: Collection[str]) -> list[str]:
    if not isinstance(value, dict):
        return []  # the check says what is wrong with it
    return [name for name in cast("Mapping[str, Json]", value) if name not in keys]


def _is_assembled(field: str, value: Json, facts: NodeTypeInfo) -> bool:
    """Return whether a graph, the name of a flow or a literal has templates that would be resolved."""
    if field in facts.plan_literals:
        return isinstance(value, str) and not is_literal(value)
    if field not in facts.written_fields:
        return False
    is_resolved = facts.template_fields is None or field in facts.template_fields
    return is_resolved and has_template(json.dumps(value))


def _closed_socket(edge: Edge, node: Node, number: int) -> Diagnostic:
    return Diagnostic(
        FIELD_CODE,
        "error",
        f"edge {edge.source!r} -> {node.id!r}: in a plan no edge may lead into "
        f"{edge.target_handle!r} of the type {node.type!r}",
        f"/edges/{number}/target_handle",
        node=node.id,
        edge=edge.id,
        hint="lead it into 'input', or write the value into data where a plan may set it",
    )
