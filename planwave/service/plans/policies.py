"""Node policies of one execution: what its caller wants otherwise than the plan says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from planwave.errors import GraphInvalid
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.json_values import JsonLimits, json_findings, pointer_of_name
from planwave.graph.model import Graph, Json, Node
from planwave.graph.reading.policy import read_policy
from planwave.jsonio import MAX_JSON_DEPTH
from planwave.settings import Limits

Policies = Mapping[str, Mapping[str, Json]]
"""``{node_id: {join?, retry?, timeoutS?, onError?, default?, effect?}}``."""

POLICIES: Final = "/policies"
"""Where pointers to what is wrong with policies begin."""


def apply_policies(graph: Graph, policies: Policies | None, limits: Limits | None = None) -> Graph:
    """Return a graph with policies applied over those of its nodes; the argument is not changed.

    A field that is named takes the place of the node's own one, whole; null takes it away. Whether
    the graph can run with them is for the checker to say.

    Raises:
        GraphInvalid: A node there is not, or no policy; with every finding, pointers below
            ``/policies``.
    """
    if not policies:
        return graph
    findings = json_findings(policies, POLICIES, json_limits(limits))
    changed: dict[str, Node] = {}
    for node_id, policy in () if findings else policies.items():
        pointer = POLICIES + pointer_of_name(node_id)
        if (node := graph.by_id.get(node_id)) is None:
            findings.append(_unknown_node(node_id, pointer, graph))
        elif not isinstance(cast(object, policy), Mapping):
            message = f"the policy of node {node_id!r} is {short_repr(policy)}, must be an object"
            findings.append(Diagnostic("invalid-field", "error", message, pointer, node=node_id))
        else:
            changed[node_id], policy_findings = _apply_policy(node, policy, pointer)
            findings += policy_findings
    if findings:
        raise GraphInvalid(findings)
    return Graph(tuple(changed.get(node.id, node) for node in graph.nodes), graph.edges)


def json_limits(limits: Limits | None) -> JsonLimits:
    """Return the limits of JSON from outside."""
    if limits is None:
        return JsonLimits()
    return JsonLimits(min(limits.json_depth, MAX_JSON_DEPTH), limits.string_bytes)


def _apply_policy(
    node: Node, change: Mapping[str, Json], pointer: str
) -> tuple[Node, list[Diagnostic]]:
    both: dict[str, Any] = {**(node.policy_document or {}), **change}
    document = {name: value for name, value in both.items() if value is not None}
    policy, findings = read_policy(document, pointer, node.id)
    return node._replace(policy=policy, policy_document=document or None), findings


def _unknown_node(node_id: str, pointer: str, graph: Graph) -> Diagnostic:
    some = ", ".join(list(graph.by_id)[:8])
    return Diagnostic(
        "unknown-node",
        "error",
        f"there is no node {short_repr(node_id)} to give a policy to",
        pointer,
        hint=f"its nodes are {some}{', …' if len(graph.by_id) > 8 else ''}",
    )
